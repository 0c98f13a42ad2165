"""Kernels made of kernels, and a lengthscale for each dimension, against scikit-learn's."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.gaussian_process import kernels as sklearn_kernels

from wgp_gym.features import Extension, exact_features
from wgp_gym.fourier import quadrature_features, random_features, sup_error
from wgp_gym.kernels import (
    Categorical,
    CentredLinear,
    Empirical,
    Kernel,
    Linear,
    Matern,
    ModifiedMatern,
    OnColumns,
    Product,
    SquaredExponential,
    Sum,
)
from wgp_gym.problem import BanditProblem

Array = NDArray[np.float64]
SE, THREE = SquaredExponential, (0.1, 0.5, 2.0)
RBF, SKMatern = sklearn_kernels.RBF, sklearn_kernels.Matern


def points(n: int, dim: int = 3, seed: int = 0) -> Array:
    return np.random.default_rng(seed).random((n, dim))


X, Y = points(20), points(13, seed=1)

AGAINST: dict[str, tuple[Kernel, Any]] = {
    "se": (SE(THREE), RBF(THREE)),
    "matern-0.5": (Matern(THREE, 0.5), SKMatern(THREE, nu=0.5)),
    "matern-2.5": (Matern(list(THREE), 2.5), SKMatern(THREE, nu=2.5)),
    "product": (SE(0.3) * Matern(THREE, 1.5), RBF(0.3) * SKMatern(THREE, nu=1.5)),
    "average": (SE(0.3) + Matern(0.7, 1.5), 0.5 * RBF(0.3) + 0.5 * SKMatern(0.7, nu=1.5)),
    "average of three": (
        SE(0.3) + Matern(0.7, 1.5) + SE(2.0),
        1 / 3 * RBF(0.3) + 1 / 3 * SKMatern(0.7, nu=1.5) + 1 / 3 * RBF(2.0),
    ),
    "weighted": (Sum([SE(0.3), SE(1.0)], [0.2, 0.7]), 0.2 * RBF(0.3) + 0.7 * RBF(1.0)),
    "columns": (OnColumns(SE((2.0, 0.1)), [2, 0]), RBF((0.1, 1e9, 2.0))),
    "nested": (
        OnColumns(SE(0.2), 0) * (OnColumns(Matern(0.5, 0.5), 1) + OnColumns(SE(0.4), [1, 2])),
        RBF((0.2, 1e9, 1e9))
        * (0.5 * SKMatern((1e9, 0.5, 1e9), nu=0.5) + 0.5 * RBF((1e9, 0.4, 0.4))),
    ),
}
PLACES = np.linspace(0, 1, 4)
OTHERS: dict[str, Kernel] = {
    "modified-matern": ModifiedMatern(THREE, 1.5),
    "categorical": OnColumns(Categorical(0.3), 0) * SE(0.5),
    "empirical": OnColumns(Empirical(np.eye(4) * 0.5 + 0.5), 0) + OnColumns(SE(0.2), [1]),
    "linear": OnColumns(Linear(), [0, 1]) * OnColumns(Linear(), 2) + Linear(),
}
ALL = {name: kernel for name, (kernel, _) in AGAINST.items()} | OTHERS


def coded(where: Array) -> Array:
    """Move the first coordinate to one of four places."""
    moved = where.copy()
    moved[:, 0] = PLACES[(4 * where[:, 0]).astype(int)]
    return moved


@pytest.mark.parametrize("name", AGAINST)
def test_equals_scikit_learn(name: str) -> None:
    kernel, reference = AGAINST[name]
    np.testing.assert_allclose(kernel(X, Y), reference(X, Y), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(kernel.diagonal(X), reference.diag(X), rtol=1e-14)


@pytest.mark.parametrize("name", ALL)
def test_positive_semi_definite_and_at_most_one(name: str) -> None:
    kernel, places = ALL[name], coded(points(40))
    K = kernel(places, places)
    np.testing.assert_array_equal(K, K.T)
    assert np.linalg.eigvalsh(K)[0] > -1e-12
    np.testing.assert_allclose(kernel.diagonal(places), np.diagonal(K), rtol=1e-14)
    assert kernel.diagonal(places).max() <= 1.0
    stacked = kernel(places.reshape(2, 1, 20, 3), places[:14].reshape(2, 7, 3))
    assert stacked.shape == (2, 2, 20, 7)
    assert stacked[1, 0, 3, 2] == kernel(places[23:24], places[2:3])[0, 0]  # to the last bit


@pytest.mark.parametrize("name", ALL)
def test_features_of_points_and_beyond(name: str) -> None:
    kernel, places, beyond = ALL[name], coded(points(40)), coded(points(9, seed=3))
    features = exact_features(kernel, places, 1e-12)
    K = kernel(places, places)
    np.testing.assert_allclose(features.table @ features.table.T, K, atol=1e-11)
    phi, prior = Extension(features, kernel, places)(beyond)
    dense = kernel(beyond, places) @ np.linalg.pinv(K, rcond=1e-10, hermitian=True)
    np.testing.assert_allclose(phi @ features.table.T, kernel(beyond, places), atol=1e-5)
    np.testing.assert_allclose(
        phi @ phi.T, dense @ kernel(places, beyond), atol=1e-4 if "matern" in name else 1e-3
    )
    assert (prior - np.sum(phi**2, axis=1)).min() > -1e-9


@pytest.mark.parametrize("name", ALL)
def test_compared_hashed_pickled_and_copied(name: str) -> None:
    kernel = ALL[name]
    for twin in (pickle.loads(pickle.dumps(kernel)), copy.deepcopy(kernel), kernel.scaled(1.0)):
        assert twin == kernel
        assert hash(twin) == hash(kernel)
        np.testing.assert_array_equal(twin(coded(X), coded(Y)), kernel(coded(X), coded(Y)))
    assert len({*ALL.values()}) == len(ALL)
    assert kernel != SE(0.123)
    assert str(kernel)


def test_a_scalar_lengthscale_is_as_before() -> None:
    for dim in (1, 2, 3):
        x, y = points(9, dim), points(8, dim, seed=1)
        squares = np.zeros((9, 8))
        for axis in range(dim):
            squares += (x[:, None, axis] - y[None, :, axis]) ** 2
        np.testing.assert_array_equal(SE(0.2)(x, y), np.exp(squares / (-2 * 0.2**2)))
    assert SE(1).lengthscale == 1.0
    assert SE([0.1, 0.2]).lengthscale == (0.1, 0.2)
    assert SE([0.1, 0.2]) == SE((0.1, 0.2))
    assert SE(0.2) != SE((0.2, 0.2))


def test_sums_stay_averages_of_all_their_terms() -> None:
    a, b, c = SE(0.1), SE(0.2), Linear()
    assert (a + b) + c == a + (b + c) == Sum((a, b, c))
    assert (a * b) * c == a * (b * c) == Product((a, b, c))
    weighted = Sum((a, b), (0.3, 0.7))
    assert (weighted + c).shares == (0.5, 0.5)
    np.testing.assert_allclose((weighted + c)(X, Y), (weighted(X, Y) + c(X, Y)) / 2)


def test_categories_by_hand() -> None:
    codes = np.array([[0.0, 0.0], [0.0, 1 / 3], [1.0, 1 / 3]])
    shown = codes.astype(np.float32).astype(float)  # as an observation shows them
    expected = [[1.0, 0.3, 0.09], [0.3, 1.0, 0.3], [0.09, 0.3, 1.0]]
    np.testing.assert_allclose(Categorical(0.3)(codes, shown), expected, rtol=1e-15)
    np.testing.assert_array_equal(Categorical()(codes, codes), np.eye(3))
    np.testing.assert_array_equal(Categorical(1.0)(codes, codes), np.ones((3, 3)))


def test_scaled() -> None:
    assert SE(0.2).scaled(0.5) == SE(0.1)
    assert SE(0.2).scaled([1.0, 3.0]) == SE((0.2, 3.0 * 0.2))
    assert Matern((0.1, 0.4), 0.5).scaled(2.0) == Matern((0.2, 0.8), 0.5)
    assert Matern((0.1, 0.4)).scaled((2, 0.5)) == Matern((0.2, 0.2))
    assert Linear().scaled([0.1, 3.0]) == Linear()
    assert Categorical(0.2).scaled(3.0) == Categorical(0.2)
    kernel = OnColumns(SE(0.2), [2, 0]) * OnColumns(Categorical(), 1) + Linear()
    scaled = OnColumns(SE((0.8, 0.2)), [2, 0]) * OnColumns(Categorical(), 1) + Linear()
    assert kernel.scaled([1.0, 2.0, 4.0]) == scaled
    assert Sum([SE(0.1), SE(0.2)], [0.1, 0.2]).scaled(2.0) == Sum([SE(0.2), SE(0.4)], [0.1, 0.2])


def test_finite_features() -> None:
    maps = {name: kernel.feature_map() for name, kernel in ALL.items()}
    assert {name for name, phi in maps.items() if phi is not None} == {"linear"}
    kernel = OnColumns(CentredLinear(), [0, 2]) * OnColumns(Linear(), 1)
    weighted = Sum((kernel, Linear()), (0.2, 0.5))
    for one, size in ((ALL["linear"], 5), (kernel, 2), (weighted, 5), (Linear() * Linear(), 9)):
        phi = one.feature_map()
        assert phi is not None
        assert phi(X).shape == (20, size)
        np.testing.assert_allclose(phi(X) @ phi(Y).T, one(X, Y), rtol=1e-13, atol=1e-15)
        assert phi(X.reshape(4, 5, 3)).shape == (4, 5, size)
    assert (Linear() * SE(0.2)).feature_map() is None


def test_problems_of_one_composite_kernel_make_a_batch() -> None:
    problems = [BanditProblem(OnColumns(SE(0.2), 0) * SE(THREE), X, 9, 0.1) for _ in range(2)]
    assert BanditProblem.stack(problems).batch_size == 2
    other = BanditProblem(OnColumns(SE(0.2), 1) * SE(THREE), X, 9, 0.1)
    with pytest.raises(ValueError, match="must share domain, kernel"):
        BanditProblem.stack([problems[0], other])


# Fourier features


def axes(kernel: Any, *others: Any) -> Kernel:
    return Product([OnColumns(one, axis) for axis, one in enumerate((kernel, *others))])


@pytest.mark.parametrize(
    ("kernel", "most"),
    [
        (SE((0.5, 1.0)), 1e-10),
        (ModifiedMatern((0.5, 1.0), 2.5), 1e-3),
        (axes(SE(0.5), Matern(1.0, 2.5)), 1e-3),
        (OnColumns(SE((0.4, 0.8)), [1, 0]), 1e-8),
        (OnColumns(SE(0.4), 1), 1e-8),
    ],
)
def test_quadrature(kernel: Kernel, most: float) -> None:
    features = quadrature_features(kernel, 2, 30)
    assert sup_error(features, kernel, points(40, 2)) < most


def test_quadrature_of_one_length_is_that_of_the_scalar() -> None:
    scalar, vector = (quadrature_features(SE(length), 2, 9) for length in (0.3, (0.3, 0.3)))
    np.testing.assert_array_equal(scalar.frequencies, vector.frequencies)
    np.testing.assert_array_equal(scalar.weights, vector.weights)


@pytest.mark.parametrize(
    "kernel",
    [
        SE((0.2, 0.6, 1.0)),
        Matern((0.2, 0.6, 1.0), 0.5),
        ModifiedMatern((0.2, 0.6, 1.0), 1.5),
        OnColumns(SE(0.2), 2) * OnColumns(Matern(0.5, 1.5), [0, 1]),
        SE(0.3) * SE(0.4),
        Sum([SE(0.2), OnColumns(SE(1.0), 1)], [0.3, 0.5]),
        (SE(0.3) + OnColumns(SE(0.2), 0)) * Matern(2.0, 2.5),
        Sum([Sum([SE(0.1)], [0.1]), SE(1.0)], [0.5, 0.5]),
        Sum([SE(0.1), SE(1.0)], [0.1, 0.1]) + SE(0.5),
    ],
    ids=str,
)
def test_random_features_are_unbiased(kernel: Kernel) -> None:
    # The deviation of a mean of M cosines is at most M^{-1/2} = 0.007: five of them.
    features = random_features(kernel, 3, 20_000, seed=1)
    assert sup_error(features, kernel, points(12)) < 5 * 0.0071


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: SE(()), "'lengthscale' parameter of SquaredExponential .* one for each dimension"),
    (lambda: SE((0.1, 0.0)), r"'lengthscale' parameter of SquaredExponential .*\[1e-09, 1e\+09\]"),
    (lambda: SE(THREE)(X[:, :2], Y[:, :2]), "'lengthscale' .* a float, or 2, one for each"),
    (lambda: ModifiedMatern(THREE)(X[:, :2], Y[:, :2]), "'lengthscale' .* a float, or 2, one"),
    (lambda: BanditProblem(SE(THREE), X[:, :2]), "'lengthscale' .* a float, or 2, one for each"),
    (lambda: SE(THREE).scaled([1.0, 2.0]), "'factors' .* a number, or 3, one for each"),
    (lambda: SE(0.2).scaled(1e12), r"'lengthscale' parameter .*\[1e-09, 1e\+09\]"),
    (lambda: OnColumns(SE(0.2), 3)(X, Y), "'columns' parameter of OnColumns .* below the 3"),
    (lambda: OnColumns(SE(0.2), [0, 0]), "'columns' parameter of OnColumns"),
    (lambda: OnColumns(SE(0.2), -1), "'columns' parameter of OnColumns"),
    (lambda: OnColumns(SE(0.2), []), "'columns' parameter of OnColumns"),
    (lambda: OnColumns(SE(0.2), "01"), "'columns' parameter"),  # type: ignore[arg-type]
    (lambda: OnColumns(SE(0.2), 2).scaled([1.0, 2.0]), "'factors' .* there is a column 2"),
    (lambda: OnColumns(len, 0), "'kernel' parameter of OnColumns"),  # type: ignore[arg-type]
    (lambda: Sum([]), "'kernels' parameter of Sum must be a list of at least one Kernel"),
    (lambda: Product([SE(0.1), 2]), "'kernels' .* Got 2"),  # type: ignore[list-item]
    (lambda: Sum([SE(0.1), SE(0.2)], [0.6, 0.6]), "'weights' parameter of Sum .* of sum in"),
    (lambda: Sum([SE(0.1), SE(0.2)], [1.2, -0.2]), "'weights' parameter of Sum .* at least 0"),
    (lambda: Sum([SE(0.1)], [math.nan]), "'weights' parameter of Sum"),
    (lambda: Sum([SE(0.1)], [0.5, 0.5]), "'weights' parameter of Sum must be 1 numbers"),
    (lambda: Categorical(1.5), r"'correlation' parameter of Categorical .*\[0, 1\]"),
    (lambda: Empirical(np.eye(2))(X, X), "'X' parameter of Empirical .* see OnColumns"),
    (lambda: quadrature_features(SE(0.3) + SE(0.2), 2, 9), "'kernel' .* Got 'Sum'"),
    (lambda: quadrature_features(SE(0.3) * SE(0.2), 2, 9), "'kernel' .* Got 'Product'"),
    (lambda: quadrature_features(OnColumns(SE(0.3), 2), 2, 9), "'kernel' .* Got 'OnColumns'"),
    (lambda: random_features(Categorical() * SE(0.2), 2, 9, 0), "'kernel' .* Got 'Categorical'"),
    (lambda: random_features(SE(THREE), 2, 9, 0), "'lengthscale' .* a float, or 2"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED, ids=[message for _, message in REFUSED])
def test_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()


def test_a_kernel_and_something_else_are_not_added() -> None:
    for other in (2.0, "SE", None):
        with pytest.raises(TypeError):
            SE(0.1) + other  # type: ignore[operator]
        with pytest.raises(TypeError):
            SE(0.1) * other  # type: ignore[operator]
