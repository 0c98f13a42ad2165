"""Episodes in which a check looks at the learners before every step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.rollout import make_vector
from wgp_agents.gp.agent import GPAgent
from wgp_agents.registry import make
from wgp_gym.types import Array

__all__ = ["BATCH", "Moment", "batches", "moments"]

BATCH = 200  # episodes at once

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
    horizon = learner.problem.horizon
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
