"""Posteriors of discounted data in the cheaper of two forms: by features, or by the arms played."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from wgp_agents.core.state import check_counts, refuse
from wgp_agents.gp.action_sets import ActionSet, FixedArms, Plays
from wgp_agents.gp.surrogates import posteriors
from wgp_agents.gp.surrogates.base import Predictor
from wgp_agents.gp.surrogates.posteriors import GramPosterior
from wgp_agents.kernels import blas, gram
from wgp_agents.kernels.gram_arrays import DiscountArrays
from wgp_agents.kernels.kernel_form import (
    ArmPredictor,
    ArmSums,
    KernelRows,
    fade_and_add,
    in_places,
    log_det,
)
from wgp_gym.types import Array, Mask

__all__ = ["EitherFormPosterior", "discounted_posterior"]

ARMS_PER_FEATURE = 8  # above it, features alone: rows of K would be far larger than A and A2
HELD_PER_FEATURE = 1.125  # above it, a learner goes over to features
LEAST_NOISE = 1e-6  # lambda below which differences of variances lose digits


def discounted_posterior(
    action_set: ActionSet, *, tight: bool = False, rises: bool = False
) -> GramPosterior:
    """Return the cheapest posterior of discounted data.

    Args:
        action_set: What is chosen from.
        tight: Whether to keep the variances of [Deng22] Theorem 2 too.
        rises: Whether weights of the past may rise.
    """
    by_arms = pays_by_arms(action_set) & (not rises)
    if by_arms.any():
        return EitherFormPosterior(action_set, by_arms, tight=tight)
    # Where weights rise, sigma~ is no upper bound of sigma-acute.
    return GramPosterior(action_set, tight=tight, lazy=not (tight and rises))


def pays_by_arms(action_set: ActionSet) -> Mask:
    """Return for whom plays are held by their arms as long as these are few, `(B,)`."""
    basis = action_set.basis
    few_arms = basis.phi.shape[1] <= ARMS_PER_FEATURE * basis.rank
    pays: Mask = (
        (basis.rank > posteriors.MANY_FEATURES) & few_arms & (basis.regularization >= LEAST_NOISE)
    )
    return pays & isinstance(action_set, FixedArms)


class EitherFormPosterior(GramPosterior):
    """The posterior of discounted data on fixed arms, of each learner in the form that is cheaper.

    By the k arms that still weigh anything a step costs O(k^3 + k n), and a row of K, O(m n), for
    each that is new (`wgp_agents.kernels.kernel_form`). A learner that holds more than
    HELD_PER_FEATURE times m goes over to features until it forgets all, and so does one that draws
    functions (`sample`), since these are weights of features.

    Args:
        action_set: What is chosen from; `FixedArms`.
        few_arms: Who begins by arms, `(B,)`.
        tight: Whether to keep the variances of [Deng22] Theorem 2 too.

    Attributes:
        sums: What is held of each arm.
        by_arms: Whose form is that by arms, `(B,)`. A and A2 have no rows until somebody's is not.
    """

    _constants: ClassVar[tuple[str, ...]] = ("_few_arms", "_rows")
    _stores = ("arrays",)

    def __init__(self, action_set: ActionSet, few_arms: Mask, *, tight: bool = False) -> None:
        super().__init__(action_set, tight=tight)
        basis = self.basis
        batch, (m, n) = len(few_arms), basis.phi.shape
        self._lazy |= few_arms
        self._eager = self._many & ~self._lazy
        self.lazy_learners[:] = np.flatnonzero(self._lazy).tolist()
        self._few_arms, self.by_arms = few_arms, few_arms.copy()
        self.sums = ArmSums(
            weight=np.zeros((batch, n)),
            double_weight=np.zeros((batch, n)),
            reward=np.zeros((batch, n)),
            place=np.full((batch, n), -1),
        )
        self._rows = [KernelRows(basis.phi[:rank]) for rank in basis.rank.tolist()]
        if few_arms.all():
            self.arrays = self.arrays._replace(
                gram=np.zeros((batch, 0, m)), double_gram=np.zeros((batch, 0, m))
            )

    def _check_state(self) -> None:
        batch, (m, n) = len(self.by_arms), self.basis.phi.shape
        arrays, rows = self.arrays, self.arrays.gram.shape[1]
        wide = arrays.mean, arrays.variance, *([arrays.tight] if self.tight else [])
        right = all(array.shape == (batch, n) for array in wide)
        right &= arrays.target.shape == arrays.lost.shape == (batch, m)
        right &= arrays.double_gram.shape[1] == rows
        right &= rows == m or (rows == 0 and bool(self.by_arms.all()))
        right &= bool((self.by_arms <= self._few_arms).all())
        if not right:
            refuse("of an agent made alike", "arrays of other sizes in an EitherFormPosterior")
        check_counts(self, "sums.place", self.sums.place + 1, n)
        held = self.sums.place >= 0
        right = bool((held | (self.sums.weight == 0.0)).all())
        for places, mine in zip(self.sums.place, held, strict=True):
            right &= len(np.unique(places[mine])) == mine.sum()
        if not right:
            refuse("one place for each arm that is held", "others in an EitherFormPosterior")

    def clear(self, mask: Mask) -> None:
        """Reset the learners in `mask` to the prior, each in its first form."""
        super().clear(mask)
        for array in self.sums[:3]:
            array[mask] = 0.0
        self.sums.place[mask] = -1
        self.by_arms[mask] = self._few_arms[mask]

    def _discount_and_add(
        self, sign: float, plays: Plays | None, rewards: Array, active: Mask, discount: Array
    ) -> None:
        """Discount the past, and add a play of each, in either form."""
        super()._discount_and_add(sign, plays, rewards, active & ~self.by_arms, discount)
        arms = np.full(len(active), -1) if plays is None else plays.actions
        fade_and_add(arms, rewards, active & self.by_arms, discount, self.basis, self.sums)
        for i in np.flatnonzero(active & self.by_arms).tolist():
            if (self.sums.place[i] >= 0).sum() > HELD_PER_FEATURE * self.basis.rank[i]:
                self._to_features(i)

    def _to_features(self, i: int) -> None:
        """Go over to features: A, A2 and b of what is held."""
        batch, m = len(self.by_arms), len(self.basis.phi)
        if not self.arrays.gram.shape[1]:
            A, A2 = np.zeros((2, batch, m, m))
            self.arrays = self.arrays._replace(gram=A, double_gram=A2)
        rank = int(self.basis.rank[i])
        arms = np.flatnonzero(self.sums.place[i] >= 0)
        phi = self.basis.phi[:rank, arms]
        with blas.single_thread():
            for array, weights in (
                (self.arrays.gram, self.sums.weight),
                (self.arrays.double_gram, self.sums.double_weight),
            ):
                scaled = phi * np.sqrt(weights[i, arms])
                array[i, :rank, :rank] = scaled @ scaled.T
            self.arrays.target[i, :rank] = phi @ self.sums.reward[i, arms]
        for array in self.sums[:3]:
            array[i] = 0.0
        self.sums.place[i] = -1
        self._rows[i] = KernelRows(self.basis.phi[:rank])
        self.by_arms[i] = False

    def _conditions(self, active: Mask) -> Array:
        """Return bounds of what rounding may do; by arms, variances are differences."""
        found = super()._conditions(active & ~self.by_arms)
        for i in np.flatnonzero(active & self.by_arms).tolist():
            traces = float(self.sums.weight[i] @ self.basis.prior)
            found[i] = (1.0 + traces / float(self.basis.regularization[i])) ** 2
        return found

    def refresh(self, active: Mask) -> None:
        """Compute the gains of lazily evaluated learners, and the posteriors of others."""
        super().refresh(active & ~self.by_arms)
        with blas.single_thread():
            for i in np.flatnonzero(active & self.by_arms).tolist():
                W2, place = self.sums.double_weight[i], self.sums.place[i]
                arms = in_places(W2, place)
                lam = float(self.basis.regularization[i])
                self.arrays.gain[i] = log_det(self._rows[i], arms, place[arms], W2[arms], lam)

    def is_prior(self, i: int) -> bool:
        """Return whether learner i knows nothing, so that all variances are k(x, x)."""
        if self.by_arms[i]:
            return not self.sums.weight[i].any()
        return super().is_prior(i)

    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features."""
        if not self.by_arms[i]:
            return super().predictor(i)
        mean = self.arrays.mean[i]
        return ArmPredictor(i, self.basis, self.sums, self._rows[i], mean, self.tight)

    def predict_each(self, features: Array) -> tuple[Array, Array, Array]:
        """Return the posterior of every learner at its own features `(B, m, q)`."""
        found = [self._predict_one(i, features[i]) for i in range(len(features))]
        mean, variance, bound = (np.stack(part) for part in zip(*found, strict=True))
        return mean, variance, bound

    def _predict_one(self, i: int, phi: Array) -> tuple[Array, Array, Array]:
        """Return learner i's posterior at features `(m, q)`, by the loop of all if it is few."""
        if self._many[i]:
            with blas.single_thread():
                return self.predictor(i)(phi[: self.basis.rank[i]])
        one, (mean, variance, tight) = slice(i, i + 1), np.empty((3, 1, phi.shape[1]))
        basis = self.basis._replace(
            regularization=self.basis.regularization[one], rank=self.basis.rank[one]
        )
        arrays = DiscountArrays(*(array[one] for array in self.arrays))
        wanted = tight if self.tight else tight[:, :0]
        gram.context_posteriors(phi[None], basis, arrays, mean, variance, wanted)
        return mean[0], variance[0], tight[0] if self.tight else variance[0]

    def sample(self, normals: Array) -> Array:
        """Return weights drawn around the posterior mean, from standard normals `(B, m)`."""
        for i in np.flatnonzero(self.by_arms).tolist():
            self._to_features(i)
        return super().sample(normals)
