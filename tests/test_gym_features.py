"""Finite feature maps: their pivots, how they go on between the points, and maps of one's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_gym import features as feature_maps
from wgp_gym.features import Extension, Features, exact_features
from wgp_gym.fourier import random_features
from wgp_gym.kernels import Kernel, Linear, Matern, SquaredExponential

Floats = NDArray[np.float64]


def polynomial(X: Floats) -> Floats:
    """Return 1, all coordinates and all their products, of different scales."""
    pairs = (X[:, :, None] * X[:, None, :]).reshape(len(X), -1)
    return np.concatenate([0.5 * np.ones((len(X), 1)), 0.4 * X, 0.3 * pairs], axis=1)


SE = SquaredExponential(0.3)
SOURCES: dict[str, Any] = {
    "se": SE,
    "matern-0.5": Matern(0.3, 0.5),
    "matern-2.5": Matern(0.3, 2.5),
    "linear": Linear(),
    "polynomial": polynomial,
    "random": random_features(SE, 2, 100, 0),
}

every_source = pytest.mark.parametrize("source", SOURCES)


def points(count: int = 90, dim: int = 2, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).random((count, dim))


def gram(source: Any, X: Floats, Y: Floats) -> Floats:
    """Return k(x, y) of a kernel, or phi(x)^T phi(y) of a map."""
    value: Floats = source(X, Y) if isinstance(source, Kernel) else source(X) @ source(Y).T
    return value


def made(source: str, **options: Any) -> tuple[Features, Callable[[Floats], Any]]:
    X = points()
    features = exact_features(SOURCES[source], X, **options)
    return features, Extension(features, SOURCES[source], X)


@every_source
def test_features_give_the_gram_matrix_back(source: str) -> None:
    features, _ = made(source)
    K = gram(SOURCES[source], points(), points())
    np.testing.assert_allclose(features.table @ features.table.T, K, rtol=0, atol=2e-10)
    np.testing.assert_allclose(features.prior, K.diagonal(), rtol=1e-13)


@pytest.mark.parametrize(("source", "rank"), [("linear", 2), ("polynomial", 6)])
def test_a_map_gets_no_more_columns_than_its_kernel_has(source: str, rank: int) -> None:
    # The polynomial map has 7 columns, two of which are the same product.
    assert made(source)[0].table.shape == (90, rank)


@every_source
def test_at_its_pivots_a_map_is_exact_and_later_columns_vanish(source: str) -> None:
    features, _ = made(source)
    L = features.table[features.pivots]
    m = features.table.shape[1]
    assert len(features.pivots) == m == len(set(features.pivots.tolist()))
    assert (L.diagonal() > 0).all()
    np.testing.assert_allclose(np.triu(L, 1), 0.0, rtol=0, atol=1e-10)
    np.testing.assert_allclose(np.sum(L**2, axis=1), features.prior[features.pivots], atol=1e-10)
    K = gram(SOURCES[source], points()[features.pivots], points()[features.pivots])
    np.testing.assert_allclose(L @ L.T, K, rtol=0, atol=2e-10)


@every_source
def test_each_pivot_is_where_most_is_left(source: str) -> None:
    features, _ = made(source)
    left = features.prior[:, None] - np.cumsum(features.table**2, axis=1)
    left = np.concatenate([features.prior[:, None], left], axis=1)
    np.testing.assert_allclose(features.residuals, left.max(axis=0), rtol=0, atol=1e-12)
    for j, pivot in enumerate(features.pivots):
        assert left[pivot, j] >= left[:, j].max() - 1e-12
    assert (np.diff(features.residuals) <= 1e-15).all()


@every_source
def test_extension_reproduces_the_table(source: str) -> None:
    features, extension = made(source)
    table, prior = extension(points())
    # A column is made by dividing by the root of what was left: at 1e-10, 1e-16 counts 1e-11.
    np.testing.assert_allclose(table, features.table, rtol=0, atol=1e-7)
    np.testing.assert_allclose(prior, features.prior, rtol=1e-13)


@pytest.mark.parametrize("most", [1, 5, 20, None])
@every_source
def test_an_extension_leaves_something_out_and_adds_nothing(source: str, most: int | None) -> None:
    features, extension = made(source, max_features=most)
    X = points(500, seed=1)
    table, prior = extension(X)
    left = prior - np.sum(table**2, axis=1)
    np.testing.assert_allclose(prior, gram(SOURCES[source], X, X).diagonal(), rtol=1e-12)
    assert left.min() >= -1e-9
    at_pivots, prior = extension(points()[features.pivots])
    np.testing.assert_allclose(np.sum(at_pivots**2, axis=1), prior, rtol=0, atol=1e-9)
    # It is the Nystrom approximation K_XP K_PP^{-1} K_PX, here by the pseudo-inverse.
    P = points()[features.pivots[:5]]
    coarse, _ = made(source, max_features=5)
    few = Extension(coarse, SOURCES[source], points())(X)[0]
    cross = gram(SOURCES[source], X, P)
    nystrom = cross @ np.linalg.pinv(gram(SOURCES[source], P, P), hermitian=True) @ cross.T
    if most is None or most >= 5:
        np.testing.assert_allclose(few @ few.T, nystrom, rtol=0, atol=1e-7)


@pytest.mark.parametrize(
    ("dim", "count", "error"), [(1, 60, 1e-5), (2, 400, 1e-5)], ids=["line", "square"]
)
def test_a_smooth_kernel_goes_on_between_the_points(dim: int, count: int, error: float) -> None:
    # The errors of 10 other sets of points were at most 2e-6 and 3e-7.
    X, new = points(count, dim), points(700, dim, seed=3)
    extension = Extension(exact_features(SE, X), SE, X)
    table, _ = extension(new)
    assert np.abs(table @ table.T - SE(new, new)).max() < error
    known, _ = extension(X)
    assert np.abs(table @ known.T - SE(new, X)).max() < error


def test_a_finite_map_goes_on_without_error() -> None:
    X, new = points(), points(300, seed=4)
    for source in (polynomial, Linear()):
        table, _ = Extension(exact_features(source, X), source, X)(new)
        np.testing.assert_allclose(table @ table.T, gram(source, new, new), rtol=0, atol=1e-9)


@every_source
def test_a_points_features_are_those_of_the_coarser_map(source: str) -> None:
    fine, coarse = made(source), made(source, max_features=4)
    new = points(50, seed=5)
    m = coarse[0].table.shape[1]
    np.testing.assert_array_equal(fine[0].table[:, :m], coarse[0].table)
    np.testing.assert_array_equal(fine[0].pivots[:m], coarse[0].pivots)
    np.testing.assert_allclose(fine[1](new)[0][:, :m], coarse[1](new)[0], rtol=0, atol=1e-12)


@pytest.mark.parametrize("most", [1, 3, 17, 90, 200])
def test_no_more_features_than_were_asked_for(most: int) -> None:
    features, _ = made("matern-0.5", max_features=most)
    assert features.table.shape == (90, min(most, 90))
    assert features.residuals.shape == (min(most, 90) + 1,)
    K = gram(SOURCES["matern-0.5"], points(), points())
    left = (K - features.table @ features.table.T).diagonal().max()
    assert features.residuals[-1] == pytest.approx(left, abs=1e-13)
    assert (features.residuals[-1] > 1e-10) == (most < 90)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-6, 1e-12])
def test_it_stops_as_soon_as_little_is_left(tolerance: float) -> None:
    for source in SOURCES.values():
        residuals = exact_features(source, points(), tolerance).residuals
        assert residuals[-1] <= tolerance
        assert (residuals[:-1] > tolerance).all()


@pytest.mark.parametrize("most", [None, 30])
@every_source
def test_columns_found_in_blocks_are_a_factorisation_too(
    source: str, most: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    one_by_one, _ = made(source, max_features=most)
    for name, value in (("BLOCKED_FROM", 0), ("ONE_BY_ONE", 2), ("CANDIDATES", 20)):
        monkeypatch.setattr(feature_maps, name, value)
    features, _ = made(source, max_features=most)
    m, K = features.table.shape[1], gram(SOURCES[source], points(), points())
    assert m <= 1.1 * one_by_one.table.shape[1]
    if most is None:
        np.testing.assert_allclose(features.table @ features.table.T, K, rtol=0, atol=2e-10)
    for j in range(m + 1):
        left = K.diagonal() - np.sum(features.table[:, :j] ** 2, axis=1)
        assert features.residuals[j] == pytest.approx(left.max(), abs=1e-12)
    assert features.residuals[-1] <= 1e-10 or m == most
    L = features.table[features.pivots]
    np.testing.assert_allclose(L, np.tril(L), rtol=0, atol=1e-7)
    assert (L.diagonal() ** 2 <= features.residuals[:m] * (1 + 1e-6)).all()
    assert len(set(features.pivots.tolist())) == m


@pytest.mark.parametrize("scale", [100.0, 1000.0])
def test_columns_in_blocks_end_where_rounding_is_all_that_is_left(
    scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("BLOCKED_FROM", 0), ("ONE_BY_ONE", 2)):
        monkeypatch.setattr(feature_maps, name, value)
    table = scale * np.random.default_rng(0).normal(size=(400, 40))
    features = exact_features(lambda X: table, points(400))  # 1e-10 is below what rounding leaves
    assert 40 <= features.table.shape[1] <= 60
    error = np.abs(features.table @ features.table.T - table @ table.T).max()
    assert error <= 1e-13 * features.prior.max()
