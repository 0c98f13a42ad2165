"""Finite feature maps of a kernel on a set of points, and beyond them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from wgp_gym.arrays import ReadOnlyArrays
from wgp_gym.kernels import Kernel
from wgp_gym.types import Array

__all__ = ["Extension", "FeatureMap", "Features", "exact_features"]

MOST_TURNED = 2**25  # numbers in a table of which two copies, in either order, are affordable


class FeatureMap(Protocol):
    """A map phi of points, whose kernel is phi(x)^T phi(y)."""

    def __call__(self, X: Array) -> Array:
        """Return phi of the points `X` `(n, d)`, `(n, M)`."""


@dataclass(frozen=True, eq=False)
class Features(ReadOnlyArrays):
    """A feature map on given points, whose first columns are a coarser map of their own.

    Attributes:
        table: Row i is phi(x_i), `(n, m)`; C-ordered up to 2^25 numbers (256 MiB), beyond it
            F-ordered, so that turned it needs no copy.
        residuals: The largest k(x, x) - sum of the first j squared features, at index j,
            `(m + 1,)`.
        prior: k(x, x), `(n,)`.
        pivots: The point at which each column was made, `(m,)`: there the features before and
            with it are exact, and the later ones vanish.
    """

    table: Array
    residuals: Array
    prior: Array
    pivots: NDArray[np.intp]

    def rank(self, tolerance: float) -> int:
        """Return how many columns leave a residual of at most `tolerance`."""
        enough = np.flatnonzero(self.residuals <= tolerance)
        most = self.table.shape[1]
        return int(np.clip(enough[0], 1, most)) if enough.size else most


def exact_features(
    source: Kernel | FeatureMap,
    points: Array,
    tolerance: float = 1e-10,
    max_features: int | None = None,
) -> Features:
    """Return Phi with Phi Phi^T = K on given points, by a pivoted Cholesky factorisation.

    The kernel matrix of a smooth kernel is numerically singular (the paper's has condition
    8e19), so a plain Cholesky factorisation fails; the pivoted one stops where nothing is left.
    Its columns shrink from left to right, which keeps Gram matrices built from them graded and
    their factorisation accurate. K is never stored: one column at a time is evaluated.

    Args:
        source: The kernel; or a feature map, whose kernel is meant: what comes back then has as
            few columns as that kernel needs on these points.
        points: Points, `(n, d)`.
        tolerance: Stop once every k(x, x) - phi(x)^T phi(x) is at most this.
        max_features: Stop at this many columns in any case.

    Source: Harbrecht, Peters, Schneider. On the low-rank approximation by the pivoted Cholesky
        decomposition. Applied Numerical Mathematics 62, 2012, Algorithm 1.
    """
    prior, column_of = columns_of(source, points)
    most = len(points) if max_features is None else min(len(points), max_features)
    residual = prior.copy()
    columns: list[Array] = []
    room = np.empty(len(points))
    pivots: list[int] = []
    residuals = [float(residual.max())]
    while len(columns) < most and residuals[-1] > tolerance:
        pivot = int(residual.argmax())
        column = np.array(column_of(pivot))
        for earlier in columns:
            column -= np.multiply(earlier[pivot], earlier, out=room)
        column /= np.sqrt(residual[pivot])
        residual = np.maximum(residual - column**2, 0.0)
        residual[pivot] = 0.0
        columns.append(column)
        pivots.append(pivot)
        residuals.append(float(residual.max()))
    table = np.stack(columns).T if columns else np.zeros((len(points), 1))
    del columns
    if table.size <= MOST_TURNED:
        table = np.ascontiguousarray(table)
    found = (table, np.array(residuals), np.array(prior), np.array(pivots or [0]))
    for array in found:
        array.setflags(write=False)
    return Features(*found)


def columns_of(source: Kernel | FeatureMap, points: Array) -> tuple[Array, Callable[[int], Array]]:
    """Return the diagonal `(n,)` of the kernel matrix, and a function for one column of it."""
    if isinstance(source, Kernel):
        return source.diagonal(points), lambda j: source(points, points[j : j + 1])[:, 0]
    table = source(points)
    return np.sum(table**2, axis=1), lambda j: table @ table[j]


class Extension:
    """The features of a set of points, continued to any point of the box.

    With the pivots P and L = Phi(P), lower triangular, phi(x) = L^{-1} k(P, x) is the Nystrom
    approximation: k(x, x) - phi(x)^T phi(x) >= 0 everywhere, and 0 at the pivots.

    Args:
        features: The features on `points`.
        source: What they were made from.
        points: The points that they were made on, `(n, d)`.

    Source: Williams, Seeger. Using the Nystrom method to speed up kernel machines. NIPS 2000.
    """

    def __init__(self, features: Features, source: Kernel | FeatureMap, points: Array) -> None:
        self._source, self._pivots = source, points[features.pivots]
        self._factor = features.table[features.pivots]
        if self._factor[0, 0] == 0:  # the kernel is zero; then any factor will do
            self._factor = np.ones((1, 1))
        if not isinstance(source, Kernel):
            self._projection = solve_triangular(self._factor, source(self._pivots), lower=True)

    def __call__(self, X: Array, rank: int | None = None) -> tuple[Array, Array]:
        """Return the first `rank` features of points `(q, d)`, default all, and k(x, x), `(q,)`."""
        if isinstance(self._source, Kernel):
            L, k = self._factor[:rank, :rank], self._source(self._pivots[:rank], X)
            solved: Array = solve_triangular(L, k, lower=True, check_finite=False)
            return solved.T, self._source.diagonal(X)
        table = self._source(X)
        return table @ self._projection[:rank].T, np.sum(table**2, axis=1)
