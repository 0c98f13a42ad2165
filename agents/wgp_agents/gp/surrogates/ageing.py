"""The memory of observations that age: the noise variance of each grows with every step.

An observation that is k steps old counts as if its noise variance were lambda + k sigma_w^2, so
its weight is w_k = 1 / (1 + k sigma_w^2 / lambda): old data fade like a hyperbola, not
geometrically. That is no recursion of fixed size, but sums of exponentials are. The posterior is
that of the next choice, for which the last observation is one step old.
"""

from __future__ import annotations

import numpy as np

from wgp_agents.gp.action_sets import ActionSet
from wgp_agents.gp.surrogates.ageing_sum import ageing_sum
from wgp_agents.gp.surrogates.state import MANY_FEATURES, Plays, Predictor
from wgp_agents.gp.surrogates.weighted import Surrogate
from wgp_agents.kernels import blas
from wgp_agents.kernels import gram as compiled
from wgp_agents.kernels.ageing import AgeingArrays, ageing_update
from wgp_agents.kernels.arrays import DiscountArrays
from wgp_gym.types import Array, Mask

__all__ = ["AgeingSurrogate"]


class AgeingSurrogate(Surrogate):
    """Keeps everything, with a noise variance that grows by sigma_w^2 a step, to 1e-8 of a weight.

    w_k is the sum of a_j z_j^(k - 1) of `ageing_sum`, so A = sum of w phi phi^T is the sum of
    a_j A_j with A_j that fade by z_j a step, and so is b. From A and b on, all is as in
    `wgp_agents.gp.surrogates.weighted`: V = A + lambda I, and the gain is
    1/2 log det(I + A / lambda). A step costs O(J m^2 + m^3 + m^2 n), and a learner J m^2 / 2
    numbers, with J about 9 + 2.2 log T.

    The weights are those of a model, where those of `DiscountSurrogate` are of a loss: the
    posterior has the covariance lambda V^{-1}, and its gain no double weights.

    Deviation: on a box, what the features leave out is added to the noise of a fresh play, and
    ages with it: see `wgp_agents.gp.action_sets.Box`.

    Args:
        action_set: The arms, or the box.
        injection: sigma_w^2 >= 0 of every learner, `(B,)`.
        horizon: T >= 1, the age up to which weights are right.

    Attributes:
        arrays: What the posterior follows from: A, twice, and b.
    """

    nothing_forgotten = 0.0

    def __init__(self, action_set: ActionSet, *, injection: Array, horizon: int) -> None:
        basis = action_set.basis
        batch, (m, n) = len(basis.regularization), basis.phi.shape
        self.basis, self._embed = basis, action_set.embed
        self._many = basis.rank > MANY_FEATURES
        self._few, self._any_many = ~self._many, bool(self._many.any())
        self.bank = make_bank(injection / basis.regularization, horizon, m)
        gram = np.zeros((batch, m, m))
        arrays = DiscountArrays(
            gram=gram,
            target=np.zeros((batch, m)),
            lost=np.zeros((batch, m)),
            double_gram=gram,
            mean=np.zeros((batch, n)),
            variance=np.zeros((batch, n)),
            gain=np.zeros(batch),
            tight=np.zeros((batch, 0)),
        )
        super().__init__(arrays, arrays.variance)
        self.kept: DiscountArrays = arrays

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all; the injection stays that of the constructor."""
        del forgetting
        for array in (self.bank.grams, self.bank.targets, *self.kept):
            array[mask] = 0.0
        self.variance[mask] = self.basis.prior
        self.held[mask] = 0

    def update(self, plays: Plays, rewards: Array, active: Mask) -> None:
        """Let the past age by a step and take in one observation."""
        features, share = self._embed(plays)
        if share is not None:
            root = np.sqrt(share)
            features, rewards = features * root[:, None], rewards * root
        basis, kept = self.basis, self.kept
        ageing_update(features, rewards, active, basis.rank, self.bank, kept)
        compiled.posteriors(active & self._few, basis, kept)
        if self._any_many:
            blas.posteriors(active & self._many, basis, kept)
        self.held += active

    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features `(m, q)`: see `Predictor`."""
        predict = blas.posterior_of(i, self.basis, self.kept)

        def _predict(phi: Array) -> tuple[Array, Array, Array]:
            mean, variance, _ = predict(phi)
            return mean, variance, variance

        return _predict

    def deviations(self, normals: Array) -> Array:
        """Return weights drawn around the posterior mean, from standard normals `(B, m)`."""
        drawn = np.zeros_like(normals)
        compiled.deviations(normals, self._few, self.basis, self.kept, drawn)
        if self._any_many:
            with blas.single_thread():
                for i in np.flatnonzero(self._many).tolist():
                    drawn[i] = blas.deviation_of(i, normals[i], self.basis, self.kept)
        return drawn


def make_bank(ratios: Array, horizon: int, features: int) -> AgeingArrays:
    """Return an empty bank of sums for B learners.

    Args:
        ratios: sigma_w^2 / lambda of each, `(B,)`.
        horizon: T.
        features: m.
    """
    sums = {ratio: ageing_sum(ratio, horizon) for ratio in set(ratios.tolist())}
    found = [sums[ratio] for ratio in ratios.tolist()]
    terms = np.array([len(a) for a, _ in found])
    batch, most = len(terms), int(terms.max())
    bank = AgeingArrays(
        terms=terms,
        coefficients=np.zeros((batch, most)),
        decays=np.zeros((batch, most)),
        grams=np.zeros((batch, most, features * (features + 1) // 2)),
        targets=np.zeros((batch, most, features)),
    )
    for i, (a, z) in enumerate(found):
        bank.coefficients[i, : terms[i]], bank.decays[i, : terms[i]] = a, z
    return bank
