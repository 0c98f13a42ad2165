"""What surrogates of weighted data share: lazy evaluation of their posterior of many arms.

It needs the exact variances of those arms alone that may be the best.

With many arms the variances are nearly all of a step's cost, O(m^2 n). An upper bound of each is
known from earlier steps (`wgp_agents.kernels.stale`), means are cheap, and the upper bounds of most
arms do not reach the best arm's score. So a score that never falls where the variance rises is
maximised with the variances of a few arms, exactly, ties included.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from wgp_agents.core.argmax import TIE
from wgp_agents.gp.action_sets import ActionSet, Plays, Points
from wgp_agents.gp.surrogates.base import FeatureSurrogate, Prediction, Predictor, Rate
from wgp_agents.gp.surrogates.posteriors import GramPosterior, RankOnePosterior
from wgp_agents.kernels import blas
from wgp_agents.kernels.kernel_form import ArmPredictor
from wgp_gym.types import Array, Indices, Mask

__all__ = ["WeightedSurrogate", "settle"]

FIRST = 128  # arms evaluated at first: enough to fill BLAS's blocks
MOST = 8_192  # arms evaluated together, which bounds the room to work in


class WeightedSurrogate(FeatureSurrogate):
    """A surrogate whose posterior is one of weighted data."""

    takes_elapsed = True
    _constants = ("_lazy",)

    def __init__(self, action_set: ActionSet, posterior: RankOnePosterior | GramPosterior) -> None:
        super().__init__(action_set)
        self._posterior, arrays = posterior, posterior.arrays
        self.mean, self.variance, self.gain = arrays.mean, arrays.variance, arrays.gain
        self.bound_variance = posterior.bound_variance
        self._lazy, self._features_of = posterior.lazy_learners, action_set.domain_features
        self.lazy = bool(self._lazy)

    def _changed(self) -> None:
        """Drop what was at hand of the posterior."""
        self._at_hand.clear()
        if self._lazy:
            self._known = None

    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features `(m, q)`."""
        return self._posterior.predictor(i)

    def _of_candidates(self) -> Prediction:
        """Return the posterior of the candidates."""
        if not self._lazy:
            return super()._of_candidates()
        with blas.single_thread():
            return self._exact()

    def _exact(self) -> Prediction:
        """Return the posterior of all arms, of lazily evaluated learners computed now."""
        variance, bound = self.variance.copy(), self.bound_variance.copy()
        for i in self._lazy:
            m, left = self.basis.rank[i], self.basis.residual[i]
            for block in blas.blocks(len(left)):
                arms, phi = np.arange(len(left))[block], self.basis.phi[:m, block]
                _, variance[i, block], bound[i, block] = self._predict_arms(i, arms, phi)
            variance[i] += left
            bound[i] += left
        return Prediction(self.mean, variance, bound)

    def _all_known(self, points: Points) -> bool:
        """Return whether no variance at points is an upper bound."""
        return not self._lazy or points is not self._candidates or self._known is not None

    def predict_above(self, points: Points) -> Prediction:
        """Return the posterior of all learners at points, or upper bounds of its variances."""
        if self._all_known(points):
            return self.predict(points)
        with blas.single_thread():
            for i in self._lazy:
                self._predictor_at_hand(i)  # computes means
        return Prediction(self.mean, self.variance, self.bound_variance)

    def leading_scores(self, points: Points, rate: Rate, allowed: Mask | None) -> Array:
        """Return scores of which each learner's best and all that tie with it are right, `(B, q)`.

        See `FeatureSurrogate` and `wgp_agents.gp.surrogates.lazy`.
        """
        if self._all_known(points):
            return super().leading_scores(points, rate, allowed)
        with blas.single_thread():
            scores = rate(points, self.predict_above(points), None)
            for i in self._lazy:
                if not self._posterior.is_prior(i):  # else the bounds are right
                    evaluate = partial(self._evaluate, i, points, rate)
                    settle(scores[i], None if allowed is None else allowed[i], evaluate)
        return scores

    def _predict_arms(self, i: int, arms: Indices, phi: Array) -> tuple[Array, Array, Array]:
        """Return learner i's posterior at arms, of which phi `(m, q)` are the features."""
        predict = self._predictor_at_hand(i)
        return predict.at(arms) if isinstance(predict, ArmPredictor) else predict(phi)

    def _evaluate(self, i: int, points: Points, rate: Rate, arms: Indices) -> Array:
        """Compute learner i's variances of arms; return their scores."""
        left = points.residual[i : i + 1, arms]
        phi = self._features_of(arms).T
        _, variance, bound = self._predict_arms(i, arms, phi[: self.basis.rank[i]])
        found = Prediction(self.mean[i : i + 1, arms], variance + left, bound + left)
        self.variance[i, arms], self.bound_variance[i, arms] = found.variance, found.bound_variance
        these = Points(points.places[:, arms], phi[None], left)
        scores: Array = rate(these, found, np.array([i]))[0]
        return scores

    def predict_plays(self, plays: Plays) -> tuple[Array, Array]:
        """Return the mean and variance where each learner played, `(B,)` each."""
        mean, variance = super().predict_plays(plays)
        if self._lazy and plays.arms is not None:
            with blas.single_thread():
                for i, arm in zip(self._lazy, plays.arms[self._lazy], strict=True):
                    phi = plays.features[i : i + 1, : self.basis.rank[i]].T
                    (mean[i],), (left,), _ = self._predict_arms(i, np.array([arm]), phi)
                    variance[i] = left + self.basis.residual[i, arm]
        return mean, variance

    def predict_each(self, features: Array) -> tuple[Array, Array, Array]:
        """Return the posterior of every learner at its own features `(B, m, q)`."""
        if isinstance(self._posterior, GramPosterior):
            return self._posterior.predict_each(features)
        return super().predict_each(features)

    def sample(self, normals: Array) -> Array:
        """Return weights of functions drawn around the posterior mean, `(B, m)`."""
        return self._posterior.sample(normals)

    def _clear(self, mask: Mask) -> None:
        self._posterior.clear(mask)
        self.held[mask] = 0
        self._changed()


def settle(scores: Array, allowed: Mask | None, evaluate: Callable[[Indices], Array]) -> int:
    """Put exact scores in the place of upper bounds wherever these reach the best exact one.

    From the largest upper bound down, until the next one is more than a tie below the best.

    Args:
        scores: Upper bounds, `(n,)`; in the end those left are not among the best.
        allowed: What may be chosen, `(n,)`; None: everything. Others are left alone.
        evaluate: Returns the exact scores of arms, by their index `(k,)`.

    Returns:
        How many were evaluated.
    """
    bounds = scores.copy() if allowed is None else np.where(allowed, scores, -math.inf)
    first = max(len(bounds) - FIRST, 0)
    block = np.argpartition(bounds, first)[first:]
    block, best, count = block[bounds[block] > -math.inf], -math.inf, 0
    rest: Indices | None = None
    while block.size:
        block.sort()  # their features are read in the order in which they are stored
        scores[block] = exact = evaluate(block)
        bounds[block] = -math.inf
        best, count = max(best, float(exact.max())), count + len(block)
        if rest is None:
            rest = np.flatnonzero(bounds >= best - TIE)
            rest = rest[np.argsort(-bounds[rest])]
        # The best may have risen: what no longer reaches it is at the end.
        left = rest[: np.searchsorted(-bounds[rest], TIE - best, side="right")]
        block, rest = np.split(left, [min(count, MOST)])
    return count
