"""A machine with continuous knobs, whose best setting moves.

References:
    [B99] Branke. Memory enhanced evolutionary algorithms for changing optimization problems.
        CEC 1999; and its Moving Peaks Benchmark, 1999.
    [BTR24] Bardou, Thiran, Ranieri. This too shall pass: removing stale observations in dynamic
        Bayesian optimization. NeurIPS 2024.
    [DS78]: see `wgp_gym.envs.landscapes`.
"""

from __future__ import annotations

import math
from typing import Literal, Unpack

import numpy as np
import scipy

from wgp_gym.arrays import blocks
from wgp_gym.envs.episode import Episode, best_of
from wgp_gym.envs.landscapes import TEST_FUNCTIONS, highest_points
from wgp_gym.envs.noise import NoiseParameters, make_noise
from wgp_gym.envs.optimum import grid, number_of_points
from wgp_gym.envs.rescaling import common_factor
from wgp_gym.envs.task import Task
from wgp_gym.kernels import Kernel, Matern, SquaredExponential
from wgp_gym.rkhs import solvable
from wgp_gym.schedules import from_zero, piecewise_constant
from wgp_gym.types import Actions, Array
from wgp_gym.validation import (
    MAX_WORK,
    check_choice,
    check_float,
    check_int,
    check_size,
    check_unused,
    reject,
)

__all__ = ["KnobsTask"]

OWNER = "KnobsTask"
PEAKS = "peaks"
FUNCTIONS = (PEAKS, *TEST_FUNCTIONS)
USUAL = {"horizon": 500, "horizon / period": 50, "points_per_dim^dim": 1000, "num_peaks": 5}
MOST_PEAKS, MOST_DIMENSIONS = 100, 6
PEAK = 25  # products that a peak at a point of the grid takes as long as
CLIMB = 5000  # products that all steps of a climb past one peak take as long as, about
USUAL_MOVE = 0.07  # of a height; 7 in [B99]
SMALLEST_MOVE = 1e-4  # but for 0: its norm is the root of a difference
POINTS = 1000  # of the grid, about, where none is asked for
MOST_POINTS = 2_000  # of the grid of a test function, whose kernel matrix is solved
LOWEST, HIGHEST = 0.3, 0.7  # of the peaks' heights; 30 and 70 in [B99]
MARGIN = 0.1  # that best settings keep from the box's faces


class KnobsTask(Task):
    """Settings x of d knobs in [0, 1]^d; every `period` steps the best one moves.

    "peaks": f_t(x) = sum of h_i exp(-|x - c_i|^2 / (2 l^2)) over `num_peaks` peaks, in the manner
    of the Moving Peaks Benchmark [B99]. At a change every centre moves by a vector of length
    `severity` in a direction drawn uniformly, every height by a normal number; what leaves its
    range, the box or [0.3, 0.7], is mirrored at its end. So a smaller peak may become the highest.
    The functions are expansions of the squared exponential kernel with length l: their norms, B
    and B_T are exact.

    "branin", "hartmann3", "hartmann6": the function turned over and shifted as a whole, f_t(x) =
    g(z + x - c_t), with its best setting z at c_t, which walks like a peak's centre and keeps 0.1
    from the faces of the box. Branin's has mean 0 and variance 1 on its usual box and a
    maximum of 1.0519; Hartmann's a maximum of 1. The maximum stays: no point of all of R^d is
    higher. Their RKHS norms have no closed form: B and B_T are those of the functions of least norm
    with the same values on the grid, under a Matern kernel (nu = 2.5), and say nothing of what
    lies between its points.

    An episode is the start, drawn uniformly, and the moves of all centres and heights. f_t is exact
    at every point of the box. The optimum of "peaks" is the highest point reached by climbing
    from every centre and from their mean. The variation in the sup norm is that on the grid.

    Deviation: [B99] takes the highest peak at x in the place of the sum, which lies in no RKHS of a
    smooth kernel, has peaks of changing widths, and ranges of 100. [BTR24] and others take the last
    variable of a test function for time; with a shift the optimum is known throughout.

    Args:
        function: "peaks", "branin", "hartmann3" or "hartmann6".
        dim: Only with "peaks": the dimension d, at most 6. Default: 3.
        num_peaks: Only with "peaks": the number of peaks, in [1, 100]. Default: 5.
        height_severity: Only with "peaks": the standard deviation of a move of a height, 0 or
            in [1e-4, 1]. Default: 0.07.
        severity: The length of a move of a centre, 0 or in [1e-4, 1], in sides of the box.
        period: The steps between two changes, at least 1.
        lengthscale: The kernel's length l, in [1e-9, 1e9]; of "peaks" their width.
        points_per_dim: The points along each axis of the grid: the arms, or with `continuous` those
            that `problem.domain` shows, at least 2; at most 100,000 in all, 2,000 with other
            functions than "peaks". Default: about 1,000 in all.
        horizon: The number of steps T.
        noise_std: The standard deviation of the Gaussian noise, in [0, 1e30], in units of the
            reward.
        norm_bound: The largest RKHS norm B to give each episode, 0 or in [1e-100, 1e30]; None: as
            drawn.
        variation_budget: The variation B_T to give each episode, likewise, but 0 only where
            functions never change. Both rescale all functions alike, so that they remain what they
            are: with both, the budget is met, and an error where it takes norms above the bound.
        continuous: Whether any point of [0, 1]^d may be played, or those of the grid.
        **noise: `noise`, another law than the Gaussian, and its parameters: see `make_noise`.

    Raises:
        ValueError: If a parameter is out of its range, an episode is too large to hold, or a
            budget cannot be met.
    """

    def __init__(
        self,
        *,
        function: Literal["peaks", "branin", "hartmann3", "hartmann6"] = "peaks",
        dim: int | None = None,
        num_peaks: int | None = None,
        height_severity: float | None = None,
        severity: float = 0.05,
        period: int = 10,
        lengthscale: float = 0.2,
        points_per_dim: int | None = None,
        horizon: int = 500,
        noise_std: float = 0.1,
        norm_bound: float | None = None,
        variation_budget: float | None = None,
        continuous: bool = True,
        **noise: Unpack[NoiseParameters],
    ) -> None:
        check_choice("function", function, OWNER, FUNCTIONS)
        self._test = None if function == PEAKS else TEST_FUNCTIONS[function]
        if self._test is not None:
            peaks_only = {"dim": dim, "num_peaks": num_peaks, "height_severity": height_severity}
            check_unused(OWNER, f"for the function {function!r}", peaks_only)
        self._peaks, dim = self._numbers(num_peaks, dim)
        moves = USUAL_MOVE if height_severity is None else height_severity
        self._height_severity = checked_move("height_severity", moves)
        self._severity = checked_move("severity", severity)
        horizon = check_int("horizon", horizon, OWNER, 1)
        check_size(OWNER, {"horizon": horizon}, USUAL)
        period = check_int("period", period, OWNER, 1)
        changes = range(period + 1, horizon + 1, period)
        side = usual_side(dim) if points_per_dim is None else points_per_dim
        self._check_solvable(side, dim)
        count = number_of_points(OWNER, dim, side, continuous)
        self._check_size(len(changes) + 1, count)
        domain = grid(side, dim)
        self._factor: Array | None = None  # of the kernel matrix, where norms are interpolants'
        kernel: Kernel = SquaredExponential(lengthscale)
        if self._test is not None:
            kernel = Matern(lengthscale, 2.5)
            matrix = solvable(kernel(domain, domain), lengthscale, OWNER)
            self._factor = scipy.linalg.cholesky(matrix, lower=True)
        super().__init__(
            kernel=kernel,
            domain=domain,
            schedule=piecewise_constant(horizon, list(changes)),
            noise=make_noise("gaussian", noise_std, OWNER, **noise),
            norm_bound=norm_bound,
            variation_budget=variation_budget,
            continuous=continuous,
        )

    def _numbers(self, peaks: int | None, dim: int | None) -> tuple[int, int]:
        """Return the numbers of peaks and of dimensions; else raise ValueError."""
        if self._test is not None:
            return 1, self._test.dim
        count = check_int("num_peaks", 5 if peaks is None else peaks, OWNER, 1, MOST_PEAKS)
        return count, check_int("dim", 3 if dim is None else dim, OWNER, 1, MOST_DIMENSIONS)

    def _check_solvable(self, side: int, dim: int) -> None:
        """Raise ValueError if the kernel matrix of a test function's grid is too large to solve."""
        if self._test is None:
            return
        if check_int("points_per_dim", side, OWNER, 2) ** dim > MOST_POINTS:
            rule = f"small enough for points_per_dim^{dim} to be at most {MOST_POINTS:,}"
            reject("points_per_dim", OWNER, rule, side)

    def _check_size(self, knots: int, points: int) -> None:
        """Raise ValueError if an episode is too large to hold, or to draw in some seconds."""
        sizes = {"horizon / period": knots, "points_per_dim^dim": points}
        check_size(OWNER, sizes, USUAL)
        check_size(OWNER, sizes | {"num_peaks": self._peaks}, USUAL, MAX_WORK // PEAK)
        # Climbs take some hundred steps of each peak, past all others.
        climbs = {"horizon / period": knots, "num_peaks": self._peaks**2}
        check_size(OWNER, climbs, USUAL, MAX_WORK // CLIMB)

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw the moves of one episode.

        Raises:
            ValueError: If a budget cannot be met.
        """
        heights, centres = self._heights(rng), self._centres(rng)
        values = self._on_grid(heights, centres)
        norms, moves = self._norms(heights, centres, values)
        largest, spent = float(norms.max()), float(moves.sum())
        factor = common_factor(largest, spent, self.norm_bound, self.variation_budget)
        top, best = self._optimum(heights, centres, values, factor)
        heights, values, variation = factor * heights, factor * values, np.cumsum(from_zero(moves))
        return Episode(
            values=values,
            coefficients=np.zeros((len(values), 0)),
            centres=np.zeros(0, np.intp),
            optimal_reward=top,
            optimal_action=best,
            variation=factor * variation,
            sup_variation=np.cumsum(from_zero(np.abs(np.diff(values, axis=0)).max(axis=1))),
            norm_bound=factor * largest if self.norm_bound is None else self.norm_bound,
            variation_budget=float(factor * variation[-1]),
            parameters=joined(heights, centres),
        )

    def _heights(self, rng: np.random.Generator) -> Array:
        """Draw the heights at every knot, `(K, m)`; 1 of a test function."""
        shape = self.schedule.num_knots, self._peaks
        if self._test is not None:
            return np.ones(shape)
        steps = self._height_severity * rng.standard_normal(shape)
        steps[0] = rng.uniform(LOWEST, HIGHEST, self._peaks)
        return mirrored(np.cumsum(steps, axis=0), LOWEST, HIGHEST)

    def _centres(self, rng: np.random.Generator) -> Array:
        """Draw the centres of the peaks at every knot, `(K, m, d)`."""
        low = 0.0 if self._test is None else MARGIN
        steps = rng.standard_normal((self.schedule.num_knots, self._peaks, self.domain.shape[1]))
        steps *= self._severity / np.linalg.norm(steps, axis=2, keepdims=True)
        steps[0] = rng.uniform(low, 1 - low, steps.shape[1:])
        return mirrored(np.cumsum(steps, axis=0), low, 1 - low)

    def _shape(self, offset: Array) -> Array:
        """Return a peak of height 1, or the test function, so far from its top, `(...)`."""
        if self._test is not None:
            return self._test.reward(offset)
        square = np.zeros(offset.shape[:-1])
        for axis in range(offset.shape[-1]):
            square += offset[..., axis] ** 2
        return np.asarray(np.exp(square / (-2 * self._width**2)))

    @property
    def _width(self) -> float:
        assert isinstance(self.kernel, SquaredExponential)
        (width,) = self.kernel.lengths(1)
        return width

    def formula(self, parameters: Array, points: Array) -> Array:
        """Return the sums of peaks, or the test functions: see `Task`.

        Args:
            parameters: Heights of the m peaks, then centres, one after the other, `(B, m + m d)`.
            points: Points for each, `(B, q, d)`.
        """
        m, d = self._peaks, points.shape[-1]
        total = np.zeros(np.broadcast_shapes((len(parameters), 1), points.shape[:-1]))
        for i in range(m):
            centre = parameters[:, None, m + i * d : m + (i + 1) * d]
            total += parameters[:, i, None] * self._shape(points - centre)
        return total

    def _on_grid(self, heights: Array, centres: Array) -> Array:
        """Return the functions at the knots on the grid, `(K, n)`."""
        parameters = joined(heights, centres)
        parts = blocks(0, len(parameters), self.domain.size)
        return np.concatenate([self.formula(parameters[part], self.domain[None]) for part in parts])

    def _optimum(
        self, heights: Array, centres: Array, values: Array, factor: float
    ) -> tuple[Array, Actions]:
        """Return the maxima at the knots times a factor, `(K,)`, and where they are."""
        if not self.continuous:
            top, arms = best_of(values)
            return factor * top, arms
        best = centres[:, 0]
        if self._test is None:
            best = highest_points(heights, centres, self._width)
        playable = best.astype(np.float32)
        scaled = joined(factor * heights, centres)
        return self.formula(scaled, playable[:, None].astype(float))[:, 0], playable

    def _norms(self, heights: Array, centres: Array, values: Array) -> tuple[Array, Array]:
        """Return the norms at the knots, `(K,)`, and those of the moves between them."""
        if self._factor is not None:
            L = self._factor  # f^T K^{-1} f = |L^{-1} f|^2
            z = scipy.linalg.solve_triangular(L, values.T, lower=True).T
            return np.linalg.norm(z, axis=1), np.linalg.norm(np.diff(z, axis=0), axis=1)
        both = np.concatenate([centres[1:], centres[:-1]], axis=1)
        change = np.concatenate([heights[1:], -heights[:-1]], axis=1)
        moved = np.diff(joined(heights, centres), axis=0).any(axis=1)  # else rounding is left
        return self._expansion_norms(heights, centres), moved * self._expansion_norms(change, both)

    def _expansion_norms(self, coefficients: Array, centres: Array) -> Array:
        """Return ||sum of a_i k(., c_i)|| = (a^T K a)^{1/2} of every row, `(K,)`."""
        products = self.kernel(centres, centres) * coefficients[:, :, None]
        square = np.sum(products * coefficients[:, None], axis=(1, 2))
        return np.asarray(np.sqrt(np.maximum(square, 0.0)))


def checked_move(name: str, value: float) -> float:
    """Return the size of a move as a float; else raise ValueError."""
    size = check_float(name, value, OWNER, 0, 1)
    if 0 < size < SMALLEST_MOVE:
        reject(name, OWNER, f"0 or at least {SMALLEST_MOVE:g}", value)
    return size


def usual_side(dim: int) -> int:
    """Return the points along each axis of a grid of about 1,000 points, at most 100."""
    return min(round(math.pow(POINTS, 1 / dim)), 100)


def joined(heights: Array, centres: Array) -> Array:
    """Return the parameters of the formula, `(K, m + m d)`."""
    return np.concatenate([heights, centres.reshape(len(centres), -1)], axis=1)


def mirrored(path: Array, low: float, high: float) -> Array:
    """Return a path between two walls that it is thrown back from."""
    length = high - low
    return np.asarray(low + length - np.abs((path - low) % (2 * length) - length))
