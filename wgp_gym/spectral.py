"""Kernels and their frequencies: which are products over the axes, and random frequencies."""

from __future__ import annotations

from typing import TypeGuard, TypeVar

import numpy as np

from wgp_gym.kernels import (
    Kernel,
    Matern,
    ModifiedMatern,
    OnColumns,
    Product,
    SquaredExponential,
    Sum,
)
from wgp_gym.types import Array
from wgp_gym.validation import reject

__all__ = ["AxisKernel", "axis_kernels", "random_frequencies"]

Kind = TypeVar("Kind", bound=Kernel)
AxisKernel = SquaredExponential | ModifiedMatern
"""A kernel of one coordinate, with one lengthscale."""


def computes_as(kernel: Kernel, kind: type[Kind]) -> TypeGuard[Kind]:
    """Tell whether a kernel is of a class whose spectrum is known.

    A subclass that computes k in its own way is another kernel.
    """
    own = type(kernel)
    same = own.__call__ is kind.__call__ and own.diagonal is kind.diagonal
    return isinstance(kernel, kind) and same


def axis_kernels(kernel: Kernel, dim: int, owner: str) -> list[AxisKernel | None]:
    """Return the kernels of each axis whose product a kernel is; None for an axis it leaves out.

    Args:
        kernel: SquaredExponential, ModifiedMatern, for `dim` 1 Matern, or a product of such on
            columns of their own.
        dim: The dimension d of the points.
        owner: Whose parameter the kernel is, for errors.

    Raises:
        ValueError: If the kernel is another one, or does not fit d dimensions.
    """
    if computes_as(kernel, SquaredExponential):
        return [SquaredExponential(length) for length in kernel.lengths(dim)]
    if computes_as(kernel, ModifiedMatern) or (computes_as(kernel, Matern) and dim == 1):
        return [ModifiedMatern(length, kernel.nu) for length in kernel.lengths(dim)]
    if computes_as(kernel, OnColumns) and max(kernel.places) < dim:
        found: list[AxisKernel | None] = [None] * dim
        inner = axis_kernels(kernel.kernel, len(kernel.places), owner)
        for column, own in zip(kernel.places, inner, strict=True):
            found[column] = own
        return found
    if computes_as(kernel, Product):
        parts = [axis_kernels(part, dim, owner) for part in kernel.kernels]
        columns = [
            [own for own in column if own is not None] for column in zip(*parts, strict=True)
        ]
        if all(len(column) <= 1 for column in columns):
            return [column[0] if column else None for column in columns]
    rule = "SquaredExponential, ModifiedMatern or, for dim 1, Matern, or a product of such, each on"
    reject("kernel", owner, f"{rule} columns of its own", type(kernel).__name__)


def random_frequencies(
    kernel: Kernel, dim: int, count: int, rng: np.random.Generator, owner: str
) -> Array:
    """Return frequencies drawn from a kernel's spectral measure, `(count, d)`.

    For the kernels see `wgp_gym.fourier.random_features`.

    Raises:
        ValueError: If the kernel is another one.
    """
    if computes_as(kernel, SquaredExponential):
        return np.asarray(rng.standard_normal((count, dim)) / np.array(kernel.lengths(dim)))
    if computes_as(kernel, Matern) or computes_as(kernel, ModifiedMatern):
        frequencies: Array = rng.standard_normal((count, dim)) / np.array(kernel.lengths(dim))
        divisors, freedom = dim if computes_as(kernel, ModifiedMatern) else 1, 2 * kernel.nu
        frequencies /= np.sqrt(rng.chisquare(freedom, (count, divisors)) / freedom)
        return frequencies
    if computes_as(kernel, OnColumns) and max(kernel.places) < dim:
        frequencies = np.zeros((count, dim))
        own = random_frequencies(kernel.kernel, len(kernel.places), count, rng, owner)
        frequencies[:, list(kernel.places)] = own
        return frequencies
    if computes_as(kernel, Product):
        factors = [random_frequencies(part, dim, count, rng, owner) for part in kernel.kernels]
        return np.asarray(np.sum(factors, axis=0))
    if computes_as(kernel, Sum):
        terms = [random_frequencies(part, dim, count, rng, owner) for part in kernel.kernels]
        # Each part by its share of k(x, x), where its own may be below 1.
        at, pairs = np.zeros((1, dim)), zip(kernel.shares, kernel.kernels, strict=True)
        mass = np.array([share * part.diagonal(at).item() for share, part in pairs])
        which = rng.choice(len(mass), size=count, p=mass / mass.sum())
        return np.asarray(np.stack(terms)[which, np.arange(count)])
    rule = "SquaredExponential, Matern or ModifiedMatern, on columns or not, or sums and products"
    reject("kernel", owner, f"{rule} of these", type(kernel).__name__)
