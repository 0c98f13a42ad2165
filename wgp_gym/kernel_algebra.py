"""What a kernel is, and how kernels make others: sums, products, columns.

The values stay positive semi-definite, and k(x, x) at most 1.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from wgp_gym.types import Array
from wgp_gym.validation import as_floats, check_int, is_number, reject

__all__ = [
    "Factors",
    "FeatureKernel",
    "Kernel",
    "OnColumns",
    "Product",
    "Sum",
    "factors_for",
    "pair_shape",
]

ROUNDING = 1e-9  # of the sum of weights

Factors = float | Sequence[float]
"""A number for all dimensions of the points, or one for each."""
Features = Callable[[Array], Array]
"""A map from points `(..., n, d)` to their features, `(..., n, m)`."""


class Kernel(ABC):
    """A positive semi-definite function of two points of [0, 1]^d.

    `k1 + k2` is their average, so that k(x, x) stays at most 1, and `k1 + k2 + k3` that of all
    three; `Sum` has weights. `k1 * k2` is their product. Of points (choice, context) it takes two
    for alike where both their choices and their contexts are: see `OnColumns`.
    """

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

    def feature_map(self) -> Features | None:
        """Return phi, `(..., n, d)` to `(..., n, m)`, with k = phi phi^T; None where m is infinite.

        m is the number of features that the kernel has on all of [0, 1]^d.
        """
        return None

    def scaled(self, factors: Factors) -> Kernel:
        """Return the kernel with its lengthscales times a factor, or times one for each dimension.

        A kernel without a lengthscale returns itself.

        Raises:
            ValueError: If a lengthscale is then out of its range, or there is not a factor for
                each dimension.
        """
        del factors
        return self

    def __add__(self, other: Kernel) -> Sum:
        """Return the average of this kernel and another."""
        if not isinstance(other, Kernel):
            return NotImplemented
        return Sum(terms_of(self) + terms_of(other))

    def __mul__(self, other: Kernel) -> Product:
        """Return the product of this kernel and another."""
        if not isinstance(other, Kernel):
            return NotImplemented
        return Product(parts_of(self) + parts_of(other))


class FeatureKernel(Kernel):
    """A kernel that is a product of finitely many features: its functions are theta^T phi(x)."""

    @abstractmethod
    def features(self, X: Array) -> Array:
        """Return phi of the points `X` `(..., n, d)`, as `(..., n, m)`: k = phi phi^T."""

    def feature_map(self) -> Features:
        """Return `features`."""
        return self.features


def factors_for(factors: Factors, dim: int, owner: str) -> tuple[float, ...]:
    """Return the factor of each of d dimensions.

    Raises:
        ValueError: If it is neither one number nor one for each.
    """
    rule = f"a number, or {dim}, one for each dimension"
    given = as_floats("factors", factors, owner, rule)
    if given.shape not in ((), (dim,)):
        reject("factors", owner, rule, factors)
    return tuple(np.broadcast_to(given, dim).tolist())


def pair_shape(X: Array, Y: Array) -> tuple[int, ...]:
    """Return the shape of the values of all pairs of `X` `(..., n, d)` and `Y` `(..., m, d)`."""
    return (*np.broadcast_shapes(X.shape[:-2], Y.shape[:-2]), X.shape[-2], Y.shape[-2])


def checked_parts(kernels: object, owner: str) -> tuple[Kernel, ...]:
    """Return the parts of a composite kernel, at least one."""
    rule = "a list of at least one Kernel"
    if isinstance(kernels, Kernel) or not isinstance(kernels, Sequence) or not len(kernels):
        reject("kernels", owner, rule, kernels)
    for part in kernels:
        if not isinstance(part, Kernel):
            reject("kernels", owner, rule, part)
    return tuple(kernels)


@dataclass(frozen=True)
class Sum(Kernel):
    """The weighted sum of kernels, sum of w_i k_i(x, y).

    Args:
        kernels: The parts, at least one.
        weights: w_i >= 0 of each, of sum in (0, 1], so that k(x, x) <= 1. Default: 1 / n, the
            average.

    Raises:
        ValueError: If a part is no kernel, or the weights are not of this kind.
    """

    kernels: Sequence[Kernel]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        kernels = checked_parts(self.kernels, "Sum")
        object.__setattr__(self, "kernels", kernels)  # frozen, so set through object
        if self.weights is not None:
            rule = f"{len(kernels)} numbers of at least 0, of sum in (0, 1]"
            given = as_floats("weights", self.weights, "Sum", rule)
            fit = given.shape == (len(kernels),) and (given >= 0).all()
            if not fit or not 0 < given.sum() <= 1 + ROUNDING:
                reject("weights", "Sum", rule, self.weights)
            object.__setattr__(self, "weights", tuple(given.tolist()))

    @property
    def shares(self) -> tuple[float, ...]:
        """The weights, w_i."""
        count = len(self.kernels)
        return (1 / count,) * count if self.weights is None else tuple(self.weights)

    def _mixed(self, values: Sequence[Array]) -> Array:
        """Return the weighted sum of values; their mean, which is 1 where all are, by default."""
        if self.weights is None:
            total = values[0]
            for value in values[1:]:
                total = total + value
            return np.asarray(total / len(values))
        total = self.weights[0] * values[0]
        for weight, value in zip(self.weights[1:], values[1:], strict=True):
            total = total + weight * value
        return np.asarray(total)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate k on all pairs, `(..., n, m)`."""
        return self._mixed([kernel(X, Y) for kernel in self.kernels])

    def diagonal(self, X: Array) -> Array:
        """Return k(x, x), `(..., n)`."""
        return self._mixed([kernel.diagonal(X) for kernel in self.kernels])

    def feature_map(self) -> Features | None:
        """Return w_i^{1/2} phi_i side by side, if all parts have features."""
        maps = maps_of(self.kernels)
        return None if maps is None else partial(side_by_side, self.shares, maps)

    def scaled(self, factors: Factors) -> Sum:
        """Return the sum of the scaled parts."""
        return Sum(tuple(kernel.scaled(factors) for kernel in self.kernels), self.weights)


@dataclass(frozen=True)
class Product(Kernel):
    """The product of kernels.

    Args:
        kernels: The parts, at least one.

    Raises:
        ValueError: If a part is no kernel.
    """

    kernels: Sequence[Kernel]

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", checked_parts(self.kernels, "Product"))

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate k on all pairs, `(..., n, m)`."""
        return product_of([kernel(X, Y) for kernel in self.kernels])

    def diagonal(self, X: Array) -> Array:
        """Return k(x, x), `(..., n)`."""
        return product_of([kernel.diagonal(X) for kernel in self.kernels])

    def feature_map(self) -> Features | None:
        """Return all products of one feature of each part, if all parts have features."""
        maps = maps_of(self.kernels)
        return None if maps is None else partial(tensor_product, maps)

    def scaled(self, factors: Factors) -> Product:
        """Return the product of the scaled parts."""
        return Product(tuple(kernel.scaled(factors) for kernel in self.kernels))


@dataclass(frozen=True)
class OnColumns(Kernel):
    """A kernel of some coordinates of the points.

    With the choice in column 0 and a context in column 1, `OnColumns(SquaredExponential(0.2), 0) *
    OnColumns(Matern(0.5), 1)` is a kernel over both: Krause, Ong. Contextual Gaussian Process
    Bandit Optimization. NIPS 2011.

    Args:
        kernel: The kernel of the points (x_c for c in columns).
        columns: The coordinates, from 0, in the order that the kernel takes them.

    Raises:
        ValueError: If the columns are not different numbers of at least 0; where it is evaluated,
            if the points have no such column.
    """

    kernel: Kernel
    columns: int | Sequence[int]

    def __post_init__(self) -> None:
        owner, rule = "OnColumns", "a column's number, from 0, or a list of different ones"
        if not isinstance(self.kernel, Kernel):
            reject("kernel", owner, "a Kernel", self.kernel)
        given = self.columns
        columns = (given,) if is_number(given, int, np.integer) else given
        if isinstance(columns, str) or not isinstance(columns, Sequence | np.ndarray):
            reject("columns", owner, rule, given)
        found = tuple(check_int("columns", column, owner, 0) for column in columns)
        if not found or len(set(found)) < len(found):
            reject("columns", owner, rule, given)
        object.__setattr__(self, "columns", found)  # frozen, so set through object

    @property
    def places(self) -> tuple[int, ...]:
        """The columns."""
        assert isinstance(self.columns, tuple)
        return self.columns

    def of(self, X: Array) -> Array:
        """Return the columns of points `(..., n, d)`, `(..., n, c)`."""
        dim = np.shape(X)[-1]
        if max(self.places) >= dim:
            reject("columns", "OnColumns", f"below the {dim} columns of the points", self.places)
        return np.ascontiguousarray(np.asarray(X)[..., list(self.places)])

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate k on all pairs, `(..., n, m)`."""
        return self.kernel(self.of(X), self.of(Y))

    def diagonal(self, X: Array) -> Array:
        """Return k(x, x), `(..., n)`."""
        return self.kernel.diagonal(self.of(X))

    def feature_map(self) -> Features | None:
        """Return phi of the columns, if the kernel has features."""
        found = self.kernel.feature_map()
        return None if found is None else partial(on_columns, found, self)

    def scaled(self, factors: Factors) -> OnColumns:
        """Return the kernel with its lengthscales times the factors of its columns."""
        dim = np.size(factors)
        if np.ndim(factors) == 0:
            return OnColumns(self.kernel.scaled(factors), self.places)
        if max(self.places) >= dim:
            rule = f"a number, or one for each dimension: there is a column {max(self.places)}"
            reject("factors", "OnColumns", rule, factors)
        given = factors_for(factors, dim, "OnColumns")
        return OnColumns(self.kernel.scaled([given[c] for c in self.places]), self.places)


def maps_of(kernels: Sequence[Kernel]) -> tuple[Features, ...] | None:
    """Return the feature maps of kernels; None if one has none."""
    maps = [kernel.feature_map() for kernel in kernels]
    found = tuple(one for one in maps if one is not None)
    return found if len(found) == len(maps) else None


def side_by_side(weights: Sequence[float], maps: Sequence[Features], X: Array) -> Array:
    """Return w_i^{1/2} phi_i of all maps, `(..., n, m)`: the features of a sum."""
    parts = zip(weights, maps, strict=True)
    return np.concatenate([math.sqrt(weight) * phi(X) for weight, phi in parts], axis=-1)


def tensor_product(maps: Sequence[Features], X: Array) -> Array:
    """Return all products of one feature of each map, `(..., n, m)`: the features of a product."""
    total = maps[0](X)
    for phi in maps[1:]:
        pairs = total[..., :, None] * phi(X)[..., None, :]
        total = pairs.reshape(*pairs.shape[:-2], -1)
    return total


def on_columns(phi: Features, kernel: OnColumns, X: Array) -> Array:
    """Return the features of some columns, `(..., n, m)`."""
    return phi(kernel.of(X))


def product_of(values: Sequence[Array]) -> Array:
    """Return the product of arrays, elementwise."""
    total = values[0]
    for value in values[1:]:
        total = total * value
    return np.asarray(total)


def terms_of(kernel: Kernel) -> tuple[Kernel, ...]:
    """Return the parts of an average, and of another kernel itself."""
    return (
        tuple(kernel.kernels) if isinstance(kernel, Sum) and kernel.weights is None else (kernel,)
    )


def parts_of(kernel: Kernel) -> tuple[Kernel, ...]:
    """Return the factors of a product, and of another kernel itself."""
    return tuple(kernel.kernels) if isinstance(kernel, Product) else (kernel,)
