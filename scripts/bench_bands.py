"""Measure how often bands hold the function: the table of docs/agents.md, section "Bands".

Usage: python scripts/bench_bands.py [--only AGENT ...] [--runs N] [--every K] [--seed S] [--when]

Each agent plays N runs of the synthetic tasks with T = 500 and noise 0.1 and 1. At every K-th step
from the third on (before it no band is finite), before its reward is learned, mean -+ 1.96 std is
compared with f_t: at all arms and at the arm played, for the std of `bands()` and for that of
`posterior()`. An infinite band counts as a miss. Beside the two shares stands the median std over
the standard deviation of f_t over the arms.
`--when` prints the shares by the steps since the last change of the abrupt task instead.

The seeds are not those by which anything was chosen.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import wgp_agents
from wgp_agents.benchmark.rollout import make_vector
from wgp_gym.types import Array

AGENTS = (
    *("adaptive-wgp-ucb", "gp-ucb", "tv-gp-ucb", "tv-r-gp-ucb", "et-gp-ucb", "ui-gp-ucb", "w-dbo"),
    *("gp-ts", "wgp-ucb", "igp-ucb", "pe-gp-ucb"),
)
TASKS = ("Abrupt", "Slow", "Stationary", "Markov")
NOISES = (0.1, 1.0)
SEED, WIDTH, FIRST = 31_415_926, 1.96, 2
SINCE = (0, 10, 30, 100, 500)  # steps since the last change


class Moment(NamedTuple):
    """What was seen at one step of B runs.

    Attributes:
        step: The step, from 0.
        since: Steps since the function last changed, or began, `(B,)`.
        held: Whether each arm's f_t was in its band, `(B, n)`, of `bands()` and of `posterior()`.
        played: The same at the arm played, `(B,)` each.
        width: The median std over the spread of f_t, each.
    """

    step: int
    since: Array
    held: tuple[Array, Array]
    played: tuple[Array, Array]
    width: tuple[float, float]


def watch(name: str, task: str, noise: float, runs: int, every: int, seed: int) -> Iterator[Moment]:
    """Play an agent, and yield what its bands hold at every so many steps."""
    env: Any = make_vector(f"WGPBandit-{task}-v0", runs, noise_std=noise)
    observation, _ = env.reset(seed=seed)
    agent: Any = wgp_agents.make(name, env)
    agent.reset(seed)
    rows, since = np.arange(runs), np.zeros(runs, np.int64)
    for t in range(agent.problem.horizon):
        truth = env.unwrapped.expected_rewards()
        looks = t >= FIRST and (t - FIRST) % every == 0
        both = (agent.bands(), agent.posterior()) if looks else ()
        actions = agent.act(observation)
        observation, rewards, _, _, info = env.step(actions)
        since = np.where(info["changed"], 0, since + 1)
        if looks:
            held, played, widths = [], [], []
            for mean, std in both:
                inside = (np.abs(truth - mean) <= WIDTH * std) & np.isfinite(std)
                held.append(inside)
                played.append(inside[rows, actions])
                widths.append(float(np.median(std)) / float(truth.std(axis=1).mean()))
            yield Moment(t, since, tuple(held), tuple(played), tuple(widths))  # type: ignore[arg-type]
        agent.observe(actions, rewards)


def shares(moments: list[Moment]) -> list[tuple[float, float, float]]:
    """Return coverage at all arms and at the arm played, and the width, of both bands."""
    found = []
    for which in (0, 1):
        held = np.mean([m.held[which] for m in moments])
        played = np.mean([m.played[which] for m in moments])
        width = np.median([m.width[which] for m in moments])
        found.append((float(held), float(played), float(width)))
    return found


def by_age(moments: list[Moment]) -> str:
    """Return coverage of `bands()` at all arms and at the arm played, by steps since a change."""
    cells = []
    for start, end in itertools.pairwise(SINCE):
        now = [(m.since >= start) & (m.since < end) for m in moments]
        pairs = list(zip(now, moments, strict=True))
        held = np.concatenate([m.held[0][mask].ravel() for mask, m in pairs])
        played = np.concatenate([m.played[0][mask] for mask, m in pairs])
        cells.append(f"{start}-{end - 1}: {held.mean():.2f} / {played.mean():.2f}")
    return ", ".join(cells)


def cell(found: tuple[float, float, float]) -> str:
    """Return shares and width as the table has them."""
    return "{:.2f} / {:.2f} ({:.2f})".format(*found)


def main() -> None:
    """Print the table, a row for each agent and band."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", nargs="+", default=AGENTS)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--every", type=int, default=8)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--when", action="store_true")
    options = parser.parse_args()
    how = options.runs, options.every, options.seed
    columns = [(task, noise) for task in TASKS for noise in NOISES]
    print("| |", " | ".join(f"{task.lower()} {noise:g}" for task, noise in columns), "|")
    print("|---|" + "---:|" * len(columns))
    with threadpool_limits(limits=1):
        for name in options.only:
            if options.when:
                for noise in NOISES:
                    print(name, noise, by_age(list(watch(name, "Abrupt", noise, *how))), flush=True)
                continue
            found = [shares(list(watch(name, task, noise, *how))) for task, noise in columns]
            for which, label in enumerate((f"`{name}`", "its `posterior()`")):
                cells = " | ".join(cell(one[which]) for one in found)
                print("|", label, "|", cells, "|", flush=True)


if __name__ == "__main__":
    main()
