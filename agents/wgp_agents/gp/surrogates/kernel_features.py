"""The features of arms under several kernels at once."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from wgp_agents.gp.action_sets import ERROR_POINTS, Plays, Points
from wgp_agents.gp.nystrom import MAX_FEATURES, between
from wgp_agents.kernels import blas
from wgp_gym.features import Extension, exact_features
from wgp_gym.kernel_algebra import Factors
from wgp_gym.kernels import Kernel
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Indices

__all__ = [
    "ChangingFeatures",
    "FixedFeatures",
    "KernelFeatures",
    "Seen",
    "kernel_features",
    "kernels_of",
]

TOLERANCE = 1e-7  # of k(x, x), against noise of at least 1e-3
LEVEL = 0.3  # the variance of the function's level, in the unit of k(x, x)


class Seen(NamedTuple):
    """Features of points for B learners, each under its own kernel.

    Attributes:
        features: phi, by set, `(S, m, q)`.
        which: The set of each learner, `(B,)`.
        residual: What the features leave out of k(x, x), by set, `(S, q)`.
    """

    features: Array
    which: Indices
    residual: Array


class KernelFeatures(ABC):
    """The features of arms under G kernels, each with a constant feature for the level of rewards.

    Attributes:
        rank: The number of features of each kernel, `(G,)`.
    """

    _constant: ClassVar[bool] = True  # no part of a state
    rank: Indices

    @abstractmethod
    def embed(self, plays: Plays) -> tuple[Array, Array]:
        """Return the features of plays, `(B, G, m)`, and what they leave out, `(B, G)`."""

    @abstractmethod
    def see(self, points: Points, kernels: Indices) -> Seen:
        """Return the features of points for learners with these kernels, `(B,)`."""

    @abstractmethod
    def error(self, kernel: int) -> float:
        """Return the largest |k(x, y) - phi(x)^T phi(y)| of a kernel, without the constant."""

    def leading(self, kernels: Indices, noise: Array, share: float) -> Indices:
        """Return how many leading features suffice beside noise of some variance, `(G,)`.

        At every arm or stand-in they leave at most a share of that variance, and of the largest
        k(x, x), out of k(x, x). Where features come in no order, all count.

        Args:
            kernels: Whose features, `(G,)`.
            noise: The variances, `(G,)`.
            share: What may be left out.
        """
        del noise, share
        found: Indices = self.rank[kernels]
        return found


class FixedFeatures(KernelFeatures):
    """The features of fixed arms; or, made on stand-ins, of arms that are drawn anew at each step.

    On a box the stand-ins are the candidates from which a search starts.

    Args:
        kernels: G kernels.
        domain: The points of the arms, or stand-ins, `(n, d)`.
        anew: Whether they are stand-ins.

    Attributes:
        features: phi of all arms, `(G, m, n)`.
        residual: What they leave out of k(x, x), `(G, n)`.
    """

    def __init__(self, kernels: list[Kernel], domain: Array, *, anew: bool = False) -> None:
        self._kernels, self._points = kernels, between(domain, kernels[0]) if anew else domain
        with blas.single_thread():
            found = [
                exact_features(k, domain, tolerance_of(k, domain), MAX_FEATURES) for k in kernels
            ]
        self.rank = np.array([1 + f.table.shape[1] for f in found], np.int64)
        self.features = np.zeros((len(found), self.rank.max(), len(domain)))
        self.residual = np.zeros((len(found), len(domain)))
        pairs = zip(found, kernels, strict=True)
        self._extend = [Extension(features, kernel, domain) for features, kernel in pairs]
        for g, features in enumerate(found):
            self.features[g, 0] = math.sqrt(LEVEL * features.prior.mean())
            self.features[g, 1 : self.rank[g]] = features.table.T
            squares = np.sum(features.table**2, axis=1)
            self.residual[g] = np.maximum(features.prior - squares, 0.0)
        self._rows = np.ascontiguousarray(self.features.transpose(2, 0, 1))
        self._left = np.ascontiguousarray(self.residual.T)

    def embed(self, plays: Plays) -> tuple[Array, Array]:
        """Return the features of the arms played, or of points by the Nystrom extension."""
        if plays.arms is None:
            return self._embed_points(plays.places)
        arms = plays.actions
        return self._rows.take(arms, axis=0), self._left.take(arms, axis=0)

    def of_arms(self, kernel: int, arms: Indices) -> tuple[Array, Array]:
        """Return features of arms under a kernel, `(k, m)`, and what they leave out, `(k,)`."""
        return self._rows[arms, kernel], self._left[arms, kernel]

    def _embed_points(self, places: Array) -> tuple[Array, Array]:
        """Return the features of points `(B, d)`, `(B, G, m)`, and what they leave out, `(B, G)`.

        They are computed one by one: alike for any B.
        """
        shape = len(places), len(self.rank)
        features, left = np.zeros((*shape, self.features.shape[1])), np.zeros(shape)
        with blas.single_thread():
            for i, point in enumerate(places):
                for g, extend in enumerate(self._extend):
                    row, prior = extend(point[None])
                    features[i, g, 0] = self.features[g, 0, 0]
                    features[i, g, 1 : self.rank[g]] = row[0]
                    left[i, g] = max(prior[0] - row[0] @ row[0], 0.0)
        return features, left

    def leading(self, kernels: Indices, noise: Array, share: float) -> Indices:
        """Return how many leading features suffice beside noise of some variance, `(G,)`."""
        # A pivoted Cholesky factorisation: what j features leave out falls with j, nearly as fast
        # as any j could.
        tails = np.cumsum(np.square(self.features)[:, ::-1], axis=1)[:, ::-1]
        beyond = np.pad(tails[:, 1:], ((0, 0), (0, 1), (0, 0))) + self.residual[:, None]
        largest = np.array([k.diagonal(self._points).max() for k in self._kernels])[kernels]
        left = share * np.minimum(noise, largest)
        enough = beyond.max(axis=2)[kernels] <= left[:, None]  # with 1, 2, ... features
        first = np.where(enough.any(axis=1), 1 + enough.argmax(axis=1), enough.shape[1])
        found: Indices = np.minimum(first, self.rank[kernels])
        return found

    def error(self, kernel: int) -> float:
        """Return the largest error on the arms, or on stand-ins and between them."""
        points = evenly(self._points)
        table = self._extend[kernel](points)[0]
        return largest_error(self._kernels[kernel], points, table)

    def see(self, points: Points, kernels: Indices) -> Seen:
        """Return the features of all arms, or of any other points by the Nystrom extension."""
        if points.shared:
            return Seen(self.features, kernels, self.residual)
        # Where all look at the same points, those of one kernel share a set.
        sets, which = kernels, np.arange(len(kernels))
        if len(points.places) == 1 < len(kernels):
            sets, which = np.unique(kernels, return_inverse=True)
        q = points.places.shape[1]
        places = np.broadcast_to(points.places, (len(sets), *points.places.shape[1:]))
        features = np.zeros((len(sets), self.features.shape[1], q))
        residual = np.zeros((len(sets), q))
        with blas.single_thread():
            for i, g in enumerate(sets.tolist()):
                rows, prior = self._extend[g](places[i])
                features[i, 0], features[i, 1 : self.rank[g]] = self.features[g, 0, 0], rows.T
                residual[i] = np.maximum(prior - np.sum(rows**2, axis=1), 0.0)
        return Seen(features, which, residual)


class ChangingFeatures(KernelFeatures):
    """The features of arms that are drawn anew at each step, under one kernel of finite rank.

    `domain` are stand-ins for the arms, `(n, d)`.
    """

    def __init__(self, kernel: Kernel, domain: Array) -> None:
        found = kernel.feature_map()
        assert found is not None  # others have no features of new arms
        self._map, self._kernel, self._points = found, kernel, domain
        self._level = math.sqrt(LEVEL * kernel.diagonal(domain).mean())
        self.rank = np.array([self._features(domain[:1]).shape[1]], np.int64)

    def _features(self, places: Array) -> Array:
        """Return the features of points `(q, d)`, `(q, m)`."""
        return np.column_stack([np.full(len(places), self._level), self._map(places)])

    def embed(self, plays: Plays) -> tuple[Array, Array]:
        """Return the features of the points played."""
        features = self._features(plays.places)
        return features[:, None], np.zeros((len(features), 1))

    def see(self, points: Points, kernels: Indices) -> Seen:
        """Return the features of the arms that each learner is shown."""
        batch, n, dim = points.places.shape
        rows = self._features(points.places.reshape(-1, dim)).reshape(batch, n, -1)
        features = np.ascontiguousarray(rows.transpose(0, 2, 1))
        return Seen(features, np.arange(len(kernels)), np.zeros((batch, n)))

    def error(self, kernel: int) -> float:
        """Return the largest error on the stand-ins: that of rounding."""
        points = evenly(self._points)
        return largest_error(self._kernel, points, self._map(points))


def evenly(points: Array) -> Array:
    """Return some of points `(n, d)`, evenly, not more than 1,000."""
    size = min(len(points), ERROR_POINTS)
    return points[np.linspace(0, len(points) - 1, size).astype(np.intp)]


def largest_error(kernel: Kernel, points: Array, table: Array) -> float:
    """Return the largest |k(x, y) - phi(x)^T phi(y)| on points `(n, d)`, of features `(n, m)`."""
    return float(np.abs(kernel(points, points) - table @ table.T).max())


def tolerance_of(kernel: Kernel, domain: Array) -> float:
    """Return how much of k(x, x) a kernel's features may leave out."""
    return TOLERANCE * float(kernel.diagonal(domain).max())


def kernels_of(kernel: Kernel, factors: Sequence[Factors]) -> list[Kernel]:
    """Return the kernel with its lengthscales times each of the factors.

    Each is a number, or one for each dimension. A kernel without a lengthscale comes alone.
    """
    found = [kernel.scaled(factor) for factor in factors]
    same = all(one == kernel for one in found)
    return [kernel] if same and not np.all(np.asarray(factors) == 1.0) else found


def kernel_features(
    problem: BanditProblem, kernels: list[Kernel], candidates: Array | None = None
) -> KernelFeatures:
    """Return the features of a problem's arms under these kernels.

    Args:
        problem: The problem.
        kernels: G kernels.
        candidates: The points of a box from which a search starts, `(q, d)`, and on which its
            features are made; None: of a box only the grid is looked at.
    """
    if candidates is not None:
        return FixedFeatures(kernels, candidates, anew=True)
    if not problem.contextual:
        return FixedFeatures(kernels, problem.domain)
    own = kernels[0].feature_map() if len(kernels) == 1 else None
    if own is not None and own(problem.domain[:1]).shape[1] <= MAX_FEATURES:
        return ChangingFeatures(kernels[0], problem.spread)
    return FixedFeatures(kernels, problem.spread, anew=True)
