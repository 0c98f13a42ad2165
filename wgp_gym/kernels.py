"""Kernels k(x, x') with k(x, x) <= 1, the bound that [Deng22] asks for in Section 2.

Every kernel broadcasts over leading dimensions and does its arithmetic element by element, so
that one pair's value does not depend on what else is evaluated in the same call.

References:
    [Deng22] Deng et al. Weighted GP Bandits for Non-stationary Environments. AISTATS 2022.
    [Mutny18] Mutny, Krause. Efficient High Dimensional Bayesian Optimization with Additivity and
        Quadrature Fourier Features. NeurIPS 2018.
    [RW06] Rasmussen, Williams. Gaussian Processes for Machine Learning. MIT Press 2006.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from wgp_gym.arrays import ReadOnlyArrays, frozen
from wgp_gym.types import Array
from wgp_gym.validation import as_floats, check_choice, check_float, is_number, reject

__all__ = [
    "CentredLinear",
    "Empirical",
    "FeatureKernel",
    "Kernel",
    "KernelName",
    "Linear",
    "Matern",
    "ModifiedMatern",
    "SquaredExponential",
    "check_lengthscale",
    "check_smoothness",
    "make_kernel",
    "matern_profile",
]

KernelName = Literal["se", "matern", "linear", "modified-matern"]
# Beyond, on [0, 1]^d, every kernel is 1 everywhere or at x = y alone, up to rounding.
SHORTEST, LONGEST = 1e-9, 1e9
SMOOTHNESSES = (0.5, 1.5, 2.5)
OFF_PLACE = 0.01  # of the way to the next arm; observations show places in single precision


class Kernel(ABC):
    """A positive semi-definite function of two points of [0, 1]^d."""

    @abstractmethod
    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate k on all pairs.

        Args:
            X: Points, `(..., n, d)`.
            Y: Points, `(..., m, d)`.

        Returns:
            The values k(x_i, y_j), `(..., n, m)`.
        """

    @abstractmethod
    def diagonal(self, X: Array) -> Array:
        """Return k(x_i, x_i) for the points `X` `(..., n, d)`, as `(..., n)`."""


class FeatureKernel(Kernel):
    """A kernel that is a product of d features: its functions are f(x) = theta^T phi(x)."""

    @abstractmethod
    def features(self, X: Array) -> Array:
        """Return phi of the points `X` `(..., n, d)`, as `(..., n, d)`: k = phi phi^T."""


def pair_shape(X: Array, Y: Array) -> tuple[int, ...]:
    """Return the shape of the values of all pairs of `X` `(..., n, d)` and `Y` `(..., m, d)`."""
    return (*np.broadcast_shapes(X.shape[:-2], Y.shape[:-2]), X.shape[-2], Y.shape[-2])


def squared_distances(X: Array, Y: Array) -> Array:
    """Return ||x_i - y_j||^2 for `X` `(..., n, d)` and `Y` `(..., m, d)`, as `(..., n, m)`."""
    total = np.zeros(pair_shape(X, Y))
    for axis in range(X.shape[-1]):
        total += (X[..., :, None, axis] - Y[..., None, :, axis]) ** 2
    return total


def matern_profile(distance: Array, lengthscale: float, nu: float) -> Array:
    """Return the Matern kernel at distances of any shape, [RW06] Eq. (4.16)-(4.17)."""
    r = distance * (math.sqrt(2 * nu) / lengthscale)
    polynomial = {0.5: 1.0, 1.5: 1 + r, 2.5: 1 + r + r**2 / 3}[nu]
    value: Array = polynomial * np.exp(-r)
    return value


def check_lengthscale(value: object, owner: str) -> float:
    """Return a kernel's length l as a float.

    Raises:
        ValueError: If it is no number in [1e-9, 1e9].
    """
    return check_float("lengthscale", value, owner, SHORTEST, LONGEST)


def check_smoothness(value: object, owner: str) -> float:
    """Return a Matern kernel's nu as a float.

    Raises:
        ValueError: If it is not 0.5, 1.5 or 2.5.
    """
    if not is_number(value, int, float, np.integer, np.floating) or value not in SMOOTHNESSES:
        reject("nu", owner, "0.5, 1.5 or 2.5", value)
    return float(value)


@dataclass(frozen=True)
class Stationary(Kernel):
    """A kernel of x - y with k(x, x) = 1.

    Args:
        lengthscale: The length l over which values stay correlated, in the unit of x, in
            [1e-9, 1e9].

    Raises:
        ValueError: If a parameter is out of its range.
    """

    lengthscale: float = 0.2

    def __post_init__(self) -> None:
        value = check_lengthscale(self.lengthscale, type(self).__name__)
        object.__setattr__(self, "lengthscale", value)  # frozen, so set through object

    def diagonal(self, X: Array) -> Array:
        """Return k(x, x) = 1, `(..., n)`."""
        return np.ones(X.shape[:-1])


@dataclass(frozen=True)
class SquaredExponential(Stationary):
    """k(x, y) = exp(-||x - y||^2 / (2 l^2)), [Deng22] Section 2. See `Stationary`."""

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate k on all pairs, `(..., n, m)`."""
        value: Array = np.exp(squared_distances(X, Y) / (-2 * self.lengthscale**2))
        return value


def set_smoothness(kernel: Matern | ModifiedMatern) -> None:
    """Check a kernel's smoothness, and keep it as a float."""
    object.__setattr__(kernel, "nu", check_smoothness(kernel.nu, type(kernel).__name__))


@dataclass(frozen=True)
class Matern(Stationary):
    """The Matern kernel of smoothness `nu` = 0.5, 1.5 or 2.5, [RW06] Eq. (4.16)-(4.17).

    See `Stationary`.
    """

    nu: float = 2.5

    def __post_init__(self) -> None:
        super().__post_init__()
        set_smoothness(self)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate k on all pairs, `(..., n, m)`."""
        return matern_profile(np.sqrt(squared_distances(X, Y)), self.lengthscale, self.nu)


@dataclass(frozen=True)
class ModifiedMatern(Stationary):
    """The product over the axes of one-dimensional Matern kernels, [Deng22] Section 5.

    Its spectral density is that of [Mutny18], with their gamma = l / sqrt(2 nu) and nu one half
    larger: a product, so that a quadrature of one axis serves all. In one dimension it is
    `Matern`, and it has the same parameters.
    """

    nu: float = 2.5

    def __post_init__(self) -> None:
        super().__post_init__()
        set_smoothness(self)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate k on all pairs, `(..., n, m)`."""
        value = np.ones(pair_shape(X, Y))
        for axis in range(X.shape[-1]):
            distance = np.abs(X[..., :, None, axis] - Y[..., None, :, axis])
            value *= matern_profile(distance, self.lengthscale, self.nu)
        return value


def products(X: Array, Y: Array) -> Array:
    """Return x_i^T y_j for `X` `(..., n, d)` and `Y` `(..., m, d)`, as `(..., n, m)`."""
    total = np.zeros(pair_shape(X, Y))
    for axis in range(X.shape[-1]):
        total += X[..., :, None, axis] * Y[..., None, :, axis]
    return total


@dataclass(frozen=True)
class Linear(FeatureKernel):
    """k(x, y) = x^T y / d: the functions are the linear ones, and k(x, x) <= 1 on [0, 1]^d."""

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate k on all pairs, `(..., n, m)`."""
        value: Array = products(X, Y) / X.shape[-1]
        return value

    def diagonal(self, X: Array) -> Array:
        """Return k(x, x), `(..., n)`."""
        return np.asarray(np.sum(X**2, axis=-1) / X.shape[-1])

    def features(self, X: Array) -> Array:
        """Return x / sqrt(d), `(..., n, d)`."""
        return np.asarray(X, float) / math.sqrt(X.shape[-1])


@dataclass(frozen=True)
class CentredLinear(FeatureKernel):
    """k(u, v) = (2u - 1)^T (2v - 1): linear functions f(x) = theta^T x of x = 2u - 1.

    The box [0, 1]^d shows the points x of [-1, 1]^d as u = (x + 1) / 2. On the unit ball, where
    ||x|| <= 1, k(x, x) <= 1; the norm of f is that of theta.
    """

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate k on all pairs, `(..., n, m)`."""
        return products(self.features(X), self.features(Y))

    def diagonal(self, X: Array) -> Array:
        """Return k(x, x), `(..., n)`."""
        return np.asarray(np.sum(self.features(X) ** 2, axis=-1))

    def features(self, X: Array) -> Array:
        """Return x = 2u - 1 for the points u in `X` `(..., n, d)`, `(..., n, d)`."""
        return 2 * np.asarray(X, float) - 1


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


def make_kernel(name: KernelName, lengthscale: float, nu: float) -> Kernel:
    """Return the kernel with coordinates that an environment's keyword names.

    Args:
        name: "se", "matern", "linear" or "modified-matern".
        lengthscale: The length l of all but "linear", in [1e-9, 1e9].
        nu: The smoothness of "matern" and "modified-matern": 0.5, 1.5 or 2.5.

    Raises:
        ValueError: If the name or a parameter is not one of these.
    """
    check_choice("kernel", name, "make_kernel", get_args(KernelName))
    if name == "linear":
        check_lengthscale(lengthscale, "Linear")
        check_smoothness(nu, "Linear")
        return Linear()
    if name == "se":
        check_smoothness(nu, "SquaredExponential")
        return SquaredExponential(lengthscale)
    return Matern(lengthscale, nu) if name == "matern" else ModifiedMatern(lengthscale, nu)
