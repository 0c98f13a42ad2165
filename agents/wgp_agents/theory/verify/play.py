"""Episodes in which a check looks at the learners before every step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.rollout import make_vector
from wgp_agents.gp.agent import GPAgent
from wgp_agents.registry import make
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

__all__ = ["BATCH", "NEVER", "PANELS", "Keywords", "Moment", "batches", "moments", "play_functions"]

BATCH = 200  # episodes at once
NEVER = "a learner that never forgets"
PANELS = {"abrupt": "WGPBandit-Abrupt-v0", "slow": "WGPBandit-Slow-v0"}

Keywords = Mapping[str, object]


class Moment(NamedTuple):
    """B episodes just before step t + 1."""

    t: int  # steps played so far, 0 ... T
    agent: GPAgent  # B learners, which have seen these t steps
    truth: Array  # the functions that the next step meets, on the domain, `(B, n)`
    actions: NDArray[np.int64]  # what was played, `(t, B)`
    expected: Array  # its expected rewards, `(t, B)`
    rewards: Array  # its rewards, `(t, B)`
    info: dict[str, Array]  # the last step's info


def moments(
    environment: str, runs: int, seed: int, kwargs: Keywords, parameters: Keywords
) -> Iterator[Moment]:
    """Let WGP-UCB play `runs` episodes in lockstep, and yield before each step and after the last.

    Episode i has the seed `seed + i`; `kwargs` are the environment's, `parameters` the agent's.
    """
    vector = make_vector(environment, runs, **kwargs)
    observation, info = vector.reset(seed=seed)
    learner = make("wgp-ucb", vector, **parameters)
    assert isinstance(learner, GPAgent)
    learner.reset(seed)
    horizon = learner.problem.known_horizon("verify")
    actions = np.empty((horizon, runs), np.int64)
    expected, rewards = np.empty((2, horizon, runs))
    for t in range(horizon + 1):
        truth = vector.unwrapped.expected_rewards()
        yield Moment(t, learner, truth, actions[:t], expected[:t], rewards[:t], info)
        if t < horizon:
            actions[t] = learner.act(observation)
            observation, rewards[t], _, _, info = vector.step(actions[t])
            expected[t] = info["expected_reward"]
            learner.observe(actions[t], rewards[t])


def batches(
    environment: str, runs: int, seed: int, kwargs: Keywords, parameters: Keywords
) -> Iterator[Iterator[Moment]]:
    """Play `runs` episodes, `BATCH` at a time: for each batch its `moments`."""
    for start in range(0, runs, BATCH):
        size = min(BATCH, runs - start)
        yield moments(environment, size, seed + start, kwargs, parameters)


def play_functions(
    problem: BanditProblem,
    truth: Array,
    runs: int,
    seed: int,
    agent: str = "wgp-ucb",
    **parameters: object,
) -> Moment:
    """Let an agent play given functions with Gaussian noise in `runs` episodes; return the end.

    Args:
        problem: The problem of one episode.
        truth: f_1, f_2, ... on the domain, `(t + 1, n)`; all but the last are played.
        runs: B.
        seed: What all randomness follows from.
        agent: A Gaussian-process agent's name.
        **parameters: The agent's.
    """
    learner = make(agent, BanditProblem.stack([problem] * runs), **parameters)
    assert isinstance(learner, GPAgent)
    learner.reset(seed)
    noise = float(np.max(problem.known_noise("verify"))) * np.random.default_rng(
        seed
    ).standard_normal((len(truth) - 1, runs))
    actions = np.empty(noise.shape, np.int64)
    for t, f in enumerate(truth[:-1]):
        actions[t] = learner.act()
        learner.observe(actions[t], f[actions[t]] + noise[t])
    expected = np.take_along_axis(truth[:-1], actions, axis=1)
    now = np.broadcast_to(truth[-1], (runs, truth.shape[1]))
    return Moment(len(actions), learner, now, actions, expected, expected + noise, {})
