"""Rewards that come late where each decision brings arms of its own.

Usage: python scripts/bench_live_offers.py [--seeds N] [--first S] [--jobs J]

`LiveBandit` on `WGPBandit-LinearContextual-v0` with its linear kernel, T = 1,000, and rewards 0,
1, 3 and 20 decisions late: regret a step with its standard error, and how many times that without
delay it is.
"""

from __future__ import annotations

import argparse
import importlib

import gymnasium
import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import wgp_gym  # noqa: F401 (registers the environments)
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

STEPS, DELAYS = 1_000, (0, 1, 3, 20)
AGENTS = ("adaptive-wgp-ucb", "d-lin-ucb")


def regret(agent: str, delay: int, seed: int) -> float:
    """Return the regret a step."""
    live = importlib.import_module("wgp_agents.live")
    env = gymnasium.make("WGPBandit-LinearContextual-v0", horizon=STEPS)
    observation, info = env.reset(seed=seed)
    problem: BanditProblem = env.unwrapped.problem  # type: ignore[attr-defined]  # a task of ours
    n, dim = problem.domain.shape
    features = {f"x{j}": (0.0, 1.0) for j in range(dim)}
    bandit = live.LiveBandit(
        live.Offers(n, **features), agent=agent, kernel=problem.kernel, seed=seed, horizon=STEPS
    )
    waiting: list[tuple[str, float]] = []
    with threadpool_limits(1):
        for _ in range(STEPS):
            rows = observation[-n * dim :].reshape(n, dim).tolist()
            offers = {str(i): dict(zip(features, row, strict=True)) for i, row in enumerate(rows)}
            decision = bandit.ask(arms=offers)
            observation, reward, _, _, info = env.step(decision.index)
            waiting.append((decision.id, float(reward)))
            if len(waiting) > delay:
                bandit.tell(*waiting.pop(0))
    return float(info["cumulative_regret"]) / STEPS


def shown(values: Array, without: Array) -> str:
    """Return a mean with its standard error, and how many times that without delay it is."""
    error = values.std(ddof=1) / len(values) ** 0.5
    return f"{values.mean():.3f} ({error:.3f}), {values.mean() / without.mean():.2f}"


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    seeds = range(given.first, given.first + given.seeds)
    print(f"| | {' | '.join(f'{d} late' for d in DELAYS)} |\n|---|{'---:|' * len(DELAYS)}")
    for agent in AGENTS:
        found = [
            np.array(Parallel(given.jobs)(delayed(regret)(agent, d, seed) for seed in seeds))
            for d in DELAYS
        ]
        print(f"| {agent} | {' | '.join(shown(row, found[0]) for row in found)} |", flush=True)


if __name__ == "__main__":
    main()
