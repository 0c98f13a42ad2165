"""Environments: a single step, and whole episodes of many at once, resets counted."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np

from scripts.speed.rows import Row, best
from wgp_agents.benchmark.rollout import make_vector

SINGLE = ("WGPBandit-Abrupt-v0", "WGPBandit-Slow-v0", "WGPBandit-Stock-v0")
MANY = dict.fromkeys(SINGLE, 1_000) | {"WGPBandit-LinearContextual-v0": 500}


def steps(env: Any, action: Any, count: int) -> None:
    """Take some steps."""
    for _ in range(count):
        env.step(action)


def single_step(env_id: str) -> float:
    """Return the microseconds of one step, within an episode."""
    env, count = gymnasium.make(env_id), 400
    spent = []
    for _ in range(9):
        env.reset(seed=0)
        spent.append(best(lambda: steps(env, 3, count), 1) / count)
    return 1e6 * min(spent)


def together(env_id: str, count: int, repeats: int) -> list[Row]:
    """Measure many environments in one: a reset, and an episode with it."""
    env = make_vector(env_id, count)
    env.reset(seed=0)
    horizon = env.unwrapped.problem.horizon
    arms = np.full(count, 3)
    reset = best(lambda: env.reset(seed=0), repeats)
    played = best(lambda: steps(env, arms, horizon - 1), 1)
    rate = count * (horizon - 1) / (reset + played) / 1e6
    what = f"`{env_id}`, {count:,} at once"
    return [
        Row(f"{what}, reset", 1e3 * reset, "ms"),
        Row(f"{what}, an episode with its reset", rate, "million steps/s", more=True),
    ]


def measure(quick: bool) -> list[Row]:
    """Measure single steps, resets of many at once, and their episodes."""
    rows = [Row(f"`{env_id}`, one step", single_step(env_id), "µs") for env_id in SINGLE]
    for env_id, count in MANY.items():
        rows += together(env_id, count, 2 if quick else 5)
    return rows
