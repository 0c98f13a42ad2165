"""Finite feature maps of a kernel on a set of points, and beyond them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import scipy
from numpy.typing import NDArray

from wgp_gym.arrays import ReadOnlyArrays
from wgp_gym.kernels import Kernel
from wgp_gym.types import Array, Indices
from wgp_gym.validation import reject

__all__ = ["Extension", "FeatureMap", "Features", "exact_features", "may_be_blocked"]

MOST_TURNED = 2**25  # numbers in a table of which two copies, in either order, are affordable
BLOCKED_FROM = 2**22  # numbers in a table, beyond which its columns are found in blocks,
ONE_BY_ONE = 256  # and columns that never are
CANDIDATES = 256  # points among which the pivots of a block are found
ROWS = 16  # columns for which there is room at first
DIAGONAL = "a kernel whose `diagonal` returns its k(x, x)"
PSD = "positive semi-definite (a table that was rounded needs a nugget)"
WORKED_ON = 2**16  # numbers that are worked on together: they fit the cache
APART = 1e-3  # of the largest k(x, x): more than rounding, in single precision, explains


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
    their factorisation accurate. K is never stored: a few columns at a time are evaluated.

    Beyond 256 columns and 2^22 numbers, columns are found in blocks, by products of matrices: each
    at a point with at least half of the largest residual when its block began, not always at the
    largest, so that there may be a few more of them. They end, too, where what is left is not
    told from rounding; and their last bits may depend on how many threads BLAS takes.

    Args:
        source: The kernel; or a feature map, whose kernel is meant: what comes back then has as
            few columns as that kernel needs on these points.
        points: Points, `(n, d)`.
        tolerance: Stop once every k(x, x) - phi(x)^T phi(x) is at most this.
        max_features: Stop at this many columns in any case.

    Raises:
        ValueError: If the kernel's `diagonal` is not its k(x, x), or no features can have it, since
            it is not positive semi-definite.

    Source: Harbrecht, Peters, Schneider. On the low-rank approximation by the pivoted Cholesky
        decomposition. Applied Numerical Mathematics 62, 2012, Algorithm 1.
    """
    prior, entries = entries_of(source, points)
    most = len(points) if max_features is None else min(len(points), max_features)
    found = PivotedColumns(prior, entries, tolerance, source)
    found.one_by_one(min(most, most_one_by_one(len(points))))
    found.in_blocks(most)
    residuals, pivots = np.array(found.residuals), np.array(found.pivots or [0])
    arrays = found.table(), residuals, np.array(prior), pivots
    for array in arrays:
        array.setflags(write=False)
    return Features(*arrays)


def may_be_blocked(points: int) -> bool:
    """Tell whether columns on so many points may be found in blocks, by `scipy.linalg`."""
    return points > most_one_by_one(points)


def most_one_by_one(points: int) -> int:
    """Return how many columns on so many points are found one by one."""
    return max(BLOCKED_FROM // points, ONE_BY_ONE)


Entries = Callable[[Indices | None, Indices], Array]
"""K at some rows (None: all) and some columns, `(r, c)`."""


def entries_of(source: Kernel | FeatureMap, points: Array) -> tuple[Array, Entries]:
    """Return the diagonal `(n,)` of the kernel matrix, and a function for its entries."""
    if isinstance(source, Kernel):
        kernel = source
        return (
            kernel.diagonal(points),
            lambda i, j: kernel(points if i is None else points[i], points[j]),
        )
    table = source(points)

    def _entries(i: Indices | None, j: Indices) -> Array:
        rows = table if i is None else table[i]
        # One column is a product with a vector, whose rounding is its own.
        return (rows @ table[j[0]])[:, None] if len(j) == 1 else rows @ table[j].T

    return np.sum(table**2, axis=1), _entries


class PivotedColumns:
    """The columns of Phi, as they are found.

    Args:
        prior: The diagonal of K, `(n,)`.
        entries: Returns parts of K.
        tolerance: Where to stop.
        source: Whose K it is, for errors.

    Attributes:
        pivots: The pivot of each column.
        residuals: The largest residual before each column, and after the last.
    """

    def __init__(self, prior: Array, entries: Entries, tolerance: float, source: object) -> None:
        self._entries, self._tolerance, self._source = entries, tolerance, source
        self._prior = prior
        self._left = prior.copy()  # the residual of each point
        self._blocks: list[Array] = []  # of columns, each a row here
        self.pivots: list[int] = []
        self.residuals = [float(prior.max())]

    def _wants(self, most: int) -> bool:
        """Tell whether another column is wanted, `most` at most."""
        return len(self.pivots) < most and self.residuals[-1] > self._tolerance

    def _add(self, column: Array, pivot: int) -> None:
        """Take a column out of the residuals."""
        left = self._left - column**2
        if left.min() < -APART * self.residuals[0]:
            reject("kernel", "exact_features", PSD, self._source)
        self._left = np.maximum(left, 0.0)
        self._left[pivot] = 0.0
        self.pivots.append(pivot)
        self.residuals.append(float(self._left.max()))

    def one_by_one(self, most: int) -> None:
        """Find columns until there are `most`, each at the point with the largest residual."""
        n = len(self._left)
        rows, room = np.empty((ROWS, n)), np.empty((max(WORKED_ON // n, 1) + 1, n))
        while self._wants(most):
            j, pivot = len(self.pivots), int(self._left.argmax())
            if j == len(rows):
                rows = np.concatenate([rows, np.empty((min(j, most - j), n))])
            column = rows[j]
            column[:] = self._entries(None, np.array([pivot]))[:, 0]
            if abs(column[pivot] - self._prior[pivot]) > APART * self.residuals[0]:
                reject("kernel", "exact_features", DIAGONAL, self._source)
            subtract_products(rows[:j], rows[:j, pivot].copy(), column, room)
            column /= np.sqrt(self._left[pivot])
            self._add(column, pivot)
        self._blocks.append(rows[: len(self.pivots)])

    def in_blocks(self, most: int) -> None:
        """Find columns until there are `most`, many at a time, by products of matrices.

        A block's pivots are found by a pivoted factorisation of what is left of K between some
        points alone, spread over those with more than half of the largest residual: as long as
        theirs is. The residuals are kept by subtraction; where K less the columns says otherwise,
        they are rounding.
        """
        while self._wants(most):
            least = max(self.residuals[-1] / 2, self._tolerance)
            some = np.flatnonzero(self._left > least)
            some = some[np.linspace(0, len(some) - 1, min(len(some), CANDIDATES)).astype(np.int64)]
            some[0] = self._left.argmax()
            some = np.unique(some)
            rest = self._rest(some, some)
            if rest.diagonal().max() <= self.residuals[-1] / 2:  # what is left is but rounding
                break
            U, order, rank, _ = scipy.linalg.lapack.dpstrf(rest, tol=least)
            chosen, U = some[order[:rank] - 1], U[:rank, :rank]
            rest = self._rest(None, chosen).T
            solved = scipy.linalg.solve_triangular(U, rest, trans="T", check_finite=False)
            before = len(self.pivots)
            for column, pivot in zip(solved, chosen.tolist(), strict=True):
                if self._wants(most):
                    self._add(column, pivot)
            self._blocks.append(solved[: len(self.pivots) - before])

    def _rest(self, rows: Indices | None, columns: Indices) -> Array:
        """Return what the columns leave of K, at some rows (None: all) and columns, `(r, c)`."""
        rest = self._entries(rows, columns)
        for block in self._blocks:
            rest -= (block if rows is None else block[:, rows]).T @ block[:, columns]
        return rest

    def table(self) -> Array:
        """Return Phi `(n, m)`, in the order that `Features.table` says."""
        table = np.concatenate(self._blocks).T if self.pivots else np.zeros((len(self._left), 1))
        self._blocks = []
        return np.ascontiguousarray(table) if table.size <= MOST_TURNED else table


def subtract_products(rows: Array, factors: Array, column: Array, room: Array) -> None:
    """Subtract factors_k rows_k from a column, one k after the other at each point.

    Args:
        rows: `(j, n)`.
        factors: `(j,)`.
        column: `(n,)`, changed in place.
        room: To work in, `(q + 1, n)`, for q rows at once: calls take longer than few numbers.
    """
    together = len(room) - 1
    for k in range(0, len(rows), together):
        some = rows[k : k + together]
        work = room[: len(some) + 1]
        np.multiply(some, factors[k : k + together, None], out=work[1:])
        work[0] = column
        np.subtract.reduce(work, axis=0, out=column)


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
            table = source(self._pivots)
            self._projection = scipy.linalg.solve_triangular(self._factor, table, lower=True)

    def __call__(self, X: Array, rank: int | None = None) -> tuple[Array, Array]:
        """Return the first `rank` features of points `(q, d)`, default all, and k(x, x), `(q,)`."""
        if isinstance(self._source, Kernel):
            L, k = self._factor[:rank, :rank], self._source(self._pivots[:rank], X)
            solved: Array = scipy.linalg.solve_triangular(L, k, lower=True, check_finite=False)
            return solved.T, self._source.diagonal(X)
        table = self._source(X)
        return table @ self._projection[:rank].T, np.sum(table**2, axis=1)
