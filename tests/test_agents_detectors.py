"""Change detectors: against plain loops over whole histories."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import lambertw, rel_entr

from wgp_agents.detectors import CUSUM, GLR, PageHinkley, TwoWindowMean
from wgp_agents.detectors.detector import Detector
from wgp_agents.kernels.detectors import inverse_h, proven_threshold, simple_threshold

Values = NDArray[np.float64]
SHAPE = (3, 2)
WRONG: Any = "prove"


def textbook_cusum(past: list[float], samples: int, drift: float, threshold: float) -> bool:
    """Try every place where the mean may have begun to differ, in the place of two walks."""
    later = np.array(past[samples:]) - np.mean(past[:samples])
    tails = np.cumsum(later[::-1])  # the sum of the last 1, 2, ... of them
    walks = np.abs(tails) - drift * np.arange(1, len(later) + 1)
    return bool(walks.max(initial=0.0) >= threshold)


def textbook_page_hinkley(past: list[float], drift: float, threshold: float) -> bool:
    """As CUSUM's: each value less the mean of all up to it, every place of a beginning tried."""
    later = np.array(past) - np.cumsum(past) / np.arange(1, len(past) + 1)
    tails = np.cumsum(later[::-1])
    walks = np.abs(tails) - drift * np.arange(1, len(later) + 1)
    return bool(walks.max(initial=0.0) >= threshold)


def textbook_windows(past: list[float], window: int, threshold: float) -> bool:
    last = np.array(past[-window:])
    older, newer = last[: window // 2], last[window // 2 :]
    return len(past) >= window and bool(abs(newer.sum() - older.sum()) > threshold)


def textbook_threshold(n: int, delta: float, proven: bool) -> float:
    """[BKMS22]'s beta, with Lambert's W and the functions of its Lemma on false alarms."""
    x = math.log(3 * n * math.sqrt(n) / delta)
    if not proven:
        return x

    def h_inverse(y: float) -> float:
        return float(-lambertw(-math.exp(-y), -1).real)

    y = (h_inverse(1 + x / 2) + math.log(2 * math.pi**2 / 6)) / 2
    if y >= h_inverse(1 / math.log(3 / 2)):
        t = 2 * math.exp(1 / h_inverse(y)) * h_inverse(y)
    else:
        t = 2 * 1.5 * (y - math.log(math.log(3 / 2)))
    return 2 * t + 6 * math.log(1 + math.log(n))


def textbook_glr(past: Values, splits: list[int], level: float, sigma: float | None) -> bool:
    """Compare the splits; sigma None stands for kl."""
    n, s, mean = len(past), np.array(splits, int), past.mean()
    if n < 2:
        return False
    sums = past.cumsum()[s - 1]
    found: Any = 0.0
    for count, m in ((s, sums / s), (n - s, (past.sum() - sums) / (n - s))):
        m = np.clip(m, 0, 1) if sigma is None else m
        kl = rel_entr(m, mean) + rel_entr(1 - m, 1 - mean) if sigma is None else 0.0
        found = found + count * (kl if sigma is None else (m - mean) ** 2 / (2 * sigma**2))
    return bool(np.max(found) >= level)


def thin(splits: list[int], n: int, resolution: int) -> list[int]:
    """Leave out the splits whose two neighbours are close enough, the oldest first."""
    kept = [0]
    for place, s in enumerate(splits):
        following = splits[place + 1] if place + 1 < len(splits) else n
        if (following - kept[-1]) * resolution > n - following:
            kept.append(s)
    return kept[1:]


def changing(steps: int, *, bernoulli: bool, seed: int) -> tuple[Values, NDArray[np.bool_]]:
    """Draw values whose mean jumps every 70 steps, and who has one."""
    rng = np.random.default_rng(seed)
    means = np.repeat(rng.random((steps // 70 + 1, *SHAPE)), 70, axis=0)[:steps]
    drawn = rng.random(means.shape) < means
    values = drawn.astype(float) if bernoulli else means + 0.3 * rng.normal(size=means.shape)
    return values, rng.random(means.shape) < 0.8


def compare(detector: Detector, values: Values, active: NDArray[np.bool_], expected: Any) -> int:
    """Check every alarm against `expected(past, stream)`, restart who raised it, count them."""
    pasts: dict[tuple[int, ...], list[float]] = {place: [] for place in np.ndindex(SHAPE)}
    raised = 0
    for value, mask in zip(values, active, strict=True):
        alarms = detector.update(value, mask)
        for place, past in pasts.items():
            if mask[place]:
                past.append(value[place])
            assert alarms[place] == (bool(mask[place]) and expected(past, place))
            if alarms[place]:
                past.clear()
        detector.restart(alarms)
        raised += alarms.sum()
    return raised


def test_cusum_is_the_textbooks() -> None:
    samples = np.array([[5], [10], [20]])
    detector = CUSUM(SHAPE, samples=samples, drift=0.1, threshold=4.0)
    values, active = changing(280, bernoulli=False, seed=1)
    calls = compare(
        detector, values, active, lambda p, i: textbook_cusum(p, samples[i[0], 0], 0.1, 4.0)
    )
    assert calls > 10


def test_page_hinkley_is_the_textbooks() -> None:
    drift = np.array([[0.1], [0.2], [0.05]])
    detector = PageHinkley(SHAPE, drift=drift, threshold=3.0)
    values, active = changing(280, bernoulli=False, seed=3)
    calls = compare(
        detector, values, active, lambda p, i: textbook_page_hinkley(p, drift[i[0], 0], 3.0)
    )
    assert calls > 10


def test_two_windows_are_the_textbooks() -> None:
    window = np.array([[10], [20], [30]])
    detector = TwoWindowMean(SHAPE, window=window, threshold=[3.0, 4.0])
    values, active = changing(420, bernoulli=True, seed=2)
    calls = compare(
        detector, values, active, lambda p, i: textbook_windows(p, window[i[0], 0], 3.0 + i[1])
    )
    assert calls > 10


def test_huge_values_leave_nothing_behind_in_two_windows() -> None:
    rng = np.random.default_rng(7)
    values = (rng.random(600) < 0.5) + rng.random(600) / 1e6
    values[[3, 125, 126, 297, 430]] = [1e30, -1e30, 1e200, 1e16, -1e30]
    detectors = [TwoWindowMean((1,), window=20, threshold=b) for b in (2.5, 3.5)]
    seen, there = 0, np.ones(1, bool)
    for t, value in enumerate(values):
        alarms = [bool(one.update(np.array([value]), there)[0]) for one in detectors]
        window = values[max(0, t - 19) : t + 1]
        if t >= 19 and np.abs(window).max() < 2:
            gap = abs(math.fsum(window[10:]) - math.fsum(window[:10]))
            assert alarms == [gap > 2.5, gap > 3.5]
            seen += gap > 2.5
    assert seen > 50


@pytest.mark.parametrize("threshold", ["simple", "proven"])
@pytest.mark.parametrize("bernoulli", [True, False])
def test_glr_with_all_splits_is_the_textbooks(threshold: str, bernoulli: bool) -> None:
    values, active = changing(280, bernoulli=bernoulli, seed=3)
    options: dict[str, Any] = {"threshold": threshold, "resolution": 140}
    delta = np.array([[1.0], [0.3], [0.01]])
    detector = GLR(SHAPE, delta=delta, sigma=0.2, bernoulli=bernoulli, **options)

    def _expected(past: list[float], place: tuple[int, ...]) -> bool:
        level = textbook_threshold(len(past), delta[place[0], 0], threshold == "proven")
        splits = list(range(1, len(past)))
        return textbook_glr(np.array(past), splits, level, None if bernoulli else 0.2)

    assert compare(detector, values, active, _expected) > 1


@pytest.mark.parametrize("resolution", [1, 4])
def test_geometric_splits_are_dense_near_the_newest_value_and_few(resolution: int) -> None:
    values, active = changing(420, bernoulli=True, seed=4)
    detector = GLR(SHAPE, delta=1e-4, bernoulli=True, resolution=resolution)
    splits: dict[tuple[int, ...], list[int]] = {place: [] for place in np.ndindex(SHAPE)}

    def _expected(past: list[float], place: tuple[int, ...]) -> bool:
        n = len(past)
        old = splits[place] if n > 1 else []
        splits[place] = thin([*old, n - 1] if n > 1 else [], n, resolution)
        if n > 1:
            tried = n - np.array(splits[place])
            distances = np.arange(1, n)
            below = tried[::-1][np.searchsorted(tried[::-1], distances, "right") - 1]
            assert ((distances == below) | (distances < below * (1 + 1 / resolution))).all()
            few = 2 * resolution + 2 * math.log(n) / math.log(1 + 1 / resolution) + 2
            assert len(tried) <= few
        level = textbook_threshold(n, 1e-4, False)
        return textbook_glr(np.array(past), splits[place], level, None)

    assert compare(detector, values, active, _expected) > 1


def test_state_grows_with_the_logarithm() -> None:
    detector = GLR((1,), delta=0.1, resolution=4)
    for value in np.random.default_rng(0).normal(size=5000):
        detector.update(np.array([value]), np.ones(1, bool))
    assert detector.counts.shape[1] <= 64
    assert detector.counts[0, : detector.size[0]].sum() == 5000


def test_thresholds() -> None:
    for x in (1.0, 1.001, 1.5, 4.0, 50.0):
        root = inverse_h(x)
        assert root >= 1
        assert root - math.log(root) == pytest.approx(x, rel=1e-9)
    for n in (2, 3, 10, 1000):
        for delta in (1.0, 0.05, 1e-9):
            proven = textbook_threshold(n, delta, proven=True)
            assert proven_threshold(n, delta) == pytest.approx(proven, rel=1e-9)
            assert simple_threshold(n, delta) == pytest.approx(math.log(3 * n**1.5 / delta))
    # [KK21]: T(x) is about x + 4 ln(1 + x + (2 x)^{1/2})
    x = math.log(3 * 1000**1.5 / 0.01) / 2
    about = 2 * (x + 4 * math.log(1 + x + math.sqrt(2 * x))) + 6 * math.log(1 + math.log(1000))
    assert proven_threshold(1000, 0.01) == pytest.approx(about, rel=0.05)


MAKERS: list[Any] = [
    lambda shape: CUSUM(shape, samples=3, drift=0.1, threshold=1.0),
    lambda shape: PageHinkley(shape, drift=0.1, threshold=1.0),
    lambda shape: TwoWindowMean(shape, window=6, threshold=1.5),
    lambda shape: GLR(shape, delta=0.5, sigma=0.3),
]


@pytest.mark.parametrize("make", MAKERS)
def test_streams_are_on_their_own(make: Any) -> None:
    values, active = changing(140, bernoulli=False, seed=5)
    together, alone = make(SHAPE), [make((1,)) for _ in range(6)]
    for value, mask in zip(values, active, strict=True):
        alarms = together.update(value, mask)
        pairs = zip(alone, value.ravel(), mask.ravel(), strict=True)
        each = [one.update(np.array([v]), np.array([m]))[0] for one, v, m in pairs]
        np.testing.assert_array_equal(alarms.ravel(), each)
        together.restart(alarms)
        for one, alarm in zip(alone, each, strict=True):
            one.restart(np.array([alarm]))


@pytest.mark.parametrize("make", MAKERS)
def test_copies_and_huge_values(make: Any) -> None:
    values, active = changing(60, bernoulli=False, seed=6)
    values[30] = 1e30
    detector = make(SHAPE)
    for value, mask in zip(values[:40], active[:40], strict=True):
        detector.update(value, mask)
    twins = copy.deepcopy(detector), pickle.loads(pickle.dumps(detector))
    for value, mask in zip(values[40:], active[40:], strict=True):
        alarms = detector.update(value, mask)
        for twin in twins:
            np.testing.assert_array_equal(twin.update(value, mask), alarms)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: CUSUM((2,), samples=1.5, drift=1, threshold=1), r"'samples' parameter of CUSUM"),
        (lambda: CUSUM((2,), samples=1, drift=0, threshold=1), r"numbers in \(0, inf\)"),
        (lambda: CUSUM((2,), samples=1, drift=1, threshold=np.inf), r"'threshold' parameter"),
        (lambda: CUSUM((2,), samples=[1, 2, 3], drift=1, threshold=1), r"broadcast to \(2,\)"),
        (lambda: PageHinkley((2,), drift=0, threshold=1), r"'drift' parameter of PageHinkley"),
        (lambda: PageHinkley((2,), drift=1, threshold=-1), r"'threshold' parameter"),
        (lambda: TwoWindowMean((2,), window=5, threshold=1), r"'window' .* must be even"),
        (lambda: TwoWindowMean((2,), window=4, threshold="b"), r"'threshold' .* TwoWindowMean"),
        (lambda: GLR((2,), delta=1.5), r"numbers in \(0, 1\]"),
        (lambda: GLR((2,), delta=0.5, sigma=-1), r"'sigma' parameter of GLR"),
        (lambda: GLR((2,), delta=0.5, threshold=WRONG), r"did you mean 'proven'"),
        (lambda: GLR((2,), delta=0.5, bernoulli=1), r"'bernoulli' parameter of GLR"),
        (lambda: GLR((2,), delta=0.5, bernoulli=[True] * 3), r"broadcast"),
        (lambda: GLR((2,), delta=0.5, resolution=0), r"'resolution' parameter of GLR"),
    ],
)
def test_errors(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


@pytest.mark.parametrize("make", [MAKERS[0], MAKERS[1]], ids=["cusum", "page-hinkley"])
def test_walks_keep_nothing_of_a_huge_mean(make: Any) -> None:
    detector, there = make((1,)), np.ones(1, bool)
    detector.update(np.array([1e30]), there)
    detector.restart(there)
    assert not any(detector.update(np.array([0.5]), there)[0] for _ in range(30))


def test_glr_cuts_off_what_is_beyond_0_and_1_where_it_takes_kl() -> None:
    values = np.random.default_rng(8).normal(0.0, 1.0, size=(200, 20))
    values[100:] += 1.0
    given, cut = (GLR((20,), delta=1.0, bernoulli=True) for _ in range(2))
    seen = 0
    for row in values:
        alarms = given.update(row, np.ones(20, bool))
        np.testing.assert_array_equal(alarms, cut.update(np.clip(row, 0, 1), np.ones(20, bool)))
        seen += alarms.sum()
    np.testing.assert_array_equal(given.sums, cut.sums)
    assert seen > 0


def test_glr_makes_room_in_time() -> None:
    values = np.random.default_rng(9).random((70, 2))
    detector = GLR((2,), delta=1e-9, resolution=1000)  # a bucket for each value
    for row in values:
        detector.update(row, np.ones(2, bool))
    np.testing.assert_array_equal(detector.sums[:, :70], values.T)
