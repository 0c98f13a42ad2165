"""The surrogates of functions that drift as Gaussian processes, by Kalman filters.

[BSC16]: f_1 = g_1 and f_{t+1} = sqrt(1 - eps) f_t + sqrt(eps) g_{t+1}, the g independent draws from
the Gaussian process of the kernel k. The covariance is k(x, x') (1 - eps)^{|t - t'| / 2}.

[BRT22]: f_{t+1} = f_t + sigma_w g_{t+1}, a random walk. The covariance is
k(x, x') (1 + sigma_w^2 min(t, t')), t = 0 at the first play.

In features the weights of f_1 are N(0, I) and drift in the same way, so a Kalman filter gives the
exact posterior.

References:
    [BSC16] Bogunovic, Scarlett, Cevher. Time-Varying Gaussian Process Bandit Optimization.
        AISTATS 2016.
    [BRT22] Brunzema, von Rohr, Trimpe. On Controller Tuning with Time-Varying Bayesian
        Optimization. CDC 2022.
"""

from __future__ import annotations

import numpy as np

from wgp_agents.core.state import check_counts, check_rooms
from wgp_agents.gp.action_sets import ActionSet, Plays
from wgp_agents.gp.surrogates.base import FeatureSurrogate, Predictor
from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.drift import (
    DriftArrays,
    context_drift,
    drift_deviations,
    drift_hallucinate,
    drift_update,
)
from wgp_agents.kernels.elapsed import drifted
from wgp_gym.threads import over_learners
from wgp_gym.types import Array, Mask

__all__ = ["EPS_GRID", "DriftSurrogate", "FilterSurrogate", "WalkSurrogate", "one_filter"]

EPS_GRID = (0.0, *(10 ** (-4 + k / 2) for k in range(8)))  # 0, and 1e-4 to 0.3 in half decades
START = 5  # the index of 0.01, in the middle of the grid


class FilterSurrogate(FeatureSurrogate):
    """A surrogate whose posterior is that of one Kalman filter of each learner, the chosen one.

    Attributes:
        kept: The filters.
    """

    nothing_forgotten = 0.0
    takes_elapsed = True
    _stores = ("kept",)

    def __init__(self, action_set: ActionSet) -> None:
        super().__init__(action_set)
        self.kept: DriftArrays = one_filter(len(self.held), *self.basis.phi.shape)
        self.mean, self.variance, self.gain = self.kept.mean, self.kept.variance, self.kept.gain
        self.bound_variance = self.variance

    def _check_state(self) -> None:
        self._check_filters(self.kept)

    def _check_filters(self, kept: DriftArrays) -> None:
        check_rooms(self, kept.covariance, kept.weights, kept.eps, kept.score, kept.gains)
        check_rooms(self, kept.mean, kept.variance, self.basis.prior[None])
        check_counts(self, "filters", kept.filters, kept.eps.shape[1])
        check_counts(self, "chosen", np.stack([kept.chosen, kept.start]), kept.eps.shape[1] - 1)

    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features `(m, q)`."""
        m, j = int(self.basis.rank[i]), int(self.kept.chosen[i])
        P = self.kept.covariance[i, j, :m, :m].copy()
        w = self.kept.weights[i, j, :m].copy()

        def _predict(phi: Array) -> tuple[Array, Array, Array]:
            variance = np.maximum(np.einsum("ij,ij->j", phi, P @ phi), 0.0)
            return w @ phi, variance, variance

        return _predict

    def predict_each(self, features: Array) -> tuple[Array, Array, Array]:
        """Return the posterior of every learner at its own features `(B, m, q)`."""
        batch, _, q = features.shape
        mean, variance = np.empty((2, batch, q))
        context_drift(features, self.basis.rank, self.kept, mean, variance)
        return mean, variance, variance

    def sample(self, normals: Array) -> Array:
        """Return weights of functions drawn around the posterior mean, `(B, m)`."""
        drawn = np.zeros_like(normals)
        drift_deviations(normals, self.basis.rank, self.kept, drawn)
        return drawn


class DriftSurrogate(FilterSurrogate):
    """The exact posterior of the drifting function of [BSC16] at the next step: O(m^2 + m n).

    The gain is 1/2 sum log(1 + s_t / lambda), s_t the variance of phi_t^T theta before play t: by
    the chain rule of determinants 1/2 log det(I + K / lambda), K `(t, t)` the covariance of the
    plays.

    Where eps is NaN it is fitted: a learner has a filter for each eps of `EPS_GRID`, and the one
    with the largest likelihood of the innovations is chosen, the smallest eps of equals; 0.01
    before any two of them differ. Deviation: [BSC16] knows eps.

    Deviation: on a box, what the features leave out is added to the noise of a play, as in
    `wgp_agents.gp.box.Box`.

    Args:
        action_set: What is chosen from.
        eps: The drift in [0, 1] of each learner, or NaN, `(B,)`. It replaces the `forgetting` of
            `restart`.
    """

    def __init__(self, action_set: ActionSet, *, eps: Array | None = None) -> None:
        super().__init__(action_set)
        self._given, self._exact = eps, action_set.exact

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all; `forgetting` is eps in [0, 1], or NaN to fit it, unless eps was given."""
        self._at_hand.clear()
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
        """Give every learner room for one filter for each eps of the grid."""
        names = ("covariance", "weights", "eps", "score", "gains")
        missing = len(EPS_GRID) - self.kept.eps.shape[1]
        old = {name: getattr(self.kept, name) for name in names}
        pads = {name: [(0, 0), (0, missing)] + [(0, 0)] * (a.ndim - 2) for name, a in old.items()}
        grown = {name: np.pad(array, pads[name]) for name, array in old.items()}
        kept: DriftArrays = self.kept._replace(**grown)
        self.kept = kept

    def update(
        self, plays: Plays, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Learn from one play, and let the function drift to the next step."""
        self._at_hand.clear()
        kept = self.kept
        if elapsed is not None:
            kept = kept._replace(eps=drifted(kept.eps, elapsed))
        noise = self._noise(plays)
        features, (m, n), filters = plays.features, self.basis.phi.shape, kept.eps.shape[1]

        def _update(mine: Mask) -> None:
            drift_update(features, rewards, noise, mine, self.basis, kept)

        over_learners(_update, active, m * (2.0 * m * filters + n))
        self.held += active

    def _noise(self, plays: Plays) -> Array:
        """Return the noise variances of plays, `(B,)`."""
        noise = self.basis.regularization
        return noise if self._exact else noise + plays.residual

    def elapse(self, steps: Array, active: Mask) -> None:
        """Let the function drift, by 1 - (1 - eps)^steps."""
        self._at_hand.clear()
        only_drift(drifted(self.kept.eps, steps), active, self.basis, self.kept)

    def hallucinate(self, plays: Plays, active: Mask) -> None:
        """Count a play in the variances; it says nothing of eps where that is fitted."""
        self._at_hand.clear()
        drift_hallucinate(plays.features, self._noise(plays), active, self.basis, self.kept)
        self.held += active

    @property
    def eps(self) -> Array:
        """The drift of the chosen filter, `(B,)`."""
        chosen: Array = self.kept.eps[np.arange(len(self.gain)), self.kept.chosen]
        return chosen


def only_drift(eps: Array, active: Mask, basis: Basis, kept: DriftArrays) -> None:
    """Let filters drift by eps `(B, J)`: the Kalman step of a play that shows nothing.

    It has no features and the reward 0, so that no gain, score or mean changes with it.
    """
    nothing = np.zeros((len(active), len(basis.phi)))
    noise = np.ones(len(active))  # log 1 = 0 is what scores change by
    drift_update(nothing, np.zeros(len(active)), noise, active, basis, kept._replace(eps=eps))


def one_filter(batch: int, m: int, n: int) -> DriftArrays:
    """Return the arrays of B learners with one filter each, m features and n arms."""
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


class WalkSurrogate(FilterSurrogate):
    """The exact posterior of the random walk of [BRT22] at the next step: O(m^2 + m n).

    With v_t = 1 + t sigma_w^2, f_t / v_t^{1/2} has the prior variance k(x, x) at all t and drifts
    as the model of `DriftSurrogate` does, with eps_t = sigma_w^2 / v_{t+1}: so the same Kalman step
    serves, with rewards over v_t^{1/2} and the noise variance lambda / v_t. The gain is 1/2 log
    det(I + K / lambda), K `(t, t)` the covariance of the plays.

    Deviation: on a box, what the features leave out is added to the noise of a play, and between
    the candidates to the variance, without the factor v_t.

    Args:
        action_set: What is chosen from.
        injection: sigma_w^2 >= 0 of every learner, `(B,)`.
    """

    def __init__(self, action_set: ActionSet, *, injection: Array) -> None:
        super().__init__(action_set)
        self._injection = injection
        self._level = one_filter(len(self.held), *self.basis.phi.shape)  # of f_t / v_t^{1/2}
        self._size = np.ones(len(self.held))  # v_t

    def _check_state(self) -> None:
        super()._check_state()
        self._check_filters(self._level)

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all, and start at t = 0; `forgetting` is not used."""
        self._at_hand.clear()
        for kept in (self._level, self.kept):
            for array in (kept.weights, kept.score, kept.gains, kept.age, kept.mean, kept.gain):
                array[mask] = 0
            kept.covariance[mask] = np.eye(len(self.basis.phi))
            kept.variance[mask] = self.basis.prior
        self._size[mask] = 1.0
        self.held[mask] = 0

    def update(
        self, plays: Plays, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Learn from one play, and let the function walk to the next step."""
        self._at_hand.clear()
        now, noise = self._size, self._noise(plays)
        self._walk(self._injection if elapsed is None else self._injection * elapsed, active)
        level = self._level
        drift_update(plays.features, rewards / np.sqrt(now), noise, active, self.basis, level)
        self.held += active
        self._scale()

    def _noise(self, plays: Plays) -> Array:
        """Return the noise variances of rewards over v_t^{1/2}, `(B,)`."""
        noise: Array = self.basis.regularization / self._size + plays.residual
        return noise

    def _walk(self, added: Array, active: Mask) -> None:
        """Let v_t grow by `added`, `(B,)`, and set the eps of that."""
        then = self._size + added
        self._level.eps[active, 0] = (added / then)[active]
        self._size = np.where(active, then, self._size)

    def elapse(self, steps: Array, active: Mask) -> None:
        """Let the function walk."""
        self._at_hand.clear()
        self._walk(self._injection * steps, active)
        only_drift(self._level.eps, active, self.basis, self._level)
        self._scale()

    def hallucinate(self, plays: Plays, active: Mask) -> None:
        """Count a play in the variances."""
        self._at_hand.clear()
        noise = self._noise(plays)
        drift_hallucinate(plays.features, noise, active, self.basis, self._level)
        self.held += active
        self._scale()

    def _scale(self) -> None:
        """Compute the filter of f_t from that of f_t / v_t^{1/2}."""
        level, kept, size = self._level, self.kept, self._size
        root = np.sqrt(size)
        np.multiply(level.covariance, size[:, None, None, None], out=kept.covariance)
        np.multiply(level.weights, root[:, None, None], out=kept.weights)
        np.multiply(level.mean, root[:, None], out=kept.mean)
        np.multiply(level.variance, size[:, None], out=kept.variance)
        kept.gain[:] = level.gain
