"""Change detectors: how often they are wrong and how long they take, as theory promises."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_agents.detectors import CUSUM, GLR, PageHinkley, TwoWindowMean
from wgp_agents.detectors.detector import Detector
from wgp_agents.kernels.detectors import simple_threshold

Values = NDArray[np.float64]


def first_alarms(detector: Detector, values: Values) -> NDArray[np.int64]:
    """Return how many values `(S, n)` it took each stream to raise an alarm; n + 1: none."""
    first = np.full(len(values), values.shape[1] + 1)
    for t in range(values.shape[1]):
        alarms = detector.update(values[:, t], np.ones(len(values), bool))
        first[alarms] = np.minimum(first[alarms], t + 1)
    return first


def coins(streams: int, *chances: float, each: int, seed: int = 0) -> Values:
    rng = np.random.default_rng(seed)
    return (rng.random((streams, each * len(chances))) < np.repeat(chances, each)).astype(float)


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_promised() -> None:
    n, still = 400, coins(250, 0.5, each=400)
    # GLR, kl: 0.20 to 0.28 of them at delta = 1 on seeds 0 to 7
    assert 0.12 < (first_alarms(GLR((250,), delta=1.0, bernoulli=True), still) <= n).mean() < 0.36
    bell = np.random.default_rng(0).normal(size=still.shape)
    assert 0.02 < (first_alarms(GLR((250,), delta=0.5, sigma=1.0), bell) <= n).mean() < 0.25
    proven = GLR((250,), delta=1.0, bernoulli=True, threshold="proven")
    assert (first_alarms(proven, still) <= n).mean() < 0.01  # far below delta
    # two windows: 0 to 0.004 on seeds 0 to 7; the bound is 0.16
    two = TwoWindowMean((250,), window=60, threshold=16.0)
    assert (first_alarms(two, still) <= n).mean() <= n * 2 * math.exp(-2 * 16.0**2 / 60)
    # CUSUM with an exact mean: 0.004 to 0.028 on seeds 0 to 7; the bound is 0.23
    still[:, :50] = np.arange(50) % 2
    walks = CUSUM((250,), samples=50, drift=0.1, threshold=10.0)
    assert (first_alarms(walks, still) <= n).mean() <= 2 * (n - 50) * math.exp(-8)


def test_page_hinkley_sees_what_comes_late_enough() -> None:
    # Without noise the walk rises by k (D log(D / epsilon) - D + epsilon) in all, up to D.
    size, drift, before = 0.8, 0.1, np.array([10, 40, 160])
    rise = before * (size * math.log(size / drift) - size + drift)
    values = np.where(np.arange(2000) < before[:, None], 0.0, size)
    for level, seen in ((rise - size, True), (rise + size, False)):
        first = first_alarms(PageHinkley((3,), drift=drift, threshold=level), values)
        np.testing.assert_array_equal(first <= 2000, seen)
        if seen:
            assert (first <= before * size / drift + 1).all()  # the walk falls from there on


def test_cusum_with_more_noise_asks_for_more_samples_and_a_higher_threshold() -> None:
    # Four times the noise of [0, 1]: with 16 times h and M the bound is that of h and M, 0.023.
    # No alarm on seeds 0 to 7; with M samples alone 0.035 to 0.085.
    n, samples, drift, threshold = 4000, 250, 0.2, 17.0
    bound = 2 * n * math.exp(-4 * drift * threshold) + 2 * math.exp(-samples * drift**2 / 2)
    bell = np.random.default_rng(0).normal(scale=2.0, size=(200, 16 * samples + n))
    rates = []
    for first in (16 * samples, samples):
        walks = CUSUM((200,), samples=first, drift=drift, threshold=16 * threshold)
        rates.append((first_alarms(walks, bell[:, : first + n]) <= first + n).mean())
    assert rates[0] <= bound < rates[1]


def test_changes_are_found_as_fast_as_promised() -> None:
    # CUSUM, its mean exact: at most (h + 1) / (D - epsilon) = 23.3 values on average; 19.8 to
    # 20.1 on seeds 0 to 7
    jump = coins(500, 0.5, 0.9, each=100, seed=1)
    jump[:, :100] = np.arange(100) % 2
    first = first_alarms(CUSUM((500,), samples=100, drift=0.1, threshold=6.0), jump)
    assert first.max() <= 200
    assert (6.0 - 1) / 0.3 < (first - 100).mean() <= (6.0 + 1) / 0.3
    # two windows: w / 2 = 30 values after a change by 2 b / w + c = 0.6; 0.02 to 0.06 are
    # missed on seeds 0 to 7, the bound is 0.30
    jump = coins(500, 0.2, 0.8, each=30, seed=2)
    missed = first_alarms(TwoWindowMean((500,), window=60, threshold=12.0), jump) > 60
    assert 0 < missed.mean() <= math.exp(-60 * 0.2**2 / 2)
    # GLR: [BKMS22]'s bound on P(not found u values after a change that came after tau), 0.76;
    # 0.05 to 0.08 on seeds 0 to 7
    tau = u = 40
    jump = coins(500, 0.2, 0.8, each=tau, seed=3)
    missed = first_alarms(GLR((500,), delta=0.05, bernoulli=True, resolution=80), jump) > tau + u
    harmonic = 2 * tau * u / (tau + u)
    margin = max(0.0, 0.6 - math.sqrt(simple_threshold(tau + u, 0.05) / harmonic))
    assert missed.mean() <= math.exp(-harmonic * margin**2)


def test_geometric_splits_are_never_earlier_and_cost_little_delay() -> None:
    jump = coins(200, 0.2, 0.8, each=80, seed=4)
    delays = {}
    for resolution in (1, 10, 160):
        detector = GLR((200,), delta=0.05, bernoulli=True, resolution=resolution)
        delays[resolution] = first_alarms(detector, jump) - 80
    assert (delays[10] >= delays[160]).all()
    assert (delays[1] >= delays[160]).all()
    # the mean is longer by 1 to 2 % (M = 10) and by 16 to 26 % (M = 1) on seeds 0 to 7
    assert 1 < delays[10].mean() / delays[160].mean() < 1.1
    assert 1.1 < delays[1].mean() / delays[160].mean() < 1.6
