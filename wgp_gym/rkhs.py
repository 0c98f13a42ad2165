"""Functions of an RKHS as finite kernel expansions, with exact values, norms and inner products."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgp_gym.arrays import frozen
from wgp_gym.kernels import Kernel
from wgp_gym.types import Array

__all__ = ["DomainKernel", "Functions", "expansions", "interpolants", "linear_functions"]

MAX_STORED = 2_000  # points whose kernel matrix (32 MB) is kept


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
        """Draw functions as [Deng22] Section 7: f = sum of alpha_i k(., x_i).

        The alpha_i are uniform in [-1, 1], the x_i uniform on the domain, with replacement.

        Args:
            rng: The source of randomness.
            domain_kernel: The kernel on the domain.
            count: The number K of functions.
            terms: The number of terms of each.
        """
        n = len(domain_kernel.domain)
        drawn = rng.integers(n, size=(count, terms))
        alpha = rng.uniform(-1.0, 1.0, size=(count, terms))
        # Either way, all episodes of a task have equally many centres.
        if n <= drawn.size:
            centres = np.arange(n)
            rows = [np.bincount(x, a, minlength=n) for x, a in zip(drawn, alpha, strict=True)]
            coefficients: Array = np.stack(rows).astype(float)
        else:
            centres = drawn.ravel()
            coefficients = np.zeros((count, count, terms))
            coefficients[np.arange(count), np.arange(count)] = alpha
            coefficients = coefficients.reshape(count, -1)
        return Functions(centres, coefficients, coefficients @ domain_kernel.rows(centres))

    def inner(self, other: Functions) -> Array:
        """Return <F_k, G_k> row by row, `(K,)`; one row on either side goes with all."""
        at_centres = other.values[:, self.centres]
        value: Array = np.sum(self.coefficients * at_centres, axis=1)
        return value

    def squared_norms(self) -> Array:
        """Return ||F_k||^2, `(K,)`; rounding below zero is cut off."""
        return np.maximum(self.inner(self), 0.0)

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> Functions:
        return replace(self, coefficients=self.coefficients[rows], values=self.values[rows])

    def differences(self) -> Functions:
        """Return the K - 1 functions F_{k+1} - F_k."""
        return replace(
            self,
            coefficients=np.diff(self.coefficients, axis=0),
            values=np.diff(self.values, axis=0),
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


def expansions(kernel: Kernel, domain: Array, centres: ArrayLike, coefficients: Array) -> Functions:
    """Return the functions sum_j coefficients[k, j] k(., x_{centres[j]}).

    Args:
        kernel: The kernel.
        domain: Points, `(n, d)`.
        centres: Indices of the centres in the domain, `(M,)`.
        coefficients: `(K, M)`.
    """
    where = np.asarray(centres, np.intp)
    return Functions(where, coefficients, coefficients @ kernel(domain[where], domain))


def interpolants(values: Array, matrix: Array) -> Functions:
    """Return the functions of the RKHS of a non-singular kernel matrix with given values.

    Args:
        values: `(K, n)`, one function a row.
        matrix: The kernel matrix of the n points, `(n, n)`.
    """
    coefficients = np.linalg.solve(matrix, values.T).T.astype(float)
    return Functions(np.arange(values.shape[1]), coefficients, values)


def linear_functions(theta: Array) -> Functions:
    """Return the functions f = theta^T phi of vectors theta `(K, d)`, by their coordinates.

    Their centres are the d unit vectors of the features, where phi = e_i: the norm of f is that
    of theta. With phi = e_i for arm i, theta are the values of d arms of the identity kernel.
    """
    return Functions(np.arange(theta.shape[1]), theta, theta)
