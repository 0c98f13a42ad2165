"""One message shape for every bad parameter: the name, the rule and the value."""

from __future__ import annotations

import difflib
import math
import reprlib
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
    "cut",
    "is_number",
    "misread",
    "reject",
    "shown",
]

LONGEST = 100  # characters of a value in a message
WRITTEN_BITS = 1024  # of an int that a message writes out; Python itself refuses 4,300 digits


class Cutter(reprlib.Repr):
    """The `repr` of a value, cut wherever it is long."""

    def __init__(self) -> None:
        super().__init__()
        self.maxstring = self.maxlong = self.maxother = 80

    def repr_int(self, x: int, level: int) -> str:
        """Return an int, or how long it is."""
        long = x.bit_length() > WRITTEN_BITS
        return f"<an int of {x.bit_length()} bits>" if long else super().repr_int(x, level)

    def repr_ndarray(self, x: NDArray[Any], level: int) -> str:
        """Return an array's shape, type and first entries."""
        del level
        entries = f"{x.flat[:5]}"
        more = ", ..." if x.size > 5 else ""
        return f"<an array of shape {x.shape}, {x.dtype}: {entries}{more}>"

    repr_MaskedArray = repr_matrix = repr_ndarray


def shown(value: object) -> str:
    """Return a value as messages show it: at most 100 characters, whatever it is."""
    try:
        text = Cutter().repr(value)
    except Exception:  # somebody's own `__repr__`, or what it writes out
        text = f"<a {type(value).__name__}>"
    return cut(text, LONGEST)


def cut(text: str, most: int = 300) -> str:
    """Return a text, shortened for a message to at most so many characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."


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
    raise ValueError(
        f"The {name!r} parameter of {owner} must be {rule}. Got {shown(value)} instead."
    )


def is_number(value: object, *kinds: type) -> bool:
    """Return whether a value is of one of these types, and neither a bool nor a span of time."""
    return isinstance(value, kinds) and not isinstance(value, (bool, np.timedelta64))


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
        ValueError: If `value` is not a finite number inside the interval. Only Python's and
            numpy's own ints and floats are numbers: no bool, text, array or masked value.
    """
    left = closed in ("both", "left") and math.isfinite(low)
    right = closed in ("both", "right") and math.isfinite(high)
    rule = f"a float in {'[' if left else '('}{low:g}, {high:g}{']' if right else ')'}"
    if not is_number(value, int, float, np.integer, np.floating):
        reject(name, owner, rule, value)
    try:
        number = float(value)
    except OverflowError:  # an int
        reject(name, owner, rule, value)
    above = number >= low if left else number > low
    below = number <= high if right else number < high
    if not (math.isfinite(number) and above and below):
        reject(name, owner, rule, value)
    return number


def as_floats(name: str, value: Any, owner: str, rule: str) -> NDArray[np.float64]:
    """Return numbers as an array of floats; one that is given is not copied.

    Args:
        name: The parameter's name.
        value: A number, or an array or nested list of them.
        owner: The class or function whose parameter it is.
        rule: What the parameter must be.

    Returns:
        The numbers in a plain array, which need not be finite.

    Raises:
        ValueError: If it holds anything else: a bool, a text, what is masked, rows of unequal
            length, an array with an int beyond 64 bits.
    """
    try:
        if type(value) is int:  # of any size
            return np.array(float(value))
        if not misread(value):
            array = np.asarray(value)
            if array.dtype.kind in "iuf":
                with np.errstate(over="ignore"):  # of numbers beyond double precision, to infinity
                    return array.astype(float, copy=False)
    except (
        TypeError,
        ValueError,
        RuntimeError,
        OverflowError,
    ):  # as unequal rows, or lists nested without end
        pass
    reject(name, owner, rule, value)


def misread(value: Any) -> bool:
    """Return whether numpy would read a number where none stands.

    It takes what is masked for what lies under the mask, and, in a list, a bool for 0 or 1.
    """
    if isinstance(value, (list, tuple)):
        return any(map(misread, value))
    if isinstance(value, np.ma.MaskedArray):
        return bool(np.ma.is_masked(value))
    if isinstance(value, np.ndarray):
        return bool(value.dtype.kind == "b")
    return isinstance(value, (bool, np.bool_, bytes, bytearray))


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
    if not is_number(value, int, np.integer):
        reject(name, owner, rule, value)
    number = int(value)
    if number < low or (high is not None and number > high):
        reject(name, owner, rule, value)
    return number


def check_choice(name: str, value: Any, owner: str, options: Iterable[str]) -> str:
    """Return `value` if it is one of `options`.

    Raises:
        ValueError: If it is not; a near miss is answered with the option that was meant.
    """
    known = list(options)
    if isinstance(value, str) and value in known:
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
            raise ValueError(f"{owner} has no parameter {shown(name)}{hint}. {takes}")


def near_miss(value: object, known: list[str]) -> str:
    """Return the question whether another option was meant, or nothing."""
    if not isinstance(value, str) or len(value) > LONGEST:  # a search in a long text takes long
        return ""
    close = difflib.get_close_matches(value, known, n=1)
    return f" (did you mean {close[0]!r}?)" if close else ""
