"""SW-GLM-UCB: logistic regression on the last tau plays."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.algorithms.linear.glm import GLMUCB, GLMParameters
from wgp_agents.arms.statistics import WindowPlays
from wgp_agents.core.access import EnvLike
from wgp_agents.gp.tuning import memory_length
from wgp_agents.kernels.glm import GLMState
from wgp_gym.types import Array, Indices, Mask

__all__ = ["SWGLMUCB"]


class SWGLMUCB(GLMUCB):
    """Sliding-window generalised linear UCB (Russac, Cappe and Garivier 2020), the logistic link.

    The weights are 1 for the last tau plays and 0 for those before, so that N2 = N, W = V, and the
    sum of their squares is min(t, tau). For the rest see `GLMUCB`. With tau infinite it is
    `DGLMUCB` with discount 1.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        window: tau >= 1, in steps, or infinite. Default: the steps that `tuning` names, rounded up;
            infinite where they reach T.
        **common: See `GLMUCB`.

    Raises:
        ValueError: If a parameter is out of its range, or the task has no fixed arms.

    Source: Russac, Cappe, Garivier. Algorithms for Non-Stationary Generalized Linear Bandits.
    2020. Its text could not be read: what is not of its abstract (a sliding-window
    maximum-likelihood estimator, a regret of order d^{2/3} Y^{1/3} T^{2/3}) follows from
    `DGLMUCB` by the change of weights.
    """

    _instead = ("window",)
    statistics: WindowPlays

    def __init__(
        self, env: EnvLike, *, window: ArrayLike | None = None, **common: Unpack[GLMParameters]
    ) -> None:
        super().__init__(env, **common)
        self._given_window = None
        if window is None:
            self._horizon(*self._instead)
        else:
            self._given_window = self._parameter("window", window, 1, whole=True)
        batch, (n, d) = self.num_learners, self.features.shape
        self.statistics = plays = WindowPlays(batch, n, np.full(batch, np.inf))
        # N and Y are those of the window, which change in place.
        parts = plays.counts, plays.counts, plays.sums, np.zeros(batch)
        self.state = GLMState(*parts, *np.zeros((2, batch, d)))

    def _clear(self, mask: Mask) -> None:
        window = self._given_window
        if window is None:
            window = memory_length(self._rate(), self._horizon(*self._instead))
        super()._clear(mask)
        self.statistics.set_window(window, mask)

    def _remember(
        self, arms: Indices, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        self.statistics.add(arms, rewards, active, elapsed)
        self._weigh()

    def _forget(self, steps: Array, active: Mask) -> None:
        self.statistics.elapse(steps, active)
        self._weigh()

    def _weigh(self) -> None:
        """Sum up the weights of the plays in the window."""
        self.state.weight[:] = self.statistics.counts.sum(axis=1)  # min(t, tau)
