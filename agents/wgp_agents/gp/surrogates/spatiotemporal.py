"""The surrogate of a Gaussian process in space and time, which drops stale observations.

References:
    [BTR24] Bardou, Thiran, Ranieri. This Too Shall Pass: Removing Stale Observations in Dynamic
        Bayesian Optimization. NeurIPS 2024.
"""

from __future__ import annotations

import numpy as np

from wgp_agents.core.state import check_counts
from wgp_agents.gp.action_sets import ActionSet, Plays, Points
from wgp_agents.gp.surrogates.base import FeatureSurrogate, Prediction, Predictor
from wgp_agents.kernels.wdbo import await_reward, observe
from wgp_agents.kernels.wdbo_future import (
    Rules,
    Space,
    StaleArrays,
    advance_time,
    removal_criteria,
)
from wgp_gym.types import Array, Indices, Mask

__all__ = ["LENGTHSCALES", "SpatiotemporalSurrogate"]

LENGTHSCALES = tuple(5.0 * 2**k for k in range(11))  # 5 to 5,120 steps
START = 80.0  # before the first fit
REFIT_EVERY = 25


class SpatiotemporalSurrogate(FeatureSurrogate):
    """The posterior in space and time of the observations that are not stale: [BTR24].

    The covariance is v k(x, x') c(t - t'), c the Matern-3/2 correlation in time, and the posterior
    that of the function at the next step. After each observation the removal budget grows by the
    factor (1 + alpha)^{1 / l}, l the lengthscale of c in steps. While the smallest criterion of an
    observation + 1 is below the budget, that observation is removed, and the budget is divided by
    it. Two observations are always kept, as in the authors' code. With at most L observations a
    step costs O(L^2 + L m + m^2 + m^2 n).

    The criterion of an observation is the relative change of the posterior without it,
    (I / J)^{1/2}. I is the integral over all points and all times from now on of
    (mu - mu')^2 + sigma'^2 - sigma^2, mu' and sigma' without the observation; the second term
    bounds (sigma - sigma')^2, so I bounds the squared Wasserstein-2 distance, and has a closed
    form. J is the same between prior and posterior.

    Deviation: the integral over space is the mean over the arms (of a box, over its candidates).
    The authors' code integrates over R^d and cuts that off at 1, which is neither integral.
    Deviation: the code fits l, the lengthscale in space, the mean and the variances of signal and
    noise after each observation and removal. Here only l is fitted, where it is NaN: the likeliest
    of `LENGTHSCALES`, after the `initial` observations, if any, and every 25 from then on; 80
    before. The code's l has no lower bound: near 0 the budget explodes and all but two observations
    go.
    Deviation: a budget that is left when two observations remain lapses. In the code it goes on
    growing, and removes later observations.
    Deviation: beyond `capacity` the most stale observation is removed, whatever the budget is,
    and at no cost to it.

    Args:
        action_set: What is chosen from.
        lengthscale: l of each learner in steps, or NaN where it is fitted, `(B,)`.
        signal: v, `(B,)`.
        alpha: alpha >= 0, `(B,)`.
        initial: Observations before any is dropped.
        capacity: The largest number of observations held.

    Attributes:
        kept: The state.
    """

    _constants = ("_space", "_rules")
    takes_elapsed = True

    def __init__(
        self,
        action_set: ActionSet,
        *,
        lengthscale: Array,
        signal: Array,
        alpha: Array,
        initial: int,
        capacity: int,
    ) -> None:
        super().__init__(action_set)
        basis, batch, size = self.basis, len(self.held), capacity + 1
        m, n = basis.phi.shape
        fitted, grid = np.isnan(lengthscale), np.array(LENGTHSCALES)
        self._start = np.where(fitted, START, lengthscale)
        self._rules = Rules(signal, alpha, fitted, grid, initial, REFIT_EVERY, capacity)
        root = np.zeros((m, m))
        factor = np.linalg.qr(basis.phi.T, mode="r") / np.sqrt(n)
        root[: len(factor)] = factor
        self._space = Space(root, root.T @ root)
        kept = StaleArrays(
            mean=np.zeros((batch, n)),
            variance=np.zeros((batch, n)),
            gain=np.zeros(batch),
            held=np.zeros(batch, np.int64),
            features=np.zeros((batch, size, m)),
            times=np.zeros((batch, size)),
            rewards=np.zeros((batch, size)),
            noise=np.ones((batch, size)),
            inverse=np.zeros((batch, size, size)),
            influence=np.zeros((batch, size, 2, m)),
            shrinkage=np.zeros((batch, 3, m, m)),
            weights=np.zeros((batch, 2, m)),
            clock=np.zeros(batch),
            seen=np.zeros(batch, np.int64),
            since=np.ones(batch),
            lengthscale=self._start.copy(),
            budget=np.ones(batch),
            age=np.zeros(batch, np.int64),
        )
        self.kept, self.held, self.gain = kept, kept.held, kept.gain
        self.mean, self.variance, self.bound_variance = kept.mean, kept.variance, kept.variance

    def _check_state(self) -> None:
        check_counts(self, "held", self.kept.held, self._rules.capacity)

    @property
    def observed(self) -> Indices:
        """The observations so far, `(B,)`."""
        return self.kept.seen.copy()

    @property
    def lengthscale(self) -> Array:
        """l, in steps, `(B,)`."""
        return self.kept.lengthscale.copy()

    @property
    def budget(self) -> Array:
        """The removal budget, at least 1, `(B,)`."""
        return self.kept.budget.copy()

    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all; `forgetting` is not used."""
        self._at_hand.clear()
        kept = self.kept
        for array in (kept.mean, kept.gain, kept.held, kept.shrinkage, kept.weights, kept.clock):
            array[mask] = 0
        kept.age[mask] = kept.seen[mask] = 0
        kept.budget[mask] = kept.since[mask] = 1.0
        kept.lengthscale[mask] = self._start[mask]
        kept.variance[mask] = self._rules.signal[mask, None] * self.basis.prior

    def update(
        self, plays: Plays, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Learn from one play, drop what is stale, and let time go by."""
        basis, kept, rules = self.basis, self.kept, self._rules
        noise = self._noise(plays)
        observe(plays.features, rewards, noise, active, rules, self._space, basis, kept)
        kept.since[active] = 0.0
        self.elapse(np.ones(len(rewards)) if elapsed is None else elapsed, active)

    def elapse(self, steps: Array, active: Mask) -> None:
        """Let time go by; the budget grows by it at the next observation."""
        self._at_hand.clear()
        self.kept.since[active] += steps[active]
        advance_time(active, steps, self._rules.signal, self.basis, self.kept)

    def hallucinate(self, plays: Plays, active: Mask) -> None:
        """Count a play in the variances; it is not fitted to, and costs no budget."""
        basis, kept, rules = self.basis, self.kept, self._rules
        mean, _ = self.predict_plays(plays)
        noise = self._noise(plays)
        await_reward(plays.features, mean, noise, active, rules, self._space, basis, kept)
        self._at_hand.clear()
        advance_time(active, np.zeros(len(mean)), rules.signal, basis, kept)

    def _noise(self, plays: Plays) -> Array:
        """Return the noise variances of plays, `(B,)`."""
        noise: Array = self.basis.regularization + self._rules.signal * plays.residual
        return noise

    def criteria(self) -> list[Array]:
        """Return the criteria of the observations held, for the times from the next step on."""
        found = np.zeros(self.kept.times.shape)
        removal_criteria(self._rules, self._space, self.basis, self.kept, found)
        return [row[:n].copy() for row, n in zip(found, self.held.tolist(), strict=True)]

    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features `(m, q)`."""
        m, signal = int(self.basis.rank[i]), float(self._rules.signal[i])
        w, Q = self.kept.weights[i, 0, :m].copy(), self.kept.shrinkage[i, 0, :m, :m].copy()

        def _predict(phi: Array) -> tuple[Array, Array, Array]:
            left = np.einsum("ij,ij->j", phi, phi) - np.einsum("ij,ij->j", phi, Q @ phi)
            variance = signal * np.maximum(left, 0.0)
            return w @ phi, variance, variance

        return _predict

    def predict(self, points: Points, learners: Indices | None = None) -> Prediction:
        """Return the posterior at points; what the features leave out has the signal's variance."""
        if points is self._candidates:
            return super().predict(points, learners)
        signal = self._rules.signal if learners is None else self._rules.signal[learners]
        scaled = points._replace(residual=signal[:, None] * points.residual)
        return super().predict(scaled, learners)

    def sample(self, normals: Array) -> Array:
        """Return weights of functions drawn around the posterior mean, `(B, m)`."""
        m = normals.shape[1]
        used = np.arange(m) < self.basis.rank[:, None]
        left = (np.eye(m) - self.kept.shrinkage[:, 0]) * self._rules.signal[:, None, None]
        values, vectors = np.linalg.eigh(left)
        scaled = np.sqrt(np.maximum(values, 0.0)) * normals
        drawn: Array = np.where(used, np.einsum("bij,bj->bi", vectors, scaled), 0.0)
        return drawn
