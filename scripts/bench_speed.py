"""Measure the project's speed against its two natural rivals, in one process and one thread.

Usage: python scripts/bench_speed.py [--quick] [--json FILE]

The rivals play the very same WGP-UCB rule on the same episodes: scikit-learn's Gaussian process
fitted anew at every step with alpha = lambda / w, and the dense form that inverts a 100 x 100
matrix at every step. All three agree on every action, or the script stops. The
rule is the whole of it for all: posterior, information gain, confidence width, choice. The gain
is computed as each rival's user would, over t data points or 100 arms; its share is shown.
Needs the `dev` extra (scikit-learn).
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from threadpoolctl import threadpool_limits

import wgp_agents
from wgp_agents.benchmark.figures.figure1 import COMPETITORS
from wgp_agents.benchmark.rollout import Rollout, make_vector, rollout
from wgp_agents.gp.width import deng_width
from wgp_gym.envs import SyntheticTask

LAMBDA, LENGTHSCALE, DISCOUNT, HORIZON = 0.01, 0.2, 0.95, 500
DOMAIN = np.linspace(0.0, 1.0, 100)[:, None]
K = np.exp(-((DOMAIN - DOMAIN.T) ** 2) / (2 * LENGTHSCALE**2))
Rows = list[tuple[str, float, str]]


def sklearn_posterior(
    arms: NDArray[np.int64], rewards: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and std on the domain from a fit to all data with alpha = lambda / w."""
    age = np.arange(len(arms))[::-1]
    model = GaussianProcessRegressor(
        RBF(LENGTHSCALE, "fixed"), alpha=LAMBDA / DISCOUNT**age, optimizer=None
    )
    mean, std = model.fit(DOMAIN[arms], rewards).predict(DOMAIN, return_std=True)
    return mean, std


def dense_posterior(
    arms: NDArray[np.int64], rewards: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the same from M = K (lambda I + W K)^{-1}, W the summed weights of each arm."""
    weights = DISCOUNT ** np.arange(len(arms))[::-1]
    W = np.bincount(arms, weights, minlength=100)
    totals = np.bincount(arms, weights * rewards, minlength=100)
    M = K @ np.linalg.inv(LAMBDA * np.eye(100) + W[:, None] * K)
    variance = K.diagonal() - np.einsum("ij,j,ji->i", M, W, K)
    return M @ totals, np.sqrt(np.maximum(variance, 0.0))


def sklearn_gain(arms: NDArray[np.int64]) -> float:
    """Return 1/2 log det(I + D K D / lambda) over the t data points, D their weights."""
    weights = DISCOUNT ** np.arange(len(arms))[::-1]
    weighted = weights[:, None] * RBF(LENGTHSCALE)(DOMAIN[arms]) * weights
    return 0.5 * float(np.linalg.slogdet(np.eye(len(arms)) + weighted / LAMBDA)[1])


def dense_gain(arms: NDArray[np.int64]) -> float:
    """Return 1/2 log det(I + W2 K / lambda), W2 the summed squared weights of each arm."""
    squares = DISCOUNT ** (2 * np.arange(len(arms))[::-1])
    W2 = np.bincount(arms, squares, minlength=100)
    return 0.5 * float(np.linalg.slogdet(np.eye(100) + W2[:, None] * K / LAMBDA)[1])


def rival(
    posterior: Callable[..., Any], gain: Callable[..., float], played: Rollout, steps: int
) -> tuple[float, float]:
    """Follow a run of ours by the rival's own bounds; return its seconds, and the gain's share.

    Raises:
        SystemExit: If the rival would have played another arm, ties apart.
    """
    arms, rewards = played["action"][0], played["reward"][0]
    constants = (played.norm_bounds[0], 0.1, LAMBDA, 0.1)
    seconds = gain_seconds = 0.0
    for t in range(1, steps):
        start = time.perf_counter()
        beta = deng_width(*map(np.asarray, (*constants, gain(arms[:t]))))
        gain_seconds += time.perf_counter() - start
        mean, std = posterior(arms[:t], rewards[:t])
        bound = mean + beta * std
        best = int(np.argmax(bound))
        seconds += time.perf_counter() - start
        if bound[arms[t]] < bound[best] - 1e-5:
            raise SystemExit(f"At step {t + 1} the rival plays another arm: no fair comparison.")
    return seconds, gain_seconds


def our_run(seed: int, steps: int) -> Rollout:
    """Play a run with the project's agent."""
    env = gymnasium.make("WGPBandit-Abrupt-v0", horizon=steps)
    agent = wgp_agents.make("wgp-ucb", env, discount=DISCOUNT, regularization=LAMBDA)
    return rollout(agent, env, seed)


def panel_seconds(runs: int, steps: int, agents: tuple[str, ...]) -> float:
    """Return the best of three times for `runs` runs of each agent, in batches."""
    env = make_vector("WGPBandit-Abrupt-v0", runs, horizon=steps)
    env.reset(seed=0)
    times = []
    for _ in range(4):  # the first warms up
        start = time.perf_counter()
        for name in agents:
            rollout(wgp_agents.make(name, env), env, 0)
        times.append(time.perf_counter() - start)
    return min(times[1:])


def measure_panel(quick: bool) -> Rows:
    """Compare one panel, and WGP-UCB alone, with both rivals; everybody's best of three counts."""
    steps = 200 if quick else HORIZON
    played = our_run(7, steps)
    panel = panel_seconds(100, steps, COMPETITORS) / 400
    alone = panel_seconds(100, steps, ("wgp-ucb",)) / 100
    neural = panel_seconds(100, steps, ("neural-greedy",)) / 100
    rows = [
        ("one run of a panel (mean of 4 agents x 100 runs), ours", panel * 1e3, "ms"),
        ("one run of WGP-UCB in a batch of 100, ours", alone * 1e3, "ms"),
        ("one run of neural-greedy in a batch of 100, over that", neural / alone, "times"),
    ]
    for name, posterior, gain in (
        ("scikit-learn", sklearn_posterior, sklearn_gain),
        ("dense", dense_posterior, dense_gain),
    ):
        seconds, gain_seconds = min(rival(posterior, gain, played, steps) for _ in range(3))
        rows.append((f"one run of {steps} steps, {name}", seconds * 1e3, "ms"))
        rows.append((f"  of that the information gain, {name}", gain_seconds * 1e3, "ms"))
        rows.append((f"{name} / ours, panel", seconds / panel, "times"))
        rows.append((f"{name} / ours, WGP-UCB in a batch", seconds / alone, "times"))
    return rows


def measure_long(quick: bool) -> Rows:
    """Compare WGP-UCB's cost per step early and late, and watch the memory."""
    end = 5_000 if quick else 100_000
    problem = SyntheticTask("constant").problem()
    agent = wgp_agents.make("wgp-ucb", problem, discount=0.9, norm_bound=1.0)
    agent.reset(0)
    rng = np.random.default_rng(0)
    rewards = rng.normal(size=end)
    costs = np.zeros(end)
    peak = {}
    for t in range(end):
        start = time.perf_counter()
        agent.observe(agent.act(), rewards[t])
        costs[t] = time.perf_counter() - start
        if t + 1 in (end // 10, end):
            peak[t + 1] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    early, late = np.median(costs[:500]), np.median(costs[end // 2 :][:500])
    return [
        ("WGP-UCB, one learner, act + observe, steps 1-500", early * 1e6, "us"),
        (f"the same at step {end // 2}, over that", late / early, "times"),
        (f"peak memory grown from step {end // 10} to {end}", peak[end] - peak[end // 10], "MiB"),
    ]


def measure_agents() -> Rows:
    """Measure act + observe of each agent, one learner alone."""
    rows: Rows = []
    env = gymnasium.make("WGPBandit-Abrupt-v0")
    for name in COMPETITORS:
        env.reset(seed=0)
        agent = wgp_agents.make(name, env)
        agent.reset(0)
        times = []
        for _ in range(1_000):
            start = time.perf_counter()
            agent.observe(agent.act(), 0.5)
            times.append(time.perf_counter() - start)
        rows.append((f"{name}, one learner, act + observe", float(np.median(times)) * 1e6, "us"))
    return rows


def measure_environments() -> Rows:
    """Measure the environments' steps."""
    rows: Rows = []
    for env_id in ("WGPBandit-Abrupt-v0", "WGPBandit-Slow-v0", "WGPBandit-Stock-v0"):
        env = gymnasium.make(env_id)
        best = min(episode_seconds(env, 3, HORIZON - 1) for _ in range(9))
        rows.append((f"{env_id}, one step", best / (HORIZON - 1) * 1e6, "us"))
        batch = make_vector(env_id, 1_024)
        arms = np.full(1_024, 3)
        best = min(episode_seconds(batch, arms, HORIZON - 1) for _ in range(3))
        rate = 1_024 * (HORIZON - 1) / best / 1e6
        rows.append((f"{env_id}, 1,024 at once", rate, "million steps per second"))
    return rows


def episode_seconds(env: Any, action: Any, steps: int) -> float:
    """Return the seconds of some steps after a reset."""
    env.reset(seed=0)
    start = time.perf_counter()
    for _ in range(steps):
        env.step(action)
    return time.perf_counter() - start


def measure_reproduce() -> Rows:
    """Measure the whole main job, in a process of its own."""
    command = [str(Path(sys.executable).with_name("wgp-gym")), "reproduce", "--out"]
    with tempfile.TemporaryDirectory() as folder:
        before = os.times()
        subprocess.run([*command, folder], check=True, capture_output=True)
        after = os.times()
    spent = sum(after[2:4]) - sum(before[2:4])  # user's and system's, of children and theirs
    return [
        ("wgp-gym reproduce, whole", after.elapsed - before.elapsed, "s"),
        ("... processor time of all its processes", spent, "s"),
    ]


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="shorter runs, for a first look")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    with threadpool_limits(1):
        rows = measure_environments() + measure_agents()
        rows += measure_panel(options.quick) + measure_long(options.quick)
    rows += measure_reproduce()
    for name, value, unit in rows:
        print(f"{name:62}{value:12.4g} {unit}")
    if options.json:
        options.json.write_text(json.dumps([list(row) for row in rows], indent=2))


if __name__ == "__main__":
    main()
