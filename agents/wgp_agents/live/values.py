"""Single values as users write them, of arms, knobs and features: numbers, texts and bools."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

import numpy as np

from wgp_gym.validation import reject

__all__ = ["KnobValue", "checked_arm", "features_of", "is_plain_number", "kind_and_value", "plain"]

KnobValue: TypeAlias = "float | int | str | bool"
MOST_BITS = 1000  # of an int, so that it is a float, too


def plain(value: object) -> object:
    """Return a number, text or bool of numpy's as Python's own; all else as it is."""
    if isinstance(value, np.floating):
        return float(value)
    if isinstance(value, np.timedelta64):  # which numpy counts among the integers
        return value
    return value.item() if isinstance(value, np.integer | np.bool_ | np.str_) else value


def kind_and_value(value: object) -> tuple[str, object] | None:
    """Return what two values share if they are one: numbers by value, bools and texts by kind.

    None: it is neither a finite number nor a bool nor a text.
    """
    own = plain(value)
    if isinstance(own, str | bool):
        return "text" if isinstance(own, str) else "bool", own
    if isinstance(own, int):
        return ("number", own) if own.bit_length() <= MOST_BITS else None
    return ("number", own) if isinstance(own, float) and math.isfinite(own) else None


def is_plain_number(value: object) -> bool:
    """Tell whether an arm is a number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def checked_arm(arm: object, owner: str = "Arms", name: str = "arms") -> KnobValue:
    """Return a single arm, or a feature, as the user wrote it: a number, a text or a bool.

    Raises:
        ValueError: If it is none, or no finite one.
    """
    if kind_and_value(arm) is None:
        reject(name, owner, "finite numbers or texts, none missing", arm)
    return cast(KnobValue, plain(arm))


def features_of(given: object, owner: str = "Arms", name: str = "features") -> dict[str, KnobValue]:
    """Return the features of one arm, by name."""
    if isinstance(given, Mapping):
        row = {str(word): value for word, value in given.items()}
    elif isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        row = {f"x{i}": value for i, value in enumerate(given)}
    else:
        row = {"x0": given}
    return {word: checked_arm(value, owner, f"{name}[{word!r}]") for word, value in row.items()}
