"""Statistics against hand-computed values."""

from __future__ import annotations

import numpy as np
import pytest

from wgp_agents.benchmark.statistics import estimate, paired_difference


def test_mean_and_standard_error_by_hand() -> None:
    # Values 1, 2, 6: mean 3, squared deviations 4 + 1 + 9 = 14, variance 7, error sqrt(7 / 3).
    mean, error = estimate(np.array([1.0, 2.0, 6.0]))
    assert mean == 3.0
    assert error == pytest.approx(np.sqrt(7 / 3))


def test_estimate_goes_along_the_first_axis() -> None:
    mean, error = estimate(np.array([[0.0, 5.0], [2.0, 5.0]]))
    np.testing.assert_array_equal(mean, [1.0, 5.0])
    np.testing.assert_allclose(error, [1.0, 0.0])


def test_a_single_run_tells_nothing_of_the_spread() -> None:
    mean, error = estimate(np.array([[3.0, 4.0]]))
    np.testing.assert_array_equal(mean, [3.0, 4.0])
    assert np.isnan(error).all()


def test_pairing_cancels_what_both_sides_share() -> None:
    shared = np.random.default_rng(0).normal(0.0, 100.0, size=50)
    difference = paired_difference(shared + 2.0, shared)
    assert difference.mean == pytest.approx(2.0)
    assert difference.standard_error == pytest.approx(0.0, abs=1e-12)


def test_standard_error_covers_the_truth() -> None:
    # The mean lies within 1.96 errors of the truth in 95 % of samples; 30 values cost about 1 %.
    samples = np.random.default_rng(1).normal(size=(30, 20_000))
    mean, error = estimate(samples)
    assert np.mean(np.abs(mean) < 1.96 * error) == pytest.approx(0.94, abs=0.01)
