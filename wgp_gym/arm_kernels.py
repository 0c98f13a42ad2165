"""Kernels of arms or categories that have no coordinates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wgp_gym.arrays import ReadOnlyArrays, frozen
from wgp_gym.kernel_algebra import Kernel, pair_shape
from wgp_gym.types import Array
from wgp_gym.validation import as_floats, check_float, reject

__all__ = ["Categorical", "Empirical"]

OFF_PLACE = 0.01  # of the way to the next arm; observations show places in single precision


@dataclass(frozen=True)
class Categorical(Kernel):
    """The kernel of categories: 1 where two are the same, `correlation` where they differ.

    Of points of several dimensions, the product of that of each. Each category stands at a place of
    its own, as i / (n - 1); places are compared in single precision, as observations show them.

    Args:
        correlation: The correlation of two different categories, in [0, 1].

    Raises:
        ValueError: If the correlation is out of its range.
    """

    correlation: float = 0.0

    def __post_init__(self) -> None:
        value = check_float("correlation", self.correlation, "Categorical", 0, 1)
        object.__setattr__(self, "correlation", value)  # frozen, so set through object

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate k on all pairs, `(..., n, m)`."""
        value, left, right = np.ones(pair_shape(X, Y)), X.astype("f4"), Y.astype("f4")
        for axis in range(X.shape[-1]):
            same = left[..., :, None, axis] == right[..., None, :, axis]
            value *= np.where(same, 1.0, self.correlation)
        return value

    def diagonal(self, X: Array) -> Array:
        """Return k(x, x) = 1, `(..., n)`."""
        return np.ones(X.shape[:-1])


@dataclass(frozen=True, eq=False)
class Empirical(ReadOnlyArrays, Kernel):
    """A given covariance matrix of n arms that have no coordinates.

    Arm i stands at i / (n - 1), the place that an observation shows for it.

    Args:
        matrix: Symmetric, positive semi-definite, `(n, n)`, diagonal at most 1.

    Raises:
        ValueError: If the matrix is not of this kind.
    """

    matrix: Array

    def __post_init__(self) -> None:
        K = as_floats("matrix", self.matrix, "Empirical", "a symmetric square matrix")
        square = K.ndim == 2 and K.shape[0] == K.shape[1] > 0 and bool(np.isfinite(K).all())
        if not square or not np.allclose(K, K.T, atol=1e-12):
            reject("matrix", "Empirical", "a symmetric square matrix", K)
        if not 0 < K.diagonal().max() <= 1 + 1e-12:
            reject("matrix", "Empirical", "of diagonal at most 1", K.diagonal().max())
        if np.linalg.eigvalsh(K)[0] < -1e-10:
            reject("matrix", "Empirical", "positive semi-definite", np.linalg.eigvalsh(K)[0])
        object.__setattr__(self, "matrix", frozen(K))  # frozen, so set through object

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Empirical) and np.array_equal(self.matrix, other.matrix)

    def __hash__(self) -> int:
        return hash((self.matrix + 0.0).tobytes())  # the sum makes one zero of -0.0 and 0.0

    def arms(self, X: Array) -> NDArray[np.intp]:
        """Return the arms that stand at `X` `(..., n, 1)`, as `(..., n)`.

        Raises:
            ValueError: If there is a point where no arm stands.
        """
        if np.shape(X)[-1] != 1:
            reject("X", "Empirical", "places (..., n, 1); of others see OnColumns", np.shape(X))
        place = np.asarray(X)[..., 0] * (len(self.matrix) - 1)
        arm = np.rint(place)
        there = (np.abs(place - arm) < OFF_PLACE) & (arm >= 0) & (arm < len(self.matrix))
        if not there.all():
            reject("X", "Empirical", "places i / (n - 1) of its arms", X)
        return arm.astype(np.intp)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate k on all pairs, `(..., n, m)`."""
        return np.asarray(self.matrix[self.arms(X)[..., :, None], self.arms(Y)[..., None, :]])

    def diagonal(self, X: Array) -> Array:
        """Return k(x, x), `(..., n)`."""
        return np.asarray(self.matrix.diagonal()[self.arms(X)])
