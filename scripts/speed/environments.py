"""Environments: a single step, whole episodes of many at once, training in other harnesses."""

from __future__ import annotations

from functools import partial
from typing import Any

import gymnasium
import numpy as np

from scripts.speed.rows import Row, best
from wgp_agents.benchmark.rollout import make_vector
from wgp_gym.wrappers import HistoryObservation, VectorHistoryObservation

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


def training(env: Any, count: int) -> float:
    """Return the microseconds of one step of one environment of stable-baselines3's kind."""
    arms = np.full(env.num_envs, 3)
    spent = []
    for _ in range(5):
        env.reset()
        spent.append(best(lambda: steps(env, arms, count), 1) / count / len(arms))
    return 1e6 * min(spent)


def in_stable_baselines3(count: int, history: int) -> Row:
    """Measure many environments to train in, beside those that `make_vec_env` makes."""
    from stable_baselines3.common.env_util import make_vec_env

    from wgp_agents.algorithms.learned.sb3.vec_env import NativeVecEnv

    many = VectorHistoryObservation(make_vector(SINGLE[0], count), history)
    shown = partial(HistoryObservation, length=history)
    theirs = make_vec_env(SINGLE[0], count, wrapper_class=shown)
    what = f"`NativeVecEnv`, {count} environments, the last {history} plays shown, a step of one"
    ours = training(NativeVecEnv([many]), 400)
    return Row(what, ours, "µs", "`make_vec_env`", training(theirs, 100))


def measure(quick: bool) -> list[Row]:
    """Measure single steps, resets of many at once, their episodes, and training."""
    rows = [Row(f"`{env_id}`, one step", single_step(env_id), "µs") for env_id in SINGLE]
    for env_id, count in MANY.items():
        rows += together(env_id, count, 2 if quick else 5)
    return [*rows, in_stable_baselines3(100, 20)]
