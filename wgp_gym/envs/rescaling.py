"""Give an episode's functions the norm bound and the variation that were asked for."""

from __future__ import annotations

import numpy as np

from wgp_gym.rkhs import Functions
from wgp_gym.schedules import Schedule
from wgp_gym.validation import reject

__all__ = ["common_factor", "rescale"]

PRECISION = 1e-6  # relative, of the norms and the variation that were asked for


def rescale(
    schedule: Schedule,
    functions: Functions,
    norm_bound: float | None,
    variation_budget: float | None,
) -> Functions:
    """Give an episode the norm bound and the variation that were asked for.

    A budget alone rescales the changes and leaves f_1; a bound alone rescales the whole episode to
    max_t ||f_t|| = B; both give s f_1 + (B_T / V)(f_t - f_1) with the largest s >= 0 that keeps
    every norm within B.

    Args:
        schedule: How f_t moves between the functions.
        functions: The knots.
        norm_bound: B >= 0, or None.
        variation_budget: B_T >= 0, or None.

    Raises:
        ValueError: If a task without change is asked for a positive budget, no s exists, or what
            was asked for is lost in rounding.
    """
    found = rescaled(schedule, functions, norm_bound, variation_budget)
    if variation_budget is not None:
        spent = float(schedule.increments(found.differences()).sum())
        if not abs(spent - variation_budget) <= PRECISION * variation_budget:
            rule = "large enough not to be lost in rounding beside the functions' norms"
            reject("variation_budget", "this episode", rule, variation_budget)
    if norm_bound is not None:
        largest = float(schedule.largest_norm(found))
        short = variation_budget is None and largest < (1 - PRECISION) * norm_bound
        if short or not largest <= (1 + PRECISION) * norm_bound:
            rule = "such that its functions can be rescaled to it in double precision"
            reject("norm_bound", "this episode", rule, norm_bound)
    return found


def rescaled(
    schedule: Schedule,
    functions: Functions,
    norm_bound: float | None,
    variation_budget: float | None,
) -> Functions:
    """Return what `rescale` does, as far as rounding allows. See there."""
    if variation_budget is None:
        if norm_bound is None:
            return functions
        return functions.scaled(norm_factor(float(schedule.largest_norm(functions)), norm_bound))
    first = schedule.first(functions)
    drawn = float(schedule.increments(functions.differences()).sum())
    if drawn == 0 and variation_budget > 0:
        reject("variation_budget", "a task that never changes", "None or 0", variation_budget)
    change = variation_budget / drawn if drawn > 0 else 0.0
    keep = 1.0
    if norm_bound is not None:
        keep = largest_first(schedule, functions, first, change, norm_bound)
        if keep < 0:
            rule = f"reachable with all norms within norm_bound = {norm_bound:g}"
            reject("variation_budget", "this episode", rule, variation_budget)
    return functions.affine(first, keep, change)


def largest_first(
    schedule: Schedule, functions: Functions, first: Functions, change: float, norm_bound: float
) -> float:
    """Return the largest s >= 0 with ||s f_1 + change (f_t - f_1)|| <= B for all t, or -1.

    For each t the s that fit are an interval, the solution of a quadratic inequality in s.
    """
    moves = functions.affine(first, 0.0, change)
    a = float(first.squared_norms()[0])
    w = schedule.weight
    to_knots = moves.inner(first)
    b = (1 - w) * to_knots[schedule.left] + w * to_knots[schedule.right]
    c = schedule.norms(moves) ** 2 - norm_bound**2
    if a == 0:  # f_1 = 0: s has no effect
        return 1.0 if np.all(c <= 0) else -1.0
    discriminant = b**2 - a * c
    if np.any(discriminant < 0):
        return -1.0
    root = np.sqrt(discriminant)
    high, low = ((-b + root) / a).min(), ((-b - root) / a).max()
    return float(high) if high >= max(low, 0.0) else -1.0


def norm_factor(largest: float, norm_bound: float) -> float:
    """Return the factor that gives functions whose largest norm is `largest` the norm asked for."""
    if largest == 0 and norm_bound > 0:
        reject("norm_bound", "an episode whose functions are zero", "None or 0", norm_bound)
    return norm_bound / largest if largest > 0 else 0.0


def common_factor(
    largest: float, spent: float, norm_bound: float | None, variation_budget: float | None
) -> float:
    """Return the factor that gives all functions the variation, or else the norm, asked for.

    For tasks whose functions would be of another kind if their changes alone were rescaled.

    Args:
        largest: The largest norm of the functions.
        spent: Their variation.
        norm_bound: B >= 0, or None.
        variation_budget: B_T, or None; 0 only where functions never change.

    Raises:
        ValueError: If functions that are zero or never change are to be larger, those that
            change are to stay as they are, or no factor meets both.
    """
    if variation_budget is None or variation_budget == spent == 0:
        if norm_bound is None:
            return 1.0
        return norm_factor(largest, norm_bound)
    if spent == 0:
        reject("variation_budget", "a task that never changes", "None or 0", variation_budget)
    if variation_budget == 0:  # the factor 0 would leave no function at all
        rule = "above 0 for functions that are rescaled as a whole"
        reject("variation_budget", "this episode", rule, variation_budget)
    factor = variation_budget / spent
    if norm_bound is not None and factor * largest > (1 + PRECISION) * norm_bound:
        rule = f"reachable with all norms within norm_bound = {norm_bound:g}"
        reject("variation_budget", "this episode", rule, variation_budget)
    return factor
