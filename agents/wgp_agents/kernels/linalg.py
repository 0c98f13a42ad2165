"""Linear algebra in compiled loops: the factorisation, the solves and the sums that models share.

R is upper triangular throughout, with A = R^T R. Of a symmetric matrix only the upper triangle is
read. A matrix may be larger than the problem: the leading block counts.

Rows of a matrix are combined two at a time, twice the work for what a loop loads, and from index 0
of a view of each: numba checks an index that could be negative, and a check bars vector
instructions. No sum is reordered at run time, so
results are reproducible. `x[:] = y` of two arrays is written as a loop: numba would compile an
error message for it, which takes seconds.
"""

from __future__ import annotations

from typing import cast

import numpy as np

from wgp_agents.kernels.jit import subroutine
from wgp_gym.types import Array

__all__ = [
    "FIRST",
    "add_outer",
    "backward",
    "column_squares",
    "combine_rows",
    "copy",
    "dot",
    "flushed",
    "forward",
    "inverse",
    "largest",
    "quadratic_forms",
    "smallest",
    "subtract_from_two",
    "subtract_rows",
    "transposed_product",
]

FIRST = cast(int, np.int64(0))  # numba would compile a function anew for the literal 0
SMALLEST = 1e-150  # what fades below it is 0: so products of two faded numbers are normal, too
BLOCK = 128  # columns that are worked on together: with few rows they fit the first-level cache


@subroutine
def flushed(x: float) -> float:
    """Return x, and 0 in the place of a number below `SMALLEST`.

    A product of smaller ones would be denormal, with which a processor takes many times as long.
    """
    return 0.0 if abs(x) < SMALLEST else x


@subroutine
def copy(source: Array, target: Array) -> None:
    """Copy the first numbers of a vector, as many as there is room for."""
    for j in range(len(target)):
        target[j] = source[j]


@subroutine
def dot(x: Array, y: Array) -> float:
    """Return x^T y, over the length of x."""
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@subroutine
def smallest(x: Array) -> float:
    """Return the smallest number."""
    best: float = x[0]
    for value in x:
        best = min(best, value)
    return best


@subroutine
def largest(x: Array) -> float:
    """Return the largest number."""
    best: float = x[0]
    for value in x:
        best = max(best, value)
    return best


@subroutine
def combine_rows(M: Array, weights: Array, out: Array) -> None:
    """Compute out_a = sum over i of weights_i M[i, a].

    With a symmetric M it is the product of M and the weights.
    """
    n, count = len(out), len(weights)
    out[:] = 0.0
    for i in range(0, count - 1, 2):
        row, below, factor, factor_below = M[i], M[i + 1], weights[i], weights[i + 1]
        for a in range(n):
            out[a] += factor * row[a] + factor_below * below[a]
    if count % 2 == 1:
        row, factor = M[count - 1], weights[count - 1]
        for a in range(n):
            out[a] += factor * row[a]


@subroutine
def subtract_rows(R: Array, i: int, Y: Array, start: int, row: Array) -> None:
    """Compute row_a -= sum over k < i of R[k, i] Y[k, start + a]: a step of elimination."""
    n = len(row)
    end = start + n
    for k in range(0, i - 1, 2):
        first, second, f1, f2 = Y[k, start:end], Y[k + 1, start:end], R[k, i], R[k + 1, i]
        for a in range(n):
            row[a] -= f1 * first[a] + f2 * second[a]
    if i % 2 == 1:
        last, factor = Y[i - 1, start:end], R[i - 1, i]
        for a in range(n):
            row[a] -= factor * last[a]


@subroutine
def subtract_from_two(R: Array, i: int, Y: Array, upper: Array, lower: Array) -> None:
    """Do `subtract_rows` for rows i and i + 1 at once, i even, but for row i's part in row i + 1.

    Four products for each two numbers that are loaded: the fastest way through many columns.
    """
    n = len(upper)
    for k in range(0, i, 2):
        first, second = Y[k, :n], Y[k + 1, :n]
        u1, u2, l1, l2 = R[k, i], R[k + 1, i], R[k, i + 1], R[k + 1, i + 1]
        for a in range(n):
            upper[a] -= u1 * first[a] + u2 * second[a]
            lower[a] -= l1 * first[a] + l2 * second[a]


@subroutine
def forward(R: Array, first: int, x: Array) -> None:
    """Put R^{-T} x in the place of x, for the block of R that begins at (first, first)."""
    m = len(x)
    for i in range(m):
        k = first + i
        row, rest = R[k, k : first + m], x[i:m]
        rest[0] /= row[0]
        for j in range(1, m - i):
            rest[j] -= row[j] * rest[0]


@subroutine
def backward(R: Array, x: Array) -> None:
    """Put R^{-1} x in the place of x."""
    m = len(x)
    for i in range(m - 1, -1, -1):
        row, rest = R[i, i:m], x[i:m]
        for j in range(1, m - i):
            rest[0] -= row[j] * rest[j]
        rest[0] /= row[0]


@subroutine
def transposed_product(R: Array, x: Array, out: Array) -> None:
    """Compute out = R^T x."""
    m = len(x)
    out[:] = 0.0
    for i in range(m):
        row, rest, factor = R[i, i:m], out[i:m], x[i]
        for j in range(m - i):
            rest[j] += row[j] * factor


@subroutine
def inverse(R: Array, m: int, P: Array) -> None:
    """Compute P = (R^T R)^{-1}, both triangles."""
    L = np.zeros((m, m))
    for i in range(m):  # L = R^{-T}, row by row, lower triangular
        row = L[i, : i + 1]
        row[i] = 1.0
        subtract_rows(R, i, L, FIRST, row)
        for j in range(i + 1):
            row[j] /= R[i, i]
    for a in range(m):  # P = L^T L
        out = P[a, :m]
        out[:] = 0.0
        for k in range(a, m):
            row, factor = L[k, : k + 1], L[k, a]
            for b in range(k + 1):
                out[b] += factor * row[b]


@subroutine
def add_outer(P: Array, factor: float, u: Array) -> None:
    """Add factor u u^T to P."""
    m = len(u)
    for i in range(m):
        row, scaled = P[i, :m], factor * u[i]
        for j in range(m):
            row[j] += scaled * u[j]


@subroutine
def column_squares(Y: Array, m: int, out: Array) -> None:
    """Compute the sum of squares of each column of Y, over the first m rows."""
    n = len(out)
    out[:] = 0.0
    for i in range(m):
        row = Y[i, :n]
        for a in range(n):
            out[a] += row[a] * row[a]


@subroutine
def quadratic_forms(P: Array, m: int, phi: Array, out: Array) -> None:
    """Compute out_a = phi_a^T P phi_a for every column of phi `(m, n)`: O(m^2 n / 2)."""
    n = len(out)
    block, y = np.empty((m, BLOCK)), np.empty(BLOCK)
    for start in range(0, n, BLOCK):
        end = min(start + BLOCK, n)
        square, part = out[start:end], y[: end - start]
        square[:] = 0.0
        for i in range(m):
            copy(phi[i, start:end], block[i, : end - start])
        for i in range(m):
            # Twice the terms right of the diagonal, and the one on it.
            combine_rows(block[i + 1 :], P[i, i + 1 : m], part)
            row, own = block[i], P[i, i]
            for a in range(len(part)):
                square[a] += row[a] * (2.0 * part[a] + own * row[a])
