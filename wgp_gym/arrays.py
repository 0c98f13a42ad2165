"""Arrays that are kept, which nobody can change, and rows that are worked on some at a time."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ReadOnlyArrays", "blocks", "frozen", "kept"]

CACHED = 30_000  # numbers of which a few copies stay in a core's own cache


def blocks(start: int, stop: int, numbers: int, most: int = CACHED) -> list[slice]:
    """Cut rows of so many numbers each in blocks of at most so many numbers, or of one row."""
    size = max(most // numbers, 1)
    return [slice(first, min(first + size, stop)) for first in range(start, stop, size)]


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array that cannot be written to: a copy, or itself if it is such a one."""
    if not array.flags.writeable and array.base is None:
        return array
    copied = np.array(array)
    copied.setflags(write=False)
    return copied


def kept(value: Any) -> Any:
    """Return a parameter that its caller cannot change later: a list or an array is copied."""
    if isinstance(value, np.ndarray):
        return frozen(value)
    return copy.deepcopy(value) if isinstance(value, (list, tuple)) else value


class ReadOnlyArrays:
    """A base of classes whose arrays cannot be written to, in copies and once unpickled, too.

    numpy makes an array writeable when it is copied or unpickled.
    """

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        for value in state.values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)
