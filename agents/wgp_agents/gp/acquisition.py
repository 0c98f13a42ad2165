"""Acquisitions: the scores that learners maximise over the action set.

References:
    [CG17] Chowdhury, Gopalan. On Kernelized Multi-armed Bandits. ICML 2017.
    [KT20] Kim, Tewari. Randomized Exploration for Non-Stationary Stochastic Linear Bandits.
        UAI 2020.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.core.argmax import TIE, not_finite
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import normal_variates
from wgp_agents.gp.action_sets import Points, Score
from wgp_agents.gp.surrogates.base import FeatureSurrogate, Prediction, Surrogate
from wgp_agents.gp.width import WidthTerms
from wgp_agents.kernels.scores import best_upper_bounds, sampled_scores, upper_bounds
from wgp_agents.parameters import per_learner
from wgp_gym.types import Array, Indices, Mask

__all__ = [
    "NOTHING",
    "Acquisition",
    "RandomWidth",
    "ThompsonSampling",
    "UpperBound",
    "best_arms",
    "scorer",
]


NOTHING: Array = np.empty(0)  # what an acquisition has drawn that draws nothing


class Acquisition(ABC):
    """A score of points, to be maximised. A user's own needs `score`."""

    randomised: ClassVar[bool] = False
    """Whether it draws at random: then plays whose reward is still to come do not count."""
    rises: ClassVar[bool] = False
    """Whether a point's score never falls where its variances rise, and depends on no other point's
    posterior: then only the variances of points that may be the best are needed. A class whose
    `score` is its own has to say so itself."""
    needs_variances: ClassVar[bool] = True
    """Whether a score depends on variances: else none is computed for it. This, too, a class whose
    `score` is its own has to say itself."""

    def __init_subclass__(cls, **kwargs: object) -> None:
        """Take back what a base says of its own score, where this class has another."""
        super().__init_subclass__(**kwargs)
        scored = place_of("score", cls)
        if scored < place_of("rises", cls):
            cls.rises = False
        if scored < place_of("needs_variances", cls):
            cls.needs_variances = True

    def draw(self, surrogate: Surrogate, points: Points, uniform: UniformStreams) -> Array:
        """Return what is drawn once a step, before any score, `(B, ...)`; by default `NOTHING`.

        Args:
            surrogate: The posterior of the learners.
            points: All arms, or the candidates of a box.
            uniform: The learners' random streams, which all move together.
        """
        return NOTHING

    @abstractmethod
    def score(self, points: Points, prediction: Prediction, width: Array, draw: Array) -> Array:
        """Return the scores of q points for k learners, `(k, q)`.

        Args:
            points: The points.
            prediction: The learners' posterior at them, `(k, q)` each. Not to be written to: of
                fixed arms these are the surrogate's own arrays.
            width: beta of each learner, `(k,)`.
            draw: The learners' rows of what `draw` returned, `(k, ...)`.
        """


def place_of(name: str, kind: type) -> int:
    """Return how far up among a class and its bases an attribute is."""
    return next(place for place, base in enumerate(kind.__mro__) if name in vars(base))


class UpperBound(Acquisition):
    """The upper confidence bound mean + beta std, [Deng22] Algorithm 1 line 3."""

    rises = True

    def score(self, points: Points, prediction: Prediction, width: Array, draw: Array) -> Array:
        """Return the upper confidence bounds, `(k, q)`."""
        mean, _, variance = prediction
        scores = np.empty_like(mean)
        upper_bounds(mean, variance, width, scores)
        return scores


class RandomWidth(UpperBound):
    """The upper bound with a random width, mean + scale |Z| beta std: [KT20].

    Z is standard normal, one draw a step for all points.

    Args:
        owner: The agent's name, for errors.
        scale: A factor > 0, a number or `(B,)`.
        batch: B.

    Raises:
        ValueError: If the scale is out of its range.
    """

    randomised = True
    rises = True

    def __init__(self, owner: str, scale: ArrayLike, batch: int) -> None:
        self._scale = per_learner(owner, "scale", scale, batch, 0.0, math.inf, "neither")

    def draw(self, surrogate: Surrogate, points: Points, uniform: UniformStreams) -> Array:
        """Return scale |Z| of every learner, `(B,)`."""
        factor: Array = self._scale * np.abs(normal_variates(uniform, 1)[:, 0])
        return factor

    def score(self, points: Points, prediction: Prediction, width: Array, draw: Array) -> Array:
        """Return the bounds with the drawn width, `(k, q)`."""
        return super().score(points, prediction, draw * width, draw)


class ThompsonSampling(Acquisition):
    """A sample of the posterior, with its deviation from the mean beta times as large: [CG17].

    On a box, the sample leaves out the part of the kernel that the features leave out.
    """

    randomised = True
    needs_variances = False  # a sample is drawn whole

    def draw(self, surrogate: Surrogate, points: Points, uniform: UniformStreams) -> Array:
        """Return the weights of the sampled functions, `(B, m)`."""
        weights = surrogate.sample(normal_variates(uniform, len(surrogate.basis.phi)))
        weights[surrogate.unused] = 0.0
        return weights

    def score(self, points: Points, prediction: Prediction, width: Array, draw: Array) -> Array:
        """Return the values of the sampled functions, `(k, q)`."""
        features, mean = points.features, prediction.mean
        if points.shared:
            scores = np.empty_like(mean)
            sampled_scores(mean, features[0], draw, width, scores)
            return scores
        weights = draw[:, : features.shape[1]]
        deviations = (weights[:, None] @ features)[:, 0]
        return mean + width[:, None] * deviations


def best_arms(prediction: Prediction, width: WidthTerms, uniform: Array) -> Indices:
    """Return the arm of each learner's largest upper bound, `(B,)`.

    It is that of `UpperBound` and `argmax`, in one loop.

    Args:
        prediction: The posterior of all arms, `(B, n)`.
        width: What beta is made of.
        uniform: One draw from [0, 1) for each learner, `(B,)`.

    Raises:
        ValueError: If a bound is not finite.
    """
    mean, _, variance = prediction
    chosen = np.empty(len(mean), np.int64)
    if not best_upper_bounds(mean, variance, *width, uniform, TIE, chosen):
        not_finite()
    return chosen


def scorer(
    acquisition: Acquisition,
    surrogate: Surrogate,
    width: Array,
    draw: Array = NOTHING,
    allowed: Mask | None = None,
) -> Score:
    """Return an acquisition's score as a function of points, for the action set to maximise.

    Args:
        acquisition: The acquisition.
        surrogate: The posterior of the learners.
        width: beta, `(B,)`.
        draw: What `acquisition.draw` returned.
        allowed: Which of all arms may be chosen, `(B, n)`; None: all. The scores of others, and of
            those that are not among the best, need not be right.
    """
    ours = surrogate if isinstance(surrogate, FeatureSurrogate) else None
    predict = checked(surrogate) if ours is None else ours.predict
    lazy = ours if ours is not None and ours.lazy else None

    def _rate(points: Points, found: Prediction, learners: Indices | None) -> Array:
        if learners is None:
            scores = acquisition.score(points, found, width, draw)
        else:
            theirs = draw if draw is NOTHING else draw[learners]
            scores = acquisition.score(points, found, width[learners], theirs)
        if scores.shape != found.mean.shape:
            name, shape = type(acquisition).__name__, found.mean.shape
            raise ValueError(f"{name}.score must return an array {shape}. Got {scores.shape}.")
        return scores

    def _score(points: Points, learners: Indices | None) -> Array:
        if lazy is not None and learners is None:
            if not acquisition.needs_variances:
                return _rate(points, lazy.predict_above(points), None)
            if acquisition.rises:
                return lazy.leading_scores(points, _rate, allowed)
        return _rate(points, predict(points, learners), learners)

    return _score


def checked(surrogate: Surrogate) -> Callable[[Points, Indices | None], Prediction]:
    """Return a surrogate's `predict`, whose arrays are checked: a compiled loop reads them."""

    def _predict(points: Points, learners: Indices | None) -> Prediction:
        shape = points.residual.shape
        found = [np.ascontiguousarray(part, float) for part in surrogate.predict(points, learners)]
        if [part.shape for part in found] != [shape] * 3:
            name, shapes = type(surrogate).__name__, [part.shape for part in found]
            raise ValueError(f"{name}.predict must return three arrays {shape}. Got {shapes}.")
        return Prediction(*found)

    return _predict
