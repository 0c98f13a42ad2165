"""Parameters: which there are, and those that may differ from learner to learner."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from wgp_gym.kernels import Array
from wgp_gym.validation import reject

__all__ = ["keywords", "not_drawn", "per_learner"]


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
