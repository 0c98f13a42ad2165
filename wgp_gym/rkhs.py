"""Functions of an RKHS as finite kernel expansions, with exact values, norms and inner products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgp_gym.arrays import frozen
from wgp_gym.kernels import Kernel
from wgp_gym.streams import integers_below
from wgp_gym.types import Array
from wgp_gym.validation import reject

__all__ = [
    "DomainKernel",
    "Functions",
    "expansions",
    "interpolants",
    "linear_functions",
    "solvable",
]

MAX_STORED = 2_000  # points whose kernel matrix (32 MB) is kept
SINGULAR = 1e-10  # the least eigenvalue with which interpolants' norms are right to 1e-5 or so


class DomainKernel:
    """The kernel on a fixed domain, whose rows are asked for again and again.

    Args:
        kernel: The kernel.
        domain: Points, `(n, d)`.
    """

    def __init__(self, kernel: Kernel, domain: Array) -> None:
        self.kernel = kernel
        self.domain = frozen(domain)
        self._matrix = kernel(domain, domain) if len(domain) <= MAX_STORED else None

    def rows(self, indices: NDArray[np.intp]) -> Array:
        """Return k(x_i, x_j) for the points i in `indices` `(M,)` and all j, as `(M, n)`."""
        if self._matrix is not None:
            rows: Array = self._matrix[indices]
            return rows
        return self.kernel(self.domain[indices], self.domain)


@dataclass(frozen=True, eq=False)
class Functions:
    """K functions F_k = sum_j coefficients[k, j] k(., x_{centres[j]}) of one RKHS.

    In a batch of B episodes coefficients and values have a leading axis, and so have the centres
    unless all episodes share them. An episode's numbers do not depend on B.

    Attributes:
        centres: Indices of the centres in the domain, `(M,)`; one may stand there twice.
        coefficients: `(K, M)`.
        values: The functions on the whole domain, `(K, n)`.
    """

    centres: NDArray[np.intp]
    coefficients: Array
    values: Array

    @staticmethod
    def draw(
        rng: np.random.Generator, domain_kernel: DomainKernel, count: int, terms: int
    ) -> Functions:
        """Draw K functions as [Deng22] Section 7. See `draw_batch`."""
        return Functions.draw_batch([rng], domain_kernel, count, terms).of_episode(0)

    @staticmethod
    def draw_batch(
        generators: Sequence[np.random.Generator],
        domain_kernel: DomainKernel,
        count: int,
        terms: int,
    ) -> Functions:
        """Draw functions as [Deng22] Section 7: f = sum of alpha_i k(., x_i).

        The alpha_i are uniform in [-1, 1], the x_i uniform on the domain, with replacement.

        Args:
            generators: The source of randomness of each of B episodes.
            domain_kernel: The kernel on the domain.
            count: The number K of functions of an episode.
            terms: The number of terms of each.
        """
        n, batch = len(domain_kernel.domain), len(generators)
        shape = (batch, count, terms)
        drawn = integers_below(generators, n, count * terms).reshape(shape)
        alpha = np.empty(shape)
        for own, rng in zip(alpha, generators, strict=True):
            rng.random(out=own)
        alpha *= 2.0  # to [-1, 1], as `uniform` does
        alpha -= 1.0
        # Either way, all episodes of a task have equally many centres.
        if n <= count * terms:
            row = np.arange(batch * count).reshape(batch, count, 1) * n
            total = np.bincount((row + drawn).ravel(), alpha.ravel(), batch * count * n)
            coefficients: Array = total.reshape(batch, count, n).astype(float, copy=False)
            every = np.arange(n)
            return Functions(every, coefficients, coefficients @ domain_kernel.rows(every))
        coefficients = np.zeros((batch, count, count, terms))
        coefficients[:, np.arange(count), np.arange(count)] = alpha
        coefficients = coefficients.reshape(batch, count, -1)
        centres = drawn.reshape(batch, -1)
        values = [one @ domain_kernel.rows(x) for one, x in zip(coefficients, centres, strict=True)]
        return Functions(centres, coefficients, np.stack(values))

    @staticmethod
    def stack(alone: Sequence[Functions]) -> Functions:
        """Return the batch of the functions of single episodes, sharing centres or not."""
        first = alone[0].centres
        shared = all(one.centres is first for one in alone)
        return Functions(
            first if shared else np.stack([one.centres for one in alone]),
            np.stack([one.coefficients for one in alone]),
            np.stack([one.values for one in alone]),
        )

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> Functions:
        if isinstance(rows, slice):
            coefficients, values = self.coefficients[..., rows, :], self.values[..., rows, :]
        else:
            coefficients, values = self.coefficients.take(rows, -2), self.values.take(rows, -2)
        return Functions(self.centres, coefficients, values)

    def of_episode(self, i: int) -> Functions:
        """Return the functions of episode i of a batch."""
        centres = self.centres if self.centres.ndim == 1 else self.centres[i]
        return Functions(centres, self.coefficients[i], self.values[i])

    def inner(self, other: Functions) -> Array:
        """Return <F_k, G_k> row by row, `(K,)`; one row on either side goes with all."""
        if self.centres.ndim > 1:
            at_centres = np.take_along_axis(other.values, self.centres[..., None, :], -1)
        elif self.values.ndim > 2:
            at_centres = other.values.take(self.centres, -1)
        else:  # not `take`: the order in memory decides how the sums of a table are rounded
            at_centres = other.values[:, self.centres]
        value: Array = np.sum(self.coefficients * at_centres, axis=-1)
        return value

    def squared_norms(self) -> Array:
        """Return ||F_k||^2, `(K,)`; rounding below zero is cut off."""
        return np.maximum(self.inner(self), 0.0)

    def differences(self) -> Functions:
        """Return the K - 1 functions F_{k+1} - F_k."""
        return replace(
            self,
            coefficients=np.diff(self.coefficients, axis=-2),
            values=np.diff(self.values, axis=-2),
        )

    def scaled(self, factor: float) -> Functions:
        """Return factor * F_k for every k."""
        return replace(self, coefficients=factor * self.coefficients, values=factor * self.values)

    def affine(self, origin: Functions, origin_scale: float, scale: float) -> Functions:
        """Return origin_scale * origin + scale * (F_k - origin) for every k."""

        def _move(rows: Array, start: Array) -> Array:
            return origin_scale * start + scale * (rows - start)

        return replace(
            self,
            coefficients=_move(self.coefficients, origin.coefficients),
            values=_move(self.values, origin.values),
        )


def expansions(
    kernel: Kernel, domain: Array, centres: ArrayLike, coefficients: ArrayLike
) -> Functions:
    """Return the functions sum_j coefficients[k, j] k(., x_{centres[j]}).

    Args:
        kernel: The kernel.
        domain: Points, `(n, d)`.
        centres: Indices of the centres in the domain, `(M,)`.
        coefficients: `(K, M)`.

    Raises:
        ValueError: If the centres are no indices, or there is not a coefficient for each.
    """
    n, given = len(domain), np.asarray(centres)
    whole = given.ndim == 1 and (np.issubdtype(given.dtype, np.integer) or not given.size)
    if not whole or not ((given >= -n) & (given < n)).all():
        reject("centres", "expansions", f"indices of the domain's {n} points, (M,)", centres)
    where, weights = given.astype(np.intp), np.asarray(coefficients, float)
    if weights.ndim != 2 or weights.shape[1] != len(where):
        reject("coefficients", "expansions", f"an array (K, M) with M = {len(where)}", coefficients)
    return Functions(where, weights, weights @ kernel(domain[where], domain))


def interpolants(values: Array, matrix: Array) -> Functions:
    """Return the functions of the RKHS of a non-singular kernel matrix with given values.

    Args:
        values: `(K, n)`, one function a row.
        matrix: The kernel matrix of the n points, `(n, n)`.
    """
    coefficients = np.linalg.solve(matrix, values.T).T.astype(float)
    return Functions(np.arange(values.shape[1]), coefficients, values)


def solvable(matrix: Array, lengthscale: float, owner: str) -> Array:
    """Return the kernel matrix of the points of a domain, for `interpolants`.

    Args:
        matrix: The matrix, `(n, n)`.
        lengthscale: The kernel's length.
        owner: The task that has chosen it.

    Raises:
        ValueError: If the matrix is as good as singular.
    """
    if np.linalg.eigvalsh(matrix)[0] < SINGULAR:
        rule = "shorter, or the kernel rougher: its matrix on the domain is singular"
        reject("lengthscale", owner, rule, lengthscale)
    return matrix


def linear_functions(theta: Array) -> Functions:
    """Return the functions f = theta^T phi of vectors theta `(..., K, d)`, by their coordinates.

    Their centres are the d unit vectors of the features, where phi = e_i: the norm of f is that
    of theta. With phi = e_i for arm i, theta are the values of d arms of the identity kernel.
    """
    return Functions(np.arange(theta.shape[-1]), theta, theta)
