"""One message shape for every bad parameter: the name, the rule and the value."""

from __future__ import annotations

import difflib
import math
import operator
from collections.abc import Iterable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "as_floats",
    "check_bool",
    "check_choice",
    "check_float",
    "check_int",
    "check_names",
    "check_range",
    "reject",
]


def reject(name: str, owner: str, rule: str, value: object) -> NoReturn:
    """Raise the error that every bad parameter gets.

    Args:
        name: The parameter's name.
        owner: The class or function whose parameter it is.
        rule: What the parameter must be, as in "a float in [0, inf)".
        value: What was given.

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"The {name!r} parameter of {owner} must be {rule}. Got {value!r} instead.")


def check_float(
    name: str,
    value: Any,
    owner: str,
    low: float = -math.inf,
    high: float = math.inf,
    *,
    closed: str = "both",
) -> float:
    """Return `value` as a finite float inside an interval.

    Args:
        name: The parameter's name.
        value: A real number.
        owner: The class or function whose parameter it is.
        low: Lower end of the interval.
        high: Upper end of the interval.
        closed: Which finite ends belong to it: "both", "left", "right" or "neither".

    Raises:
        ValueError: If `value` is not a finite number inside the interval.
    """
    left = closed in ("both", "left") and math.isfinite(low)
    right = closed in ("both", "right") and math.isfinite(high)
    rule = f"a float in {'[' if left else '('}{low:g}, {high:g}{']' if right else ')'}"
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        reject(name, owner, rule, value)
    above = number >= low if left else number > low
    below = number <= high if right else number < high
    if isinstance(value, (bool, str)) or not (math.isfinite(number) and above and below):
        reject(name, owner, rule, value)
    return number


def as_floats(name: str, value: Any, owner: str, rule: str) -> NDArray[np.float64]:
    """Return numbers as an array of floats; one that is given is not copied.

    Args:
        name: The parameter's name.
        value: A number, or an array or nested list of them.
        owner: The class or function whose parameter it is.
        rule: What the parameter must be.

    Raises:
        ValueError: If it holds anything else.
    """
    try:
        array = np.asarray(value)
        if array.dtype.kind in "iuf":
            return array.astype(float, copy=False)
    except ValueError:  # rows of unequal length
        pass
    reject(name, owner, rule, value)


def check_bool(name: str, value: Any, owner: str) -> bool:
    """Return `value` if it is True or False.

    Raises:
        ValueError: If it is anything else.
    """
    if not isinstance(value, bool):
        reject(name, owner, "True or False", value)
    return value


def check_int(name: str, value: Any, owner: str, low: int, high: int | None = None) -> int:
    """Return `value` as an int of at least `low` and, where given, at most `high`.

    Raises:
        ValueError: If `value` is not such an integer.
    """
    rule = f"an int of at least {low}" if high is None else f"an int in [{low}, {high}]"
    try:
        number = operator.index(value)
    except TypeError:
        reject(name, owner, rule, value)
    if isinstance(value, bool) or number < low or (high is not None and number > high):
        reject(name, owner, rule, value)
    return number


def check_choice(name: str, value: Any, owner: str, options: Iterable[str]) -> str:
    """Return `value` if it is one of `options`.

    Raises:
        ValueError: If it is not; a near miss is answered with the option that was meant.
    """
    known = list(options)
    if value in known:
        return str(value)
    rule = "one of " + ", ".join(map(repr, known)) + near_miss(value, known)
    reject(name, owner, rule, value)


def check_range(name: str, value: Any, owner: str) -> tuple[float, float]:
    """Return two finite numbers, the smaller first.

    Raises:
        ValueError: If they are none.
    """
    rule = "None or two finite numbers, the smaller first"
    ends = as_floats(name, value, owner, rule)
    if ends.shape != (2,) or not (np.isfinite(ends).all() and ends[0] < ends[1]):
        reject(name, owner, rule, value)
    return float(ends[0]), float(ends[1])


def check_names(given: Iterable[str], owner: str, options: Iterable[str]) -> None:
    """Check that every parameter that is given is one that there is.

    Args:
        given: The parameters' names.
        owner: Whose parameters they are.
        options: The names that there are.

    Raises:
        ValueError: If one is not; a near miss is answered with the name that was meant.
    """
    known = list(options)
    for name in given:
        if name not in known:
            takes = "It takes " + (", ".join(map(repr, known)) or "none") + "."
            hint = near_miss(name, known)
            raise ValueError(f"{owner} has no parameter {name!r}{hint}. {takes}")


def near_miss(value: object, known: list[str]) -> str:
    """Return the question whether another option was meant, or nothing."""
    close = difflib.get_close_matches(str(value), known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
