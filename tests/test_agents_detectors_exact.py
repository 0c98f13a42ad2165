"""Change detectors against exact arithmetic, on streams that meet their thresholds exactly."""

from __future__ import annotations

import functools
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.detectors import CUSUM, GLR, PageHinkley, TwoWindowMean
from wgp_agents.detectors.detector import Detector
from wgp_gym.kernels import Empirical
from wgp_gym.problem import BanditProblem

Tenths = NDArray[np.int64]
STREAMS = 6


class ExactCusum:
    """The two walks of one stream in fractions."""

    def __init__(self, samples: int, drift: str, threshold: str) -> None:
        self.samples, self.drift, self.h = samples, Fraction(drift), Fraction(threshold)
        self.ties = 0
        self.restart()

    def restart(self) -> None:
        self.first: list[Fraction] = []
        self.up = self.down = Fraction(0)

    def alarm(self, value: Fraction) -> bool:
        if len(self.first) < self.samples:
            self.first.append(value)
            return False
        step = value - sum(self.first, Fraction(0)) / self.samples
        self.up = max(Fraction(0), self.up + step - self.drift)
        self.down = max(Fraction(0), self.down - step - self.drift)
        self.ties += max(self.up, self.down) == self.h
        return max(self.up, self.down) >= self.h


class ExactPageHinkley:
    """The two walks of one stream around the mean of all its values, in fractions."""

    def __init__(self, drift: str, threshold: str) -> None:
        self.drift, self.h = Fraction(drift), Fraction(threshold)
        self.restart()

    def restart(self) -> None:
        self.count, self.total = 0, Fraction(0)
        self.up = self.down = Fraction(0)

    def alarm(self, value: Fraction) -> bool:
        self.count, self.total = self.count + 1, self.total + value
        step = value - self.total / self.count
        self.up = max(Fraction(0), self.up + step - self.drift)
        self.down = max(Fraction(0), self.down - step - self.drift)
        return max(self.up, self.down) >= self.h


class ExactWindows:
    """The two halves of one stream's window in fractions."""

    def __init__(self, window: int, threshold: str) -> None:
        self.window, self.b, self.ties = window, Fraction(threshold), 0
        self.restart()

    def restart(self) -> None:
        self.past: list[Fraction] = []

    def alarm(self, value: Fraction) -> bool:
        self.past = [*self.past, value][-self.window :]
        if len(self.past) < self.window:
            return False
        half = self.window // 2
        older, newer = self.past[:half], self.past[half:]
        gap = abs(sum(newer, Fraction(0)) - sum(older, Fraction(0)))
        self.ties += gap == self.b
        return gap > self.b


class ExactRatio:
    """The likelihood ratios of all splits of one stream of 0 and 1, in whole numbers.

    For kl it is that of a table of two rows and two columns, sums of n log n; in the Gaussian case,
    sigma = 1/2, a fraction. Logarithms have 30 digits.
    """

    def __init__(self, delta: str, bernoulli: bool) -> None:
        self.delta, self.bernoulli = mpmath.mpf(delta), bernoulli
        self.closest = 1.0  # how near, relatively, a statistic came to the threshold
        self.restart()

    def restart(self) -> None:
        self.past: list[int] = []

    def ratio(self, s: int, before: int, n: int, total: int) -> Any:
        r, after = n - s, total - before
        if not self.bernoulli:
            found = Fraction(2 * (before * r - after * s) ** 2, s * r * n)
            return mpmath.mpf(found.numerator) / found.denominator
        cells = sum(map(n_log_n, (before, s - before, after, r - after)))
        return cells + n_log_n(n) - sum(map(n_log_n, (s, r, total, n - total)))

    def alarm(self, value: Fraction) -> bool:
        self.past.append(int(value))
        n, total, before = len(self.past), sum(self.past), 0
        if n < 2:
            return False
        level, largest = mpmath.log(3 * mpmath.mpf(n) ** 1.5 / self.delta), mpmath.mpf(0)
        for s in range(1, n):
            before += self.past[s - 1]
            largest = max(largest, self.ratio(s, before, n, total))
        self.closest = min(self.closest, float(abs(largest / level - 1)))
        return bool(largest >= level)


@functools.cache
def n_log_n(n: int) -> Any:
    return n * mpmath.log(n) if n else mpmath.mpf(0)


def drawn(steps: int, seed: int, *, binary: bool) -> Tenths:
    """Draw tenths, `(steps, STREAMS)`, whose chances change every 90 steps; binary: 0 or 10."""
    rng = np.random.default_rng(seed)
    chances = np.repeat(rng.random((steps // 90 + 1, STREAMS)), 90, axis=0)[:steps]
    if binary:
        return 10 * (rng.random(chances.shape) < chances).astype(np.int64)
    return rng.binomial(10, chances)


def compare(detector: Detector, exact: list[Any], tenths: Tenths) -> int:
    """Check every alarm of whole runs, and restart who raised it; return how many there were."""
    raised = 0
    for row in tenths:
        alarms = detector.update(row / 10)
        expected = [one.alarm(Fraction(int(v), 10)) for one, v in zip(exact, row, strict=True)]
        np.testing.assert_array_equal(alarms, expected)
        for one, alarm in zip(exact, expected, strict=True):
            if alarm:
                one.restart()
        detector.restart(alarms)
        raised += sum(expected)
    return raised


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(("samples", "drift", "h"), [(20, "0.05", "8"), (10, "0.1", "2.5")])
def test_a_walk_that_meets_the_threshold_reaches_it(
    samples: int, drift: str, h: str, binary: bool
) -> None:
    detector = CUSUM((STREAMS,), samples=samples, drift=float(drift), threshold=float(h))
    exact = [ExactCusum(samples, drift, h) for _ in range(STREAMS)]
    assert compare(detector, exact, drawn(1100, 1, binary=binary)) > 20
    assert sum(one.ties for one in exact) > 2


@pytest.mark.parametrize("binary", [True, False])
def test_walks_around_a_mean_that_moves(binary: bool) -> None:
    detector = PageHinkley((STREAMS,), drift=0.05, threshold=2.0)
    exact = [ExactPageHinkley("0.05", "2") for _ in range(STREAMS)]
    assert compare(detector, exact, drawn(1100, 5, binary=binary)) > 20


def test_a_walk_around_a_mean_that_moves_meets_its_threshold_in_spite_of_rounding() -> None:
    # 0, 0, 0, 1, 1: the means are 0, 0, 0, 1/4, 2/5; 0.75 - 0.05 + 0.6 - 0.05 = 1.25.
    detector = PageHinkley((1,), drift=0.05, threshold=1.25)
    assert [bool(detector.update([v])[0]) for v in (0.0, 0.0, 0.0, 1.0, 1.0)] == [False] * 4 + [
        True
    ]


@pytest.mark.parametrize("binary", [True, False])
def test_halves_that_differ_by_the_threshold_give_no_alarm(binary: bool) -> None:
    detector = TwoWindowMean((STREAMS,), window=30, threshold=4.0)
    exact = [ExactWindows(30, "4") for _ in range(STREAMS)]
    assert compare(detector, exact, drawn(1000, 2, binary=binary)) > 20
    assert sum(one.ties for one in exact) > 5


@pytest.mark.slow
@pytest.mark.parametrize("bernoulli", [True, False])
def test_no_likelihood_ratio_meets_its_threshold(bernoulli: bool) -> None:
    # The threshold is a logarithm: the statistics of these runs stay 1e-5 of it away, and more.
    detector = GLR(
        (STREAMS,), delta=1.0, sigma=0.5, bernoulli=bernoulli, resolution=200, threshold="simple"
    )
    with mpmath.workdps(30):
        exact = [ExactRatio("1", bernoulli) for _ in range(STREAMS)]
        assert compare(detector, exact, drawn(130, 3, binary=True)) >= 3
    assert min(one.closest for one in exact) > 1e-5


def problem(arms: int = 3) -> BanditProblem:
    given: dict[str, Any] = {"norm_bound": 2.0, "variation_budget": 1.0, "reward_range": (0, 1)}
    domain = np.linspace(0, 1, arms)[:, None]
    return BanditProblem(Empirical(np.eye(arms)), domain, 3000, 0.5, **given)


CUSUM_UCB = {"num_samples": 20, "epsilon": 0.05, "threshold": 8.0, "alpha": 0.3}


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("cusum-ucb", CUSUM_UCB), ("m-ucb", {"window": 30, "threshold": 4.0, "gamma": 0.5})],
)
def test_an_agent_starts_anew_when_exact_arithmetic_does(
    name: str, parameters: dict[str, Any]
) -> None:
    agent: Any = wgp_agents.make(name, problem(), **parameters)
    agent.reset(0)
    local = name == "cusum-ucb"
    exact: list[Any] = [
        ExactCusum(20, "0.05", "8") if local else ExactWindows(30, "4") for _ in range(3)
    ]
    alarms, rewards = 0, drawn(3000, 4, binary=local)
    for row in rewards:
        arm = agent.act()
        agent.observe(arm, row[arm] / 10)
        if exact[arm].alarm(Fraction(int(row[arm]), 10)):
            alarms += 1
            for one in [exact[arm]] if local else exact:
                one.restart()
        assert agent.statistics.alarms.tolist() == [alarms]
    assert alarms > 15
    assert sum(one.ties for one in exact) > 3
