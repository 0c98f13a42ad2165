"""One drawn episode: the functions along their path, and all that a scorer needs to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_gym.envs.optimum import Search
from wgp_gym.paths import Path
from wgp_gym.rkhs import Functions
from wgp_gym.types import Array
from wgp_gym.validation import reject

PRECISION = 1e-6  # relative, of the norms and the variation that were asked for

__all__ = ["Episode", "make_episode", "rescale"]


@dataclass(frozen=True, eq=False)
class Episode:
    """The truth of one episode, by position of its path (U of them, see `wgp_gym.paths`).

    Attributes:
        values: The knots' rewards on the domain, `(K, n)`.
        coefficients: The knots' coefficients over `centres`, `(K, M)`.
        centres: Indices of the expansion's centres in the domain, `(M,)`.
        optimal_reward: max f, `(U,)`.
        optimal_action: Where it is: the arm's index `(U,)`, or a point of the box `(U, d)`, in
            single precision.
        variation: The RKHS variation spent up to each position, `(U,)`.
        sup_variation: The same in the sup norm on the domain, `(U,)`.
        norm_bound: The bound B on the norms.
        variation_budget: The whole variation B_T.
        arms: Where arms are drawn anew at each step, those of every step, `(T, n, d)`.

    Of a `LinearTask` the coefficients are theta, and its centres 0 .. d - 1 stand for the unit
    vectors, which are no points of the domain. Its values are link(theta^T x) at every position,
    U rows; where arms are drawn anew they are theta once more, and nobody reads them.
    """

    values: Array
    coefficients: Array
    centres: NDArray[np.intp]
    optimal_reward: Array
    optimal_action: NDArray[Any]
    variation: Array
    sup_variation: Array
    norm_bound: float
    variation_budget: float
    arms: NDArray[np.float32] | None = None


def make_episode(
    path: Path, functions: Functions, search: Search, norm_bound: float | None = None
) -> Episode:
    """Work out what a scorer needs to know.

    Args:
        path: How f_t moves between the functions.
        functions: The knots.
        search: How to find a function's maximum on the decision set.
        norm_bound: The bound B where one was asked for; otherwise the largest norm on the path.
    """
    differences = functions.differences()
    variation = np.cumsum(path.increments(differences))
    optimal_reward, optimal_action = search(path.along(functions))
    largest = float(path.norms(functions).max())
    return Episode(
        values=functions.values,
        coefficients=functions.coefficients,
        centres=functions.centres,
        optimal_reward=optimal_reward,
        optimal_action=optimal_action,
        variation=variation,
        sup_variation=np.cumsum(sup_increments(path, differences, search)),
        norm_bound=largest if norm_bound is None else norm_bound,
        variation_budget=float(variation[-1]),
    )


def sup_increments(path: Path, differences: Functions, search: Search) -> Array:
    """Return max_x |f_u(x) - f_{u-1}(x)| of every step, `(U,)`; 0 first.

    Args:
        path: The path.
        differences: The D_k.
        search: How to find a function's maximum on the decision set.
    """
    base, near, far = path.steps
    steps = np.abs(near) * np.append(sup_norms(differences, search), 0.0)[base]
    for u in np.flatnonzero(far):  # a line that passes a knot between two steps: rare
        here, there = differences[base[u : u + 1]], differences[base[u : u + 1] + 1]
        moved = here.affine(there, near[u] + far[u], near[u])
        steps[u] = sup_norms(moved, search)[0]
    return np.concatenate([[0.0], steps])


def sup_norms(functions: Functions, search: Search) -> Array:
    """Return max_x |F_k(x)|, `(K,)`."""
    if len(functions.values) == 0:
        return np.zeros(0)
    return np.maximum(search(functions)[0], search(functions.scaled(-1.0))[0])


def rescale(
    path: Path, functions: Functions, norm_bound: float | None, variation_budget: float | None
) -> Functions:
    """Give an episode the norm bound and the variation that were asked for.

    A budget alone rescales the changes and leaves f_1; a bound alone rescales the whole path to
    max_t ||f_t|| = B; both give s f_1 + (B_T / V)(f_t - f_1) with the largest s >= 0 that keeps
    every norm within B.

    Args:
        path: How f_t moves between the functions.
        functions: The knots.
        norm_bound: B >= 0, or None.
        variation_budget: B_T >= 0, or None.

    Raises:
        ValueError: If a task without change is asked for a positive budget, no s exists, or what
            was asked for is lost in rounding.
    """
    rescaled = rescaled_path(path, functions, norm_bound, variation_budget)
    if variation_budget is not None:
        spent = float(path.increments(rescaled.differences()).sum())
        if not abs(spent - variation_budget) <= PRECISION * variation_budget:
            rule = "large enough not to be lost in rounding beside the functions' norms"
            reject("variation_budget", "this episode", rule, variation_budget)
    if norm_bound is not None:
        largest = float(path.norms(rescaled).max())
        short = variation_budget is None and largest < (1 - PRECISION) * norm_bound
        if short or not largest <= (1 + PRECISION) * norm_bound:
            rule = "such that its functions can be rescaled to it in double precision"
            reject("norm_bound", "this episode", rule, norm_bound)
    return rescaled


def rescaled_path(
    path: Path, functions: Functions, norm_bound: float | None, variation_budget: float | None
) -> Functions:
    """Return what `rescale` does, as far as rounding allows. See there."""
    if variation_budget is None:
        if norm_bound is None:
            return functions
        largest = float(path.norms(functions).max())
        if largest == 0 and norm_bound > 0:
            reject("norm_bound", "an episode whose functions are zero", "None or 0", norm_bound)
        return functions.scaled(norm_bound / largest if largest > 0 else 0.0)
    first = path.first(functions)
    drawn = float(path.increments(functions.differences()).sum())
    if drawn == 0 and variation_budget > 0:
        reject("variation_budget", "a task that never changes", "None or 0", variation_budget)
    change = variation_budget / drawn if drawn > 0 else 0.0
    keep = 1.0
    if norm_bound is not None:
        keep = largest_first(path, functions, first, change, norm_bound)
        if keep < 0:
            rule = f"reachable with all norms within norm_bound = {norm_bound:g}"
            reject("variation_budget", "this episode", rule, variation_budget)
    return functions.affine(first, keep, change)


def largest_first(
    path: Path, functions: Functions, first: Functions, change: float, norm_bound: float
) -> float:
    """Return the largest s >= 0 with ||s f_1 + change (f_t - f_1)|| <= B for all t, or -1.

    For each t the s that fit are an interval, the solution of a quadratic inequality in s.
    """
    moves = functions.affine(first, 0.0, change)
    a = float(first.squared_norms()[0])
    w = path.weight
    to_knots = moves.inner(first)
    b = (1 - w) * to_knots[path.left] + w * to_knots[path.right]
    c = path.norms(moves) ** 2 - norm_bound**2
    if a == 0:  # f_1 = 0: s has no effect
        return 1.0 if np.all(c <= 0) else -1.0
    discriminant = b**2 - a * c
    if np.any(discriminant < 0):
        return -1.0
    root = np.sqrt(discriminant)
    high, low = ((-b + root) / a).min(), ((-b - root) / a).max()
    return float(high) if high >= max(low, 0.0) else -1.0
