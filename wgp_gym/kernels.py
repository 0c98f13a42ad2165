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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self, get_args

import numpy as np

from wgp_gym.arm_kernels import Categorical, Empirical
from wgp_gym.kernel_algebra import (
    Factors,
    FeatureKernel,
    Kernel,
    OnColumns,
    Product,
    Sum,
    factors_for,
    pair_shape,
)
from wgp_gym.types import Array
from wgp_gym.validation import check_choice, check_float, is_number, reject

__all__ = [
    "Categorical",
    "CentredLinear",
    "Empirical",
    "FeatureKernel",
    "Kernel",
    "KernelName",
    "Linear",
    "Matern",
    "ModifiedMatern",
    "OnColumns",
    "Product",
    "SquaredExponential",
    "Sum",
    "check_lengthscale",
    "check_smoothness",
    "make_kernel",
    "matern_profile",
]

KernelName = Literal["se", "matern", "linear", "modified-matern"]
# Beyond, on [0, 1]^d, every kernel is 1 everywhere or at x = y alone, up to rounding.
SHORTEST, LONGEST = 1e-9, 1e9
SMOOTHNESSES = (0.5, 1.5, 2.5)


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
            [1e-9, 1e9]; or one for each of the d dimensions.

    Raises:
        ValueError: If a parameter is out of its range; where it is evaluated, if the points have
            not one dimension for each lengthscale.
    """

    lengthscale: float | Sequence[float] = 0.2

    def __post_init__(self) -> None:
        owner, given = type(self).__name__, self.lengthscale
        value: float | tuple[float, ...]
        if isinstance(given, np.ndarray | list | tuple) and np.ndim(given) > 0:
            value = tuple(check_lengthscale(each, owner) for each in given)
            if not value:
                reject("lengthscale", owner, "a float, or one for each dimension", given)
        else:
            value = check_lengthscale(given, owner)
        object.__setattr__(self, "lengthscale", value)  # frozen, so set through object

    def lengths(self, dim: int) -> tuple[float, ...]:
        """Return the lengthscale of each of d dimensions, `(d,)`.

        Raises:
            ValueError: If there is not one for each.
        """
        given = self.lengthscale
        if not isinstance(given, tuple):
            assert isinstance(given, float)
            return (given,) * dim
        if len(given) != dim:
            owner = type(self).__name__
            reject("lengthscale", owner, f"a float, or {dim}, one for each dimension", given)
        return given

    def scaled(self, factors: Factors) -> Self:
        """Return the kernel with its lengthscale times a factor, or one for each dimension."""
        given = self.lengthscale
        dim = len(given) if isinstance(given, tuple) else np.size(factors)
        own = factors_for(factors, dim, type(self).__name__)
        if isinstance(given, float) and np.ndim(factors) == 0:
            return replace(self, lengthscale=own[0] * given)
        pairs = zip(own, self.lengths(dim), strict=True)
        return replace(self, lengthscale=tuple(factor * length for factor, length in pairs))

    def measured(self, X: Array, Y: Array) -> tuple[Array, Array, float]:
        """Return points in the unit of a lengthscale, and that lengthscale.

        The points stay as they are where all dimensions have one lengthscale.
        """
        if isinstance(self.lengthscale, float):
            return X, Y, self.lengthscale
        lengths = np.array(self.lengths(np.shape(X)[-1]))
        return X / lengths, Y / lengths, 1.0

    def diagonal(self, X: Array) -> Array:
        """Return k(x, x) = 1, `(..., n)`."""
        return np.ones(X.shape[:-1])


@dataclass(frozen=True)
class SquaredExponential(Stationary):
    """k(x, y) = exp(-||x - y||^2 / (2 l^2)), [Deng22] Section 2. See `Stationary`."""

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate k on all pairs, `(..., n, m)`."""
        X, Y, length = self.measured(X, Y)
        value: Array = np.exp(squared_distances(X, Y) / (-2 * length**2))
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
        X, Y, length = self.measured(X, Y)
        return matern_profile(np.sqrt(squared_distances(X, Y)), length, self.nu)


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
        for axis, length in enumerate(self.lengths(X.shape[-1])):
            distance = np.abs(X[..., :, None, axis] - Y[..., None, :, axis])
            value *= matern_profile(distance, length, self.nu)
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
    kinds = {"se": SquaredExponential, "matern": Matern, "linear": Linear}
    owner = kinds.get(name, ModifiedMatern).__name__
    check_lengthscale(lengthscale, owner)  # one for all dimensions: lists of a file are grids
    check_smoothness(nu, owner)
    if name == "linear":
        return Linear()
    if name == "se":
        return SquaredExponential(lengthscale)
    return Matern(lengthscale, nu) if name == "matern" else ModifiedMatern(lengthscale, nu)
