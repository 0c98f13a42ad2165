"""The linear algebra of compiled loops against numpy's and scipy's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from wgp_agents.kernels import cholesky, linalg

Array = NDArray[np.float64]
sizes = pytest.mark.parametrize("m", [1, 2, 5, 18, 19])


@functools.cache
def called(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that Python can call and that calls a subroutine."""
    made: Callable[..., Any] = numba.njit(lambda *args: function(*args))
    return made


def numbers(*shape: int) -> Array:
    return np.random.default_rng(sum(shape)).standard_normal(shape)


def definite(m: int) -> Array:
    X = numbers(m, m + 3)
    made: Array = X @ X.T + 0.1 * np.eye(m)
    return made


def factor(V: Array) -> Array:
    """Return R of V = R^T R, with junk below the diagonal: nothing may read it."""
    R = np.linalg.cholesky(V).T + np.tril(np.full(V.shape, 9.0), -1)
    return np.ascontiguousarray(R)


@sizes
def test_cholesky_of_the_leading_block(m: int) -> None:
    V, R = definite(m), np.full((m + 2, m + 2), 7.0)
    padded = np.pad(np.triu(V), (0, 2), constant_values=9.0)
    called(cholesky.cholesky)(padded, m, 0.3, 0.0, R)
    np.testing.assert_allclose(np.triu(R[:m, :m]).T, np.linalg.cholesky(V + 0.3 * np.eye(m)))
    assert (R[m:] == 7.0).all()
    assert (R[:, m:] == 7.0).all()
    called(cholesky.cholesky)(padded, m, 0.3, 0.0, padded)  # in place
    np.testing.assert_array_equal(np.triu(padded[:m, :m]), np.triu(R[:m, :m]))


def test_cholesky_keeps_pivots_positive() -> None:
    R = np.empty((2, 2))
    called(cholesky.cholesky)(np.ones((2, 2)), 2, 0.0, 1e-6, R)
    np.testing.assert_allclose(np.triu(R), [[1.0, 1.0], [0.0, 1e-3]])
    called(cholesky.cholesky)(np.array([[1.0, 2.0], [2.0, 1.0]]), 2, 0.0, 0.0, R)
    assert not np.isfinite(R[1, 1])  # not definite: never a number that could be played on


def test_a_singular_matrix_has_a_factor() -> None:
    X = numbers(3, 7)
    A, R = X.T @ X, np.empty((7, 7))
    called(cholesky.semidefinite_factor)(A, 7, 1e-12, R)
    np.testing.assert_allclose(np.triu(R).T @ np.triu(R), A, atol=1e-12)
    assert np.count_nonzero(np.triu(R).any(axis=1)) == 3


@sizes
def test_solves_and_products(m: int) -> None:
    R = factor(definite(m))
    upper, x = np.triu(R), numbers(m)
    forward, backward, product = x.copy(), x.copy(), np.empty(m)
    called(linalg.forward)(R, 0, forward)
    called(linalg.backward)(R, backward)
    called(linalg.transposed_product)(R, x, product)
    np.testing.assert_allclose(forward, solve_triangular(upper, x, trans="T"), rtol=1e-9)
    np.testing.assert_allclose(backward, solve_triangular(upper, x), rtol=1e-9)
    np.testing.assert_allclose(product, upper.T @ x, atol=1e-12)
    rest = x[m // 2 :].copy()
    called(linalg.forward)(R, m // 2, rest)  # a block on the diagonal alone
    block = upper[m // 2 :, m // 2 :]
    np.testing.assert_allclose(rest, solve_triangular(block, x[m // 2 :], trans="T"), rtol=1e-9)


@sizes
def test_inverse(m: int) -> None:
    V, P = definite(m), np.full((m + 1, m + 1), 7.0)
    called(linalg.inverse)(factor(V), m, P)
    np.testing.assert_allclose(P[:m, :m], np.linalg.inv(V), rtol=1e-8, atol=1e-10)
    assert (P[m] == 7.0).all()
    assert (P[:, m] == 7.0).all()


@sizes
def test_sums_over_rows(m: int) -> None:
    M, w, out = numbers(m + 1, 40), numbers(m), np.empty(33)
    called(linalg.combine_rows)(M, w, out)
    np.testing.assert_allclose(out, w @ M[:m, :33], atol=1e-12)
    called(linalg.column_squares)(M, m, out)
    np.testing.assert_allclose(out, (M[:m, :33] ** 2).sum(axis=0))
    assert called(linalg.dot)(w, w) == pytest.approx(float(w @ w))
    P = np.zeros((m + 1, m + 1))
    called(linalg.add_outer)(P, -2.0, w)
    np.testing.assert_allclose(P[:m, :m], -2.0 * np.outer(w, w))
    assert not P[m].any()
    assert not P[:, m].any()


@pytest.mark.parametrize("n", [1, 128, 300])  # 128 are a block
@sizes
def test_quadratic_forms(m: int, n: int) -> None:
    P, phi, out = definite(m), numbers(m, n), np.empty(n)
    called(linalg.quadratic_forms)(np.triu(P), m, phi, out)
    np.testing.assert_allclose(out, np.einsum("ia,ij,ja->a", phi, P, phi), rtol=1e-10)
