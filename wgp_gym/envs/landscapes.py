"""Test functions of global optimisation, in closed form, and sums of Gaussian peaks.

References:
    [DS78] Dixon, Szego. The global optimization problem: an introduction. In: Towards global
        optimisation 2. North-Holland 1978.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from wgp_gym.arrays import blocks
from wgp_gym.types import Array, Indices

__all__ = ["TEST_FUNCTIONS", "TestFunction", "branin", "hartmann", "highest_points"]

HARTMANN_HEIGHTS = (1.0, 1.2, 3.0, 3.2)
HARTMANN_RATES = {
    3: ((3.0, 10.0, 30.0), (0.1, 10.0, 35.0), (3.0, 10.0, 30.0), (0.1, 10.0, 35.0)),
    6: (
        (10.0, 3.0, 17.0, 3.5, 1.7, 8.0),
        (0.05, 10.0, 17.0, 0.1, 8.0, 14.0),
        (3.0, 3.5, 1.7, 10.0, 17.0, 8.0),
        (17.0, 8.0, 0.05, 10.0, 0.1, 14.0),
    ),
}
HARTMANN_CENTRES = {
    3: (
        (0.3689, 0.1170, 0.2673),
        (0.4699, 0.4387, 0.7470),
        (0.1091, 0.8732, 0.5547),
        (0.03815, 0.5743, 0.8828),
    ),
    6: (
        (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
        (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
        (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
        (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
    ),
}
CACHED = 50_000  # numbers of the climbs that are done at once
SMALLEST_STEP, MOST_STEPS = 1e-10, 1000  # of a climb; where two peaks merge it goes slowly
TIE = 1e-12  # of a height: a centre's climb has ended at the same maximum


def branin(x: Array) -> Array:
    """Return the Branin function, [DS78], at points `(..., 2)` of [-5, 10] x [0, 15], `(...)`."""
    first, second = x[..., 0], x[..., 1]
    valley = second - 5.1 / (4 * math.pi**2) * first**2 + 5 / math.pi * first - 6
    return np.asarray(valley**2 + 10 * (1 - 1 / (8 * math.pi)) * np.cos(first) + 10)


def hartmann(x: Array) -> Array:
    """Return the Hartmann function of 3 or 6 variables, [DS78], at points `(..., d)`, `(...)`."""
    dim, total = x.shape[-1], np.zeros(x.shape[:-1])
    pairs = zip(HARTMANN_RATES[dim], HARTMANN_CENTRES[dim], strict=True)
    for height, (rates, centre) in zip(HARTMANN_HEIGHTS, pairs, strict=True):
        apart = np.zeros(x.shape[:-1])
        for axis in range(dim):
            apart += rates[axis] * (x[..., axis] - centre[axis]) ** 2
        total -= height * np.exp(-apart)
    return total


@dataclass(frozen=True)
class TestFunction:
    """A function to be minimised on a box, and what is made of it here.

    Attributes:
        function: The function as published.
        low: The lower ends of its box.
        high: The upper ends.
        minimiser: Where it is smallest, in the box's own unit.
        zero: What is a reward of 0.
        unit: What is a reward of 1.
    """

    __test__ = False  # no test, for pytest

    function: Callable[[Array], Array]
    low: tuple[float, ...]
    high: tuple[float, ...]
    minimiser: tuple[float, ...]
    zero: float
    unit: float

    @property
    def dim(self) -> int:
        """The number of variables."""
        return len(self.low)

    def reward(self, offset: Array) -> Array:
        """Return (zero - g) / unit, `(...)`.

        Args:
            offset: How far from the minimiser, in sides of the box, `(..., d)`.
        """
        sides = np.subtract(self.high, self.low)
        return (self.zero - self.function(np.add(offset * sides, self.minimiser))) / self.unit


TEST_FUNCTIONS = {
    # Scaled to mean 0 and variance 1 on its box.
    "branin": TestFunction(branin, (-5, 0), (10, 15), (math.pi, 2.275), 54.3071983, 51.2512177),
    # Scaled to a maximum of 1.
    "hartmann3": TestFunction(
        hartmann,
        (0,) * 3,
        (1,) * 3,
        (0.114614338589672, 0.5556488499718569, 0.8525469535208658),
        0.0,
        3.8627821478207553,
    ),
    "hartmann6": TestFunction(
        hartmann,
        (0,) * 6,
        (1,) * 6,
        (
            *(0.20168951100670543, 0.15001069182345796, 0.476873974221897),
            *(0.27533243049405607, 0.31165161660011325, 0.6573005340656203),
        ),
        0.0,
        3.3223680114155148,
    ),
}


def highest_points(heights: Array, centres: Array, width: float) -> Array:
    """Return the highest maximum found of sums of Gaussian peaks of one width.

    The mean shift x <- sum of w_i c_i / sum of w_i, w_i = h_i exp(-|x - c_i|^2 / (2 width^2)),
    never goes down, and stays among the centres' convex combinations. It is started from every
    centre, and from their weighted mean: in d >= 2 there may be a maximum that is reached from no
    centre, as in the middle of d + 1 peaks that all stand equally far apart.

    Args:
        heights: The heights h_i > 0 of the m peaks of K functions, `(K, m)`.
        centres: Their centres c_i, `(K, m, d)`.
        width: Their width.

    Returns:
        The points, `(K, d)`.
    """
    parts = blocks(0, len(centres), heights.shape[1] ** 2, CACHED)
    return np.concatenate([_climbed(heights[part], centres[part], width) for part in parts])


def _climbed(heights: Array, centres: Array, width: float) -> Array:
    """Return the same of some of the functions."""
    count, peaks, dim = centres.shape
    mean = (heights[:, None] @ centres) / heights.sum(axis=1)[:, None, None]
    starts = np.concatenate([centres, mean], axis=1).reshape(-1, dim)
    points, totals = starts.copy(), np.zeros(len(starts))
    climbing: Indices = np.arange(len(starts))
    own, tall = np.repeat(centres, peaks + 1, axis=0), np.repeat(heights, peaks + 1, axis=0)
    for _ in range(MOST_STEPS):
        weights = _weights(points[climbing], own, tall, width)
        totals[climbing] = weights.sum(axis=1)
        shifted = (weights[:, None] @ own)[:, 0] / totals[climbing, None]
        moved = np.abs(shifted - points[climbing]).max(axis=1) > SMALLEST_STEP
        points[climbing] = shifted
        if not moved.all():
            climbing, own, tall = climbing[moved], own[moved], tall[moved]
        if not climbing.size:
            break
    reached = totals.reshape(count, peaks + 1)
    reached[:, -1] *= 1 - TIE
    best: Array = points.reshape(count, peaks + 1, dim)[np.arange(count), reached.argmax(axis=1)]
    return best


def _weights(points: Array, centres: Array, heights: Array, width: float) -> Array:
    """Return the peaks `(R, m)`, each row's of its own function, at the row's point."""
    square = np.zeros(heights.shape)
    for axis in range(points.shape[1]):
        square += (points[:, axis, None] - centres[..., axis]) ** 2
    square /= -2 * width**2
    return np.asarray(heights * np.exp(square))
