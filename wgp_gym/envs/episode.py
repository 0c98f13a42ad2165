"""One drawn episode: the functions along their schedule, and all that a scorer needs to know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from wgp_gym.envs.optimum import Search
from wgp_gym.rkhs import Functions
from wgp_gym.schedules import Schedule
from wgp_gym.types import Actions, Array, Floats32
from wgp_gym.validation import reject

__all__ = ["Episode", "linear_episode", "linear_rewards", "make_episode", "rescale"]

PRECISION = 1e-6  # relative, of the norms and the variation that were asked for
LOGISTIC_SLOPE = 0.25  # the steepest that 1 / (1 + e^{-z}) is


@dataclass(frozen=True, eq=False)
class Episode:
    """One drawn episode, by position of its schedule (U of them, see `wgp_gym.schedules`).

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

    Of a `linear_episode` the coefficients are theta, and centres 0 .. d - 1 stand for the unit
    vectors, which are no points of the domain. Its values are link(theta^T phi) at every
    position, U rows; where arms are drawn anew they are theta once more, and nobody reads them.
    """

    values: Array
    coefficients: Array
    centres: NDArray[np.intp]
    optimal_reward: Array
    optimal_action: Actions
    variation: Array
    sup_variation: Array
    norm_bound: float
    variation_budget: float
    arms: Floats32 | None = None


def make_episode(
    schedule: Schedule, functions: Functions, search: Search, norm_bound: float | None = None
) -> Episode:
    """Work out what a scorer needs to know.

    Args:
        schedule: How f_t moves between the functions.
        functions: The knots.
        search: How to find a function's maximum on the decision set.
        norm_bound: The bound B where one was asked for; otherwise the largest norm in it.
    """
    differences = functions.differences()
    variation = np.cumsum(schedule.increments(differences))
    optimal_reward, optimal_action = search(schedule.along(functions))
    largest = float(schedule.norms(functions).max())
    return Episode(
        values=functions.values,
        coefficients=functions.coefficients,
        centres=functions.centres,
        optimal_reward=optimal_reward,
        optimal_action=optimal_action,
        variation=variation,
        sup_variation=np.cumsum(sup_increments(schedule, differences, search)),
        norm_bound=largest if norm_bound is None else norm_bound,
        variation_budget=float(variation[-1]),
    )


def linear_episode(
    schedule: Schedule,
    functions: Functions,
    features: Array,
    norm_bound: float | None = None,
    link: str = "identity",
    arms: Floats32 | None = None,
) -> Episode:
    """Work out what a scorer needs to know of functions f = theta^T phi.

    Args:
        schedule: How f_t moves; each of its positions is a knot, or a step.
        functions: `linear_functions` of the vectors theta.
        features: phi of the arms that stay, `(n, d)`, or of those of every step, `(T, n, d)`.
        norm_bound: The bound B where one was asked for.
        link: What the expected reward is of the function.
        arms: The arms of every step, where they are drawn anew.
    """
    rewards = linear_rewards(functions.coefficients[schedule.left], features, link)  # (U, n)
    best = rewards.argmax(axis=1)
    increments = schedule.increments(functions.differences())
    variation = np.cumsum(increments)
    if arms is None:
        moved = np.abs(np.diff(rewards, axis=0, prepend=rewards[:1])).max(axis=1)
    else:  # an upper bound, since k(x, x) <= 1
        moved = increments * (1.0 if link == "identity" else LOGISTIC_SLOPE)
    return Episode(
        values=rewards if arms is None else functions.values,
        coefficients=functions.coefficients,
        centres=functions.centres,
        optimal_reward=rewards[np.arange(len(best)), best],
        optimal_action=best,
        variation=variation,
        sup_variation=np.cumsum(moved),
        norm_bound=float(schedule.norms(functions).max()) if norm_bound is None else norm_bound,
        variation_budget=float(variation[-1]),
        arms=arms,
    )


def linear_rewards(theta: Array, features: Array, link: str) -> Array:
    """Return link(theta^T phi) for vectors `(..., d)` and features `(..., n, d)`, `(..., n)`.

    Args:
        theta: The vectors.
        features: The arms' features phi.
        link: "identity" or "logistic".
    """
    total: Array = np.zeros(np.broadcast_shapes((*theta.shape[:-1], 1), features.shape[:-1]))
    for axis in range(theta.shape[-1]):
        total += features[..., axis] * theta[..., axis, None]
    return np.asarray(expit(total)) if link == "logistic" else total


def sup_increments(schedule: Schedule, differences: Functions, search: Search) -> Array:
    """Return max_x |f_u(x) - f_{u-1}(x)| of every step, `(U,)`; 0 first. D_k are `differences`."""
    base, near, far = schedule.steps
    steps = np.abs(near) * np.append(sup_norms(differences, search), 0.0)[base]
    for u in np.flatnonzero(far):  # a step across a knot: rare
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
        largest = float(schedule.norms(found).max())
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
        largest = float(schedule.norms(functions).max())
        if largest == 0 and norm_bound > 0:
            reject("norm_bound", "an episode whose functions are zero", "None or 0", norm_bound)
        return functions.scaled(norm_bound / largest if largest > 0 else 0.0)
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
