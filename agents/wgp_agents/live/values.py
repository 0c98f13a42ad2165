"""Single values as users write them, of arms, knobs and features: numbers, texts and bools."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias, cast

import numpy as np

from wgp_gym.validation import near_miss, reject

__all__ = [
    "KnobValue",
    "as_number",
    "check_kinds",
    "checked_arm",
    "features_of",
    "hint_of",
    "is_plain_number",
    "kind_and_value",
    "plain",
]

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


def as_number(value: object) -> float | None:
    """Return the finite number that a text reads as, or that a number is; None: it is neither."""
    if not isinstance(value, str) and not is_plain_number(plain(value)):
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def hint_of(value: object, known: Sequence[object]) -> str:
    """Return the question whether one that is known was meant, of another kind or nearly so."""
    number = as_number(value)
    for one in known:
        if number is not None and as_number(one) == number:
            kind = "text" if isinstance(one, str) else "number"
            return f" (did you mean the {kind} {one!r}?)"
    return near_miss(value, [one for one in known if isinstance(one, str)])


def checked_arm(arm: object, owner: str = "Arms", name: str = "arms") -> KnobValue:
    """Return a single arm, or a feature, as the user wrote it: a number, a text or a bool.

    Raises:
        ValueError: If it is none, or no finite one.
    """
    if kind_and_value(arm) is None:
        reject(name, owner, "finite numbers or texts, none missing", arm)
    return cast(KnobValue, plain(arm))


def check_kinds(arms: Sequence[object], name: str, owner: str) -> None:
    """Raise ValueError if numbers stand beside texts that read as numbers: one kind was meant."""
    texts = [arm for arm in arms if isinstance(arm, str) and as_number(arm) is not None]
    if texts and any(map(is_plain_number, arms)):
        rule = "numbers alone, or texts alone: beside numbers, texts that read as such are neither"
        reject(name, owner, rule, texts[0])


def features_of(given: object, owner: str = "Arms", name: str = "features") -> dict[str, KnobValue]:
    """Return the features of one arm, by name."""
    if isinstance(given, Mapping):
        row = {str(word): value for word, value in given.items()}
    elif isinstance(given, Sequence | np.ndarray) and not isinstance(given, str):
        row = {f"x{i}": value for i, value in enumerate(given)}
    else:
        row = {"x0": given}
    return {word: checked_arm(value, owner, f"{name}[{word!r}]") for word, value in row.items()}
