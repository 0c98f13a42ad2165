"""Choosing from finitely many points, on a box too."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from wgp_agents.base import Agent, locked
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.units import RewardBounds, bounds_by_norm
from wgp_agents.gp.action_sets import Arms
from wgp_agents.gp.contexts import ChangingArms
from wgp_agents.gp.posterior import Posterior, posterior_of
from wgp_agents.gp.source import feature_source
from wgp_agents.parameters import noise_model
from wgp_gym.features import FeatureMap
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Mask

__all__ = ["Grid", "GridAgent", "GridParameters"]


class Grid:
    """The points that are chosen from: the arms, or on a box the points of the problem's grid.

    Args:
        problem: The problem at hand.
    """

    def __init__(self, problem: BanditProblem) -> None:
        self._points = problem.domain
        self._tree = KDTree(problem.domain) if problem.continuous else None

    def played(self, picked: NDArray[np.int64]) -> NDArray[Any]:
        """Return what is played where these were picked by number: arms, or points of the box."""
        if self._tree is None:
            return picked
        points: NDArray[Any] = self._points[picked].astype(np.float32)
        return points

    def numbers(self, plays: NDArray[Any]) -> NDArray[Any]:
        """Return arms as they are, and of points of the box which of the grid's is nearest."""
        return plays if self._tree is None else np.asarray(self._tree.query(plays)[1], np.int64)


class GridParameters(TypedDict, total=False):
    """The parameters that all agents on a grid share. See `GridAgent`."""

    regularization: Any
    noise_scale: Any
    features: str | FeatureMap


class GridAgent(Agent):
    """Plays one of n points: the arms, or on a box the points of the problem's grid.

    Another's play off the grid counts for the point of it that is nearest.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        regularization: lambda in [1e-9, 1e60], the model's noise variance. Default max(R^2, 1e-6).
        noise_scale: R in [0, 1e30]. Default: the problem's.
        features: As in `GPAgent`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self,
        env: Any,
        *,
        regularization: Any = None,
        noise_scale: Any = None,
        features: str | FeatureMap = "exact",
    ) -> None:
        super().__init__(env)
        problem, batch, owner = self.problem, self.num_learners, type(self).__name__
        self.noise_scale, self.regularization = noise_model(
            owner, problem, noise_scale, regularization, batch
        )
        space = ChangingArms if problem.contextual else Arms
        source = feature_source(features, problem, owner)
        self.action_set = space(source, problem.domain, self.regularization)
        self._rows = np.arange(batch)
        self._grid = Grid(problem)

    @abstractmethod
    def _pick(self, uniform: UniformStreams) -> NDArray[np.int64]:
        """Return which of its points each learner plays, `(B,)`."""

    @abstractmethod
    def _take(self, plays: NDArray[Any], rewards: Array, active: Mask) -> None:
        """Take in one play of every learner in `active`: points by number, `(B,)`.

        Where arms are drawn anew at each step, `plays` are their places, `(B, d)`.
        """

    @abstractmethod
    def _moments(self) -> tuple[Array, Array]:
        """Return posterior means and variances of the points, `(B, n)` each."""

    def _reward_bounds(self) -> RewardBounds | None:
        longest = self.action_set.basis.prior.max()
        return bounds_by_norm(self.problem, None, self.noise_scale, longest)

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        return self._grid.played(self._pick(uniform))

    def _learn(self, actions: NDArray[Any], rewards: Array, active: Mask) -> None:
        self._take(self._grid.numbers(actions), rewards, active)

    @locked
    def posterior(self) -> Posterior:
        """Return the posterior on the domain, `(n,)` each, or `(B, n)`.

        Raises:
            RuntimeError: If `reset` was not called before.
            ValueError: If it is not finite.
        """
        self._require_reset()
        mean, variance = self._moments()
        return posterior_of(mean, np.sqrt(variance), self.batched)
