"""Cholesky factors R, upper triangular, with A = R^T R: notation and habits as in `linalg.py`."""

from __future__ import annotations

import math

from wgp_agents.kernels.jit import subroutine
from wgp_agents.kernels.linalg import copy, subtract_from_two, subtract_rows
from wgp_gym.types import Array

__all__ = ["cholesky", "cholesky_row", "semidefinite_factor"]


@subroutine
def cholesky(A: Array, m: int, shift: float, least: float, R: Array) -> None:
    """Compute R, `(m, m)`, of A + shift I = R^T R. R may be A itself.

    A pivot below `least` of its diagonal element is raised to that: rounding has spoilt it.
    """
    for i in range(0, m - 1, 2):
        cholesky_rows(A, i, m, shift, least, R)
    if m % 2 == 1:
        own = pivot(A, m - 1, shift, least, R)
        R[m - 1, m - 1] = own * (1.0 / math.sqrt(own))


@subroutine
def pivot(A: Array, i: int, shift: float, least: float, R: Array) -> float:
    """Return the square of R[i, i] of `cholesky`, i even, after the rows above it."""
    own: float = A[i, i] + shift
    floor = least * own
    for k in range(0, i, 2):
        own -= R[k, i] * R[k, i] + R[k + 1, i] * R[k + 1, i]
    return floor if own < floor else own


@subroutine
def cholesky_rows(A: Array, i: int, m: int, shift: float, least: float, R: Array) -> None:
    """Do `cholesky_row` for rows i and i + 1 at once, i even, with the same numbers."""
    own, upper, lower = pivot(A, i, shift, least, R), R[i, i + 1 : m], R[i + 1, i + 1 : m]
    copy(A[i, i + 1 : m], upper)
    copy(A[i + 1, i + 1 : m], lower)
    lower[0] += shift
    floor = least * lower[0]
    # Subtract what the rows above account for; scale by the pivot's root.
    subtract_from_two(R, i, R[:, i + 1 : m], upper, lower)
    scale = 1.0 / math.sqrt(own)
    R[i, i] = own * scale
    for j in range(len(upper)):
        upper[j] *= scale
    # Subtract what row i accounts for.
    factor = upper[0]
    for j in range(len(lower)):
        lower[j] -= factor * upper[j]
    if lower[0] < floor:
        lower[0] = floor
    scale = 1.0 / math.sqrt(lower[0])
    for j in range(len(lower)):
        lower[j] *= scale


@subroutine
def cholesky_row(A: Array, i: int, m: int, shift: float, least: float, R: Array) -> None:
    """Compute row i of `cholesky`, after those above it."""
    row = R[i, i:m]
    copy(A[i, i:m], row)
    row[0] += shift
    floor = least * row[0]
    # Subtract what the rows above account for; scale by the pivot's root.
    subtract_rows(R, i, R, i, row)
    if row[0] < floor:
        row[0] = floor
    scale = 1.0 / math.sqrt(row[0])
    for j in range(m - i):
        row[j] *= scale


@subroutine
def semidefinite_factor(A: Array, m: int, lost: float, R: Array) -> None:
    """Compute R of A = R^T R for a singular A.

    A pivot of at most `lost` of its diagonal element is rounding: its row becomes zero.
    """
    for i in range(m):
        row = R[i, i:m]
        copy(A[i, i:m], row)
        size = row[0]
        subtract_rows(R, i, R, i, row)
        scale = 1.0 / math.sqrt(row[0]) if row[0] > lost * size else 0.0
        for j in range(m - i):
            row[j] *= scale
