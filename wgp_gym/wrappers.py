"""Observation wrappers for RL: a policy without memory sees the last k plays at once."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from wgp_gym.problem import BanditProblem
from wgp_gym.validation import check_float, check_int, reject

__all__ = ["History", "HistoryObservation", "VectorHistoryObservation"]

Floats = NDArray[np.float32]


class History:
    """The last k plays of B learners, read off observations that show one play each.

    A row is [t / T, then for each play, the newest first, 1, its place in [0, 1]^d and its reward
    over the scale]; plays that are not there yet are zeros. An observation that shows no last
    play begins an episode, and clears its row.

    Args:
        length: k >= 1.
        dim: d.
        batch: B.
        reward_scale: What rewards are divided by, > 0.

    Attributes:
        plays: The last plays, `(B, k, 2 + d)`, the newest first.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(self, length: int, dim: int, batch: int, reward_scale: float = 1.0) -> None:
        self.length = check_int("length", length, "History", 1)
        self.reward_scale = check_float(
            "reward_scale", reward_scale, "History", 0, closed="neither"
        )
        self.plays = np.zeros((batch, self.length, 2 + dim), np.float32)

    @property
    def size(self) -> int:
        """The numbers in a row: 1 + k (2 + d)."""
        return 1 + int(self.plays[0].size)

    def push(self, observations: Floats) -> Floats:
        """Take in one observation of each learner, `(B, 3 + d)`; return the rows, `(B, size)`."""
        fresh = observations[:, 1] == 0
        self.plays[:, 1:] = self.plays[:, :-1].copy()
        self.plays[:, 0] = observations[:, 1:]
        self.plays[:, 0, -1] /= self.reward_scale
        self.plays[fresh] = 0.0
        flat = self.plays.reshape(len(observations), -1)
        return np.concatenate([observations[:, :1], flat], axis=1)


def history_space(env: Any, space: spaces.Space[Any], length: int, owner: str) -> spaces.Space[Any]:
    """Return the space of the rows of a `History` over observations of `space`.

    Raises:
        ValueError: If the space is not that of a bandit of this package.
    """
    problem = getattr(env.unwrapped, "problem", None)
    size = 3 + problem.domain.shape[1] if isinstance(problem, BanditProblem) else None
    if not isinstance(space, spaces.Box) or space.shape != (size,):
        reject("env", owner, "an environment of wgp_gym, which shows its last play", space)
    low, high = (
        np.concatenate([end[:1], np.tile(end[1:], length)]) for end in (space.low, space.high)
    )
    return spaces.Box(low, high, dtype=np.float32)


class HistoryObservation(
    gymnasium.ObservationWrapper[Floats, Any, Floats], gymnasium.utils.RecordConstructorArgs
):
    """Shows the last k plays, in an observation of fixed shape `(1 + k (2 + d),)`: see `History`.

    Args:
        env: The environment.
        length: k >= 1.
        reward_scale: What the rewards in the observation are divided by, at least 1.

    Raises:
        ValueError: If a parameter is out of its range, or the environment is none of this package.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], length: int, reward_scale: float = 1.0
    ) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(
            self, length=length, reward_scale=reward_scale
        )
        gymnasium.ObservationWrapper.__init__(self, env)
        check_float("reward_scale", reward_scale, "HistoryObservation", 1)
        check_int("length", length, "HistoryObservation", 1)
        self.observation_space: spaces.Space[Floats] = history_space(
            env, env.observation_space, length, "HistoryObservation"
        )
        dim = int(np.prod(env.observation_space.shape or ())) - 3
        self._history = History(length, dim, 1, reward_scale)

    def observation(self, observation: Floats) -> Floats:
        """Return the history with this observation added, `(1 + k (2 + d),)`."""
        row: Floats = self._history.push(observation[None])[0]
        return row


class VectorHistoryObservation(gymnasium.vector.VectorObservationWrapper):
    """The same for a vector environment: observations `(B, 1 + k (2 + d))`.

    Args:
        env: The vector environment.
        length: k >= 1.
        reward_scale: What the rewards in the observation are divided by, at least 1.

    Raises:
        ValueError: If a parameter is out of its range, or the environment is none of this package.
    """

    def __init__(
        self, env: gymnasium.vector.VectorEnv[Any, Any, Any], length: int, reward_scale: float = 1.0
    ) -> None:
        super().__init__(env)
        owner = "VectorHistoryObservation"
        check_float("reward_scale", reward_scale, owner, 1)
        check_int("length", length, owner, 1)
        single = history_space(env, env.single_observation_space, length, owner)
        self.single_observation_space = single
        self.observation_space = batch_space(single, env.num_envs)
        dim = int(np.prod(env.single_observation_space.shape or ())) - 3
        self._history = History(length, dim, env.num_envs, reward_scale)

    def observations(self, observations: Floats) -> Floats:
        """Return the histories with these observations added, `(B, 1 + k (2 + d))`."""
        return self._history.push(observations)
