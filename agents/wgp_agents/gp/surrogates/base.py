"""The contract of surrogates: the posteriors of B learners.

| method | what it does |
|---|---|
| `restart` | forgets all that some learners know |
| `retune` | gives some another forgetting parameter, for a rule that learns it |
| `update` | learns from one play of each |
| `elapse` | lets time go by without a play |
| `hallucinate` | counts a play whose reward is still to come in the variances |
| `predict` | returns means and variances at any points |
| `sample` | draws functions from the posterior, for Thompson sampling |
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import ClassVar, NamedTuple

import numpy as np

from wgp_agents.gp.action_sets import ActionSet, Plays, Points
from wgp_gym.types import Array, Indices, Mask

__all__ = [
    "FeatureSurrogate",
    "Prediction",
    "Predictor",
    "Rate",
    "Surrogate",
    "forget_all",
    "keeps_posterior",
]


class Prediction(NamedTuple):
    """The posterior of k learners at q points, `(k, q)` each.

    Attributes:
        mean: Posterior means.
        variance: Posterior variances of the function, what the features leave out included.
        bound_variance: The variances that the confidence bound uses.
    """

    mean: Array
    variance: Array
    bound_variance: Array


Rate = Callable[[Points, Prediction, Indices | None], Array]
"""The scores `(k, q)` of points with a posterior, for the learners with these indices."""


class Surrogate(ABC):
    """The posterior of B learners.

    A user's own needs `restart`, `update` and `predict`; `sample` only for Thompson sampling.

    Attributes:
        basis: The features of the action set, and lambda of every learner.
        unused: Which features a learner does not use, `(B, m)`.
        gain: Realised (double-weighted) information gains, `(B,)`; NaN where nothing computes them.
        held: The number of observations that each learner holds, `(B,)`.
        ratios: The discount w_{t-1} / w_t of each step, at index t - 1, `(B, L)`; the last one
            holds from then on.
    """

    _constants: ClassVar[tuple[str, ...]] = ("basis", "unused", "_rows")
    nothing_forgotten: float = math.inf
    """The value of the forgetting parameter with which everything is kept for good."""
    takes_elapsed: bool = False
    """Whether `update` takes `elapsed`, and `elapse` can be called."""
    time_comes_first: ClassVar[bool] = False
    """Whether a play's time goes by before it counts, as with weights; after it, as with drifts."""

    def __init__(self, action_set: ActionSet) -> None:
        self.basis = action_set.basis
        batch = len(self.basis.regularization)
        self.unused = action_set.unused
        self.gain = np.full(batch, np.nan)
        self.held = np.zeros(batch, np.int64)
        self.ratios = np.ones((batch, 1))

    @abstractmethod
    def restart(self, mask: Mask, forgetting: Array) -> None:
        """Forget all that the learners in `mask` know.

        Args:
            mask: Who starts again, `(B,)`.
            forgetting: The forgetting parameter, `(B,)`: window, period or discount.
        """

    def retune(self, mask: Mask, forgetting: Array) -> None:
        """Give the learners in `mask` another forgetting parameter, as in `restart`.

        They may forget what they hold, as they do here: what a window has dropped is lost.
        """
        self.restart(mask, forgetting)

    @abstractmethod
    def update(
        self, plays: Plays, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Learn from one play of every learner in `active`, and let time go by.

        A user's own that has no use for `elapsed` may leave it out: it is only given to one that
        says `takes_elapsed`.

        Args:
            plays: What was played.
            rewards: Rewards paid, `(B,)`.
            active: Who learns, `(B,)`.
            elapsed: How many steps go by, at least 0, `(B,)`; None: one for everybody. Weights and
                windows take them before the play, which then counts in full, and drifts after it:
                what is believed is of the next step. So `elapse(e)` and `update(elapsed=0)`, in
                this order for weights and in the other for drifts and restart periods, are
                `update(elapsed=e)`.
        """

    def elapse(self, steps: Array, active: Mask) -> None:
        """Let time go by without a play: memories fade, drifts grow, periods go on.

        Args:
            steps: How many steps go by, at least 0, `(B,)`.
            active: For whom, `(B,)`.

        Raises:
            NotImplementedError: If this surrogate knows no time but its plays.
        """
        raise NotImplementedError(f"{type(self).__name__} has no `elapse`: it counts plays.")

    def hallucinate(self, plays: Plays, active: Mask) -> None:
        """Count a play whose reward is still to come: variances shrink, means stay.

        By default the posterior mean is learned in its place, with no time going by. A surrogate
        that knows no time takes a step.

        Args:
            plays: What was played.
            active: By whom, `(B,)`.

        Source: Desautels, Krause, Burdick. Parallelizing Exploration-Exploitation Tradeoffs in
        Gaussian Process Bandit Optimization. JMLR 15, 2014 (GP-BUCB).
        """
        mean, _ = self.predict_plays(plays)
        if self.takes_elapsed:
            self.update(plays, mean, active, np.zeros(len(mean)))
        else:
            self.update(plays, mean, active)

    @abstractmethod
    def predict(self, points: Points, learners: Indices | None = None) -> Prediction:
        """Return the learners' posterior at points.

        Args:
            points: The points, as these learners see them.
            learners: Their indices, `(k,)`; None: all.
        """

    def sample(self, normals: Array) -> Array:
        """Return weights w `(B, m)` of functions phi^T w drawn around the posterior mean.

        Args:
            normals: Standard normal draws, `(B, m)`.

        Raises:
            NotImplementedError: If this surrogate cannot.
        """
        raise NotImplementedError(f"{type(self).__name__} draws no functions: it has no `sample`.")

    def features_of(self, points: Points, learners: Indices | None = None) -> Array:
        """Return the features of points, `(k, m, q)`; those that a learner does not use are 0."""
        rank = self.basis.rank if learners is None else self.basis.rank[learners]
        given, (m, q) = points.features, (len(self.basis.phi), points.features.shape[2])
        features = np.zeros((len(rank), m, q))
        features[:, : given.shape[1]] = given
        features[np.arange(m) >= rank[:, None]] = 0.0
        return features

    def predict_plays(self, plays: Plays) -> tuple[Array, Array]:
        """Return the mean and variance where each learner played, `(B,)` each."""
        columns = np.ascontiguousarray(plays.features)[:, :, None]
        points = Points(plays.places[:, None], columns, plays.residual[:, None])
        mean, variance, _ = self.predict(points)
        return mean[:, 0], variance[:, 0]


def forget_all(surrogate: Surrogate, mask: Mask) -> None:
    """Restart the learners in `mask` `(B,)`, with a forgetting parameter that keeps everything."""
    surrogate.restart(mask, np.full(len(mask), surrogate.nothing_forgotten))


Predictor = Callable[[Array], tuple[Array, Array, Array]]
"""From features `(m, q)` of one learner: means, variances, and the variances that the bound uses,
`(q,)` each, without what the features leave out."""


class FeatureSurrogate(Surrogate):
    """A Gaussian model that is linear in the features, with a cached posterior of the candidates.

    Attributes:
        mean: Posterior means of fixed arms, or of a box's candidates, `(B, n)`.
        variance: Their posterior variances, `(B, n)`.
        bound_variance: The variances that the confidence bound uses, `(B, n)`.
        lazy: Whether some of these are upper bounds, so that `leading_scores` and `predict_above`
            save work: then `predict` computes what is right.
    """

    lazy: bool = False
    mean: Array
    variance: Array
    bound_variance: Array
    _constants: ClassVar[tuple[str, ...]] = ("_candidates", "lazy")

    def __init__(self, action_set: ActionSet) -> None:
        super().__init__(action_set)
        self._candidates = action_set.candidates if action_set.stays else None
        self._known: Prediction | None = None
        self._at_hand: dict[int, Predictor] = {}  # by learner, since the last observation

    def __getstate__(self) -> dict[str, object]:
        """Return all but what is at hand: functions cannot be pickled."""
        return {**vars(self), "_at_hand": {}, "_known": None}

    @abstractmethod
    def predictor(self, i: int) -> Predictor:
        """Return learner i's posterior as a function of features `(m, q)`."""

    def predict_each(self, features: Array) -> tuple[Array, Array, Array]:
        """Return the posterior of every learner at its own features `(B, m, q)`."""
        return self._predict(range(len(features)), features)

    def predict(self, points: Points, learners: Indices | None = None) -> Prediction:
        """Return the learners' posterior at points."""
        if points is self._candidates:
            if self._known is None:
                self._known = self._of_candidates()
            if learners is None:
                return self._known
            return Prediction(*(array[learners] for array in self._known))
        who = np.arange(len(self.held)) if learners is None else learners
        features = np.broadcast_to(points.features, (len(who), *points.features.shape[1:]))
        if learners is None:
            mean, variance, bound = self.predict_each(np.ascontiguousarray(features))
        else:
            mean, variance, bound = self._predict(who.tolist(), features)
        return Prediction(mean, variance + points.residual, bound + points.residual)

    def _of_candidates(self) -> Prediction:
        """Return the posterior of the candidates: arrays that change in place, so made once."""
        return Prediction(self.mean, self.variance, self.bound_variance)

    def _predict(self, learners: Iterable[int], features: Array) -> tuple[Array, Array, Array]:
        """Return the posterior of k learners at their own features `(k, m, q)`."""
        found = []
        for i, phi in zip(learners, features, strict=True):
            found.append(self._predictor_at_hand(i)(phi[: self.basis.rank[i]]))
        mean, variance, bound = (np.stack(part) for part in zip(*found, strict=True))
        return mean, variance, bound

    def _predictor_at_hand(self, i: int) -> Predictor:
        """Return `predictor(i)`, made once between two observations."""
        if i not in self._at_hand:
            self._at_hand[i] = self.predictor(i)
        return self._at_hand[i]

    def predict_above(self, points: Points) -> Prediction:
        """Return the posterior of all learners at points, or upper bounds of its variances."""
        return self.predict(points)

    def leading_scores(self, points: Points, rate: Rate, allowed: Mask | None) -> Array:
        """Return scores of which each learner's best and all that tie with it are right, `(B, q)`.

        Others may be upper bounds that do not reach these.

        Args:
            points: What is chosen from.
            rate: Scores of which none falls where the variances rise.
            allowed: What may be chosen, `(B, q)`; None: everything.
        """
        return rate(points, self.predict(points), None)

    def predict_plays(self, plays: Plays) -> tuple[Array, Array]:
        """Return the mean and variance where each learner played, `(B,)` each."""
        if plays.arms is None:
            return super().predict_plays(plays)
        rows = np.arange(len(self.held))
        return self.mean[rows, plays.arms], self.variance[rows, plays.arms]


def keeps_posterior(surrogate: Surrogate) -> bool:
    """Tell whether a surrogate keeps the posterior of fixed arms, and `predict` returns just that.

    A user's own may be of any shape: it is checked at each step.
    """
    ours = isinstance(surrogate, FeatureSurrogate) and not surrogate.lazy
    return ours and type(surrogate).predict is FeatureSurrogate.predict
