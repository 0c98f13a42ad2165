"""Adaptation times and smoothed regret against hand-computed values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from wgp_agents.benchmark.statistics import adaptation_times, smoothed

INF = np.inf
# Steps           1    2    3    4    5    6    7    8
RUN = np.array([[1.0, 0.0, 0.0, 4.0, 2.0, 0.0, 1.0, 1.0]])


def test_times_by_hand() -> None:
    # Windows of 2 have means 0.5 0 2 3 1 0.5 1. From step 1 the first at most 0.4 starts at step
    # 2; from step 4 the first at most 1 starts at step 5.
    np.testing.assert_array_equal(
        adaptation_times(RUN, [1, 4], threshold=np.array([0.4, 1.0]), window=2), [[1.0, 1.0]]
    )
    # At most 0.5: at once, with equality; and from step 6.
    np.testing.assert_array_equal(
        adaptation_times(RUN, [1, 4], threshold=0.5, window=2), [[0.0, 2.0]]
    )


def test_windows_end_before_the_next_change() -> None:
    # The window over steps 2 and 3 is good, but step 3 belongs to the next function.
    assert adaptation_times(RUN, [1, 3], threshold=0.0, window=2)[0, 0] == INF
    assert adaptation_times(RUN, [1, 4], threshold=0.0, window=2)[0, 0] == 1.0
    # A stretch shorter than the window, and a window longer than all steps.
    assert adaptation_times(RUN, [2, 3], threshold=9.0, window=2)[0, 0] == INF
    assert adaptation_times(RUN, [1, 2], threshold=9.0, window=4)[0, 0] == INF
    for window in (9, 10, 30):
        assert adaptation_times(RUN, [1], threshold=9.0, window=window)[0, 0] == INF


def test_the_last_window_ends_with_the_last_step() -> None:
    regret = np.array([[5.0, 5.0, 5.0, 0.0, 0.0]])
    assert adaptation_times(regret, [1], threshold=0.0, window=2)[0, 0] == 3.0
    assert adaptation_times(regret, [5], threshold=0.0, window=1)[0, 0] == 0.0
    assert adaptation_times(regret, [5], threshold=0.0, window=2)[0, 0] == INF


def test_ten_steps_are_the_default_and_runs_are_apart() -> None:
    regret = np.ones((3, 30))
    regret[0, 7:] = 0.0
    regret[1, 7:16] = 0.0
    np.testing.assert_array_equal(adaptation_times(regret, [3], threshold=0.0), [[5], [INF], [INF]])
    assert adaptation_times(regret, [], threshold=0.0).shape == (3, 0)


def test_rounding_does_not_delay() -> None:
    # Sums of 0.1 are off by rounding; a mean equal to the threshold counts.
    changes = [1, 300, 900, 1_500]
    for level in (0.0, 0.1, 0.2, 0.3, 0.7, 1.1):
        times = adaptation_times(np.full((1, 2_000), level), changes, threshold=level)
        np.testing.assert_array_equal(times, np.zeros((1, 4)))


def test_times_agree_with_their_definition() -> None:
    rng = np.random.default_rng(0)
    regret, changes, window = rng.exponential(size=(20, 60)), [1, 7, 20, 58], 3
    limits = rng.uniform(0.3, 0.7, size=4)
    times = adaptation_times(regret, changes, threshold=limits, window=window)
    for run in range(20):
        for j, (change, following) in enumerate(zip(changes, [7, 20, 58, 61], strict=True)):
            good = [
                k
                for k in range(60)
                if change + k + window <= following
                and np.mean(regret[run, change - 1 + k : change - 1 + k + window]) <= limits[j]
            ]
            assert times[run, j] == min(good, default=INF)
    assert 10 < np.isfinite(times).sum() < 70  # the case is neither trivial nor impossible


def test_smoothing_by_hand() -> None:
    # 4, (4 + 2) / 2, (2 + 0) / 2, (0 + 6) / 2 with a window of 2.
    regret = np.array([[4.0, 2.0, 0.0, 6.0], [1.0, 1.0, 1.0, 1.0]])
    np.testing.assert_allclose(smoothed(regret, 2), [[4, 3, 1, 3], [1, 1, 1, 1]])
    np.testing.assert_allclose(smoothed(regret, 1), regret)
    np.testing.assert_allclose(smoothed(regret, 9)[0], [4, 3, 2, 3])


@pytest.mark.parametrize("changes", [[0], [9], [3, 3], [4, 2], [1.5], [[1, 2]]])
def test_bad_changes_are_told(changes: Any) -> None:
    rule = r"The 'changes' parameter of adaptation_times must be increasing integers in \[1, 8\]"
    with pytest.raises(ValueError, match=rule):
        adaptation_times(RUN, changes, threshold=1.0)


@pytest.mark.parametrize("regret", [np.ones(3), np.ones((2, 0)), np.array([[np.nan]])])
def test_bad_regret_is_told(regret: Any) -> None:
    with pytest.raises(
        ValueError, match="The 'regret' parameter of adaptation_times must be a 2-D"
    ):
        adaptation_times(regret, [1], threshold=1.0)
    with pytest.raises(ValueError, match="The 'regret' parameter of smoothed must be a 2-D array"):
        smoothed(regret, 1)


def test_bad_windows_and_thresholds_are_told() -> None:
    with pytest.raises(ValueError, match="'window' parameter of adaptation_times must be an int"):
        adaptation_times(RUN, [1], threshold=1.0, window=0)
    with pytest.raises(ValueError, match="'window' parameter of smoothed must be an int of at"):
        smoothed(RUN, 0)
    for threshold in (np.nan, np.ones(3)):
        with pytest.raises(ValueError, match=r"'threshold' .* or one for each of the 2 changes"):
            adaptation_times(RUN, [1, 2], threshold=threshold)
