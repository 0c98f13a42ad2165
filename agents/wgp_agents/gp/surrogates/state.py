"""The states that memories are made of: B posteriors that take observations in and give them back.

Notation as in `wgp_agents.gp.surrogates.weighted`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.gp.action_sets import ActionSet
from wgp_agents.kernels import blas
from wgp_agents.kernels import gram as compiled
from wgp_agents.kernels.arrays import DiscountArrays, RankOneArrays
from wgp_gym.types import Array, Mask

__all__ = ["GramState", "Mask", "Plays", "Predictor", "RankOneState", "unweighted_state"]

Plays = NDArray[Any]
Predictor = Callable[[Array], tuple[Array, Array, Array]]
"""From features `(m, q)` of one learner: means, variances, and the variances that the bound uses,
`(q,)` each, without what the features leave out."""

MANY_FEATURES = 64  # above it, BLAS per learner


class RankOneState:
    """The posterior of unweighted data, changed by one observation at a time in O(m^2 + m n).

    Args:
        action_set: The arms.
    """

    def __init__(self, action_set: ActionSet) -> None:
        basis = action_set.basis
        batch, (m, n) = len(basis.regularization), basis.phi.shape
        self.basis = basis
        self.arrays = RankOneArrays(
            inverse=np.zeros((batch, m, m)),
            mean=np.zeros((batch, n)),
            variance=np.zeros((batch, n)),
            gain=np.zeros(batch),
            counts=np.zeros((batch, n), np.int64),
            sums=np.zeros((batch, n)),
            lost=np.zeros((batch, n)),
            age=np.zeros(batch, np.int64),
        )

    def clear(self, mask: Mask) -> None:
        """Put the learners in `mask` back to the prior."""
        for array in self.arrays:
            array[mask] = 0
        identity = np.eye(len(self.basis.phi))
        self.arrays.inverse[mask] = identity / self.basis.regularization[mask, None, None]
        self.arrays.variance[mask] = self.basis.prior

    def change(self, sign: float, plays: Plays, rewards: Array, active: Mask) -> None:
        """Add (sign 1) or remove (sign -1) one observation of every learner in `active`."""
        compiled.rank_one_update(sign, plays, rewards, active, self.basis, self.arrays)

    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features."""
        m, regularization = int(self.basis.rank[i]), float(self.basis.regularization[i])
        P = self.arrays.inverse[i, :m, :m].copy()
        weights = P @ (self.basis.phi[:m] @ (self.arrays.sums[i] + self.arrays.lost[i]))

        def _predict(phi: Array) -> tuple[Array, Array, Array]:
            variance = regularization * np.einsum("ij,ij->j", phi, P @ phi)
            return weights @ phi, variance, variance

        return _predict

    def deviations(self, normals: Array) -> Array:
        """Return weights drawn around the posterior mean, from standard normals `(B, m)`."""
        drawn = np.empty_like(normals)
        compiled.inverse_deviations(normals, self.basis, self.arrays.inverse, drawn)
        return drawn


class GramState:
    """The posterior of weighted data, factorised anew at each change: O(m^3 + m^2 n).

    Args:
        action_set: The arms, or the box.
        tight: Whether to keep the variances of [Deng22] Theorem 2 too.
    """

    def __init__(self, action_set: ActionSet, *, tight: bool = False) -> None:
        basis = action_set.basis
        batch, (m, n) = len(basis.regularization), basis.phi.shape
        self.basis, self._embed = basis, action_set.embed
        self._many = basis.rank > MANY_FEATURES
        self._few, self._any_many = ~self._many, bool(self._many.any())
        self._keep = np.ones(batch)
        self.arrays = DiscountArrays(
            gram=np.zeros((batch, m, m)),
            target=np.zeros((batch, m)),
            lost=np.zeros((batch, m)),
            double_gram=np.zeros((batch, m, m)),
            mean=np.zeros((batch, n)),
            variance=np.zeros((batch, n)),
            gain=np.zeros(batch),
            tight=np.zeros((batch, n if tight else 0)),
        )

    def clear(self, mask: Mask) -> None:
        """Put the learners in `mask` back to the prior."""
        for array in self.arrays:
            array[mask] = 0.0
        self.arrays.variance[mask] = self.basis.prior
        if self.arrays.tight.size:
            self.arrays.tight[mask] = self.basis.prior

    def change(
        self,
        sign: float,
        plays: Plays,
        rewards: Array,
        active: Mask,
        discount: Array | None = None,
    ) -> None:
        """Fade the past by the discount `(B,)`, then add or remove one observation of each.

        After a removal the posterior is left as it was until the next addition.
        """
        eta = self._keep if discount is None else discount
        basis, arrays, (features, share) = self.basis, self.arrays, self._embed(plays)
        if share is not None:
            root = np.sqrt(share)
            features, rewards = features * root[:, None], rewards * root
        compiled.discount_update(sign, features, rewards, active, eta, basis, arrays)
        if sign < 0:  # an addition follows at once
            return
        compiled.posteriors(active & self._few, basis, arrays)
        if self._any_many:
            blas.posteriors(active & self._many, basis, arrays)

    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features."""
        predict, tight = blas.posterior_of(i, self.basis, self.arrays), self.arrays.tight.size

        def _predict(phi: Array) -> tuple[Array, Array, Array]:
            mean, variance, smaller = predict(phi)
            return mean, variance, smaller if tight else variance

        return _predict

    def deviations(self, normals: Array) -> Array:
        """Return weights drawn around the posterior mean, from standard normals `(B, m)`."""
        drawn = np.zeros_like(normals)
        compiled.deviations(normals, self._few, self.basis, self.arrays, drawn)
        if self._any_many:
            with blas.single_thread():
                for i in np.flatnonzero(self._many).tolist():
                    drawn[i] = blas.deviation_of(i, normals[i], self.basis, self.arrays)
        return drawn


def unweighted_state(action_set: ActionSet) -> RankOneState | GramState:
    """Return the cheapest state of unweighted data: points of a box have no columns to keep."""
    return GramState(action_set) if action_set.play_shape else RankOneState(action_set)
