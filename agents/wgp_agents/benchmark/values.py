"""The values of a declaration: plain ones, of a size that what follows can bear."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

from wgp_agents.benchmark.limits import DEEPEST, LARGEST_NUMBER, LONGEST_KEY, LONGEST_TEXT
from wgp_gym.validation import reject, shown

__all__ = ["all_different", "check_values"]

OWNER = "the experiment"


def check_values(values: dict[str, Any], depth: int = DEEPEST) -> None:
    """Check the types and sizes of all values in a declaration.

    Args:
        values: The values, by name.
        depth: The most lists and tables inside each other.

    Raises:
        ValueError: If one is neither a number, a text nor a truth value, nor a list or table of
            these, or is NaN; or if one is too large, too long or too deeply nested.
    """
    for key, value in values.items():
        if not isinstance(value, list):
            check_value(checked_key(key), value, depth)
            continue
        for number, entry in enumerate(value, start=1):
            try:
                check_value(checked_key(key), entry, depth - 1)
            except ValueError as error:
                raise ValueError(f"[[{key}]] number {number}: {error}") from error


def check_value(name: str, value: Any, depth: int) -> None:
    """Check a value, and those inside it, of which at most `depth` may be inside each other."""
    if isinstance(value, dict | list | tuple):
        if not depth:
            rule = f"at most {DEEPEST} tables and lists inside each other"
            raise ValueError(f"The {name!r} parameter of {OWNER} must have {rule}.")
        inside: Iterable[Any] = ((name, inner) for inner in value)
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


def checked_key(key: Any) -> str:
    """Return the name of a parameter.

    Raises:
        ValueError: If it is no text, or longer than any parameter's name.
    """
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


def all_different(values: Sequence[Any]) -> bool:
    """Tell whether no two values are equal, lists and tables among them."""
    return len({hashable(value) for value in values}) == len(values)


def hashable(value: Any) -> Any:
    """Return a value as one that can be hashed; two are equal where the values were."""
    if isinstance(value, dict):
        return frozenset((key, hashable(inner)) for key, inner in value.items())
    return tuple(map(hashable, value)) if isinstance(value, list | tuple) else value
