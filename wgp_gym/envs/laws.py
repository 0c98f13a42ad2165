"""Laws in the place of a task's numbers: what is drawn anew for each episode, and how."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeGuard

import numpy as np

from wgp_gym.types import AnyArray, Json
from wgp_gym.validation import as_floats, check_float, reject

__all__ = [
    "Drawable",
    "Drawn",
    "Law",
    "OneOf",
    "Range",
    "is_random",
    "law_keywords",
    "law_of",
    "laws_of",
    "rate_of",
    "settable",
]

Drawable = Literal["range", "choice", "times"]
"""What may stand for a parameter: [low, high]; a list of values; "random" change points."""
Drawn = float | str
RANDOM = "random"
TIMES, RATE, TOLD = "change_points", "change_rate", "told"  # keywords that come with laws


class Law(ABC):
    """What a parameter is drawn from."""

    @property
    @abstractmethod
    def typical(self) -> Drawn:
        """What stands for the law where it is not drawn."""

    @property
    @abstractmethod
    def ends(self) -> Sequence[Drawn]:
        """Values between which all others are."""

    @abstractmethod
    def at(self, uniform: float) -> Drawn:
        """Return what a uniform number of [0, 1) draws."""


@dataclass(frozen=True)
class Range(Law):
    """Log-uniform: log x is uniform in [log low, log high], 0 < low < high."""

    low: float
    high: float

    @property
    def typical(self) -> float:
        """The geometric mean, also the median."""
        return math.sqrt(self.low) * math.sqrt(self.high)

    @property
    def ends(self) -> list[float]:
        """The smallest and the largest value."""
        return [self.low, self.high]

    def at(self, uniform: float) -> float:
        """Return the value of a uniform number."""
        start, end = math.log(self.low), math.log(self.high)
        return min(max(math.exp(start + uniform * (end - start)), self.low), self.high)


@dataclass(frozen=True)
class OneOf(Law):
    """One of these names, each as likely as the others."""

    values: tuple[str, ...]

    @property
    def typical(self) -> str:
        """The first of them."""
        return self.values[0]

    @property
    def ends(self) -> tuple[str, ...]:
        """All of them."""
        return tuple(dict.fromkeys(self.values))

    def at(self, uniform: float) -> str:
        """Return the value of a uniform number."""
        return self.values[int(uniform * len(self.values))]


def is_random(value: object) -> bool:
    """Return whether change points are to be drawn."""
    return isinstance(value, str) and value == RANDOM


def law_of(name: str, kind: Drawable, value: Json, owner: str) -> Law | None:
    """Return the law that stands for a parameter; None where it is no law, but a value.

    Raises:
        ValueError: If it is two numbers, but not 0 < low < high.
    """
    listed = list(value) if isinstance(value, (list, tuple)) or is_row(value) else []
    if len(listed) < 2 or kind == "times":  # of one alone there is nothing to draw
        return None
    if kind == "choice":
        names = tuple(one for one in listed if isinstance(one, str))
        return OneOf(names) if len(names) == len(listed) else None
    rule = "a float, or [low, high] with 0 < low < high for a log-uniform law"
    ends = as_floats(name, value, owner, rule)
    if ends.shape != (2,) or not 0 < ends[0] < ends[1] < math.inf:
        reject(name, owner, rule, value)
    return Range(float(ends[0]), float(ends[1]))


def is_row(value: object) -> TypeGuard[AnyArray]:
    """Return whether a value is an array of one dimension."""
    return isinstance(value, np.ndarray) and value.ndim == 1


def rate_of(value: Json, times: Json, owner: str) -> Range | float | None:
    """Return the probability of a change at each step, or its law; None where none are drawn.

    Args:
        value: What was given.
        times: The change points that were given.
        owner: The task.

    Raises:
        ValueError: If it is none, or change points are not "random".
    """
    if not is_random(times):
        if value is not None:
            reject(RATE, owner, f'None where change_points is not "{RANDOM}"', value)
        return None
    law = law_of(RATE, "range", value, owner)
    if not isinstance(law, Range):
        return check_float(RATE, value, owner, 0, 1)
    check_float(RATE, law.high, owner, 0, 1)
    return law


def laws_of(
    drawable: Mapping[str, Drawable], parameters: Mapping[str, Json], owner: str
) -> dict[str, Law]:
    """Return the laws among parameters, but for that of change points."""
    found = {
        name: law_of(name, kind, parameters.get(name), owner) for name, kind in drawable.items()
    }
    return {name: law for name, law in found.items() if law is not None}


def law_keywords(drawable: Mapping[str, Drawable]) -> list[str]:
    """Return the keywords that an environment takes beside its task's, for laws."""
    rate = [RATE] if "times" in drawable.values() else []
    return [*rate, TOLD] if drawable else []


def settable(drawable: Mapping[str, Drawable]) -> list[str]:
    """Return the parameters that options may set for one episode."""
    return [name for name in (*drawable, *law_keywords(drawable)) if name != TOLD]
