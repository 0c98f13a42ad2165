"""Episodes in which a check looks at the learners before every step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.rollout import make_vector
from wgp_agents.gp.agent import GPAgent
from wgp_agents.registry import make
from wgp_gym.types import Array

__all__ = ["BATCH", "Moment", "batches", "moments"]

BATCH = 200  # episodes at once


class Moment(NamedTuple):
    """B episodes just before step t + 1.

    Attributes:
        t: Steps played so far, 0 ... T.
        agent: B learners, which have seen these t steps.
        truth: The functions that the next step meets, on the domain, `(B, n)`.
        actions: What was played, `(t, B)`.
        expected: Its expected rewards, `(t, B)`.
        rewards: Its rewards, `(t, B)`.
        info: The last step's info.
    """

    t: int
    agent: GPAgent
    truth: Array
    actions: NDArray[Any]
    expected: Array
    rewards: Array
    info: dict[str, Any]


def moments(
    environment: str,
    agent: str,
    runs: int,
    seed: int,
    kwargs: dict[str, Any],
    parameters: dict[str, Any],
) -> Iterator[Moment]:
    """Play `runs` episodes in lockstep, and yield before each step and after the last.

    Args:
        environment: The environment's id.
        agent: The agent's name.
        runs: The number of episodes B.
        seed: The first episode's seed; the others follow.
        kwargs: What the environment is made with.
        parameters: The agent's.
    """
    vector = make_vector(environment, runs, **kwargs)
    base: Any = vector.unwrapped
    observation, info = vector.reset(seed=seed)
    learner = make(agent, vector, **parameters)
    assert isinstance(learner, GPAgent)
    learner.reset(seed)
    horizon = learner.problem.horizon
    actions = np.empty((horizon, runs), np.int64)
    expected, rewards = np.empty((2, horizon, runs))
    for t in range(horizon + 1):
        truth = base.expected_rewards()
        yield Moment(t, learner, truth, actions[:t], expected[:t], rewards[:t], info)
        if t < horizon:
            actions[t] = learner.act(observation)
            observation, rewards[t], _, _, info = vector.step(actions[t])
            expected[t] = info["expected_reward"]
            learner.observe(actions[t], rewards[t])


def batches(
    environment: str,
    agent: str,
    runs: int,
    seed: int,
    kwargs: dict[str, Any],
    parameters: dict[str, Any],
) -> Iterator[Iterator[Moment]]:
    """Play `runs` episodes, `BATCH` at a time: for each batch its `moments`."""
    for start in range(0, runs, BATCH):
        size = min(BATCH, runs - start)
        yield moments(environment, agent, size, seed + start, kwargs, parameters)
