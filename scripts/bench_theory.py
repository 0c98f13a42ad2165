"""Measure what quadrature features, the tight width, large domains and boxes cost and earn.

Usage: python scripts/bench_theory.py [--quick] [--json FILE]

All times are of one thread, medians over the steps.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
from threadpoolctl import threadpool_limits

import wgp_agents
import wgp_gym  # noqa: F401 (registers the environments)
from wgp_agents.gp.gain import double_weights, greedy_gains
from wgp_gym.envs.optimum import grid
from wgp_gym.features import exact_features
from wgp_gym.kernels import SquaredExponential

Rows = list[tuple[str, float, str]]
GIB = 2**20  # in the kibibytes that `resource` counts


def play(
    agent_name: str, steps: int, seed: int, kwargs: dict[str, Any], **parameters: Any
) -> tuple[float, float]:
    """Return the regret of one learner and the median milliseconds of its act + observe."""
    env: Any = gymnasium.make("WGPBandit-Abrupt-v0", **kwargs)
    observation, info = env.reset(seed=seed)
    agent = wgp_agents.make(agent_name, env, variation_budget="known", **parameters)
    agent.reset(seed)
    spent = []
    for _ in range(steps):
        start = time.perf_counter()
        action = agent.act(observation)
        between = time.perf_counter()
        observation, reward, _, _, info = env.step(action)
        again = time.perf_counter()
        agent.observe(action, reward)
        spent.append(time.perf_counter() - again + between - start)
    return float(info["cumulative_regret"]), 1e3 * float(np.median(spent))


def step_time(agent_name: str, steps: int, kwargs: dict[str, Any], **parameters: Any) -> float:
    """Return the median milliseconds of a step, the best of three runs."""
    return min(play(agent_name, steps, 0, kwargs, **parameters)[1] for _ in range(3))


def quadrature(steps: int) -> Rows:
    """Compare a step on the paper's quadrature features with one on the exact features."""
    rows: Rows = []
    for name, kwargs in (
        ("100 arms", {}),
        ("box, d = 1", {"continuous": True}),
        ("box, d = 2", {"continuous": True, "dim": 2, "points_per_dim": 50}),
    ):
        ratio = step_time("qff-wgp-ucb", steps, kwargs) / step_time("wgp-ucb", steps, kwargs)
        rows.append((f"qff-wgp-ucb's step over wgp-ucb's, {name}", ratio, "times"))
    return rows


def tight(steps: int) -> Rows:
    """Compare a step with the tight width with one with the standard width."""
    ratio = step_time("wgp-ucb", steps, {}, width="tight") / step_time("wgp-ucb", steps, {})
    return [("width tight over standard, one step, 100 arms", ratio, "times")]


def greedy() -> Rows:
    """Time the whole sequence of greedy gains."""
    table = exact_features(SquaredExponential(0.2), grid(100, 1)).table
    weights = double_weights(0.97, 500)
    greedy_gains(table, weights, 0.01)
    start = time.perf_counter()
    greedy_gains(table, weights, 0.01)
    return [("greedy gains, T = 500, 100 arms", 1e3 * (time.perf_counter() - start), "ms")]


def box(seeds: int) -> Rows:
    """Compare continuous WGP-UCB with that on a 50 x 50 grid, in d = 2, T = 500."""
    kwargs = {"dim": 2, "points_per_dim": 50}
    box_runs = [play("wgp-ucb", 500, s, kwargs | {"continuous": True}) for s in range(seeds)]
    grid_runs = [play("wgp-ucb", 500, s, kwargs) for s in range(seeds)]
    regrets = [float(np.mean([regret for regret, _ in runs])) for runs in (box_runs, grid_runs)]
    milliseconds = float(np.median([spent for _, spent in box_runs]))
    return [
        ("box, d = 2, T = 500: one step of one learner", milliseconds, "ms"),
        (f"its mean regret, {seeds} seeds", regrets[0], ""),
        (f"that on the 50 x 50 grid, {seeds} seeds", regrets[1], ""),
        ("ratio", regrets[0] / regrets[1], "times"),
    ]


def large(points_per_dim: int, steps: int) -> Rows:
    """Time a step on a large grid in d = 2; peak memory is that of this process."""
    kwargs = {"dim": 2, "points_per_dim": points_per_dim}
    _, spent = play("wgp-ucb", steps, 0, kwargs)
    name = f"{points_per_dim**2:,} arms, d = 2"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / GIB
    return [(f"{name}: one step", spent, "ms"), (f"{name}: peak memory", peak, "GiB")]


def climb(seeds: int) -> Rows:
    """Measure how far below the top of a dense grid the plays' bounds stay, in units of beta."""
    rows: Rows = []
    cases = ((1, 0.05, 100, 2_001), (1, 0.2, 100, 2_001), (2, 0.1, 20, 141), (2, 0.2, 20, 141))
    for dim, lengthscale, points, dense in (*cases, (3, 0.2, 8, 31), (3, 0.5, 8, 31)):
        kwargs: dict[str, Any] = {"dim": dim, "points_per_dim": points}
        kwargs["lengthscale"] = lengthscale
        misses = []
        for seed in range(seeds):
            env: Any = gymnasium.make("WGPBandit-Abrupt-v0", continuous=True, horizon=60, **kwargs)
            env.reset(seed=seed)
            problem = replace(env.unwrapped.problem, domain=grid(dense, dim))
            agent: Any = wgp_agents.make("wgp-ucb", env)
            twin: Any = wgp_agents.make("wgp-ucb", problem)  # the same learner, on a dense grid
            for learner in (agent, twin):
                learner.reset(seed)
            for t in range(60):
                point = agent.act()
                reward = env.step(point)[1]
                if t % 6 == 5:
                    place = replace(problem, domain=np.asarray(point, float)[None])
                    top = float(twin.confidence_interval().upper.max())
                    twin.problem = place
                    misses.append((top - float(twin.confidence_interval().upper[0])) / twin.beta())
                    twin.problem = problem
                for learner in (agent, twin):
                    learner.observe(point, reward)
        name = f"box, d = {dim}, l = {lengthscale}: {len(misses)} plays below a grid's top by"
        rows.append((f"{name} at most", max(0.0, *misses), "beta"))
        rows.append((f"{name} over 0.001 beta", float(np.mean(np.array(misses) > 1e-3)), "share"))
    return rows


SECTIONS: dict[str, Callable[[bool], Rows]] = {
    "quadrature": lambda quick: quadrature(100 if quick else 500),
    "tight": lambda quick: tight(100 if quick else 500),
    "greedy": lambda quick: greedy(),
    "box": lambda quick: box(2 if quick else 20),
    "climb": lambda quick: climb(1 if quick else 4),
    "10,000": lambda quick: large(100, 10 if quick else 50),
    "100,000": lambda quick: large(316, 3 if quick else 10),
}


def main() -> None:
    """Measure each section in a process of its own, so that peaks of memory do not mix."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer steps and seeds")
    parser.add_argument("--json", type=Path, help="write the rows to this file, too")
    parser.add_argument("--section", choices=SECTIONS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.section:
        with threadpool_limits(limits=1):
            print(json.dumps(SECTIONS[options.section](options.quick)))
        return
    rows: Rows = []
    for section in SECTIONS:
        command = [sys.executable, __file__, "--section", section]
        command += ["--quick"] if options.quick else []
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout)
        for name, value, unit in found:
            print(f"{name:75}{value:10.3g} {unit}", flush=True)
        rows += found
    if options.json:
        options.json.write_text(json.dumps(rows, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
