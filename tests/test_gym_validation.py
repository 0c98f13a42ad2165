"""The checks that every parameter goes through: what passes for a number, and what errors show."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from wgp_gym.validation import (
    as_floats,
    check_choice,
    check_float,
    check_int,
    check_names,
    check_range,
    reject,
    shown,
)

MASKED = np.ma.masked_equal([1.0, -9.0], -9.0)


class Unwritten:
    """Something that cannot be written out."""

    def __repr__(self) -> str:
        raise RuntimeError("x" * 10_000)


def endless() -> list[Any]:
    """Return a list that holds itself."""
    found: list[Any] = []
    found.append(found)
    return found


def type_name(value: Any) -> str:
    """Name a case by its type: no address, and no number of 5,000 digits."""
    return type(value).__name__


NO_NUMBERS: list[Any] = [
    *(True, np.True_, b"1.0", bytearray(b"1"), "1.0", 1j, None, np.ma.masked),
    *(Decimal(1), Fraction(1, 2), {}, object(), Unwritten()),
]
NO_SCALARS = [[1.0], np.array(1.0), np.array([1]), MASKED, np.timedelta64(1)]
NO_ARRAYS: list[Any] = [
    *([1.0, True], [1.0, np.True_], [1.0, np.ma.masked], ["1.0"], [b"1"], [1, 10**400], 10**400),
    *([[1.0], [1.0, 2.0]], endless(), MASKED, [MASKED, MASKED]),
    *([np.array([True]), np.array([0.5])], np.array([None]), np.array([1j]), np.array([True])),
]


@pytest.mark.parametrize("value", NO_NUMBERS + NO_SCALARS, ids=type_name)
def test_what_is_no_number(value: Any) -> None:
    with pytest.raises(ValueError, match=r"'x' parameter of Owner must be a float in \[0, inf\)"):
        check_float("x", value, "Owner", 0)
    with pytest.raises(ValueError, match=r"'x' parameter of Owner must be an int of at least 0"):
        check_int("x", value, "Owner", 0)


@pytest.mark.parametrize("value", NO_NUMBERS + NO_ARRAYS, ids=type_name)
def test_what_is_no_array_of_numbers(value: Any) -> None:
    with pytest.raises(ValueError, match=r"'x' parameter of Owner must be numbers\. Got"):
        as_floats("x", value, "Owner", "numbers")


@pytest.mark.parametrize("kind", [int, float, np.int8, np.uint64, np.float16, np.longdouble])
def test_what_is_a_number(kind: Any) -> None:
    assert type(check_float("x", kind(2), "Owner")) is float
    assert as_floats("x", [kind(2)], "Owner", "numbers").dtype == np.float64
    if np.issubdtype(kind, np.integer):
        assert type(check_int("x", kind(2), "Owner", 0)) is int


def test_a_float_beyond_the_largest() -> None:
    for value in (10**400, -(10**400), np.longdouble("1e400"), float("nan")):
        with pytest.raises(ValueError, match="must be a float in"):
            check_float("x", value, "Owner")
    assert as_floats("x", [np.longdouble("1e400")], "Owner", "numbers").tolist() == [np.inf]


@pytest.mark.parametrize("kind", [np.ma.MaskedArray, np.recarray])
def test_numbers_come_back_in_a_plain_array(kind: Any) -> None:
    assert type(as_floats("x", np.zeros(2).view(kind), "Owner", "numbers")) is np.ndarray


@pytest.mark.parametrize(
    "value", [np.array(["se", "se"]), ["se"], b"se", 10**5000, "s" * 10**6], ids=type_name
)
def test_what_is_no_choice(value: Any) -> None:
    with pytest.raises(ValueError, match=r"'x' parameter of Owner must be one of 'se', 'linear'\."):
        check_choice("x", value, "Owner", ("se", "linear"))


def test_a_name_is_shown_cut() -> None:
    with pytest.raises(ValueError, match=r"^Owner has no parameter 'a+\.\.\.a+'\. It takes 'b'\.$"):
        check_names(["a" * 10**6], "Owner", ["b"])


def test_a_range_of_masked_ends() -> None:
    with pytest.raises(ValueError, match="must be None or two finite numbers"):
        check_range("x", MASKED, "Owner")


def test_a_range_has_two_ends() -> None:
    assert check_range("x", [0.5, 0.6], "Owner") == (0.5, 0.6)
    for ends in ((0.5, 0.5), (0.6, 0.5)):
        with pytest.raises(ValueError, match="two finite numbers, the smaller first"):
            check_range("x", ends, "Owner")


LONG = ["x" * 10**6, [0.1] * 10**6, np.zeros((1000, 1000)), 10**5000, [[10**5000]], Unwritten()]


@pytest.mark.parametrize(
    "value", [*LONG, endless(), {i: "x" * 99 for i in range(99)}], ids=type_name
)
def test_long_values_are_cut(value: Any) -> None:
    with pytest.raises(ValueError, match="The 'x' parameter of Owner must be short") as caught:
        reject("x", "Owner", "short", value)
    assert len(str(caught.value)) < 160


def test_short_values_are_shown_whole() -> None:
    for value in (-1.0, "se", [1, 2, 3], None, (0.5, 2), {"a": [1.5]}, np.float64(3.0)):
        assert shown(value) == repr(value)
    assert shown(np.arange(3)) == "<an array of shape (3,), int64: [0 1 2]>"
