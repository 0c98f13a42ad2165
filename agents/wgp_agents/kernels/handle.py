"""Arrays that go into a compiled loop as one argument, by where they are.

A call from Python looks at each array that it is given. With the fifteen of a model that takes as
long as learning from a play of a single learner. A handle looks at them once, and keeps a table of
their addresses and shapes; in the loop, `basis_at` and its like make the arrays of it again.
"""

from __future__ import annotations

import ctypes
from typing import ClassVar, Protocol, cast

import numba
import numpy as np
from numba import carray  # type: ignore[attr-defined]
from numba.core import cgutils
from numba.extending import intrinsic

from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.jit import settings, subroutine
from wgp_agents.kernels.linalg import FIRST
from wgp_gym.types import AnyArray, Array, Indices

__all__ = [
    "MODEL",
    "Handle",
    "basis_at",
    "cube_at",
    "index_matrix_at",
    "indices_at",
    "matrix_at",
    "vector_at",
]

DIMS = 3  # the most that an array may have
MODEL = cast(int, np.int64(len(Basis._fields)))  # the row of a model's first array


class Builder(Protocol):
    """What writes machine code: numba's, of llvmlite."""

    def inttoptr(self, value: object, kind: object) -> object:
        """Write the conversion of an integer to a pointer."""


class Handle:
    """The table of a basis and of a model's arrays, for as long as these are the same.

    A copy of it, as one of an agent, is empty: it would have the arrays of the first.
    """

    _constant: ClassVar[bool] = True  # no part of a state

    def __init__(self) -> None:
        self._basis: tuple[AnyArray, ...] | None = None
        self._arrays: tuple[AnyArray, ...] | None = None  # held, so that they stay where they are
        self._table = np.zeros((0, 1 + DIMS), np.int64)

    def __reduce__(self) -> tuple[type[Handle], tuple[()]]:
        """Return how a copy is made."""
        return Handle, ()

    def table(self, basis: Basis, arrays: tuple[AnyArray, ...]) -> Indices:
        """Return an address and a shape in each row: those of the basis, from `MODEL` the others.

        Args:
            basis: The basis.
            arrays: A model's arrays, in the order of its class.
        """
        if basis is not self._basis or arrays is not self._arrays:
            self._table = np.array([row_of(array) for array in (*basis, *arrays)], np.int64)
            self._basis, self._arrays = basis, arrays
        return self._table


def row_of(array: AnyArray) -> list[int]:
    """Return an array's address and shape."""
    assert array.flags.c_contiguous
    assert array.dtype in (np.float64, np.int64)
    return [array.ctypes.data, *array.shape, *[1] * (DIMS - array.ndim)]


def typed_pointer(context: object, address: object) -> object:
    """Return the type of a pointer from an address, and what writes its code: for numba."""

    def _generate(
        context: object, builder: Builder, signature: object, given: list[object]
    ) -> object:
        return builder.inttoptr(given[0], cgutils.voidptr_t)

    return numba.types.voidptr(numba.types.int64), _generate


pointer = cast(
    type[ctypes.c_void_p], ctypes.c_void_p if settings.DISABLE_JIT else intrinsic(typed_pointer)
)


@subroutine
def vector_at(table: Indices, k: int) -> Array:
    """Return the array of row k, `(n,)`."""
    return carray(pointer(table[k, 0]), (table[k, 1],), np.float64)


@subroutine
def matrix_at(table: Indices, k: int) -> Array:
    """Return the array of row k, of two dimensions."""
    return carray(pointer(table[k, 0]), (table[k, 1], table[k, 2]), np.float64)


@subroutine
def cube_at(table: Indices, k: int) -> Array:
    """Return the array of row k, of three dimensions."""
    shape = table[k, 1], table[k, 2], table[k, 3]
    return carray(pointer(table[k, 0]), shape, np.float64)


@subroutine
def indices_at(table: Indices, k: int) -> Indices:
    """Return the integers of row k, `(n,)`."""
    return carray(pointer(table[k, 0]), (table[k, 1],), np.int64)


@subroutine
def index_matrix_at(table: Indices, k: int) -> Indices:
    """Return the integers of row k, of two dimensions."""
    return carray(pointer(table[k, 0]), (table[k, 1], table[k, 2]), np.int64)


@subroutine
def basis_at(table: Indices) -> Basis:
    """Return the basis of a handle's table."""
    return Basis(
        matrix_at(table, FIRST),
        vector_at(table, FIRST + 1),
        indices_at(table, FIRST + 2),
        matrix_at(table, FIRST + 3),
        vector_at(table, FIRST + 4),
    )
