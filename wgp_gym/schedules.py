"""How f_t moves with t: piecewise linear between K functions, the knots F_0 .. F_{K-1}.

A schedule visits U positions in order; at position u the function is
(1 - weight[u]) F_{left[u]} + weight[u] F_{left[u] + 1}.

Notation: D_k = F_{k+1} - F_k. The step from position u - 1 to u, or back, moves f by
near[u] D_{base[u]} + far[u] D_{base[u] + 1}: no step crosses more than one knot.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgp_gym.arrays import ReadOnlyArrays, frozen
from wgp_gym.rkhs import Functions
from wgp_gym.types import Array
from wgp_gym.validation import MAX_NUMBERS, check_int, reject

__all__ = [
    "Schedule",
    "checked_change_points",
    "from_zero",
    "knot_per_step",
    "piecewise_constant",
    "piecewise_linear",
    "position_per_step",
    "with_zero",
]


@dataclass(frozen=True, eq=False)
class Schedule(ReadOnlyArrays):
    """Which function every step meets. Its arrays are copied and read-only.

    Attributes:
        left: The knot at or before each position, `(U,)`.
        weight: How far the position has gone to the next knot, `(U,)`, in [0, 1].
        index: The position of step t, t = 1 .. T, at index t - 1, `(T,)`.
        num_knots: K.

    Raises:
        ValueError: If a position is no place between two knots or is no step's, or a step goes
            beyond the next knot.
    """

    left: NDArray[np.intp]
    weight: Array
    index: NDArray[np.intp]
    num_knots: int

    def __post_init__(self) -> None:
        for name in ("left", "weight", "index"):
            object.__setattr__(self, name, frozen(getattr(self, name)))
        last = self.num_knots - 1
        if not in_turn(self.left, -1) or self.left.min() < 0 or self.left.max() > last:
            rule = f"knots from 0 to {last}, each the one before it or a neighbour of that"
            reject("left", "Schedule", rule, self.left)
        fits = self.weight.shape == self.left.shape
        most = np.where(self.left < last, 1.0, 0.0)
        if not fits or not ((self.weight >= 0) & (self.weight <= most)).all():
            rule = "a number in [0, 1] for each position, 0 at the last knot"
            reject("weight", "Schedule", rule, self.weight)
        end = len(self.left) - 1  # what no step meets would count in B and B_T
        if not in_turn(self.index, 0) or self.index[0] or self.index[-1] != end:
            rule = f"positions from 0 to {end}, each the one before it or the next"
            reject("index", "Schedule", rule, self.index)

    @cached_property
    def right(self) -> NDArray[np.intp]:
        """The knot after each position, `(U,)`; the last knot has none and stands for itself."""
        return np.minimum(self.left + 1, self.num_knots - 1)

    @cached_property
    def rests(self) -> bool:
        """Whether every position is a knot, and the next position is the next knot."""
        return not self.weight.any() and bool((np.diff(self.left) == 1).all())

    @cached_property
    def paths(self) -> list[tuple[int, int]]:
        """Stretches of positions between the same knots, whose weights do not decrease.

        Each goes from the first of its two numbers to before the second.
        """
        turns = (np.diff(self.left) != 0) | (np.diff(self.weight) < 0)
        ends = [0, *(np.flatnonzero(turns) + 1).tolist(), len(self.left)]
        return list(pairwise(ends))

    def along(self, functions: Functions) -> Functions:
        """Return the functions at every position, U of them."""

        def _interpolate(knots: Array) -> Array:
            w = self.weight[:, None]
            mixed: Array = (1 - w) * knots.take(self.left, -2) + w * knots.take(self.right, -2)
            return mixed

        if self.rests:
            return functions[self.left]
        return replace(
            functions,
            coefficients=_interpolate(functions.coefficients),
            values=_interpolate(functions.values),
        )

    def first(self, functions: Functions) -> Functions:
        """Return f_1, as one function."""
        k, w = int(self.left[0]), float(self.weight[0])
        start = functions[k : k + 1]
        return start if w == 0 else start.affine(functions[k + 1 : k + 2], 1.0, 1 - w)

    def norms(self, functions: Functions) -> Array:
        """Return ||f||, the exact RKHS norm at every position, `(U,)`."""
        norms: Array = np.sqrt(self._squared_norms(functions))
        return norms

    def largest_norm(self, functions: Functions) -> Array:
        """Return the largest of these norms, `()`."""
        largest: Array = np.sqrt(self._squared_norms(functions).max(axis=-1))
        return largest

    def _squared_norms(self, functions: Functions) -> Array:
        squares = functions.squared_norms()
        if self.rests:
            return squares.take(self.left, -1)
        w, left, right = self.weight, self.left, self.right
        cross = with_zero(functions[:-1].inner(functions[1:]))
        square = (1 - w) ** 2 * squares.take(left, -1)
        square += w**2 * squares.take(right, -1)
        square += 2 * w * (1 - w) * cross.take(left, -1)
        return np.maximum(square, 0.0, out=square)

    @cached_property
    def steps(self) -> tuple[NDArray[np.intp], Array, Array]:
        """Base, near and far of every step between positions, `(U - 1,)` each."""
        start, end = self.left[:-1], self.left[1:]
        crosses, back = start != end, start > end  # a step back is as long as the one there
        base = np.minimum(start, end)
        nearer, farther = (self.weight[:-1], self.weight[1:])
        nearer, farther = np.where(back, farther, nearer), np.where(back, nearer, farther)
        near = np.where(crosses, 1 - nearer, np.diff(self.weight))
        far = np.where(crosses, farther, 0.0)
        return base, near, far

    def increments(self, differences: Functions) -> Array:
        """Return ||f_u - f_{u-1}||, the exact RKHS distance of every step, `(U,)`; 0 first.

        Args:
            differences: The functions D_k, K - 1 of them.
        """
        base, near, far = self.steps
        squares = with_zero(differences.squared_norms())
        if self.rests:
            return np.sqrt(from_zero(squares.take(base, -1)))
        square = near**2 * squares.take(base, -1)
        if far.any():
            cross = with_zero(differences[:-1].inner(differences[1:]))
            after = np.minimum(base + 1, squares.shape[-1] - 1)
            square += far**2 * squares.take(after, -1)
            square += 2 * near * far * cross.take(np.minimum(base, cross.shape[-1] - 1), -1)
        return np.sqrt(np.maximum(from_zero(square), 0.0))


def in_turn(places: NDArray[np.intp], least: int) -> bool:
    """Return whether these are ints, at least one, each from `least` to 1 above the one before."""
    if places.ndim != 1 or not len(places) or not np.issubdtype(places.dtype, np.integer):
        return False
    moves = np.diff(places)
    return not len(moves) or bool(moves.min() >= least and moves.max() <= 1)


def with_zero(values: Array) -> Array:
    """Return numbers `(..., K)` with a zero after them, `(..., K + 1)`."""
    return np.concatenate([values, np.zeros((*values.shape[:-1], 1))], axis=-1)


def from_zero(values: Array) -> Array:
    """Return numbers `(..., K)` with a zero before them, `(..., K + 1)`."""
    return np.concatenate([np.zeros((*values.shape[:-1], 1)), values], axis=-1)


def piecewise_constant(horizon: int, change_points: list[int]) -> Schedule:
    """Return the schedule that stays at a knot and goes to the next at each change point.

    Args:
        horizon: The number of steps T.
        change_points: The steps, counted from 1, that are the first to meet a new function.

    Raises:
        ValueError: If they are not strictly increasing within 2 .. T, or T is above 50 million.
    """
    owner = "piecewise_constant"
    horizon = check_int("horizon", horizon, owner, 1, MAX_NUMBERS)
    if not all(a < b for a, b in pairwise([1, *change_points, horizon + 1])):
        rule = f"strictly increasing steps from 2 to {horizon}"
        reject("change_points", owner, rule, change_points)
    count = len(change_points) + 1
    index = np.searchsorted(change_points, np.arange(1, horizon + 1), side="right")
    return Schedule(np.arange(count), np.zeros(count), index.astype(np.intp), count)


def piecewise_linear(horizon: int, num_knots: int = 3) -> Schedule:
    """Return the schedule that goes through the knots at an even pace and ends at the last at T.

    With three knots this is the slowly varying task of [Deng22] Section 7: f_t = f_4 +
    (f_5 - f_4) 2t/T up to T/2, then f_5 + (f_6 - f_5) (2t - T)/T. The first knot is f_0, which
    no step meets.

    Raises:
        ValueError: If T is not in [1, 50 million], there are fewer than 2 knots, or so many that a
            step would pass one: above T + 1, where T > 1.
    """
    horizon = check_int("horizon", horizon, "piecewise_linear", 1, MAX_NUMBERS)
    most = MAX_NUMBERS if horizon == 1 else horizon + 1
    num_knots = check_int("num_knots", num_knots, "piecewise_linear", 2, most)
    position = np.arange(1, horizon + 1) * (num_knots - 1) / horizon
    left = np.minimum(position.astype(np.intp), num_knots - 2)
    return Schedule(left, position - left, np.arange(horizon), num_knots)


def knot_per_step(horizon: int, moves: int | None = None) -> Schedule:
    """Return the schedule with a new knot at every step, at most `moves` times.

    Args:
        horizon: The number of steps T.
        moves: How often f_t changes, at most T - 1; default: before every step.

    Raises:
        ValueError: If a number is out of its range, or T above 50 million.
    """
    horizon = check_int("horizon", horizon, "knot_per_step", 1, MAX_NUMBERS)
    if moves is not None:
        moves = check_int("moves", moves, "knot_per_step", 0, horizon - 1)
    knots = np.arange(horizon if moves is None else moves + 1)
    index = np.minimum(np.arange(horizon), knots[-1])
    return Schedule(knots, np.zeros(len(knots)), index, len(knots))


def position_per_step(schedule: Schedule) -> Schedule:
    """Return the same schedule with a position for every step."""
    left, weight = schedule.left[schedule.index], schedule.weight[schedule.index]
    return Schedule(left, weight, np.arange(len(left)), schedule.num_knots)


def checked_change_points(
    given: ArrayLike | None, default: list[int], horizon: int, owner: str
) -> list[int]:
    """Return the change points that a task was given, or those of the default that fit.

    Args:
        given: Steps, counted from 1, or None.
        default: The steps to take for None; those outside 2 .. T, or twice there, are left out.
        horizon: The number of steps T.
        owner: The task.

    Raises:
        ValueError: If they are not a list of ints of at least 2, or more than there are steps.
    """
    if given is None:
        return sorted({step for step in default if 2 <= step <= horizon})
    if not isinstance(given, (list, tuple, np.ndarray)) or getattr(given, "ndim", 1) != 1:
        reject("change_points", owner, "a list of steps", given)
    if len(given) >= horizon:
        reject("change_points", owner, f"at most {horizon - 1} steps, from 2 to {horizon}", given)
    return [check_int("change_points", step, owner, 2) for step in given]
