"""What detectors take: shapes that broadcast, values that are finite."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from wgp_agents.detectors import CUSUM, GLR, PageHinkley, TwoWindowMean
from wgp_agents.detectors.detector import Detector

MAKERS: dict[str, Callable[[tuple[int, ...]], Detector]] = {
    "cusum": lambda shape: CUSUM(shape, samples=100, drift=0.2, threshold=10.0),
    "glr": lambda shape: GLR(shape, delta=0.01),
    "page-hinkley": lambda shape: PageHinkley(shape, drift=0.2, threshold=10.0),
    "two-window": lambda shape: TwoWindowMean(shape, window=60, threshold=15.0),
}

every_detector = pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)


def alarms(detector: Detector, values: list[float]) -> list[bool]:
    return [bool(detector.update(value).all()) for value in values]


@every_detector
def test_one_stream_takes_numbers(make: Callable[[tuple[int, ...]], Detector]) -> None:
    rng = np.random.default_rng(0)
    values = [*rng.binomial(1, 0.2, 200), *rng.binomial(1, 0.9, 200)]
    one, lists = make(()), make((1,))
    found = alarms(one, values)
    assert not any(found[:200])
    assert any(found)
    assert found == [bool(lists.update([value], [True])[0]) for value in values]
    one.restart()
    assert alarms(one, values) == found  # nothing is left of the first time
    lists.restart([True])
    assert alarms(lists, values) == found


@every_detector
@pytest.mark.parametrize("given", [np.zeros(100_000), np.zeros(2), np.zeros((3, 2))])
def test_other_shapes_are_refused(
    make: Callable[[tuple[int, ...]], Detector], given: np.ndarray
) -> None:
    detector = make((3,))
    with pytest.raises(ValueError, match=r"The 'values' of \w+ must broadcast to \(3,\)"):
        detector.update(given)
    with pytest.raises(ValueError, match=r"The 'active' of \w+ must broadcast to \(3,\)"):
        detector.update(0.0, given > 0)
    with pytest.raises(ValueError, match=r"The 'mask' of \w+ must broadcast to \(3,\)"):
        detector.restart(given > 0)


@every_detector
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_no_numbers_are_refused(
    make: Callable[[tuple[int, ...]], Detector], value: float
) -> None:
    rng = np.random.default_rng(1)
    detector, twin = make((2,)), make((2,))
    for t, draw in enumerate([*rng.binomial(1, 0.1, 150), *rng.binomial(1, 0.9, 150)]):
        if t % 50 == 20:
            with pytest.raises(ValueError, match="Values of active streams must be finite"):
                detector.update([draw, value])
        active = [True, t % 3 > 0]
        np.testing.assert_array_equal(
            detector.update([draw, draw if active[1] else value], active),
            twin.update([draw, draw], active),
        )
