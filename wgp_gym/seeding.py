"""One reading of every seed."""

from __future__ import annotations

import operator
from typing import Any

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
        if hasattr(seed, "__len__"):
            given = [None if gaps and one is None else operator.index(one) for one in seed]
        else:
            given = [operator.index(seed) + i for i in range(count)]
    except TypeError:
        raise ValueError(f"A seed must be an int, or one for each. Got {seed!r}.") from None
    if len(given) != count:
        raise ValueError(f"There must be {count} seeds. Got {len(given)} instead.")
    if any(one is not None and one < 0 for one in given):
        raise ValueError(f"A seed must be at least 0. Got {seed!r}.")
    return given
