"""Information gains against dense determinants, brute force and the bounds' own definition."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from wgp_agents.gp.gain import (
    double_weights,
    gain_bound,
    greedy_gains,
    information_gain,
    single_weights,
    total_weight,
)
from wgp_agents.gp.spectrum import mercer_spectrum
from wgp_gym.features import exact_features
from wgp_gym.kernels import Matern, SquaredExponential
from wgp_gym.types import Array

GRID = np.linspace(0.0, 1.0, 100)[:, None]
KERNEL = SquaredExponential(0.2)
TABLE = exact_features(KERNEL, GRID, 1e-14).table
SPECTRUM = mercer_spectrum(KERNEL, GRID)


def dense_gain(gram: Array, weights: Array, ridge: float) -> float:
    """Return 1/2 log det(lambda D^-2 + K) - 1/2 log det(lambda D^-2)."""
    noise = ridge / np.asarray(weights)
    return float(np.linalg.slogdet(gram + np.diag(noise))[1] - np.log(noise).sum()) / 2


def draw_table(n: int, m: int) -> Array:
    """Return n random features of norm at most 1."""
    table = np.random.default_rng(5).normal(size=(n, m))
    return np.asarray(table / np.linalg.norm(table, axis=1).max(), float)


def test_weights_are_newest_first() -> None:
    np.testing.assert_allclose(single_weights(0.5, 4), [1, 0.5, 0.25, 0.125], rtol=1e-15)
    np.testing.assert_allclose(double_weights(0.5, 3), [1, 0.25, 0.0625], rtol=1e-15)
    np.testing.assert_array_equal(double_weights(1.0, 3), 1.0)


@pytest.mark.parametrize("discount", [0.3, 0.99, 1.0])
def test_total_weight_is_the_sum(discount: float) -> None:
    single = total_weight(discount, 7)
    assert single == pytest.approx(single_weights(discount, 7).sum(), rel=1e-13)
    double = total_weight(discount, 7, power=2)
    assert double == pytest.approx(double_weights(discount, 7).sum(), rel=1e-13)


def test_total_weight_limits() -> None:
    assert total_weight(0.9, power=2) == pytest.approx(1 / 0.19, rel=1e-13)
    # 1 - eta = 1e-14 loses two digits to 1 - eta^t; the sum is 5 all the same.
    assert total_weight(1 - 1e-14, 5) == pytest.approx(5.0, rel=1e-12)
    table = total_weight(np.array([[0.5], [1.0]]), np.array([1, 2]))
    np.testing.assert_allclose(table, np.array([[1, 1.5], [1, 2]]), rtol=1e-14)


@pytest.mark.parametrize("ridge", [1e-4, 0.01, 2.0])
def test_information_gain_is_the_determinant(ridge: float) -> None:
    X = np.random.default_rng(0).random((12, 1))
    gram, weights = Matern(0.3, 1.5)(X, X), single_weights(0.8, 12)[::-1]
    expected = dense_gain(gram, weights, ridge)
    assert information_gain(gram, weights, ridge) == pytest.approx(expected, rel=1e-10)


def test_information_gain_by_hand() -> None:
    # One play of variance 1: 1/2 log(1 + w / lambda). Weight zero: nothing is learnt.
    gain = information_gain(np.eye(2), np.array([0.5, 0.0]), 0.25)
    assert gain == pytest.approx(math.log(3) / 2, rel=1e-14)


def brute_force(table: Array, weights: Array, ridge: float) -> float:
    """Return the largest gain over every sequence of plays."""
    plays = itertools.product(range(len(table)), repeat=len(weights))
    return max(dense_gain(table[list(p)] @ table[list(p)].T, weights, ridge) for p in plays)


@pytest.mark.parametrize("discount", [1.0, 0.7])
@pytest.mark.parametrize("ridge", [0.05, 1.0])
def test_greedy_is_below_the_maximum_and_close(discount: float, ridge: float) -> None:
    table = draw_table(5, 3)
    greedy = greedy_gains(table, single_weights(discount, 4), ridge)
    for t in range(1, 5):
        best = brute_force(table, single_weights(discount, t), ridge)
        assert greedy.gains[t - 1] <= best + 1e-12
        assert greedy.gains[t - 1] >= (1 - 1 / math.e) * best
    assert greedy.gains[0] == pytest.approx(brute_force(table, np.ones(1), ridge), rel=1e-12)


def test_greedy_can_miss_the_maximum() -> None:
    # The longest row lies between the two others, which together tell more.
    table = np.array([[1.0, 0.0], [0.0, 1.0], [0.75, 0.75]])
    greedy = greedy_gains(table, np.ones(2), 0.01)
    best = brute_force(table, np.ones(2), 0.01)
    assert greedy.points[0] == 2
    assert best == pytest.approx(math.log(101), rel=1e-12)
    assert greedy.gains[1] < best - 0.01


@pytest.mark.parametrize("ridge", [1e-6, 0.01, 1.0])
def test_greedy_gains_are_those_of_its_plays(ridge: float) -> None:
    weights = double_weights(0.97, 60)
    greedy = greedy_gains(TABLE, weights, ridge)
    assert greedy.points.shape == greedy.gains.shape == (60,)
    for t in (1, 2, 17, 60):
        rows = TABLE[greedy.points[:t]]
        design = np.eye(TABLE.shape[1]) + (rows.T * weights[:t]) @ rows / ridge
        expected = np.linalg.slogdet(design)[1] / 2
        assert greedy.gains[t - 1] == pytest.approx(expected, rel=1e-8)


def test_greedy_plays_the_largest_variance() -> None:
    weights, ridge = single_weights(0.9, 30), 0.1
    points = greedy_gains(TABLE, weights, ridge).points
    V = ridge * np.eye(TABLE.shape[1])
    for w, point in zip(weights, points, strict=True):
        variance = ridge * np.einsum("ni,ij,nj->n", TABLE, np.linalg.inv(V), TABLE)
        assert variance[point] >= variance.max() - 1e-9
        V += w * np.outer(TABLE[point], TABLE[point])


def test_greedy_batch_is_the_single_learners_bit_for_bit() -> None:
    weights = np.stack([single_weights(eta, 40) for eta in (0.5, 0.9, 1.0)])
    ridges = np.array([0.01, 0.1, 1.0])
    batch = greedy_gains(TABLE, weights, ridges)
    for i in range(3):
        single = greedy_gains(TABLE, weights[i], ridges[i])
        np.testing.assert_array_equal(batch.gains[i], single.gains)
        np.testing.assert_array_equal(batch.points[i], single.points)
    shared = greedy_gains(TABLE, weights[1], ridges)
    np.testing.assert_array_equal(shared.gains[1], batch.gains[1])
    assert shared.gains.shape == (3, 40)


def test_weightless_plays_gain_nothing() -> None:
    gains = greedy_gains(TABLE, np.array([1.0, 0.0, 0.0]), 0.1).gains
    np.testing.assert_allclose(gains, math.log(11) / 2, rtol=1e-12)


@pytest.mark.parametrize("ridge", [1e-3, 1.0])
def test_gain_bound_is_the_minimum_over_dimensions(ridge: float) -> None:
    S, c, psi = 50.0, SPECTRUM.eigenvalues, SPECTRUM.psi
    values = []
    for N in range(len(c) + 1):
        tail = psi**2 * c[N:].sum() + SPECTRUM.residual
        head = N / 2 * math.log(1 + S / (ridge * N)) if N else 0.0
        values.append(head + S * tail / (2 * ridge))
    got = gain_bound(SPECTRUM, S, ridge)
    assert got.value == pytest.approx(min(values), rel=1e-10)
    assert got.dimension == int(np.argmin(values))
    assert got.tail == SPECTRUM.tails[got.dimension]


def test_gain_bound_broadcasts() -> None:
    S, ridges = np.array([[1.0], [10.0], [500.0]]), np.array([0.01, 1.0])
    table = gain_bound(SPECTRUM, S, ridges)
    assert table.value.shape == table.dimension.shape == table.tail.shape == (3, 2)
    for i, j in itertools.product(range(3), range(2)):
        single = gain_bound(SPECTRUM, S[i, 0], ridges[j])
        assert (table.value[i, j], table.dimension[i, j], table.tail[i, j]) == single


@pytest.mark.parametrize("kernel", [KERNEL, SquaredExponential(0.05), Matern(0.2, 1.5)])
@pytest.mark.parametrize("ridge", [0.01, 1.0])
def test_theorems_6_and_7_bound_the_gain(kernel: Any, ridge: float) -> None:
    spectrum, table = mercer_spectrum(kernel, GRID), exact_features(kernel, GRID).table
    t = np.arange(1, 301)
    for power, eta in itertools.product((1, 2), (0.9, 0.99, 1.0)):
        gains = greedy_gains(table, single_weights(eta, 300) ** power, ridge).gains
        finite = gain_bound(spectrum, total_weight(eta, t, power), ridge).value
        assert (gains <= finite).all()
        assert (finite <= gain_bound(spectrum, t, ridge).value + 1e-12).all()  # Theorem 6
        assert finite[-1] < 4 * gains[-1]  # of some use, too
        if eta < 1:  # Theorem 7
            assert (
                finite <= gain_bound(spectrum, total_weight(eta, power=power), ridge).value
            ).all()


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: single_weights(0.0, 3), r"'discount' .*\(0, 1\]. Got 0.0"),
        (lambda: single_weights(0.5, 0), r"'count' .* at least 1. Got 0"),
        (lambda: double_weights(1.5, 3), r"'discount' .*\(0, 1\]. Got 1.5"),
        (lambda: total_weight([0.5, 2.0]), r"'discount' parameter of total_weight .*2.0"),
        (lambda: total_weight(0.5, 0), r"'count' parameter of total_weight .*Got 0"),
        (lambda: total_weight(0.5, 3, 0), r"'power' .* at least 1. Got 0"),
        (lambda: information_gain(np.eye(2), np.ones(2), 0), r"'regularization' .*\(0, inf\)"),
        (lambda: information_gain(np.ones((2, 3)), np.ones(2), 1), r"'gram' .*symmetric"),
        (lambda: information_gain(np.tri(2), np.ones(2), 1), r"'gram' .*symmetric"),
        (lambda: information_gain(-np.eye(2), np.ones(2), 0.5), r"'gram' .*semi-definite"),
        (lambda: information_gain(np.eye(2), np.ones(3), 1), r"'weights' .*\(2,\)"),
        (lambda: information_gain(np.eye(2), -np.ones(2), 1), r"'weights' .*at least 0"),
        (lambda: greedy_gains(np.ones(3), np.ones(2), 1), r"'table' .*\(n, m\)"),
        (lambda: greedy_gains(np.full((2, 2), np.nan), np.ones(2), 1), r"'table' .*finite"),
        (lambda: greedy_gains(TABLE, np.ones((1, 1, 1)), 1), r"'weights' .*\(B, t\)"),
        (lambda: greedy_gains(TABLE, np.array([1, np.inf]), 1), r"'weights' .*finite"),
        (lambda: greedy_gains(TABLE, np.array([0.5, 1]), 1), r"'weights' .*newest first"),
        (lambda: greedy_gains(TABLE, np.ones(2), [1.0, 0.0]), r"'regularization' .*0.0"),
        (lambda: greedy_gains(TABLE, np.ones((3, 2)), [1.0, 1.0]), r"'regularization' .*\(3,\)"),
        (lambda: gain_bound(SPECTRUM, math.inf, 1.0), r"'total_weight' .*\[0, inf\). Got inf"),
        (lambda: gain_bound(SPECTRUM, [1.0, -1.0], 1.0), r"'total_weight' .*-1.0"),
        (lambda: gain_bound(SPECTRUM, 1.0, 0.0), r"'regularization' .*Got 0.0"),
    ],
)
def test_errors(call: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        call()
