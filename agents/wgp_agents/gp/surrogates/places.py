"""The features of arms under several kernels at once."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_gym.features import exact_features
from wgp_gym.kernels import FeatureKernel, Kernel, Matern, ModifiedMatern, SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

__all__ = ["FixedPlaces", "Places", "ShownPlaces", "kernels_of", "places"]

MAX_FEATURES = 128  # of each kernel; what they leave out counts as noise of its own at each arm
TOLERANCE = 1e-7  # of k(x, x), against noise of at least 1e-3
LEVEL = 0.3  # the variance of the function's level, in the unit of k(x, x)


class Places(ABC):
    """Arms as G kernels see them, each with a constant for the level of the rewards.

    Attributes:
        rank: How many features each kernel has, `(G,)`.
        tables: The arms' features, `(S, m, n)`.
        residual: What they leave out of k(x, x), `(S, n)`.
    """

    rank: NDArray[np.int64]
    tables: Array
    residual: Array

    @abstractmethod
    def embed(self, plays: NDArray[Any]) -> tuple[Array, Array]:
        """Return the features of plays, `(B, G, m)`, and what they leave out, `(B, G)`."""

    @abstractmethod
    def tables_of(self, kernels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return which table shows the arms of each learner under its kernel, `(B,)`."""


class FixedPlaces(Places):
    """Arms that stay.

    Args:
        kernels: G kernels.
        domain: The arms' places, `(n, d)`.
    """

    def __init__(self, kernels: list[Kernel], domain: Array) -> None:
        found = [exact_features(k, domain, tolerance_of(k, domain), MAX_FEATURES) for k in kernels]
        self.rank = np.array([1 + f.table.shape[1] for f in found], np.int64)
        self.tables = np.zeros((len(found), self.rank.max(), len(domain)))
        self.residual = np.zeros((len(found), len(domain)))
        for g, features in enumerate(found):
            self.tables[g, 0] = math.sqrt(LEVEL * features.prior.mean())
            self.tables[g, 1 : self.rank[g]] = features.table.T
            squares = np.sum(features.table**2, axis=1)
            self.residual[g] = np.maximum(features.prior - squares, 0.0)
        self._rows = np.ascontiguousarray(self.tables.transpose(2, 0, 1))
        self._left = np.ascontiguousarray(self.residual.T)

    def embed(self, plays: NDArray[Any]) -> tuple[Array, Array]:
        """Return the features of arms `(B,)`."""
        return self._rows.take(plays, axis=0), self._left.take(plays, axis=0)

    def tables_of(self, kernels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the kernel's own table."""
        return kernels


class ShownPlaces(Places):
    """Arms that are drawn anew at each step, under one kernel of finitely many features.

    Args:
        kernel: The kernel.
        domain: Stand-ins for the arms, `(n, d)`.
        batch: B.
    """

    def __init__(self, kernel: FeatureKernel, domain: Array, batch: int) -> None:
        self._kernel = kernel
        self._level = math.sqrt(LEVEL * kernel.diagonal(domain).mean())
        self._stand_ins = np.broadcast_to(domain, (batch, *domain.shape))
        self.show(None)
        self.rank = np.array([self.tables.shape[1]], np.int64)

    def show(self, arms: Array | None) -> None:
        """Show the arms that the next choice is from, `(B, n, d)`; None shows the stand-ins."""
        shown = self._stand_ins if arms is None else arms
        batch, n, dim = shown.shape
        table = self._features(shown.reshape(-1, dim)).reshape(batch, n, -1)
        self.tables = np.ascontiguousarray(table.transpose(0, 2, 1))
        self.residual = np.zeros((batch, n))

    def _features(self, points: Array) -> Array:
        """Return the features of points `(q, d)`, `(q, m)`."""
        return np.column_stack([np.full(len(points), self._level), self._kernel.features(points)])

    def embed(self, plays: NDArray[Any]) -> tuple[Array, Array]:
        """Return the features of places `(B, d)`."""
        return self._features(plays)[:, None], np.zeros((len(plays), 1))

    def tables_of(self, kernels: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the learner's own table."""
        return np.arange(len(kernels))


def tolerance_of(kernel: Kernel, domain: Array) -> float:
    """Return how much of k(x, x) a kernel's features may leave out."""
    return TOLERANCE * float(kernel.diagonal(domain).max())


def kernels_of(kernel: Kernel, factors: tuple[float, ...]) -> list[Kernel]:
    """Return the kernel with its lengthscale times each factor; itself alone if it has none."""
    if isinstance(kernel, SquaredExponential | Matern | ModifiedMatern):
        return [replace(kernel, lengthscale=factor * kernel.lengthscale) for factor in factors]
    return [kernel]


def places(problem: BanditProblem, kernels: list[Kernel], batch: int) -> Places:
    """Return the arms of a problem as these kernels see them."""
    if not problem.contextual:
        return FixedPlaces(kernels, problem.domain)
    (kernel,) = kernels
    assert isinstance(kernel, FeatureKernel)  # no other can look at arms that it never saw
    return ShownPlaces(kernel, problem.domain, batch)
