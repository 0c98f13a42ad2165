"""One reading of every seed."""

from __future__ import annotations

import operator
from typing import Any

from wgp_gym.validation import shown

__all__ = ["seed_list"]


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
    """Return a seed as an int.

    Raises:
        TypeError: If it is none: a bool is not one, either.
    """
    if isinstance(seed, bool):
        raise TypeError("A bool is no seed.")
    return operator.index(seed)
