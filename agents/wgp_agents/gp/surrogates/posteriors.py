"""Gaussian posteriors of B learners, to which observations are added and removed.

Notation as in `wgp_agents.gp.surrogates.weighted`.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from wgp_agents.gp.action_sets import ActionSet, FixedArms, Plays
from wgp_agents.gp.surrogates.base import Predictor
from wgp_agents.kernels import blas, gram
from wgp_agents.kernels.gram_arrays import DiscountArrays
from wgp_agents.kernels.handle import Handle
from wgp_agents.kernels.rank_one import (
    NEVER,
    REFRESH,
    RankOneArrays,
    change_inverses,
    inverse_deviations,
    rank_one_update,
)
from wgp_agents.kernels.rank_one_blas import compute_anew, refresh_parts
from wgp_agents.kernels.stale import bound_conditions, grow_bounds
from wgp_gym.threads import over_learners
from wgp_gym.types import Array, Mask

__all__ = ["MANY_FEATURES", "GramPosterior", "RankOnePosterior", "unweighted_posterior"]

MANY_FEATURES = 64  # above it, BLAS per learner
LARGE = 2**17  # features times arms from which on what is computed anew is so by LAPACK
LEAST_SPREAD = 1e-4  # lambda from which on it is spread over the steps: below, errors grow too fast
ARMS_PER_FEATURE = 2  # above it, with many features, lazy evaluation


def is_lazy(action_set: ActionSet) -> Mask:
    """Return for whom the variances are evaluated lazily, `(B,)`: it pays with many arms."""
    rank, n = action_set.basis.rank, action_set.basis.phi.shape[1]
    many: Mask = (rank > MANY_FEATURES) & (rank * ARMS_PER_FEATURE < n)
    return many & isinstance(action_set, FixedArms)


class RankOnePosterior:
    """The posterior of unweighted data on fixed arms, by rank-one updates: O(m^2 + m n) a step."""

    _constants = ("basis", "_features_of", "_large", "_any_large", "_spread")
    lazy_learners: ClassVar[list[int]] = []

    def __init__(self, action_set: ActionSet) -> None:
        basis = action_set.basis
        batch, (m, n) = len(basis.regularization), basis.phi.shape
        self.basis, self._features_of = basis, action_set.domain_features
        self._large = basis.rank * n >= LARGE
        self._any_large = bool(self._large.any())
        self._spread = self._large & (basis.regularization >= LEAST_SPREAD)
        self._handle = Handle()
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

    @property
    def bound_variance(self) -> Array:
        """The variances that the confidence bound uses, `(B, n)`."""
        return self.arrays.variance

    def is_prior(self, i: int) -> bool:
        """Return whether learner i knows nothing, so that all variances are k(x, x)."""
        return not self.arrays.counts[i].any()

    def clear(self, mask: Mask) -> None:
        """Reset the learners in `mask` to the prior."""
        for array in self.arrays:
            array[mask] = 0
        identity = np.eye(len(self.basis.phi))
        self.arrays.inverse[mask] = identity / self.basis.regularization[mask, None, None]
        self.arrays.variance[mask] = self.basis.prior

    def refresh(self, active: Mask) -> None:
        """Do nothing: after each change the posterior is right."""

    def change(self, sign: float, plays: Plays, rewards: Array, active: Mask) -> None:
        """Add (sign 1) or remove (sign -1) one observation of every learner in `active`."""
        plain = active & ~self._large if self._any_large else active
        arms, (m, n) = plays.actions, self.basis.phi.shape
        model = self.basis, self.arrays, self._handle
        over_learners(rank_one_update, plain, 2.0 * m * (m + n), sign, arms, rewards, *model)
        if self._any_large:
            self._change_large(sign, plays, rewards, active & self._large)

    def _change_large(self, sign: float, plays: Plays, rewards: Array, active: Mask) -> None:
        """Do what `change` does, and compute what is to be computed anew part by part."""
        basis, arrays, features_of = self.basis, self.arrays, self._features_of
        stale = np.zeros(len(active), bool)  # whose change would have lost digits, or is the last
        table = self._handle.table(basis, arrays)
        for mine, refresh in ((self._spread, NEVER), (~self._spread, REFRESH)):
            mine = mine & active
            change_inverses(sign, plays.actions, rewards, mine, refresh, stale, table)
        compute_anew(stale, features_of, basis, arrays)
        if sign > 0:  # an addition follows each removal
            refresh_parts(active & self._spread, features_of, basis, arrays)

    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features."""
        m, lam = int(self.basis.rank[i]), float(self.basis.regularization[i])
        P = self.arrays.inverse[i, :m, :m].copy()
        weights = P @ (self.basis.phi[:m] @ (self.arrays.sums[i] + self.arrays.lost[i]))

        def _predict(phi: Array) -> tuple[Array, Array, Array]:
            variance = lam * np.einsum("ij,ij->j", phi, P @ phi)  # Eq. (4)
            return weights @ phi, variance, variance

        return _predict

    def sample(self, normals: Array) -> Array:
        """Return weights drawn around the posterior mean, from standard normals `(B, m)`."""
        drawn = np.empty_like(normals)
        inverse_deviations(normals, self.basis, self.arrays.inverse, drawn)
        return drawn


class GramPosterior:
    """The posterior of weighted data, factorised anew at each change: O(m^3 + m^2 n).

    Args:
        action_set: What is chosen from.
        tight: Whether to keep the variances of [Deng22] Theorem 2 too.
        lazy: Whether variances may be evaluated lazily, where that pays.

    Attributes:
        lazy_learners: Those of whom it does. Their variances here are upper bounds, and their means
            are computed by `predictor`.
    """

    _constants: ClassVar[tuple[str, ...]] = ("basis", "lazy_learners", "_lazy", "_eager", "_work")

    def __init__(self, action_set: ActionSet, *, tight: bool = False, lazy: bool = True) -> None:
        basis = action_set.basis
        batch, (m, n) = len(basis.regularization), basis.phi.shape
        self.basis, self.tight, self._exact = basis, tight, action_set.exact
        self._many = basis.rank > MANY_FEATURES
        self._few, self._any_many = ~self._many, bool(self._many.any())
        self._work = m * m * (m / 2.0 + n)  # of a posterior
        self._lazy = is_lazy(action_set) & lazy
        self._eager = self._many & ~self._lazy
        self.lazy_learners: list[int] = np.flatnonzero(self._lazy).tolist()
        self._keep, self._handle = np.ones(batch), Handle()
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

    @property
    def bound_variance(self) -> Array:
        """The variances that the confidence bound uses, `(B, n)`."""
        return self.arrays.tight if self.tight else self.arrays.variance

    def clear(self, mask: Mask) -> None:
        """Reset the learners in `mask` to the prior."""
        for array in self.arrays:
            array[mask] = 0.0
        self.arrays.variance[mask] = self.basis.prior
        if self.tight:
            self.arrays.tight[mask] = self.basis.prior

    def change(
        self, sign: float, plays: Plays, rewards: Array, active: Mask, discount: Array | None = None
    ) -> None:
        """Discount the past by `(B,)`, then add (sign 1) or remove (sign -1) one play of each.

        After a removal the posterior is outdated until the next addition.
        """
        eta = self._keep if discount is None else discount
        if sign > 0 and not self._any_many:
            self._learn_at_once(plays, rewards, active, eta)
            return
        self._discount_and_add(sign, plays, rewards, active, eta)
        if sign > 0:  # an addition follows each removal
            self.age(eta, active)
            self.refresh(active)

    def _learn_at_once(self, plays: Plays, rewards: Array, active: Mask, discount: Array) -> None:
        """Discount, add and compute the posterior of learners with few features, in one loop."""
        features, rewards = self.scaled(plays, rewards)
        table = self._handle.table(self.basis, self.arrays)
        tight = self.arrays.tight if self.tight else None
        over_learners(gram.learn, active, self._work, features, rewards, discount, table, tight)

    def fade(self, discount: Array, active: Mask) -> None:
        """Discount the past of the learners in `active` by `(B,)`, and add nothing."""
        self._discount_and_add(1.0, None, np.zeros(len(active)), active, discount)
        self.age(discount, active)
        self.refresh(active)

    def _discount_and_add(
        self, sign: float, plays: Plays | None, rewards: Array, active: Mask, discount: Array
    ) -> None:
        """Discount the past of active learners, and add or remove a play; None is none."""
        if plays is None:
            features = np.zeros(self.arrays.target.shape)
        else:
            features, rewards = self.scaled(plays, rewards)
        gram.discount_update(sign, features, rewards, active, discount, self.basis, self.arrays)

    def age(self, discount: Array, active: Mask) -> None:
        """Keep the variances of lazy learners upper bounds, as weights fell to `discount`, `(B,)`.

        That is the least part of any weight that is left.
        """
        if self.lazy_learners:
            aged, arrays = active & self._lazy, self.arrays
            grow_bounds(discount, aged, self._conditions(aged), self.basis, arrays.variance)
            if self.tight:  # never above sigma~, if no weight is above the last one's
                arrays.tight[aged] = arrays.variance[aged]

    def _conditions(self, active: Mask) -> Array:
        """Return bounds of V's condition numbers, `(B,)`."""
        condition = np.ones(len(active))
        bound_conditions(self.arrays.gram, active, self.basis, condition)
        return condition

    def scaled(self, plays: Plays, rewards: Array) -> tuple[Array, Array]:
        """Return plays and rewards times (lambda / (lambda + r))^{1/2}, r what features leave out.

        That makes the noise variance of each play lambda.
        """
        if self._exact:
            return plays.features, rewards
        root = np.sqrt(self.basis.regularization / (self.basis.regularization + plays.residual))
        return plays.features * root[:, None], rewards * root

    def refresh(self, active: Mask) -> None:
        """Compute the posteriors of the learners in `active` from A and b."""
        over_learners(gram.posteriors, active & self._few, self._work, self.basis, self.arrays)
        if self._any_many:
            blas.posteriors(active & self._eager, self.basis, self.arrays)
        if self.lazy_learners:
            blas.gains(active & self._lazy, self.basis, self.arrays)

    def is_prior(self, i: int) -> bool:
        """Return whether learner i knows nothing, so that all variances are k(x, x)."""
        return not self.arrays.gram[i].diagonal().any()

    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features."""
        of = blas.inverted_posterior_of if self._lazy[i] else blas.posterior_of
        predict = of(i, self.basis, self.arrays)

        def _predict(phi: Array) -> tuple[Array, Array, Array]:
            mean, variance, smaller = predict(phi)
            return mean, variance, smaller if self.tight else variance

        return _predict

    def predict_each(self, features: Array) -> tuple[Array, Array, Array]:
        """Return the posterior of every learner at its own features `(B, m, q)`."""
        batch, _, q = features.shape
        mean, variance, tight = np.empty((3, batch, q))
        wanted = tight if self.tight else tight[:, :0]
        gram.context_posteriors(features, self.basis, self.arrays, mean, variance, wanted)
        return mean, variance, tight if self.tight else variance

    def sample(self, normals: Array) -> Array:
        """Return weights drawn around the posterior mean, from standard normals `(B, m)`."""
        drawn = np.zeros_like(normals)
        gram.deviations(normals, self._few, self.basis, self.arrays, drawn)
        if self._any_many:
            with blas.single_thread():
                for i in np.flatnonzero(self._many).tolist():
                    drawn[i] = blas.deviation_of(i, normals[i], self.basis, self.arrays)
        return drawn


def unweighted_posterior(action_set: ActionSet) -> RankOnePosterior | GramPosterior:
    """Return the cheapest posterior of unweighted data: rank-one updates need fixed arms."""
    if isinstance(action_set, FixedArms):
        return RankOnePosterior(action_set)
    return GramPosterior(action_set)
