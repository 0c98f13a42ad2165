"""What a declaration may hold: how large it may be, plain values, and labels that can be shown."""

from __future__ import annotations

import math
import re
import string
import unicodedata
from collections.abc import Iterable, Mapping, Sequence

from wgp_gym.validation import reject, shown

# Beyond these it is refused before it takes time or memory.
LARGEST_FILE = 2**20  # bytes of an experiment's file
DEEPEST = 20  # tables and lists inside each other
LARGEST_NUMBER = 2**128 - 1  # of whole numbers, on either side of 0: the seeds that numpy draws fit
LONGEST_KEY = 100  # characters of a parameter's name
LONGEST_TEXT = 10_000  # characters of a value, of the description too
LONGEST_LABEL = 200  # characters of a title, a label or a name
MOST_VARIANTS = 10_000  # environments, and likewise agents, with grids laid out
MOST_UNITS = 100_000  # units of work
MOST_RUNS = 1_000_000  # of each agent in each environment

OWNER = "the experiment"
NOT_IN_LINES = {"Cc", "Cs", "Zl", "Zp"}  # controls, halves of surrogate pairs, breaks of lines
BYTE_ORDER_MARK = "\ufeff"
# A format of Python's, of at most 99 places: "5", ".3f", ">10", "+.2e".
FORMAT = re.compile(r"(.?[<>=^])?[-+ ]?#?0?\d{0,2}[,_]?(\.\d{1,2})?[a-zA-Z%]?")


def check_values(values: Mapping[str, object], depth: int = DEEPEST) -> None:
    """Check the types and sizes of all values in a declaration.

    Args:
        values: The values, by name.
        depth: The most lists and tables inside each other.

    Raises:
        ValueError: If one is neither a number, a text nor a truth value, nor a list or table of
            these, or is NaN; or if one is too large, too long or too deeply nested.
    """
    for key, value in values.items():
        checked_key(key)
        if not isinstance(value, list):
            check_value(key, value, depth)
            continue
        for number, entry in enumerate(value, start=1):
            try:
                check_value(key, entry, depth - 1)
            except ValueError as error:
                raise ValueError(f"[[{key}]] number {number}: {error}") from error


def check_value(name: str, value: object, depth: int) -> None:
    """Check a value, and those inside it, of which at most `depth` may be inside each other."""
    if isinstance(value, dict | list | tuple):
        if not depth:
            rule = f"at most {DEEPEST} tables and lists inside each other"
            raise ValueError(f"The {name!r} parameter of {OWNER} must have {rule}.")
        inside: Iterable[tuple[object, object]] = ((name, inner) for inner in value)
        if isinstance(value, dict):
            inside = value.items()
        for key, inner in inside:
            check_value(checked_key(key), inner, depth - 1)
    elif isinstance(value, str):
        if len(value) > LONGEST_TEXT:
            reject(name, OWNER, f"a text of at most {LONGEST_TEXT} characters", value)
        if not encodable(value):
            reject(name, OWNER, "a text that UTF-8 can hold", value)
    elif isinstance(value, int):
        if abs(value) > LARGEST_NUMBER:  # which may be too long to be printed
            raise ValueError(f"The {name!r} parameter of {OWNER} must be between -2^128 and 2^128.")
    elif not isinstance(value, float) or math.isnan(value):
        reject(name, OWNER, "a number, a text, true or false, or a list or table of these", value)


def checked_key(key: object) -> str:
    """Return the name of a parameter, if it is a text that is no longer than any can be."""
    if not isinstance(key, str) or len(key) > LONGEST_KEY:
        rule = f"a text of at most {LONGEST_KEY} characters"
        raise ValueError(f"A key of {OWNER} must be {rule}. Got {shown(key)} instead.")
    return key


def encodable(text: str) -> bool:
    """Tell whether a text holds no lone surrogates, as those of a flag in another encoding."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def all_different(values: Sequence[object]) -> bool:
    """Tell whether no two values are equal, lists and tables among them."""
    return len({hashable(value) for value in values}) == len(values)


def hashable(value: object) -> object:
    """Return a value as one that can be hashed; two are equal where the values were."""
    if isinstance(value, dict):
        return frozenset((key, hashable(inner)) for key, inner in value.items())
    return tuple(map(hashable, value)) if isinstance(value, list | tuple) else value


def check_line(name: str, text: object, owner: str) -> None:
    """Check that a text is one line that can be shown.

    Raises:
        ValueError: If it is none, is blank, holds anything that ends a line, other control
            characters, lone surrogates or a byte order mark, or is too long.
    """
    if not isinstance(text, str) or not text.strip() or not all(map(stays_in_line, text)):
        reject(name, owner, "a text of one line, without control characters", text)
    if len(text) > LONGEST_LABEL:
        reject(name, owner, f"a text of at most {LONGEST_LABEL} characters", text)


def check_paragraph(name: str, text: object, owner: str) -> None:
    """Check that a text can be shown; it may have several lines."""
    if not isinstance(text, str) or not all(map(stays_in_line, re.sub(r"[\t\n]", "", text))):
        reject(name, owner, "a text, without control characters", text)


def stays_in_line(sign: str) -> bool:
    """Tell whether a character may stand in a line."""
    return sign != BYTE_ORDER_MARK and unicodedata.category(sign) not in NOT_IN_LINES


def filled(template: str, values: Mapping[str, object]) -> str:
    """Return a label with values in the place of `{name}`, `{name:.2f}` and the like.

    Nothing but the values themselves can be reached, and no format is wider than 99 places.

    Raises:
        ValueError: If a name is not among the values, or a format is none for its value.
    """
    parts = []
    for literal, name, form, conversion in string.Formatter().parse(template):
        parts.append(literal)
        if name is None:
            continue
        if name not in values or not FORMAT.fullmatch(form or ""):
            raise ValueError(f"There is no {{{name}}}, or no format {form!r}.")
        value = string.Formatter().convert_field(values[name], conversion)
        try:
            parts.append(format(value, form or ""))
        except (TypeError, OverflowError) as error:
            raise ValueError(str(error)) from error
    return "".join(parts)
