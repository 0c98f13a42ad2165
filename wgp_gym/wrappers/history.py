"""The last k plays at once: what a policy without memory needs to see."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from wgp_gym.problem import BanditProblem
from wgp_gym.types import Floats32 as Floats
from wgp_gym.types import Mask
from wgp_gym.validation import MAX_NUMBERS, check_float, check_int, reject
from wgp_gym.wrappers.frame import Frame

__all__ = ["History", "HistoryObservation", "VectorHistoryObservation", "history_of"]

SCALES = 1e-20, 1e30  # with which no reward in an observation leaves single precision


class History:
    """The last k plays of B learners, read off observations that show one play each.

    A row is [t / T, then for each play, the newest first, 1, its place in [0, 1]^d and its reward
    over the scale]; plays that are not there yet are zeros, and so are those that an observation
    does not show. The observation of t = 0 begins an episode, and clears its row.

    Args:
        length: k >= 1.
        dim: d.
        batch: B.
        reward_scale: What rewards are divided by, in [1e-20, 1e30].

    Attributes:
        plays: The last plays, `(B, k, 2 + d)`, the newest first.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(self, length: int, dim: int, batch: int, reward_scale: float = 1.0) -> None:
        self.length = check_int("length", length, "History", 1)
        if batch * self.length * (2 + dim) > MAX_NUMBERS:
            reject("length", "History", f"such that all rows have {MAX_NUMBERS:,} numbers", length)
        self.reward_scale = check_float("reward_scale", reward_scale, "History", *SCALES)
        self.plays = np.zeros((batch, self.length, 2 + dim), np.float32)

    @property
    def size(self) -> int:
        """The numbers in a row: 1 + k (2 + d)."""
        return 1 + int(self.plays[0].size)

    @property
    def frame(self) -> Frame:
        """Where the last observation stands in a row."""
        return Frame(self.size, 0, 1 + self.plays.shape[2], self.reward_scale)

    def push(self, observations: Floats, learners: slice | Mask = slice(None)) -> Floats:
        """Take in one observation of each of b learners, `(b, 3 + d)`; return rows, `(b, size)`.

        Args:
            observations: The observations.
            learners: Whose they are, a mask `(B,)` of b learners; default: all.
        """
        newest = observations[:, None, 1:].copy()
        newest[:, :, -1] /= self.reward_scale
        plays = np.concatenate([newest, self.plays[learners, :-1]], axis=1)
        plays[observations[:, 0] == 0] = 0.0
        self.plays[learners] = plays
        return np.concatenate([observations[:, :1], plays.reshape(len(plays), -1)], axis=1)


def history_of(
    env: Any, space: spaces.Space[Any], batch: int, length: int, reward_scale: float, owner: str
) -> tuple[History, spaces.Space[Any]]:
    """Return an empty `History` for observations of `space`, and the space of its rows.

    Raises:
        ValueError: If a parameter is out of its range, or the space is not that of a bandit of
            this package, or its arms are drawn anew at each step.
    """
    check_float("reward_scale", reward_scale, owner, 1, SCALES[1])
    check_int("length", length, owner, 1)
    problem = getattr(env.unwrapped, "problem", None)
    if isinstance(problem, BanditProblem) and problem.contextual:
        reject("env", owner, "an environment whose arms stay the same", env)
    size = 3 + problem.domain.shape[1] if isinstance(problem, BanditProblem) else None
    if not isinstance(space, spaces.Box) or space.shape != (size,):
        reject("env", owner, "an environment of wgp_gym, which shows its last play", space)
    shown = History(length, len(space.low) - 3, batch, reward_scale)
    low, high = (
        np.concatenate([end[:1], np.tile(end[1:], length)]) for end in (space.low, space.high)
    )
    return shown, spaces.Box(low, high, dtype=np.float32)


class HistoryObservation(
    gymnasium.ObservationWrapper[Floats, Any, Floats], gymnasium.utils.RecordConstructorArgs
):
    """Shows the last k plays, in an observation of fixed shape `(1 + k (2 + d),)`: see `History`.

    Args:
        env: The environment.
        length: k >= 1.
        reward_scale: What the rewards in the observation are divided by, in [1, 1e30].

    Attributes:
        frame: Where the last observation stands, so that agents can read it.

    Raises:
        ValueError: If a parameter is out of its range, or the environment is none of this package,
            or one whose arms are drawn anew at each step.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], length: int, reward_scale: float = 1.0
    ) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(
            self, length=length, reward_scale=reward_scale
        )
        gymnasium.ObservationWrapper.__init__(self, env)
        self.observation_space: spaces.Space[Floats]
        self._history, self.observation_space = history_of(
            env, env.observation_space, 1, length, reward_scale, "HistoryObservation"
        )
        self.frame = self._history.frame

    def observation(self, observation: Floats) -> Floats:
        """Return the history with this observation added, `(1 + k (2 + d),)`."""
        row: Floats = self._history.push(observation[None])[0]
        return row


class VectorHistoryObservation(gymnasium.vector.VectorObservationWrapper):
    """The same for a vector environment: observations `(B, 1 + k (2 + d))`.

    Args:
        env: The vector environment.
        length: k >= 1.
        reward_scale: What the rewards in the observation are divided by, in [1, 1e30].

    Attributes:
        frame: Where the last observation of each stands, so that agents can read it.

    Raises:
        ValueError: If a parameter is out of its range, or the environment is none of this package,
            or one whose arms are drawn anew at each step.
    """

    def __init__(
        self, env: gymnasium.vector.VectorEnv[Any, Any, Any], length: int, reward_scale: float = 1.0
    ) -> None:
        super().__init__(env)
        space, batch, owner = env.single_observation_space, env.num_envs, "VectorHistoryObservation"
        self._history, single = history_of(env, space, batch, length, reward_scale, owner)
        self.frame = self._history.frame
        self.single_observation_space = single
        self.observation_space = batch_space(single, batch)

    def observations(self, observations: Floats) -> Floats:
        """Return the histories with these observations added, `(B, 1 + k (2 + d))`."""
        return self._history.push(observations)
