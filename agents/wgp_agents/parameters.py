"""Parameters: which there are, and those that may differ from learner to learner."""

from __future__ import annotations

import inspect
import math
import typing
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from wgp_gym.kernels import Array
from wgp_gym.problem import BanditProblem
from wgp_gym.validation import reject

__all__ = ["keywords", "noise_model", "not_drawn", "per_learner", "reward_ends"]

SMALLEST_REGULARIZATION = 1e-6  # the default where there is no noise


def per_learner(
    owner: str,
    name: str,
    value: Any,
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
        low: The smallest value.
        high: The largest value.
        closed: Which ends are allowed themselves: "both", "left", "right" or "neither".
        whole: Whether it counts something: whole numbers, or infinity where that is allowed.

    Returns:
        The parameter, `(B,)`.

    Raises:
        ValueError: If a number is out of range, or there is not one for each learner.
    """
    left, right = closed in ("both", "left"), closed in ("both", "right")
    kind = "whole number" if whole else "float"
    ends = f"{'[' if left else '('}{low:g}, {high:g}{']' if right else ')'}"
    rule = f"a {kind} in {ends}, or one for each learner"
    try:
        given = np.asarray(value)
    except ValueError:  # rows of unequal length
        reject(name, owner, rule, value)
    if given.dtype.kind not in "iuf":  # a bool or a text is no number, even where it reads as one
        reject(name, owner, rule, value)
    array = given.astype(float)
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
    owner: str, problem: BanditProblem, noise_scale: Any, regularization: Any, batch: int
) -> tuple[Array, Array]:
    """Return the noise's scale R and the model's noise variance lambda of every learner, `(B,)`.

    Args:
        owner: The agent whose parameters they are.
        problem: The problem at hand.
        noise_scale: R >= 0. None: the problem's.
        regularization: lambda > 0. None: max(R^2, 1e-6).
        batch: B.

    Raises:
        ValueError: If a number is out of range, or there is not one for each learner.
    """
    given = problem.noise_scale if noise_scale is None else noise_scale
    scale = per_learner(owner, "noise_scale", given, batch, 0.0, math.inf, "left")
    if regularization is None:
        regularization = np.maximum(scale**2, SMALLEST_REGULARIZATION)
    ridge = per_learner(owner, "regularization", regularization, batch, 0.0, math.inf, "neither")
    return scale, ridge


def not_drawn(quantity: str, parameter: str) -> NoReturn:
    """Raise the error of an agent that is reset before the episode that it is to play.

    Args:
        quantity: What is drawn with the episode, as in "norm bound".
        parameter: The agent's parameter that would do in its place.

    Raises:
        RuntimeError: Always.
    """
    raise RuntimeError(
        f"The {quantity} is drawn with the episode: reset the environment before the agent, or "
        f"give the agent a {parameter!r}."
    )


def reward_ends(
    given: Any, problem: BanditProblem, norm_bound: Any, batch: int
) -> tuple[Array, Array]:
    """Return the numbers that every learner's expected rewards lie between, `(B,)` each.

    Args:
        given: The two numbers. None: the problem's `reward_range`; where it has none, -B and B.
        problem: The problem at hand.
        norm_bound: B >= 0, a number or `(B,)`; None where it is not drawn yet.
        batch: How many learners there are.

    Raises:
        RuntimeError: If they rest on a norm bound that is not drawn yet.
    """
    ends = problem.reward_range if given is None else given
    if ends is not None:
        return np.full(batch, ends[0], float), np.full(batch, ends[1], float)
    if norm_bound is None:
        not_drawn("norm bound", "reward_range")
    top = np.broadcast_to(np.maximum(norm_bound, math.ulp(1.0)), batch).astype(float)
    return -top, top


def keywords(function: Callable[..., Any]) -> list[str]:
    """Return a function's keyword-only parameters, and those that it unpacks from a TypedDict."""
    found = []
    hints = typing.get_type_hints(function)
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            found.append(name)
        elif parameter.kind is parameter.VAR_KEYWORD:
            (shared,) = typing.get_args(hints[name])
            found += typing.get_type_hints(shared)
    return found
