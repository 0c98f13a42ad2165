"""The K-armed agent: statistics of each arm, and an index of each."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.arms.statistics import AllPlays
from wgp_agents.base import Agent
from wgp_agents.core.access import EnvLike
from wgp_agents.core.argmax import argmax
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.units import RewardBounds
from wgp_agents.kernels.arm_statistics import in_unit
from wgp_agents.parameters import checked_ends, per_learner, reward_ends
from wgp_gym.problem import LONGEST
from wgp_gym.types import Array, Indices, Mask

__all__ = ["ArmsAgent", "IndexAgent"]


class ArmsAgent(Agent):
    """Plays one of K fixed arms.

    The agents of this folder learn of an arm from its own plays alone; in others, arms may share a
    parameter.

    The literature has rewards in [0, 1]: they are shifted and scaled to it from their range.
    Noise may carry them beyond; `scale` says how much larger than that of rewards in [0, 1]
    their sub-Gaussian constant is.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        reward_range: The two numbers that expected rewards lie between. Default: the problem's
            `reward_range`; where it has none, [-B, B].

    Attributes:
        num_arms: K.
        noise: R / (high - low), `(B,)`: the sub-Gaussian constant of the noise in units of the
            range.
        scale: max(1, 2 R / (high - low)), `(B,)`: 1 where that constant is at most 1/2, that of
            rewards in [0, 1].

    Raises:
        ValueError: If the task has no fixed arms, or the range is not of this kind.
    """

    needs_fixed_arms = True
    takes_allowed = True

    _needs_noise: ClassVar[bool] = True
    """Whether it cannot do without the problem's R, whatever its parameters."""

    def __init__(self, env: EnvLike, *, reward_range: Sequence[float] | None = None) -> None:
        super().__init__(env)
        owner = type(self).__name__
        if self._needs_noise:
            self.problem.known_noise(owner)
        self._given_range = checked_ends(owner, reward_range)
        self.takes_units = reward_range is None
        self.num_arms = len(self.problem.domain)
        self.noise, self.scale = np.zeros(self.num_learners), np.ones(self.num_learners)
        self._low, self._width = np.zeros(self.num_learners), np.ones(self.num_learners)

    @abstractmethod
    def _clear(self, mask: Mask) -> None:
        """Make the learners in `mask` `(B,)` forget all."""

    @abstractmethod
    def _take(self, arms: Indices, rewards: Array, active: Mask) -> None:
        """Take in one play of every learner in `active`; rewards are in units of the range."""

    def _restart(self, mask: Mask) -> None:
        low, high = self._range()
        self._low[mask], self._width[mask] = low[mask], (high - low)[mask]
        noise = self._noise_scale()
        self.noise[mask] = (noise / (high - low))[mask]
        self.scale[mask] = np.maximum(1.0, 2 * self.noise[mask])
        self._clear(mask)

    def _learn(self, actions: Indices, rewards: Array, active: Mask) -> None:
        self._take(actions, in_unit(rewards, self._low, self._width), active)

    def _reward_bounds(self) -> RewardBounds | None:
        if self.problem.noise_scale is None:
            return None
        high, noise = self._low + self._width, self.noise * self._width
        return RewardBounds(self._low, high, noise, "its 'reward_range' and the problem's R")

    def _noise_scale(self) -> Array:
        """Return R of every learner, `(B,)`; 0 where it is unknown, and not needed."""
        stated, batch = self.problem.noise_scale, self.num_learners
        if stated is None:
            return np.zeros(batch)
        return per_learner("BanditProblem", "noise_scale", stated, batch, 0.0, np.inf, "left")

    def _range(self) -> tuple[Array, Array]:
        """Return the numbers that every learner's expected rewards lie between, `(B,)` each.

        Raises:
            RuntimeError: If they rest on a norm bound that is not drawn yet.
        """
        bound = self.problem.norm_bound
        return reward_ends(self._given_range, self.problem, bound, self.num_learners)

    def _parameter(
        self,
        name: str,
        value: ArrayLike,
        low: float,
        high: float = math.inf,
        closed: Literal["both", "left", "right", "neither"] = "both",
        *,
        whole: bool = False,
    ) -> Array:
        """Return a parameter for every learner, `(B,)`: see `per_learner`."""
        owner = type(self).__name__
        return per_learner(owner, name, value, self.num_learners, low, high, closed, whole=whole)

    def _num_changes(self, given: ArrayLike) -> Array:
        """Return Upsilon_T of every learner, `(B,)`: whole numbers in [0, T]."""
        most = self.problem.horizon or LONGEST
        return self._parameter("num_changes", given, 0, most, whole=True)

    def _horizon(self, *instead: str) -> int:
        """Return T, for which the parameters `instead` would do."""
        return self.problem.known_horizon(type(self).__name__, *instead)


class Statistics(Protocol):
    """What an agent keeps of its plays: see `wgp_agents.arms.statistics.ArmStatistics`."""

    def clear(self, mask: Mask) -> None:
        """Forget all plays of the learners in `mask` `(B,)`."""

    def add(
        self, arms: Indices, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Take in one play of every learner in `active` `(B,)`."""

    def elapse(self, steps: Array, active: Mask) -> None:
        """Let time go by for the learners in `active` `(B,)`."""

    def hallucinate(self, arms: Indices, active: Mask) -> None:
        """Count a play of every learner in `active` `(B,)` whose reward is still to come."""


class IndexAgent(ArmsAgent):
    """Plays the arm of the largest index, ties broken uniformly.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        reward_range: See `ArmsAgent`.

    Attributes:
        statistics: What it keeps of its plays; all of them, alike, unless its class sets another.

    Raises:
        ValueError: See `ArmsAgent`.
    """

    statistics: Statistics

    def __init__(self, env: EnvLike, *, reward_range: Sequence[float] | None = None) -> None:
        super().__init__(env, reward_range=reward_range)
        self.statistics = AllPlays(self.num_learners, self.num_arms)

    @abstractmethod
    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`; infinity for one that must be played."""

    def _choose(self, uniform: UniformStreams) -> Indices:
        return argmax(self.index(uniform), uniform.draw(), self.allowed)

    def _clear(self, mask: Mask) -> None:
        self.statistics.clear(mask)

    def _take(self, arms: Indices, rewards: Array, active: Mask) -> None:
        self.statistics.add(arms, rewards, active)

    def _learn_elapsed(
        self, actions: Indices, rewards: Array, active: Mask, elapsed: Array
    ) -> None:
        self.statistics.add(actions, in_unit(rewards, self._low, self._width), active, elapsed)

    def _elapse(self, steps: Array, active: Mask) -> None:
        self.statistics.elapse(steps, active)

    def _hallucinate(self, actions: Indices, active: Mask) -> None:
        self.statistics.hallucinate(actions, active)
