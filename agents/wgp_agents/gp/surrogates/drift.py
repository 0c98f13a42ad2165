"""The memory of a function that drifts as a Gaussian process.

[BSC16] has f_1 = g_1 and f_{t+1} = sqrt(1 - eps) f_t + sqrt(eps) g_{t+1}, the g independent draws
from the Gaussian process of the kernel k. Its covariance is k(x, x') (1 - eps)^{|t - t'| / 2}. In
features the weights of f_t are N(0, I) and drift in the same way, so the Kalman filter gives the
exact posterior, from the last one alone.

References:
    [BSC16] Bogunovic, Scarlett, Cevher. Time-Varying Gaussian Process Bandit Optimization.
        AISTATS 2016.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wgp_agents.gp.action_sets import ActionSet
from wgp_agents.gp.surrogates.state import Plays, Predictor
from wgp_agents.gp.surrogates.weighted import Surrogate
from wgp_agents.kernels.arrays import DriftArrays
from wgp_agents.kernels.drift import drift_deviations, drift_update
from wgp_gym.types import Array, Mask

__all__ = ["EPS_GRID", "DriftSurrogate", "filter_predictor", "one_filter"]

EPS_GRID = (0.0, *(10 ** (-4 + k / 2) for k in range(8)))  # 0, then 1e-4 to 0.3 in half decades
START = 5  # its 0.01: halfway up, neither trusting old data for good nor forgetting them at once


class DriftSurrogate(Surrogate):
    """Keeps the exact posterior of the drifting model of [BSC16]: O(m^2 + m n) a step.

    The posterior is that of the function that the next action meets. The gain is
    1/2 sum log(1 + s_t / lambda), s_t the variance of phi_t^T theta before play t: by the chain
    rule of determinants 1/2 log det(I + K / lambda), K `(t, t)` the covariance of the plays.

    Where eps is NaN it is fitted: a learner has a filter for each eps of `EPS_GRID`, and the one
    whose innovations have been likeliest speaks, the smallest eps of equals. That needs no more
    data than the plays, since the filters foretell every reward. Before any two of them differ
    it is 0.01. Deviation: [BSC16] knows eps.

    Deviation: on a box, what the features leave out is added to the noise of a play, as in
    `wgp_agents.gp.action_sets.Box`.

    Args:
        action_set: The arms, or the box.
        eps: The drift in [0, 1] of each learner, or NaN, in place of what `restart` says, `(B,)`.

    Attributes:
        arrays: What is kept.
    """

    nothing_forgotten = 0.0

    def __init__(self, action_set: ActionSet, *, eps: Array | None = None) -> None:
        basis = action_set.basis
        batch, (m, n) = len(basis.regularization), basis.phi.shape
        self.basis, self._embed, self._given = basis, action_set.embed, eps
        arrays = one_filter(batch, m, n)
        super().__init__(arrays, arrays.variance)
        self.kept: DriftArrays = arrays

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all; `forgetting` is eps in [0, 1], or NaN to fit it, if none is given."""
        eps = forgetting if self._given is None else self._given
        fitted = mask & np.isnan(eps)
        if fitted.any():
            self._make_room()
        kept = self.kept
        kept.eps[mask, 0] = eps[mask]
        kept.eps[fitted] = EPS_GRID[: kept.eps.shape[1]]
        kept.filters[mask] = np.where(fitted, len(EPS_GRID), 1)[mask]
        kept.start[mask] = np.where(fitted, START, 0)[mask]
        kept.chosen[mask] = kept.start[mask]
        kept.covariance[mask] = np.eye(len(self.basis.phi))
        kept.variance[mask] = self.basis.prior
        self.held[mask] = 0
        for array in (kept.weights, kept.score, kept.gains, kept.age, kept.mean, kept.gain):
            array[mask] = 0

    def _make_room(self) -> None:
        """Give every learner room for a filter for each eps of the grid."""
        names = ("covariance", "weights", "eps", "score", "gains")
        missing = len(EPS_GRID) - self.kept.eps.shape[1]
        old = {name: getattr(self.kept, name) for name in names}
        pads = {name: [(0, 0), (0, missing)] + [(0, 0)] * (a.ndim - 2) for name, a in old.items()}
        grown = {name: np.pad(array, pads[name]) for name, array in old.items()}
        kept: DriftArrays = self.kept._replace(**grown)
        self.kept = self.arrays = kept

    def update(self, plays: Plays, rewards: Array, active: Mask) -> None:
        """Take in one observation, and let the function drift to the next step."""
        features, share = self._embed(plays)
        noise = self.basis.regularization if share is None else self.basis.regularization / share
        drift_update(features, rewards, noise, active, self.basis, self.kept)
        self.held += active

    @property
    def eps(self) -> Array:
        """The drift of the filter that speaks, `(B,)`."""
        chosen: Array = self.kept.eps[np.arange(len(self.gain)), self.kept.chosen]
        return chosen

    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features `(m, q)`: see `Predictor`."""
        return filter_predictor(i, self.basis.rank, self.kept)

    def deviations(self, normals: Array) -> Array:
        """Return weights drawn around the posterior mean, from standard normals `(B, m)`."""
        drawn = np.zeros_like(normals)
        drift_deviations(normals, self.basis.rank, self.kept, drawn)
        return drawn


def one_filter(batch: int, m: int, n: int) -> DriftArrays:
    """Return the arrays of B learners with one filter each, of m features and n arms."""
    return DriftArrays(
        covariance=np.zeros((batch, 1, m, m)),
        weights=np.zeros((batch, 1, m)),
        eps=np.zeros((batch, 1)),
        score=np.zeros((batch, 1)),
        gains=np.zeros((batch, 1)),
        filters=np.ones(batch, np.int64),
        start=np.zeros(batch, np.int64),
        chosen=np.zeros(batch, np.int64),
        age=np.zeros(batch, np.int64),
        mean=np.zeros((batch, n)),
        variance=np.zeros((batch, n)),
        gain=np.zeros(batch),
    )


def filter_predictor(i: int, rank: NDArray[np.int64], kept: DriftArrays) -> Predictor:
    """Return learner i's posterior as a function of features, by its filter that speaks.

    Args:
        i: The learner.
        rank: How many features each has, `(B,)`.
        kept: What is kept.
    """
    m, j = int(rank[i]), int(kept.chosen[i])
    P, w = kept.covariance[i, j, :m, :m].copy(), kept.weights[i, j, :m].copy()

    def _predict(phi: Array) -> tuple[Array, Array, Array]:
        variance = np.maximum(np.einsum("ij,ij->j", phi, P @ phi), 0.0)
        return w @ phi, variance, variance

    return _predict
