"""Measure learned-wgp-ucb beside its untrained gate and the adaptive agent, on the same episodes.

`python -m scripts.bench_gate table` prints docs/adaptive.md's table, of 100 validation episodes a
row, with `--gate FILE` that of another gate; `widths` prints mean regrets by the bound's width, on
other episodes, from which the width is chosen; `cost` the time of a step beside the adaptive
agent's.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import wgp_agents
from wgp_agents.base import Agent
from wgp_agents.benchmark.rollout import make_vector
from wgp_gym.types import Array

VALIDATION = 10**15  # no training sees these seeds
CHOOSING = VALIDATION + 10**6
ABRUPT, SLOW, REST = (f"WGPBandit-{name}-v0" for name in ("Abrupt", "Slow", "Stationary"))
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "abrupt": (ABRUPT, {}),
    "slow": (SLOW, {}),
    "changes at 250 and 400": (ABRUPT, {"change_points": [250, 400]}),
    "none": (REST, {}),
    "nine": (ABRUPT, {"change_points": [*range(50, 500, 50)]}),
    "noise 1": (ABRUPT, {"noise_std": 1.0}),
    "Matern": (ABRUPT, {"kernel": "matern"}),
    "lengthscale 0.1": (ABRUPT, {"lengthscale": 0.1}),
    "slow, noise 1": (SLOW, {"noise_std": 1.0}),
}
CHOSEN_ON = ("abrupt", "slow", "nine", "noise 1", "lengthscale 0.1", "slow, noise 1")
Make = Callable[[Any], Agent]


def regrets(row: str, make: Make, first: int, episodes: int) -> Array:
    """Return the final regrets of an agent, `(episodes,)`."""
    name, kwargs = ROWS[row]
    env = make_vector(name, episodes, **kwargs)
    observation, info = env.reset(seed=first)
    agent = make(env)
    agent.reset(first)
    for _ in range(500):
        action = agent.act(observation)
        observation, reward, _, _, info = env.step(action)
        agent.observe(action, reward)
    found: Array = info["cumulative_regret"].copy()
    return found


def learned(gate: str, width: float | None = None) -> Make:
    """Return how the learned agent is made."""
    return lambda env: wgp_agents.make("learned-wgp-ucb", env, gate=gate, width=width)


def print_table(gate: str, episodes: int) -> None:
    """Print means with standard errors, medians and worst runs, and the paired difference."""
    agents: dict[str, Make] = {
        "learned": learned(gate),
        "untrained": learned("untrained"),
        "adaptive": lambda env: wgp_agents.make("adaptive-wgp-ucb", env),
    }
    print(f"| task | {' | '.join(agents)} | untrained - learned |", flush=True)
    means = []
    for row in ROWS:
        found = {name: regrets(row, make, VALIDATION, episodes) for name, make in agents.items()}
        cells = [cell(one) for one in found.values()]
        means.append([one.mean() for one in found.values()])
        saved = found["untrained"] - found["learned"]
        cells.append(f"{saved.mean():.0f} ({error(saved):.1f})")
        print(f"| {row} | {' | '.join(cells)} |", flush=True)
    print("geometric means:", np.exp(np.log(means).mean(axis=0)).round(1).tolist())


def error(values: Array) -> float:
    """Return the standard error of a mean."""
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def cell(values: Array) -> str:
    """Return mean, standard error, median and worst."""
    shown = f"{values.mean():.0f} ({error(values):.1f})"
    return f"{shown}, {np.median(values):.0f}, {values.max():.0f}"


def print_widths(gate: str, episodes: int) -> None:
    """Print mean regrets by width, and their geometric means."""
    for width in (1.25, 1.5, 1.75, 2.0, 2.25, 2.5):
        make = learned(gate, width)
        means = np.array([regrets(row, make, CHOOSING, episodes).mean() for row in CHOSEN_ON])
        together = float(np.exp(np.log(means).mean()))
        print(f"{width:4} {together:6.1f}", means.round(1).tolist(), flush=True)


def print_cost(gate: str) -> None:
    """Print microseconds of a step of act and observe, the best of five episodes."""
    for batch in (1, 100):
        for name, parameters in (("adaptive-wgp-ucb", {}), ("learned-wgp-ucb", {"gate": gate})):
            env, best = make_vector(ABRUPT, batch), np.inf
            for seed in range(5):
                observation, _ = env.reset(seed=seed)
                agent, spent = wgp_agents.make(name, env, **parameters), 0.0
                agent.reset(seed)
                for _ in range(200):
                    start = time.perf_counter()
                    action = agent.act(observation)
                    spent -= start - time.perf_counter()
                    observation, reward, *_ = env.step(action)
                    start = time.perf_counter()
                    agent.observe(action, reward)
                    spent -= start - time.perf_counter()
                best = min(best, spent / 200 / batch)
            print(f"{name}, B = {batch}: {best * 1e6:.0f} microseconds a learner", flush=True)


def main() -> None:
    """Print what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("table", "widths", "cost"))
    parser.add_argument("--gate", default="general")
    parser.add_argument("--episodes", type=int, default=100)
    given = parser.parse_args()
    if given.what == "table":
        print_table(given.gate, given.episodes)
    elif given.what == "widths":
        print_widths(given.gate, given.episodes)
    else:
        print_cost(given.gate)


if __name__ == "__main__":
    main()
