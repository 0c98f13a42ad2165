"""Kernels against scikit-learn's, feature maps against the matrix, functions against algebra."""

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels as sklearn_kernels

from wgp_gym.datasets import read_table
from wgp_gym.envs.optimum import grid
from wgp_gym.features import exact_features
from wgp_gym.kernels import Empirical, Kernel, Linear, Matern, SquaredExponential, make_kernel
from wgp_gym.rkhs import DomainKernel, Functions, interpolants

Array = NDArray[np.float64]


def stock_correlation() -> Array:
    matrix = np.array(np.corrcoef(read_table("dow29").values.T))
    return (matrix + matrix.T) / 2


KERNELS: dict[str, tuple[Kernel, Any]] = {
    "se-0.2": (SquaredExponential(0.2), sklearn_kernels.RBF(0.2)),
    "se-3": (SquaredExponential(3.0), sklearn_kernels.RBF(3.0)),
    **{
        f"matern-{nu}-{length}": (Matern(length, nu), sklearn_kernels.Matern(length, nu=nu))
        for nu in (0.5, 1.5, 2.5)
        for length in (0.05, 0.2)
    },
}
ALL = {name: kernel for name, (kernel, _) in KERNELS.items()} | {"linear": Linear()}


def points(n: int, dim: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random((n, dim))


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("name", KERNELS)
def test_equals_scikit_learn(name: str, dim: int) -> None:
    kernel, reference = KERNELS[name]
    X, Y = points(20, dim), points(13, dim, seed=1)
    np.testing.assert_allclose(kernel(X, Y), reference(X, Y), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(kernel(X, X), reference(X), rtol=1e-12, atol=1e-14)


def test_linear_by_hand() -> None:
    X, Y = np.array([[1.0, 1.0], [0.5, 0.25]]), np.array([[1.0, 0.0], [0.2, 0.8]])
    np.testing.assert_allclose(Linear()(X, Y), [[0.5, 0.5], [0.25, 0.15]], rtol=1e-15)
    assert Linear()(np.ones((1, 3)), np.ones((1, 3)))[0, 0] == 1.0


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("name", ALL)
def test_positive_semi_definite_and_at_most_one(name: str, dim: int) -> None:
    kernel, X = ALL[name], points(40, dim)
    K = kernel(X, X)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(K), rtol=1e-14)
    assert kernel.diagonal(X).max() <= 1.0


@pytest.mark.parametrize("name", ALL)
def test_broadcasts_and_each_pair_stands_alone(name: str) -> None:
    kernel = ALL[name]
    X, Y = points(60, 2).reshape(3, 1, 20, 2), points(28, 2, seed=1).reshape(4, 7, 2)
    K = kernel(X, Y)
    assert K.shape == (3, 4, 20, 7)
    assert kernel.diagonal(X).shape == (3, 1, 20)
    for a, b, i, j in [(0, 0, 0, 0), (2, 3, 19, 6), (1, 2, 10, 3)]:
        alone = kernel(X[a, 0, i : i + 1], Y[b, j : j + 1])
        assert K[a, b, i, j] == alone[0, 0]  # to the last bit


def test_empirical() -> None:
    matrix = np.array([[1.0, 0.3, 0.1], [0.3, 0.8, 0.2], [0.1, 0.2, 0.5]])
    kernel, places = Empirical(matrix), np.linspace(0, 1, 3)[:, None]
    np.testing.assert_array_equal(kernel(places, places), matrix)
    np.testing.assert_array_equal(kernel(places[[2, 0]], places[[1]]), [[0.2], [0.3]])
    np.testing.assert_array_equal(kernel.diagonal(places), [1.0, 0.8, 0.5])
    assert kernel(places.reshape(3, 1, 1), places).shape == (3, 1, 3)
    last = np.linspace(0, 1, 29)[:, None].astype(np.float32).astype(float)
    np.testing.assert_array_equal(Empirical(np.eye(29))(last, last), np.eye(29))


def test_make_kernel() -> None:
    assert make_kernel("se", 0.3, 2.5) == SquaredExponential(0.3)
    assert make_kernel("matern", 0.3, 1.5) == Matern(0.3, 1.5)
    assert make_kernel("linear", 0.3, 1.5) == Linear()


@pytest.mark.parametrize("tolerance", [1e-10, 1e-6])
@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("side", "dim"), [(100, 1), (12, 2)])
def test_features_give_the_matrix_back(name: str, side: int, dim: int, tolerance: float) -> None:
    domain = grid(side, dim)
    K = ALL[name](domain, domain)
    Phi = exact_features(ALL[name], domain, tolerance).table
    rank = Phi.shape[1]
    assert rank <= len(domain)
    residual = K - Phi @ Phi.T
    assert np.abs(residual).max() <= tolerance + 1e-12
    # As few as a pivoted factorisation needs: far from the matrix with one feature fewer.
    assert np.diagonal(K - Phi[:, :-1] @ Phi[:, :-1].T).max() > tolerance - 1e-12


def test_number_of_features() -> None:
    assert 17 <= exact_features(SquaredExponential(0.2), grid(100, 1)).table.shape[1] <= 21
    assert [exact_features(Linear(), grid(9, d)).table.shape[1] for d in (1, 2, 3)] == [1, 2, 3]
    assert exact_features(Matern(0.2, 0.5), grid(30, 1)).table.shape == (30, 30)
    assert not exact_features(Linear(), np.zeros((3, 1))).table.any()


def test_features_of_stocks() -> None:
    matrix = stock_correlation()
    Phi = exact_features(Empirical(matrix), np.linspace(0, 1, 29)[:, None]).table
    np.testing.assert_allclose(Phi @ Phi.T, matrix, atol=1e-10)


def sample_categorical(kernel: Kernel, domain: Array, count: int = 5) -> Functions:
    return Functions.draw(np.random.default_rng(3), DomainKernel(kernel, domain), count, 50)


@pytest.mark.parametrize(("side", "dim"), [(60, 1), (51, 2)])  # 2,601 points are not stored
def test_values_are_the_expansion(side: int, dim: int) -> None:
    domain = grid(side, dim)
    f = sample_categorical(Matern(0.2, 1.5), domain)
    K = sklearn_kernels.Matern(0.2, nu=1.5)(domain[f.centres], domain)
    np.testing.assert_allclose(f.values, f.coefficients @ K, rtol=1e-11, atol=1e-12)
    assert f.values.shape == (5, side**dim)


def test_inner_products_reproduce_values() -> None:
    domain = grid(60, 1)
    K = np.exp(-np.abs(domain - domain.T) / 0.2)
    f = sample_categorical(Matern(0.2, 0.5), domain)
    for i in (0, 17, 59):
        section = Functions(np.array([i]), np.ones((1, 1)), K[i : i + 1])  # k(., x_i)
        np.testing.assert_allclose(f.inner(section), f.values[:, i], rtol=1e-12)
        np.testing.assert_allclose(section.inner(f), f.values[:, i], rtol=1e-12)
    solved = np.linalg.solve(K, f.values.T).T
    np.testing.assert_allclose(f.squared_norms(), np.sum(f.values * solved, axis=1), rtol=1e-10)
    np.testing.assert_allclose(
        f[:-1].inner(f[1:]), np.sum(f.values[:-1] * solved[1:], axis=1), rtol=1e-9
    )


def test_functions_add_and_scale() -> None:
    f = sample_categorical(Matern(0.2, 0.5), grid(60, 1))
    for moved, values in [
        (f.differences(), np.diff(f.values, axis=0)),
        (f.scaled(-2.0), -2 * f.values),
        (f.affine(f[1:2], 0.5, 3.0), 0.5 * f.values[1] + 3 * (f.values - f.values[1])),
    ]:
        np.testing.assert_allclose(moved.values, values, atol=1e-12)
        K = np.exp(-np.abs(grid(60, 1)[moved.centres] - grid(60, 1).T) / 0.2)
        np.testing.assert_allclose(moved.coefficients @ K, values, atol=1e-12)


def test_interpolants() -> None:
    matrix, rng = stock_correlation(), np.random.default_rng(0)
    values = rng.standard_normal((4, 29))
    f = interpolants(values, matrix)
    np.testing.assert_array_equal(f.values, values)
    np.testing.assert_allclose(f.coefficients @ matrix, values, atol=1e-10)
    inverse = np.linalg.inv(matrix)
    np.testing.assert_allclose(f.squared_norms(), np.diag(values @ inverse @ values.T), rtol=1e-9)


def test_a_coarser_map_is_the_first_columns_of_a_finer_one() -> None:
    kernel, domain = SquaredExponential(0.2), grid(100, 1)
    fine, coarse = exact_features(kernel, domain, 1e-14), exact_features(kernel, domain, 1e-10)
    rank = fine.rank(1e-10)
    assert rank == coarse.table.shape[1] < fine.table.shape[1]
    np.testing.assert_array_equal(fine.table[:, :rank], coarse.table)
    left_out = 1 - np.sum(fine.table[:, : rank - 1] ** 2, axis=1)
    assert left_out.max() > 1e-10  # one column fewer would not do
