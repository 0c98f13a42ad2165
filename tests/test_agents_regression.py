"""Weighted GP regression against scikit-learn, ridge regression in feature space and itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

from wgp_agents.theory.regression import WeightedGPRegressor
from wgp_gym.features import exact_features
from wgp_gym.kernels import Linear, Matern, SquaredExponential
from wgp_gym.types import Array

RNG = np.random.default_rng(17)
X, Y = RNG.random((12, 2)), RNG.normal(size=12)
WEIGHTS = RNG.uniform(0.2, 3.0, 12)
QUERIES = RNG.random((9, 2))
KERNEL = SquaredExponential(0.3)


def sklearn_posterior(alpha: Any) -> Any:
    """Return scikit-learn's mean and std with noise variances alpha."""
    model = GaussianProcessRegressor(RBF(0.3), alpha=alpha, optimizer=None).fit(X, Y)
    return model.predict(QUERIES, return_std=True)


def test_equal_weights_are_the_usual_gaussian_process() -> None:
    model = WeightedGPRegressor(KERNEL, 0.05).fit(X, Y)
    np.testing.assert_allclose(model.predict(QUERIES), sklearn_posterior(0.05), atol=1e-10)
    assert model.jitter_ == 0
    np.testing.assert_array_equal(model.tight_std(QUERIES), model.predict(QUERIES).std)


def test_inverse_variances_are_heteroscedastic_noise() -> None:
    model = WeightedGPRegressor(KERNEL, 1.0).fit(X, Y, WEIGHTS, regularization_weight=1.0)
    np.testing.assert_allclose(model.predict(QUERIES), sklearn_posterior(1 / WEIGHTS), atol=1e-10)


def test_default_regularization_is_lambda_times_the_last_weight() -> None:
    # Noise variance lambda w_t / w_s for observation s.
    model = WeightedGPRegressor(KERNEL, 0.05).fit(X, Y, WEIGHTS)
    expected = sklearn_posterior(0.05 * WEIGHTS[-1] / WEIGHTS)
    np.testing.assert_allclose(model.predict(QUERIES), expected, atol=1e-10)


def test_linear_kernel_is_weighted_ridge_regression() -> None:
    # phi(x) = x / sqrt(d): theta = V^{-1} sum w phi y, sigma^2 = lambda_t phi^T V^{-1} phi.
    ridge, phi, queries = 0.3 * WEIGHTS[-1], X / np.sqrt(2), QUERIES / np.sqrt(2)
    V = (phi.T * WEIGHTS) @ phi + ridge * np.eye(2)
    mean = queries @ np.linalg.solve(V, phi.T @ (WEIGHTS * Y))
    std = np.sqrt(ridge * np.einsum("qi,ij,qj->q", queries, np.linalg.inv(V), queries))
    got = WeightedGPRegressor(Linear(), 0.3).fit(X, Y, WEIGHTS).predict(QUERIES)
    np.testing.assert_allclose(got.mean, mean, rtol=1e-10)
    np.testing.assert_allclose(got.std, std, rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-290, 1e6, 1e290])
def test_only_ratios_of_weights_matter(scale: float) -> None:
    model = WeightedGPRegressor(KERNEL, 0.05).fit(X, Y, WEIGHTS)
    scaled = WeightedGPRegressor(KERNEL, 0.05).fit(X, Y, scale * WEIGHTS)
    np.testing.assert_allclose(scaled.predict(QUERIES), model.predict(QUERIES), rtol=1e-10)
    np.testing.assert_allclose(scaled.tight_std(QUERIES), model.tight_std(QUERIES), rtol=1e-10)


BATCHES: list[dict[str, Any]] = [
    {"y": RNG.normal(size=(3, 12))},
    {"y": Y, "sample_weight": RNG.uniform(0.2, 3.0, (3, 12))},
    {"y": Y, "sample_weight": WEIGHTS, "regularization_weight": np.array([0.5, 1.0, 4.0])},
    {
        "y": RNG.normal(size=(3, 12)),
        "sample_weight": RNG.uniform(0.2, 3.0, (3, 12)),
        "regularization_weight": np.array([0.5, 1.0, 4.0]),
    },
]


@pytest.mark.parametrize("given", BATCHES, ids=["y", "weights", "regularization", "all"])
def test_a_batch_is_a_loop(given: dict[str, Any]) -> None:
    batch = WeightedGPRegressor(KERNEL, 0.05).fit(X, **given)
    mean, std = batch.predict(QUERIES)
    tight = batch.tight_std(QUERIES)
    assert mean.shape == std.shape == tight.shape == (3, 9)
    for i in range(3):
        shapes = {"y": 2, "sample_weight": 2, "regularization_weight": 1}
        own = {key: v[i] if np.ndim(v) == shapes[key] else v for key, v in given.items()}
        single = WeightedGPRegressor(KERNEL, 0.05).fit(X, **own)
        np.testing.assert_allclose(mean[i], single.predict(QUERIES).mean, atol=1e-12)
        np.testing.assert_allclose(std[i], single.predict(QUERIES).std, atol=1e-12)
        np.testing.assert_allclose(tight[i], single.tight_std(QUERIES), atol=1e-12)


def explicit_tight_std(phi: Array, queries: Array, weights: Array, ridge: float) -> Array:
    """Return sqrt(lambda) |phi|_{V^-1 V~ V^-1} from features and the paper's own V and V~."""
    eye, w_t = np.eye(phi.shape[1]), weights[-1]
    V = (phi.T * weights) @ phi + ridge * w_t * eye
    double = (phi.T * weights**2) @ phi + ridge * w_t**2 * eye
    inner = np.linalg.solve(V, queries.T)
    return np.asarray(np.sqrt(ridge * np.einsum("iq,ij,jq->q", inner, double, inner)))


@pytest.mark.parametrize("order", ["increasing", "decreasing", "neither"])
def test_tight_std_is_theorem_2(order: str) -> None:
    ascending = np.sort(WEIGHTS)
    weights = {"increasing": ascending, "decreasing": ascending[::-1], "neither": WEIGHTS}[order]
    points = np.random.default_rng(2).random((12, 3))
    model = WeightedGPRegressor(Linear(), 0.2).fit(points[:8], Y[:8], weights[:8])
    expected = explicit_tight_std(points[:8] / 3**0.5, points / 3**0.5, weights[:8], 0.2)
    np.testing.assert_allclose(model.tight_std(points), expected, rtol=1e-10)

    domain = np.linspace(0, 1, 30)[:, None]
    table = exact_features(KERNEL, domain, 1e-14).table
    plays = np.random.default_rng(3).integers(30, size=12)
    model = WeightedGPRegressor(KERNEL, 0.2).fit(domain[plays], Y, weights)
    expected = explicit_tight_std(table[plays], table, weights, 0.2)
    np.testing.assert_allclose(model.tight_std(domain), expected, rtol=1e-7)
    standard = model.predict(domain).std
    if order == "increasing":
        assert (model.tight_std(domain) <= standard).all()
        assert (model.tight_std(domain) < 0.99 * standard).any()
    if order == "decreasing":  # Lemma 13 asks for increasing weights, and has to
        assert (model.tight_std(domain) > 1.01 * standard).any()


def test_tight_std_by_hand() -> None:
    # One play of k = 1, w / w_t = 4, lambda = 1: a = 2 / 5, sigma^2 = 1 - 4 / 5, and
    # sigma-acute^2 = 1 / 5 + 3 * 4 / 25 = 17 / 25.
    model = WeightedGPRegressor(KERNEL, 1.0).fit([[0.5]], [1.0], [4.0], 1.0)
    assert model.predict([[0.5]]).mean == pytest.approx(0.8, rel=1e-12)
    assert model.predict([[0.5]]).std == pytest.approx(0.2**0.5, rel=1e-12)
    assert model.tight_std([[0.5]]) == pytest.approx(0.68**0.5, rel=1e-12)


def test_jitter_rescues_a_singular_matrix() -> None:
    points = np.linspace(0, 1, 100)[:, None]
    model = WeightedGPRegressor(KERNEL, 1e-18).fit(points, np.sin(6 * points[:, 0]))
    assert 0 < model.jitter_ <= 1.1e-8
    mean, std = model.predict(points)
    np.testing.assert_allclose(mean, np.sin(6 * points[:, 0]), atol=1e-4)
    assert (std < 1e-3).all()


class Broken(SquaredExponential):
    """No kernel: its matrices are negative definite."""

    def __call__(self, X: Array, Y: Array) -> Array:
        return -super().__call__(X, Y)


def fit(**change: Any) -> Any:
    given: dict[str, Any] = {"X": X, "y": Y} | change
    return WeightedGPRegressor(Matern(0.3, 2.5), 0.05).fit(**given)


THREE = np.ones((3, 12))


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: WeightedGPRegressor(KERNEL, 0.0), r"'regularization' .*\(0, inf\). Got 0.0"),
        (lambda: fit(X=X[0]), r"'X' .*\(n, d\). Got \(2,\)"),
        (lambda: fit(X=X + 1), r"'X' .*\[0, 1\]\^d"),
        (lambda: fit(X=X * np.nan), r"'X' .*\[0, 1\]\^d"),
        (lambda: fit(y=Y[:5]), r"'y' .*\(12,\) or \(B, 12\)"),
        (lambda: fit(y=np.append(Y[1:], np.inf)), r"'y' .*finite"),
        (lambda: fit(sample_weight=np.ones(5)), r"'sample_weight' .*\(12,\) or \(B, 12\)"),
        (lambda: fit(sample_weight=np.append(Y[1:] ** 2, 0.0)), r"'sample_weight' .*positive"),
        (lambda: fit(sample_weight=THREE[0] * np.nan), r"'sample_weight' .*finite"),
        (lambda: fit(regularization_weight=-1.0), r"'regularization_weight' .*Got -1.0"),
        (lambda: fit(regularization_weight=[[1.0]]), r"'regularization_weight' .*batch size B"),
        (lambda: fit(y=THREE, sample_weight=THREE[:2]), r"'sample_weight' .*batch size 3"),
        (lambda: fit(y=THREE, regularization_weight=[1, 2]), r"'regularization_weight' .*size 3"),
        (
            lambda: fit(sample_weight=1e200 * THREE[0], regularization_weight=1e-200),
            r"'sample_weight' .*comparable with regularization_weight. Got .*inf",
        ),
        (lambda: WeightedGPRegressor(Broken(), 0.05).fit(X, Y), r"'regularization' .*larger"),
        (lambda: fit().predict(X[:, :1]), r"'X' .*\(n, 2\). Got \(12, 1\)"),
        (lambda: fit().predict(-X), r"'X' .*\[0, 1\]\^d"),
        (lambda: fit().tight_std(X[0]), r"'X' .*\(n, 2\). Got \(2,\)"),
    ],
)
def test_errors(call: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()


@pytest.mark.parametrize("method", ["predict", "tight_std"])
def test_fit_comes_first(method: str) -> None:
    with pytest.raises(RuntimeError, match=f"Call fit before {method}"):
        getattr(WeightedGPRegressor(KERNEL, 0.05), method)(X)


def test_a_failed_fit_changes_nothing() -> None:
    model = fit()
    before = model.predict(QUERIES)
    with pytest.raises(ValueError, match="'sample_weight'"):
        model.fit(X, THREE, 1e200 * THREE, 1e-200)
    np.testing.assert_array_equal(model.predict(QUERIES), before)


@pytest.mark.parametrize("weight", [1.0, 1e8, 1e14, 1e20])
def test_heavy_observations_do_not_swamp_a_light_one(weight: float) -> None:
    # A point far from all others: what it says must count, however heavy they are.
    X = np.append(np.linspace(0, 0.3, 40), 1.0)[:, None]
    y, weights = np.append(np.zeros(40), 1.0), np.append(np.full(40, weight), 1.0)
    model = WeightedGPRegressor(SquaredExponential(0.05), 0.01).fit(X, y, weights)
    mean, std = model.predict([[1.0]])
    assert mean[0] == pytest.approx(1 / 1.01, abs=1e-6)
    assert std[0] == pytest.approx(math.sqrt(1 - 1 / 1.01), abs=1e-6)
