"""D-GLM-UCB: discounted logistic regression."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.algorithms.linear.glm import GLMUCB, GLMParameters
from wgp_agents.arms.statistics import AllPlays
from wgp_agents.core.access import EnvLike
from wgp_agents.kernels.elapsed import faded
from wgp_agents.kernels.glm import GLMState, discount_plays
from wgp_gym.types import Array, Indices, Mask

__all__ = ["DGLMUCB"]


class DGLMUCB(GLMUCB):
    """Discounted generalised linear UCB (Russac, Cappe and Garivier 2020), with the logistic link.

    The weights are gamma^{t-s}; the sum of their squares is (1 - gamma^{2t}) / (1 - gamma^2). For
    the rest see `GLMUCB`. Of WGP-UCB it is a special case with the identity as link alone, and
    then it is D-LinUCB (docs/fidelity.md).

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        discount: gamma in (0, 1]. Default: 1 less 1 over the steps that `tuning` names.
        **common: See `GLMUCB`.

    Raises:
        ValueError: If a parameter is out of its range, or the task has no fixed arms.

    Source: Russac, Cappe, Garivier. Algorithms for Non-Stationary Generalized Linear Bandits.
    2020. The corrected tuning: Faury, Russac, Abeille, Calauzenes. Regret Bounds for Generalized
    Linear Bandits under Parameter Drift. 2021.
    """

    _instead = ("discount",)

    def __init__(
        self, env: EnvLike, *, discount: ArrayLike | None = None, **common: Unpack[GLMParameters]
    ) -> None:
        super().__init__(env, **common)
        self._given_discount = None
        if discount is None:
            self._horizon(*self._instead)
        else:
            self._given_discount = self._parameter("discount", discount, 0, 1, "right")
        batch, (n, d) = self.num_learners, self.features.shape
        self.statistics = AllPlays(batch, n)
        counts, squares, sums = np.zeros((3, batch, n))
        self.state = GLMState(counts, squares, sums, np.zeros(batch), *np.zeros((2, batch, d)))

    def _clear(self, mask: Mask) -> None:
        given = self._given_discount
        discount = 1 - self._rate() if given is None else given
        super()._clear(mask)
        self.numbers.discount[mask] = discount[mask]

    def _remember(
        self, arms: Indices, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        numbers = self.numbers
        if elapsed is not None:
            numbers = numbers._replace(discount=self._left(elapsed))
        discount_plays(numbers, self.state, arms, rewards, active)
        self.statistics.add(arms, rewards, active)

    def _left(self, steps: Array) -> Array:
        """Return gamma^steps, `(B,)`."""
        return faded(self.numbers.discount[:, None], steps)[:, 0].copy()

    def _forget(self, steps: Array, active: Mask) -> None:
        left = np.where(active, self._left(steps), 1.0)[:, None]
        self.state.counts[:] *= left
        self.state.sums[:] *= left
        self.state.squares[:] *= left**2
        self.state.weight[:] *= left[:, 0] ** 2
