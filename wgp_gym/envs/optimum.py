"""The maximum of a function over the decision set: the reference that regret is measured from."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from wgp_gym.envs.path_optimum import maxima_along
from wgp_gym.kernels import Kernel
from wgp_gym.rkhs import Functions
from wgp_gym.schedules import Schedule
from wgp_gym.types import Actions, Array, Indices, Mask
from wgp_gym.validation import check_bool, check_int, reject

__all__ = ["BoxSearch", "PointSearch", "Search", "grid", "number_of_points"]

MAX_POINTS = 100_000  # at each of 500 steps they take 400 MB
MAX_BOX_DIM = 6  # where the search of a box may take 3^6 directions at each step
USUAL = {"dim": 1, "points_per_dim": 100}
BLOCK_NUMBERS = 2**18  # of the climbs that are made at a time, to stay in cache
SMOOTH = 1.7  # between 2 of smooth functions and the root of 2 at a kink
COARSE = 0.3  # of a grid's gap: a maximum may then stand beside a point that is no peak,
MORE = 8  # and so many of the highest points are climbed from, too
TIE = 1e-9  # of a value: such a climb has ended at the same maximum
SMALLEST_STEP = 1e-8  # where f is smooth, a value is then right to about its square


class Search(ABC):
    """How to find where functions are largest on a decision set.

    Functions of a batch have a leading axis, and so has what is found.
    """

    @abstractmethod
    def __call__(self, functions: Functions) -> tuple[Array, Actions]:
        """Return the maxima of K functions, `(K,)`, and where: `(K,)` arms or `(K, d)` points."""

    def along(self, schedule: Schedule, functions: Functions) -> tuple[Array, Actions]:
        """Return the maxima at every position of a schedule, `(U,)`, and where."""
        return self(schedule.along(functions))

    def sup_norms(self, functions: Functions) -> Array:
        """Return max_x |F_k(x)|, `(K,)`."""
        if functions.values.shape[-2] == 0:
            return np.zeros(functions.values.shape[:-1])
        return np.maximum(self(functions)[0], self(functions.scaled(-1.0))[0])


class PointSearch(Search):
    """The maxima over a finite domain."""

    def __call__(self, functions: Functions) -> tuple[Array, Indices]:
        """Find the maxima, the first of equal ones."""
        best = functions.values.argmax(axis=-1)
        largest = np.take_along_axis(functions.values, best[..., None], -1)
        return largest[..., 0], best

    def along(self, schedule: Schedule, functions: Functions) -> tuple[Array, Indices]:
        """Find the maxima at every position."""
        if schedule.rests:
            return self(schedule.along(functions))
        values = functions.values
        top, best = maxima_along(schedule, values.reshape(-1, *values.shape[-2:]))
        shape = (*values.shape[:-2], -1)
        return top.reshape(shape), best.reshape(shape)

    def sup_norms(self, functions: Functions) -> Array:
        """Return max_x |F_k(x)|, `(K,)`."""
        return np.asarray(np.abs(functions.values).max(axis=-1))


def grid(points_per_dim: int, dim: int) -> Array:
    """Return evenly spaced points of [0, 1]^d, ends included, `(points_per_dim^d, d)`."""
    axes = np.meshgrid(*[np.linspace(0.0, 1.0, points_per_dim)] * dim, indexing="ij")
    return np.stack([axis.ravel() for axis in axes], axis=1)


def number_of_points(owner: str, dim: int, points_per_dim: int, continuous: bool) -> int:
    """Return how many points the grid of a task has.

    Raises:
        ValueError: If a parameter is out of its range, there are more than 100,000 points (the
            parameter that is further above its default is named), or a box has more than 6
            dimensions.
    """
    sizes = {
        "points_per_dim": check_int("points_per_dim", points_per_dim, owner, 2),
        "dim": check_int("dim", dim, owner, 1),
    }
    largest = math.floor(math.log2(MAX_POINTS))  # the power itself might never end
    if sizes["dim"] > largest or sizes["points_per_dim"] ** sizes["dim"] > MAX_POINTS:
        name = max(sizes, key=lambda one: Fraction(sizes[one], USUAL[one]))
        rule = f"small enough for points_per_dim^dim to be at most {MAX_POINTS:,}"
        reject(name, owner, rule, sizes[name])
    if check_bool("continuous", continuous, owner):
        check_int("dim", dim, owner, 1, MAX_BOX_DIM)
    return int(sizes["points_per_dim"] ** sizes["dim"])


class BoxSearch(Search):
    """Find the maxima over the box [0, 1]^d: a grid first, then a compass search from its peaks.

    The search goes along the axes; where functions have kinks, along all diagonals as well.

    No point differs from its nearest grid point by more than ||f|| sqrt(2 - 2 k), k the kernel
    between them, so every grid peak that is lower than the best by more than that is left out.
    Where that is much, of a grid that is coarse beside the kernel's length, a maximum may stand
    beside a point that is no peak, and the highest points are climbed from as well.

    The search is right to about 1e-12 where f is smooth. The Matern kernel with nu = 0.5 has
    kinks: in two dimensions a climb may stop on a ridge (in 1 of 40 draws, 0.003 too low).

    Args:
        kernel: The kernel.
        domain: A `grid` of the box, `(m^d, d)`, m >= 2.

    Raises:
        ValueError: If the points are none.
    """

    def __init__(self, kernel: Kernel, domain: Array) -> None:
        self.kernel, self.grid = kernel, domain
        count, dim = domain.shape
        points_per_dim = round(count ** (1 / dim))
        if points_per_dim < 2 or not np.array_equal(domain, grid(points_per_dim, dim)):
            reject("domain", "a box", "evenly spaced points, as `grid` returns them", domain)
        self.shape = (points_per_dim,) * dim
        self.spacing = 1.0 / (points_per_dim - 1)
        self.gap = self._distance(np.full((1, dim), self.spacing / 2))
        near = np.full((1, dim), self.spacing / 10)
        # Where functions are smooth this distance halves with the points'; at a kink it does not.
        rough = self._distance(near) < SMOOTH * self._distance(near / 2)
        self.directions = list(np.concatenate([-np.eye(dim), np.eye(dim)]))
        if rough and dim > 1:
            ways = itertools.product((-1.0, 0.0, 1.0), repeat=dim)
            self.directions = [np.array(way) for way in ways if any(way)]

    def _distance(self, x: Array) -> float:
        """Return the RKHS distance of k(., 0) and k(., x), the most that ||f|| = 1 can differ."""
        k, zero = self.kernel, np.zeros_like(x)
        square = k(x, x) - 2 * k(zero, x) + k(zero, zero)
        return float(np.sqrt(max(square[0, 0], 0.0)))

    def __call__(self, functions: Functions) -> tuple[Array, NDArray[np.float32]]:
        """Find the maxima. See `Search`."""
        if functions.values.ndim == 3:  # of a batch, one episode after the other
            alone = [self(functions.of_episode(i)) for i in range(len(functions.values))]
            values, points = zip(*alone, strict=True)
            return np.stack(values), np.stack(points)
        centres = np.asfortranarray(self.grid[functions.centres])  # one axis after the other
        rows, peaks, added = self._starts(functions)
        numbers = max(len(centres), len(self.directions)) * self.grid.shape[1]
        size = max(BLOCK_NUMBERS // numbers, 1)
        climbed = [
            self._climb(functions.coefficients[rows[block]], centres, self.grid[peaks[block]])
            for block in (slice(i, i + size) for i in range(0, len(rows), size))
        ]
        value, point = (np.concatenate(one) for one in zip(*climbed, strict=True))
        order = np.lexsort((-value + TIE * np.abs(value) * added, rows))
        first = order[np.unique(rows[order], return_index=True)[1]]
        return value[first], point[first]

    def _starts(self, functions: Functions) -> tuple[Indices, Indices, Mask]:
        """Return the pairs (function, grid point) worth climbing from, and which are no peaks."""
        from scipy.ndimage import maximum_filter  # slow to import, and needed on a box alone

        values = functions.values
        lattice = values.reshape(-1, *self.shape)
        neighbours = maximum_filter(lattice, size=(1,) + (3,) * len(self.shape), mode="nearest")
        slack = np.sqrt(functions.squared_norms()) * self.gap
        high = values >= (values.max(axis=1) - slack)[:, None]
        peak = (lattice == neighbours).reshape(values.shape)
        start = peak
        if self.gap > COARSE:
            last = max(values.shape[1] - MORE, 0)
            start = peak | (values >= np.partition(values, last, axis=1)[:, [last]])
        rows, points = np.nonzero(start & high)
        return rows, points, ~peak[rows, points]

    def _climb(
        self, coefficients: Array, centres: Array, start: Array
    ) -> tuple[Array, NDArray[np.float32]]:
        """Move each start `(P, d)` uphill on its own function until no small step helps."""

        def _values(rows: NDArray[np.intp], points: Array) -> Array:
            k = self.kernel(points[:, None], centres)[:, 0]
            total: Array = np.sum(coefficients[rows] * k, axis=1)
            return total

        everyone = np.arange(len(start))
        point, best = start.copy(), _values(everyone, start)
        step = np.full(len(start), self.spacing / 2)
        while (rows := np.flatnonzero(step > SMALLEST_STEP)).size:
            trials = [
                np.clip(point[rows] + step[rows, None] * way, 0, 1) for way in self.directions
            ]
            found = np.stack([_values(rows, trial) for trial in trials])
            way = found.argmax(axis=0)
            highest = found[way, np.arange(len(rows))]
            better = highest > best[rows]
            point[rows[better]] = np.stack(trials)[way, np.arange(len(rows))][better]
            best[rows[better]] = highest[better]
            step[rows[~better]] /= 2
        playable = point.astype(np.float32)
        return _values(everyone, playable.astype(float)), playable
