"""Parameters, checked and spread over the learners.

All functions here raise ValueError for a number out of its range, and where there is neither one
for all nor one for each learner.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NoReturn

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.core.episode import NotDrawn
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Indices
from wgp_gym.validation import as_floats, check_range, reject

__all__ = [
    "checked_ends",
    "checked_grid",
    "checked_indices",
    "model_noise",
    "noise_model",
    "norm_bounds",
    "not_drawn",
    "per_learner",
    "reward_ends",
]

LEAST_NOISE, MOST_NOISE = 1e-9, 1e60  # the variance, of a model whose kernel is 1
SMALLEST_REGULARIZATION = 1e-6  # the default where there is no noise
# Numbers lie between these, so that their squares and quotients are numbers too.
SMALLEST, LARGEST = 1e-30, 1e30
# The ends of a range stand so far apart, and so far as a share of the larger: the rest is rounding.
SMALLEST_RANGE, SMALLEST_SHARE = 1e-10, 1e-12
LARGEST_COUNT = 2**31  # of a number that counts, where the compiled loops read it


def per_learner(
    owner: str,
    name: str,
    value: ArrayLike,
    batch: int,
    low: float,
    high: float,
    closed: str = "both",
    *,
    whole: bool = False,
) -> Array:
    """Return a parameter for every learner.

    Args:
        owner: The agent whose parameter it is.
        name: The parameter's name.
        value: A scalar, or one number for each learner, `(B,)`.
        batch: B.
        low: The smallest value; 0, where that is not allowed itself, stands for 1e-30.
        high: The largest value; infinity, where that is not allowed itself, stands for 1e30.
        closed: Which ends are allowed themselves: "both", "left", "right" or "neither".
        whole: Whether it counts something: whole numbers, or infinity where that is allowed.

    Returns:
        The parameter, `(B,)`.
    """
    left, right = closed in ("both", "left"), closed in ("both", "right")
    if low == 0 and not left:
        low, left = SMALLEST, True
    if high == math.inf and not right:
        high, right = LARGEST, True
    kind = "whole number" if whole else "float"
    ends = f"{'[' if left else '('}{low:g}, {high:g}{']' if right else ')'}"
    rule = f"a {kind} in {ends}, or one for each learner"
    array = as_floats(name, value, owner, rule)
    above = array >= low if left else array > low
    below = array <= high if right else array < high
    wrong = ~(above & below)  # also where it is NaN
    if whole:
        wrong |= np.isfinite(array) & (array != np.floor(array))
    if array.ndim > 1 or array.size == 0 or wrong.any():
        reject(name, owner, rule, value)
    if array.ndim == 1 and len(array) != batch:
        reject(name, owner, f"a scalar or of shape ({batch},)", value)
    return np.broadcast_to(array, batch).copy()


def noise_model(
    owner: str,
    problem: BanditProblem,
    noise_scale: ArrayLike | None,
    regularization: ArrayLike | None,
    batch: int,
) -> tuple[Array, Array]:
    """Return the noise's scale R and the model's noise variance lambda of every learner, `(B,)`.

    Args:
        owner: The agent whose parameters they are.
        problem: The problem at hand.
        noise_scale: R in [0, 1e30]. None: the problem's, which must then be known.
        regularization: lambda in [1e-9, 1e60]. None: max(R^2, 1e-6).
        batch: B.
    """
    given = problem.known_noise(owner, "noise_scale") if noise_scale is None else noise_scale
    scale = per_learner(owner, "noise_scale", given, batch, 0.0, math.inf, "left")
    if regularization is None:
        regularization = np.clip(scale**2, SMALLEST_REGULARIZATION, MOST_NOISE)
    return scale, model_noise(owner, regularization, batch)


def model_noise(owner: str, regularization: ArrayLike, batch: int) -> Array:
    """Return the model's noise variance lambda of every learner, `(B,)`.

    With a smaller one, long play of one arm leaves no digit of the posterior; the square of the
    largest noise is the largest.
    """
    return per_learner(owner, "regularization", regularization, batch, LEAST_NOISE, MOST_NOISE)


def norm_bounds(
    owner: str, given: ArrayLike | None, problem: BanditProblem, batch: int
) -> Array | None:
    """Return B of every learner, `(B,)`: as given or as the problem states it, if it is drawn."""
    bound = problem.norm_bound if given is None else given
    if bound is None:
        return None
    return per_learner(owner, "norm_bound", bound, batch, 0.0, math.inf, "left")


def checked_ends(owner: str, given: Sequence[float] | None) -> tuple[float, float] | None:
    """Return the two numbers that expected rewards lie between, or None."""
    if given is None:
        return None
    low, high = check_range("reward_range", given, owner)
    most = max(abs(low), abs(high))
    if most > LARGEST or high - low < max(SMALLEST_RANGE, SMALLEST_SHARE * most):
        rule = (
            f"two numbers in [{-LARGEST:g}, {LARGEST:g}], at least {SMALLEST_RANGE:g} and "
            f"{SMALLEST_SHARE:g} of the larger apart"
        )
        reject("reward_range", owner, rule, given)
    return low, high


def not_drawn(quantity: str, parameter: str) -> NoReturn:
    """Raise RuntimeError, of an agent that is to begin before the episode that it is to play.

    Args:
        quantity: What is drawn with the episode, as in "norm bound".
        parameter: The agent's parameter that would do in its place.
    """
    raise NotDrawn(
        f"The {quantity} is drawn with the episode: reset the environment before the agent plays, "
        f'make the environment with told="drawn", state it in the problem, or give the agent a '
        f"{parameter!r}."
    )


def reward_ends(
    given: tuple[float, float] | None,
    problem: BanditProblem,
    norm_bound: ArrayLike | None,
    batch: int,
) -> tuple[Array, Array]:
    """Return the numbers that every learner's expected rewards lie between, `(B,)` each.

    Args:
        given: The two numbers, from `checked_ends`. None: the problem's `reward_range`; where it
            has none, -B and B.
        problem: The problem at hand.
        norm_bound: B in [0, 1e30], a number or `(B,)`; None where it is not drawn yet.
        batch: How many learners there are.

    Raises:
        RuntimeError: If they rest on a norm bound that is not drawn yet.
    """
    ends = checked_ends("BanditProblem", problem.reward_range) if given is None else given
    if ends is not None:
        return np.full(batch, ends[0], float), np.full(batch, ends[1], float)
    if norm_bound is None:
        not_drawn("norm bound", "reward_range")
    bound = per_learner("BanditProblem", "norm_bound", norm_bound, batch, 0.0, math.inf, "left")
    top = np.maximum(bound, math.ulp(1.0))
    return -top, top


def checked_indices(name: str, given: ArrayLike, owner: str, most: int) -> Indices:
    """Return indices from 0 to `most` - 1, `(q,)`.

    Raises:
        ValueError: If they are none.
    """
    found = np.asarray(given)
    fits = found.ndim == 1 and found.dtype.kind in "iu" and found.size > 0
    if not fits or not (found.min() >= 0 and found.max() < most):
        reject(name, owner, f"ints in [0, {most - 1}], in an array (q,)", given)
    return found.astype(np.int64)


def checked_grid(
    name: str, values: ArrayLike, owner: str, low: float, high: float, closed: str = "both"
) -> Array:
    """Return a grid of values in [low, high], or in (low, high] if closed is "right", `(K,)`."""
    rule = f"a list of at least one number in {'(' if closed == 'right' else '['}{low:g}, {high:g}]"
    grid = as_floats(name, values, owner, rule)
    inside = (grid > low if closed == "right" else grid >= low) & (grid <= high)
    if grid.ndim != 1 or not grid.size or not inside.all():
        reject(name, owner, rule, values)
    return grid + 0.0  # -0.0 becomes 0.0
