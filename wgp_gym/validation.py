"""Checks of parameters: one message shape, which states the name, the rule and the value."""

from __future__ import annotations

import difflib
import math
import operator
import reprlib
from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any, Literal, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "MAX_BATCH_NUMBERS",
    "MAX_NUMBERS",
    "MAX_WORK",
    "as_floats",
    "check_bool",
    "check_choice",
    "check_float",
    "check_int",
    "check_names",
    "check_range",
    "check_size",
    "check_unused",
    "cut",
    "is_number",
    "misread",
    "near_miss",
    "reject",
    "seed_list",
    "shown",
]

T = TypeVar("T")
MAX_NUMBERS = 50_000_000  # of an episode: to draw it takes 24 to 41 bytes for each, up to 2 GB
MAX_BATCH_NUMBERS = 500_000_000  # that the episodes of one batch keep, 4 GB
MAX_WORK = 5_000_000_000  # products that one episode is summed up from: some seconds
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
    """Raise the ValueError of a bad parameter.

    Args:
        name: The parameter's name.
        owner: The class or function whose parameter it is, here and below.
        rule: What the parameter must be, as in "a float in [0, inf)".
        value: What was given.
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
    closed: Literal["both", "left", "right", "neither"] = "both",
) -> float:
    """Return `value` as a finite float inside an interval; else raise ValueError.

    Only Python's and numpy's own ints and floats are numbers: no bool, text, array or masked
    value. `closed` says which finite ends belong to the interval.
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
    """Return a number, or an array or nested list of them, as a plain array of floats.

    They need not be finite. An array of floats is not copied.

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
    except (TypeError, ValueError, RuntimeError, OverflowError):
        pass  # as unequal rows, or lists nested without end
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
    """Return `value` if it is True or False; else raise ValueError."""
    if not isinstance(value, bool):
        reject(name, owner, "True or False", value)
    return value


def check_int(name: str, value: Any, owner: str, low: int, high: int | None = None) -> int:
    """Return `value` as an int of at least `low` and, where given, at most `high`; else raise."""
    rule = f"an int of at least {low}" if high is None else f"an int in [{low}, {high}]"
    if not is_number(value, int, np.integer):
        reject(name, owner, rule, value)
    number = int(value)
    if number < low or (high is not None and number > high):
        reject(name, owner, rule, value)
    return number


def check_choice(name: str, value: T, owner: str, options: Iterable[str]) -> T:
    """Return `value` if it is one of `options`; else raise a ValueError with a near miss."""
    known = list(options)
    if isinstance(value, str) and value in known:
        return value
    rule = "one of " + ", ".join(map(repr, known)) + near_miss(value, known)
    reject(name, owner, rule, value)


def check_range(name: str, value: Any, owner: str) -> tuple[float, float]:
    """Return two finite numbers, the smaller first; else raise ValueError."""
    rule = "None or two finite numbers, the smaller first"
    ends = as_floats(name, value, owner, rule)
    if ends.shape != (2,) or not (np.isfinite(ends).all() and ends[0] < ends[1]):
        reject(name, owner, rule, value)
    return float(ends[0]), float(ends[1])


def check_names(given: Iterable[str], owner: str, options: Iterable[str]) -> None:
    """Raise a ValueError with a near miss unless every name that is given is one of `options`."""
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


def check_unused(owner: str, where: str, parameters: Mapping[str, object]) -> None:
    """Raise ValueError unless all parameters are None: they would have no effect.

    `where` says when, as in "for the schedule 'rotation'".
    """
    for name, value in parameters.items():
        if value is not None:
            reject(name, owner, f"None {where}", value)


def check_size(
    owner: str, sizes: Mapping[str, int], usual: Mapping[str, int], limit: int = MAX_NUMBERS
) -> None:
    """Raise ValueError if an episode takes more numbers than can be held.

    Args:
        owner: The task.
        sizes: The parameters whose product is the number of numbers; ints of any size.
        usual: Their defaults. The error names the parameter that is furthest above its default.
        limit: The largest product.
    """
    if math.prod(sizes.values()) > limit:
        name = max(sizes, key=lambda one: Fraction(sizes[one], usual[one]))
        reject(name, owner, f"such that {' x '.join(sizes)} is at most {limit:,}", sizes[name])


def seed_list(seed: Any, count: int, *, gaps: bool = False) -> list[int | None]:
    """Return one seed for each of `count` streams.

    Args:
        seed: An int s stands for s, s + 1, ...; a sequence gives each its own; None gives none.
        count: How many there must be.
        gaps: Whether a sequence may hold None.

    Raises:
        ValueError: If a seed is no int of at least 0, or there are not `count` of them.
    """
    if seed is None:
        return [None] * count
    given: list[int | None]
    try:
        if isinstance(seed, (str, bytes, bytearray)):
            raise TypeError
        if hasattr(seed, "__len__"):
            given = [None if gaps and one is None else whole(one) for one in seed]
        else:
            given = [whole(seed) + i for i in range(count)]
    except TypeError:
        raise ValueError(f"A seed must be an int, or one for each. Got {shown(seed)}.") from None
    if len(given) != count:
        raise ValueError(f"There must be {count} seeds. Got {len(given)} instead.")
    if any(one is not None and one < 0 for one in given):
        raise ValueError(f"A seed must be at least 0. Got {shown(seed)}.")
    return given


def whole(seed: Any) -> int:
    """Return a seed as an int; raise TypeError if it is none. A bool is not one, either."""
    if isinstance(seed, bool):
        raise TypeError("A bool is no seed.")
    return operator.index(seed)
