"""The last k plays at once, each arm as a one-hot row: for arms without order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector.utils import batch_space

from wgp_gym.types import Floats32 as Floats
from wgp_gym.validation import reject
from wgp_gym.wrappers.frame import Frame
from wgp_gym.wrappers.history import History, history_of

__all__ = ["OneHotHistory", "VectorOneHotHistory"]


class Rows:
    """Histories of B learners with one-hot rows in the place of the arms' places.

    Args:
        env: The environment.
        space: The space of one observation.
        batch: B.
        length: k >= 1.
        reward_scale: What rewards are divided by.
        owner: Whose parameters these are, for errors.

    Attributes:
        space: The space of a row.
        frame: Where the last observation stands in it.
    """

    def __init__(
        self,
        env: Any,
        space: spaces.Space[Any],
        batch: int,
        length: int,
        reward_scale: float,
        owner: str,
    ) -> None:
        history_of(env, space, 1, length, reward_scale, owner)  # which checks all of them
        problem = env.unwrapped.problem
        if problem.continuous:
            reject("env", owner, "an environment of finitely many arms", env)
        self._places = problem.domain.astype(np.float32)
        self._history = History(length, len(self._places), batch, reward_scale)
        assert isinstance(space, spaces.Box)
        low, high = (
            np.concatenate([end[:1], np.tile([*[arm] * (1 + len(self._places)), end[-1]], length)])
            for end, arm in ((space.low, 0.0), (space.high, 1.0))
        )
        self.space = spaces.Box(low.astype(np.float32), high.astype(np.float32), dtype=np.float32)
        self.frame: Frame = replace(self._history.frame, one_hot=True)

    def push(self, observations: Floats) -> Floats:
        """Take in one observation of each learner, `(B, 3 + d)`; return rows, `(B, size)`."""
        shown = (observations[:, None, 2:-1] == self._places).all(axis=2)
        arms = (shown & (observations[:, 1:2] == 1)).astype(np.float32)
        return self._history.push(
            np.concatenate([observations[:, :2], arms, observations[:, -1:]], axis=1)
        )


class OneHotHistory(
    gymnasium.ObservationWrapper[Floats, Any, Floats], gymnasium.utils.RecordConstructorArgs
):
    """Shows the last k plays, each as its arm's one-hot row and its reward: `(1 + k (2 + n),)`.

    A row is [t / T, then for each play, the newest first, 1, n numbers of which the arm's is 1 and
    the others 0, its reward over the scale]; plays that are not there yet are zeros. For arms whose
    numbers say nothing of how alike they are, as stocks: a network need not learn first that 0.31
    and 0.34 are two things.

    Args:
        env: The environment, of n arms that stay the same.
        length: k >= 1.
        reward_scale: What the rewards in the observation are divided by, in [1, 1e30].

    Attributes:
        frame: Where the last observation stands, so that agents can read it.

    Raises:
        ValueError: If a parameter is out of its range, or the environment is none of this package,
            or one of a box, or one whose arms are drawn anew at each step.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], length: int, reward_scale: float = 1.0
    ) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(
            self, length=length, reward_scale=reward_scale
        )
        gymnasium.ObservationWrapper.__init__(self, env)
        self._rows = Rows(env, env.observation_space, 1, length, reward_scale, "OneHotHistory")
        self.frame = self._rows.frame
        self.observation_space: spaces.Space[Floats] = self._rows.space

    def observation(self, observation: Floats) -> Floats:
        """Return the history with this observation added, `(1 + k (2 + n),)`."""
        row: Floats = self._rows.push(observation[None])[0]
        return row


class VectorOneHotHistory(gymnasium.vector.VectorObservationWrapper):
    """The same for a native vector environment: observations `(B, 1 + k (2 + n))`.

    Args:
        env: The vector environment.
        length: k >= 1.
        reward_scale: What the rewards in the observation are divided by, in [1, 1e30].

    Attributes:
        frame: Where the last observation of each stands, so that agents can read it.

    Raises:
        ValueError: As `OneHotHistory` does.
    """

    def __init__(
        self, env: gymnasium.vector.VectorEnv[Any, Any, Any], length: int, reward_scale: float = 1.0
    ) -> None:
        super().__init__(env)
        single, owner = env.single_observation_space, "VectorOneHotHistory"
        self._rows = Rows(env, single, env.num_envs, length, reward_scale, owner)
        self.frame = self._rows.frame
        self.single_observation_space = self._rows.space
        self.observation_space = batch_space(self._rows.space, env.num_envs)

    def observations(self, observations: Floats) -> Floats:
        """Return the histories with these observations added, `(B, 1 + k (2 + n))`."""
        return self._rows.push(observations)
