"""The best arm along a path, found among few, is that of a look at all arms, bit for bit."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_gym.envs.path_optimum import maxima_along
from wgp_gym.schedules import Schedule, knot_per_step, piecewise_linear, position_per_step

Array = NDArray[np.float64]
RNG = np.random.default_rng(4)
POINTS = np.linspace(0, 1, 60)
SMOOTH = np.exp(-((POINTS[:, None] - POINTS) ** 2) / (2 * 0.2**2))
VALUES: dict[str, Callable[[int], Array]] = {
    "smooth": lambda knots: RNG.uniform(-1, 1, (5, knots, 60)) @ SMOOTH,
    "rough": lambda knots: RNG.standard_normal((5, knots, 60)),
    "many equal": lambda knots: RNG.integers(0, 3, (5, knots, 60)).astype(float),
    "zero": lambda knots: np.zeros((5, knots, 60)),
    "at rest": lambda knots: np.repeat(RNG.standard_normal((5, 1, 60)), knots, axis=1),
    "equal but for rounding": lambda knots: np.array(
        1e9 + 1e-7 * RNG.integers(0, 3, (5, knots, 60)), np.float64
    ),
    "one arm": lambda knots: RNG.standard_normal((5, knots, 1)),
}


def back_and_forth() -> Schedule:
    """A path whose weights fall, too, and which goes back to the first knot."""
    left = np.repeat([0, 1, 0], 40)
    weight = np.concatenate(
        [np.linspace(0, 1, 40), np.cos(np.linspace(0, 20, 40)) ** 2, [0.5] * 40]
    )
    return Schedule(left, weight, np.arange(120), 3)


SCHEDULES = {
    **{f"line of {steps}": piecewise_linear(steps) for steps in (1, 2, 3, 10, 501)},
    "four lines": piecewise_linear(230, 5),
    "back and forth": back_and_forth(),
    "jumps": position_per_step(knot_per_step(20)),
}


@pytest.mark.parametrize("kind", VALUES)
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_look_at_all(kind: str, name: str) -> None:
    schedule = SCHEDULES[name]
    values = VALUES[kind](schedule.num_knots)
    w = schedule.weight[:, None]
    rewards = (1 - w) * values[:, schedule.left] + w * values[:, schedule.right]
    top, best = maxima_along(schedule, values)
    np.testing.assert_array_equal(best, rewards.argmax(axis=2))
    np.testing.assert_array_equal(top, rewards.max(axis=2))
