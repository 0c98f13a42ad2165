"""Theorem 4's terms: by hand, and every link of the mended chain on dense instances."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from wgp_agents.theory.regret import (
    RegretBound,
    deviation_error_bound,
    deviation_sum_bound,
    regret_bound,
)
from wgp_gym.features import exact_features
from wgp_gym.kernels import SquaredExponential
from wgp_gym.types import Array

SETTING: dict[str, Any] = {
    "horizon": 100,
    "discount": 0.9,
    "norm_bound": 2.0,
    "variation_budget": 3.0,
    "regularization": 0.25,
    "width": 5.0,
    "gain": 7.0,
    "num_features": 4,
    "feature_error": 1e-4,
    "window": 6,
}


def test_terms_as_printed() -> None:
    # log(1 / 0.9) = 0.10536051565782628, 1 / (1 - eta) = 10, sqrt(eps) = 0.01.
    got = regret_bound(**SETTING, constants="paper")
    root = math.sqrt(4 * 0.25 * 100 * 7 + 2 * 0.25 * 4 * 100**2 * 0.10536051565782628)
    part = math.sqrt(4 * 0.25 * 7 + 2 * 0.25 * 4 * 6 * 0.10536051565782628)
    expected = RegretBound(
        exploration=10 * root,
        drift=8 * 6**1.5 * 3 * part,
        forgotten=4 * 2 * 0.9**6 * 100 / 0.025,
        drift_error=8 * 3 / math.sqrt(0.9) * 36 * 0.1,
        exploration_error=10 * 100 * 0.1,
    )
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    assert got.total == pytest.approx(sum(expected), rel=1e-12)


def test_terms_mended() -> None:
    got = regret_bound(**SETTING)
    factor = 1.0001 / math.log(1 + 1.0001 / 0.225)
    whole = math.sqrt(100 * factor * (14 + 400 * 0.10536051565782628))
    part = math.sqrt(6 * factor * (14 + 24 * 0.10536051565782628))
    error = 0.01 * (1 + math.sqrt(10) * math.sqrt(1.0001 / 0.25) / 2)
    expected = RegretBound(
        exploration=10 * whole,
        drift=8 * 6 * 3 / math.sqrt(0.9) * part,
        forgotten=4 * 2 * 0.9**6 * 100 / 0.025,
        drift_error=8 * 6 * 3 / math.sqrt(0.9) * 6 * error,
        exploration_error=10 * 100 * error,
    )
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    # A large lambda: the minimiser is bounded by |k~| / lambda instead.
    large = deviation_error_bound(1e-4, 0.9, 100.0)
    assert large == pytest.approx(0.01 * (1 + 1.0001 * 10 / 100), rel=1e-12)


@pytest.mark.parametrize(("horizon", "window"), [(100, 47), (1, 1)])  # ceil(46.05...)
def test_default_window_is_corollary_5(horizon: int, window: int) -> None:
    free = SETTING | {"horizon": horizon, "window": None}
    assert regret_bound(**free) == regret_bound(**free | {"window": window})


class Run(NamedTuple):
    """The standard deviations at the plays and the single-weighted gains after each."""

    stds: Array
    gains: Array


def replay(table: Array, plays: Any, eta: float, ridge: float) -> Run:
    """Return what the dense t x t posterior says of a sequence of plays."""
    stds, gains = [], []
    for t, play in enumerate(plays):
        past = table[plays[:t]]
        roots = eta ** ((t - 1 - np.arange(t)) / 2)
        k = roots * (past @ table[play])
        K = roots[:, None] * (past @ past.T) * roots
        variance = table[play] @ table[play] - k @ np.linalg.solve(K + ridge * np.eye(t), k)
        stds.append(math.sqrt(variance))
        now, w = table[plays[: t + 1]], eta ** np.arange(t, -1.0, -1.0)
        design = np.eye(table.shape[1]) + (now.T * w) @ now / ridge
        gains.append(np.linalg.slogdet(design)[1] / 2)
    return Run(np.array(stds), np.array(gains))


def widest_plays(table: Array, start: int, horizon: int, eta: float, ridge: float) -> list[int]:
    """Return the plays of largest variance after a first one."""
    A, plays = np.zeros((table.shape[1],) * 2), [start]
    while len(plays) < horizon:
        A = eta * A + np.outer(table[plays[-1]], table[plays[-1]])
        V = A + ridge * np.eye(len(A))
        plays.append(int((table * np.linalg.solve(V, table.T).T).sum(axis=1).argmax()))
    return plays


def test_the_papers_sum_can_be_exceeded() -> None:
    # The paper's kernel, lambda = 0.01: 5.40 against 2.47.
    grid = np.linspace(0, 1, 100)[:, None]
    table = exact_features(SquaredExponential(0.2), grid, 1e-14).table
    stds, gains = replay(table, widest_plays(table, 23, 10, 0.99, 0.01), 0.99, 0.01)
    given = (10, 0.99, 0.01, float(gains[-1]), table.shape[1])
    assert float(stds.sum()) == pytest.approx(5.40, abs=0.005)
    assert deviation_sum_bound(*given, constants="paper") == pytest.approx(2.47, abs=0.005)
    assert stds.sum() <= deviation_sum_bound(*given)


def test_the_papers_window_counts_one_term_too_few() -> None:
    # Two orthonormal plays at lambda = 1, where x <= 2 log(1 + x) holds: c = 1 and two terms.
    stds, gains = replay(np.eye(2), [0, 1], 0.999, 1.0)
    printed = deviation_sum_bound(1, 0.999, 1.0, float(gains[-1]), 2, constants="paper")
    assert stds.sum() / math.sqrt(0.999) > 1.19 * printed


@pytest.mark.parametrize("ridge", [1e-4, 0.1, 3.0])
@pytest.mark.parametrize("eta", [0.7, 0.98])
@pytest.mark.parametrize("kind", ["orthonormal", "random", "repeated"])
def test_mended_sum_holds_in_every_window(ridge: float, eta: float, kind: str) -> None:
    rng = np.random.default_rng(3)
    table = np.eye(40) if kind == "orthonormal" else rng.normal(size=(40, 4))
    table /= np.linalg.norm(table, axis=1)[:, None]
    plays = np.arange(40) if kind != "repeated" else np.zeros(40, int)
    stds, gains = replay(table, plays, eta, ridge)
    m = table.shape[1]
    for c in (1, 3, 10, 40):
        largest = max(stds[t : t + c].sum() for t in range(41 - c))
        assert largest <= deviation_sum_bound(c, eta, ridge, float(gains.max()), m) + 1e-12
    if ridge > 0.398 / eta:
        printed = deviation_sum_bound(40, eta, ridge, float(gains[-1]), m, constants="paper")
        assert deviation_sum_bound(40, eta, ridge, float(gains[-1]), m) <= printed


def test_mended_sum_is_attained_by_one_play() -> None:
    # T = 1: sigma = 1, and log(1 + 1 / (eta lambda)) is at most 2 gain + log(1 / eta) = itself
    # up to log((1 + 1 / lambda) / eta) / log(1 + 1 / (eta lambda)), which tends to 1.
    gain = math.log(1 + 1 / 1e-3) / 2
    assert deviation_sum_bound(1, 0.9, 1e-3, gain, 1) == pytest.approx(1.0, rel=1e-4)


def deviations(table: Array, plays: Any, eta: float, ridge: float) -> Array:
    """Return sigma at every row after the plays."""
    past = table[plays]
    w = eta ** np.arange(len(plays) - 1.0, -1.0, -1.0)
    V = ridge * np.eye(table.shape[1]) + (past.T * w) @ past
    quadratic = (table * np.linalg.solve(V, table.T).T).sum(axis=1)
    return np.asarray(np.sqrt(ridge * quadratic), float)


def test_mended_error_holds_for_random_features() -> None:
    rng = np.random.default_rng(0)
    closest = 0.0
    for trial in range(400):
        n, m, t = rng.integers(2, 8), rng.integers(1, 5), rng.integers(1, 30)
        exact = rng.normal(size=(n, m))
        exact *= 10 ** rng.uniform(-3, 0, size=(n, 1)) / np.linalg.norm(exact, axis=1)[:, None]
        noise = 10 ** rng.uniform(-4, -0.5) * rng.normal(size=(n, m))
        near = exact + noise if trial % 2 else exact * rng.random((n, 1))
        error = float(np.abs(exact @ exact.T - near @ near.T).max())
        eta, ridge, plays = (
            rng.uniform(0.05, 0.99),
            10 ** rng.uniform(-6, 1),
            rng.integers(n, size=t),
        )
        gap = np.abs(deviations(exact, plays, eta, ridge) - deviations(near, plays, eta, ridge))
        ratio = float(gap.max()) / deviation_error_bound(error, eta, ridge)
        assert ratio <= 1
        closest = max(closest, ratio)
    assert closest > 0.5  # it is no order of magnitude too large


def test_the_papers_error_can_be_exceeded() -> None:
    # phi(x) = 1, phi(x_1) = 1e-3, whose approximation is 0: eps = 1e-3, sigma 0.707 becomes 1.
    exact, near = np.array([[1.0], [1e-3]]), np.array([[1.0], [0.0]])
    gap = deviations(near, [1], 0.01, 1e-6)[0] - deviations(exact, [1], 0.01, 1e-6)[0]
    assert gap == pytest.approx(1 - math.sqrt(0.5), rel=1e-9)
    assert gap > 9 * deviation_error_bound(1e-3, 0.01, 1e-6, constants="paper")
    assert gap <= deviation_error_bound(1e-3, 0.01, 1e-6)


@pytest.mark.parametrize("ridge", [0.01, 1.0])
@pytest.mark.parametrize("window", [1, 5, 30])
def test_drift_and_forgotten_bound_the_surrogates_distance(ridge: float, window: int) -> None:
    """Sum over t of 2 |theta_t - surrogate_t|, which the proof bounds by these two terms."""
    rng = np.random.default_rng(11)
    T, m, eta = 60, 3, 0.9
    table = rng.normal(size=(T, m))
    table /= np.linalg.norm(table, axis=1)[:, None]
    truth = np.cumsum(rng.normal(size=(T, m)) * 0.1, axis=0)
    B = float(np.linalg.norm(truth, axis=1).max())
    steps = np.linalg.norm(np.diff(truth, axis=0), axis=1)
    distance = 0.0
    for t in range(T):
        past, w = table[:t], eta ** (t - 1.0 - np.arange(t))
        V = (past.T * w) @ past + ridge * np.eye(m)
        pull = (past.T * w) @ (past * (truth[:t] - truth[t])).sum(axis=1)
        distance += 2 * float(np.linalg.norm(np.linalg.solve(V, pull)))
    gains = replay(table, np.arange(T), eta, ridge).gains
    bound = regret_bound(
        horizon=T,
        discount=eta,
        norm_bound=B,
        variation_budget=float(steps.sum()),
        regularization=ridge,
        width=0.0,
        gain=float(gains.max()),
        num_features=m,
        feature_error=0.0,
        window=window,
    )
    assert bound.exploration == bound.exploration_error == bound.drift_error == 0
    assert distance <= bound.total


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"constants": "printed"}, r"'constants' .*'mended', 'paper'"),
        ({"discount": 1.0}, r"'discount' .*\(0, 1\). Got 1.0"),
        ({"regularization": 0.0}, r"'regularization' .*\(0, inf\). Got 0.0"),
        ({"feature_error": -1e-9}, r"'feature_error' .*\[0, inf\). Got -1e-09"),
        ({"horizon": 0}, r"'horizon' .*at least 1. Got 0"),
        ({"gain": -1.0}, r"'gain' .*\[0, inf\). Got -1.0"),
        ({"num_features": 2.5}, r"'num_features' .*at least 1. Got 2.5"),
        ({"norm_bound": -1.0}, r"'norm_bound' .*Got -1.0"),
        ({"variation_budget": math.inf}, r"'variation_budget' .*Got inf"),
        ({"width": -1.0}, r"'width' .*Got -1.0"),
        ({"window": 0}, r"'window' .*at least 1. Got 0"),
    ],
)
def test_errors(change: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        regret_bound(**SETTING | change)


def test_errors_name_their_function() -> None:
    with pytest.raises(ValueError, match="'gain' parameter of deviation_sum_bound"):
        deviation_sum_bound(1, 0.5, 1.0, -1.0, 1)
    with pytest.raises(ValueError, match="'constants' parameter of deviation_sum_bound"):
        deviation_sum_bound(1, 0.5, 1.0, 1.0, 1, constants="other")
    with pytest.raises(ValueError, match="'feature_error' parameter of deviation_error_bound"):
        deviation_error_bound(-1.0, 0.5, 1.0)
    with pytest.raises(ValueError, match="'constants' parameter of deviation_error_bound"):
        deviation_error_bound(0.0, 0.5, 1.0, constants="other")
