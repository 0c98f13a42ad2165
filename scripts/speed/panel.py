"""A run of WGP-UCB beside scikit-learn's Gaussian process and the dense form.

The rivals play the very same rule on the same episodes: scikit-learn's Gaussian process fitted anew
at every step with alpha = lambda / w, and the dense form that inverts a 100 x 100 matrix at every
step. All three agree on every action, or the script stops. The rule is the whole of it for all:
posterior, information gain, confidence width, choice. The gain is computed as each rival's user
would, over t data points or 100 arms; its share is shown.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import wgp_agents
from scripts.speed.rows import Row
from wgp_agents.benchmark.figures.figure1 import COMPETITORS
from wgp_agents.benchmark.rollout import Rollout, make_vector, rollout
from wgp_agents.gp.width import deng_width

LAMBDA, LENGTHSCALE, DISCOUNT, HORIZON = 0.01, 0.2, 0.95, 500
DOMAIN = np.linspace(0.0, 1.0, 100)[:, None]
K = np.exp(-((DOMAIN - DOMAIN.T) ** 2) / (2 * LENGTHSCALE**2))


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


def measure(quick: bool) -> list[Row]:
    """Compare one panel, and WGP-UCB alone, with both rivals; everybody's best of three counts."""
    steps = 200 if quick else HORIZON
    played = our_run(7, steps)
    panel = panel_seconds(100, steps, COMPETITORS) / 400
    alone = panel_seconds(100, steps, ("wgp-ucb",)) / 100
    rows = []
    for name, posterior, gain in (
        ("scikit-learn", sklearn_posterior, sklearn_gain),
        ("the dense form", dense_posterior, dense_gain),
    ):
        seconds, gains = min(rival(posterior, gain, played, steps) for _ in range(3))
        told = f"{name}, of that {gains / seconds:.0%} the gain"
        for what, ours in (
            ("one run of WGP-UCB, in a batch of 100", alone),
            ("one run of a panel, mean of 4 agents x 100 runs", panel),
        ):
            what = f"{what}, {steps} steps, environment and all"
            rows.append(Row(what, 1e3 * ours, "ms", told, 1e3 * seconds))
    return rows
