"""The set that learners choose from, as their memories see it: points with features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import qmc

from wgp_agents.core.argmax import TIE, argmax
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.acquisition import sampled_scores, upper_bounds
from wgp_agents.kernels import blas
from wgp_agents.kernels.basis import make_basis
from wgp_gym.features import Extension, FeatureMap, Features, exact_features
from wgp_gym.kernels import Kernel
from wgp_gym.types import Array

if TYPE_CHECKING:
    from wgp_agents.gp.surrogates.weighted import Surrogate

__all__ = ["ActionSet", "Arms", "Box"]

Predicted = tuple[Array, Array, Array]
"""Means, variances, and the variances that the confidence bound uses."""

MAX_BOX_FEATURES = 200
MAX_CANDIDATES = 2_048
NEIGHBOURS = 8  # of each of so many of the best candidates
STEP = 1e-5  # of central differences: their error is 1e-10 l^-3, their rounding 1e-11


class ActionSet(ABC):
    """Points with features, and the choice of one.

    Args:
        features: The features of n points: all arms, or the candidates of a box.
        regularization: lambda of every learner, `(B,)`.
        tolerances: How much of k(x, x) each learner may leave out, `(B,)`.

    Attributes:
        play_shape: The shape of one play: () for an arm's index, (d,) for a point.
        basis: The features as each learner uses them.
    """

    play_shape: tuple[int, ...] = ()

    def __init__(self, features: Features, regularization: Array, tolerances: Array) -> None:
        self.basis = make_basis(features, regularization, tolerances)

    @abstractmethod
    def embed(self, plays: NDArray[Any]) -> tuple[Array, Array | None]:
        """Return the features of plays, `(B, m)`, and the share of lambda in their noise, `(B,)`.

        The share is lambda / (lambda + what the features leave out of k(x, x)); None is 1.
        """

    @abstractmethod
    def choose(
        self,
        surrogate: Surrogate,
        width: Array,
        uniform: UniformStreams,
        weights: Array | None = None,
    ) -> NDArray[Any]:
        """Maximise mean + width * std, or mean + width * phi^T w where weights are given.

        Args:
            surrogate: The learners' posteriors.
            width: beta of every learner, `(B,)`.
            uniform: The learners' randomness, which breaks ties.
            weights: w, drawn around the posterior mean, `(B, m)`.
        """

    @abstractmethod
    def table(self, domain: Array, rows: NDArray[np.intp]) -> Array:
        """Return the features of some points of the domain `(n, d)`, `(len(rows), m)`."""

    @abstractmethod
    def posterior(self, surrogate: Surrogate, domain: Array) -> Predicted:
        """Return means, variances and the bound's variances on the domain `(n, d)`."""

    def _best_points(
        self, surrogate: Surrogate, width: Array, uniform: UniformStreams, weights: Array | None
    ) -> NDArray[Any]:
        scores = np.empty_like(surrogate.mean)
        if weights is None:
            upper_bounds(surrogate.mean, surrogate.bound_variance, width, scores)
        else:
            sampled_scores(surrogate.mean, self.basis.phi, weights, width, scores)
        return argmax(scores, uniform.draw())


class Arms(ActionSet):
    """A finite domain: every point has its features, right to clip(1e-8 lambda, 1e-14, 1e-10).

    Args:
        source: The kernel, or the feature map in its place.
        domain: Points, `(n, d)`.
        regularization: lambda of every learner, `(B,)`.
    """

    def __init__(self, source: Kernel | FeatureMap, domain: Array, regularization: Array) -> None:
        tolerances = np.clip(1e-8 * regularization, 1e-14, 1e-10)
        features = exact_features(source, domain, float(tolerances.min()))
        super().__init__(features, regularization, tolerances)
        self._table = features.table  # a row is read at every step: rows lie together

    def embed(self, plays: NDArray[Any]) -> tuple[Array, None]:
        """Return the features of arms `(B,)`; they leave out nothing to speak of."""
        return self._table.take(plays, axis=0), None

    def choose(
        self,
        surrogate: Surrogate,
        width: Array,
        uniform: UniformStreams,
        weights: Array | None = None,
    ) -> NDArray[Any]:
        """Return the arms, `(B,)`."""
        return self._best_points(surrogate, width, uniform, weights)

    def table(self, domain: Array, rows: NDArray[np.intp]) -> Array:
        """Return these columns."""
        del domain
        return self.embed(rows)[0]

    def posterior(self, surrogate: Surrogate, domain: Array) -> Predicted:
        """Return what the memory holds."""
        del domain
        return surrogate.mean.copy(), surrogate.variance.copy(), surrogate.bound_variance.copy()


class Box(ActionSet):
    """The box [0, 1]^d: Sobol candidates, then a bounded quasi-Newton climb from the best.

    The features are made on the candidates, at most 200, and continue to any other point. What
    they leave out of k(x, x), r(x), is added to the variance there, and to the noise variance of
    a play, as in [SG06]. The confidence bounds are those of the features: they hold where r is
    negligible.

    Deviation: with weights w the noise variance of a play is (lambda + r) / w, where [SG06] would
    give lambda / w + r: that is no recursion of fixed size, and would not forget.

    Source: [SG06] Snelson, Ghahramani. Sparse Gaussian processes using pseudo-inputs. NIPS 2006.

    Args:
        source: The kernel, or the feature map in its place.
        domain: Points of the box, `(n, d)`, of which only d is used.
        regularization: lambda of every learner, `(B,)`.
    """

    def __init__(self, source: Kernel | FeatureMap, domain: Array, regularization: Array) -> None:
        dim = domain.shape[1]
        tolerances = np.clip(1e-6 * regularization, 1e-12, 1e-8)
        size = min(2 ** (7 + dim), MAX_CANDIDATES)
        self.play_shape = (dim,)
        inside = qmc.Sobol(dim, scramble=False).random(size)
        # Stretched, so that a twelfth of them lies on each face: many bounds are largest there.
        self._candidates: Array = np.clip(1.2 * inside - 0.1, 0.0, 1.0)
        features = exact_features(
            source, self._candidates, float(tolerances.min()), MAX_BOX_FEATURES
        )
        super().__init__(features, regularization, tolerances)
        self._extend = Extension(features, source, self._candidates)
        around = qmc.Sobol(dim, scramble=False).random(NEIGHBOURS)
        self._around = (2 * around - 1) * size ** (-1 / dim)
        unit = STEP * np.eye(dim)
        self._stencil = np.concatenate([np.zeros((1, dim)), unit, -unit])

    def embed(self, plays: NDArray[Any]) -> tuple[Array, Array]:
        """Return the features of points `(B, d)`: one at a time, or they would depend on B."""
        found, left = np.zeros((len(plays), len(self.basis.phi))), np.zeros(len(plays))
        with blas.single_thread():
            for i, (point, rank) in enumerate(zip(plays, self.basis.rank.tolist(), strict=True)):
                phi, prior = self._extend(point[None], rank)
                found[i, :rank] = phi[0]
                left[i] = max(prior[0] - phi[0] @ phi[0], 0.0)
        return found, self.basis.regularization / (self.basis.regularization + left)

    def choose(
        self,
        surrogate: Surrogate,
        width: Array,
        uniform: UniformStreams,
        weights: Array | None = None,
    ) -> NDArray[Any]:
        """Return the points, `(B, d)`, in single precision, as the environment plays them."""
        start = self._best_points(surrogate, width, uniform, weights)
        with blas.single_thread():
            found = [
                self._climb(i, surrogate, width[i], place, weights) for i, place in enumerate(start)
            ]
        return np.stack(found)

    def _predictor(self, i: int, surrogate: Surrogate) -> Callable[[Array], Predicted]:
        """Return learner i's mean, variance and the bound's variance as functions of points."""
        predict, rank = surrogate.predictor(i), int(self.basis.rank[i])

        def _predict(X: Array) -> Predicted:
            table, prior = self._extend(X, rank)
            phi = table.T
            residual = np.maximum(prior - np.einsum("ij,ij->j", phi, phi), 0.0)
            mean, variance, bound_variance = predict(phi)
            return mean, variance + residual, bound_variance + residual

        return _predict

    def _climb(
        self, i: int, surrogate: Surrogate, width: float, start: int, weights: Array | None
    ) -> Array:
        """Return where learner i's score is largest, as far as a climb from `start` finds it."""
        predict, rank = self._predictor(i, surrogate), int(self.basis.rank[i])

        def _deviation(X: Array, bound_variance: Array) -> Array:
            if weights is None:
                return np.sqrt(bound_variance)
            found: Array = self._extend(X, rank)[0] @ weights[i, :rank]
            return found

        def _bounds(X: Array) -> Array:
            mean, _, bound_variance = predict(X)
            bound: Array = mean + width * _deviation(X, bound_variance)
            return bound

        def _descent(x: Array) -> tuple[float, Array]:
            value = _bounds(x + self._stencil)
            up, down = np.split(value[1:], 2)
            return -value[0], (down - up) / (2 * STEP)

        known = np.sqrt(surrogate.bound_variance[i])
        if weights is not None:
            known = weights[i, :rank] @ self.basis.phi[:rank]
        tops = self._neighbourhood(surrogate.mean[i] + width * known, start)
        values = _bounds(tops)
        first = tops[int(values.argmax()) if values.max() > values[0] + TIE else 0]
        box = [(0.0, 1.0)] * len(first)
        end = minimize(_descent, first, jac=True, method="L-BFGS-B", bounds=box).x
        both = np.stack([tops[0], np.clip(end, 0.0, 1.0)]).astype(np.float32)
        chosen: Array = both[int(_bounds(both.astype(float)).argmax())]
        return chosen

    def _neighbourhood(self, bounds: Array, start: int) -> Array:
        """Return the candidate `start`, and points around the best few, `(q, d)`.

        A peak between the candidates may be higher than the one beside the best of them.
        """
        best = np.argpartition(bounds, -NEIGHBOURS)[-NEIGHBOURS:]
        around = self._candidates[best][:, None] + self._around
        return np.concatenate([self._candidates[[start]], np.vstack(np.clip(around, 0.0, 1.0))])

    def table(self, domain: Array, rows: NDArray[np.intp]) -> Array:
        """Continue the features to these points."""
        return self._extend(domain[rows])[0]

    def posterior(self, surrogate: Surrogate, domain: Array) -> Predicted:
        """Return the posteriors on the problem's grid."""
        with blas.single_thread():
            learners = range(len(self.basis.regularization))
            found = [self._predictor(i, surrogate)(domain) for i in learners]
        mean, variance, bound_variance = np.stack(found, axis=1)
        return mean, variance, bound_variance
