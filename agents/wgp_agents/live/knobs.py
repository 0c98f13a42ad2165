"""Knobs: named quantities in their own units, and their places in [0, 1]^d."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias, cast

import numpy as np

from wgp_agents.live.values import KnobValue, hint_of, kind_and_value, plain
from wgp_gym.kernel_algebra import OnColumns
from wgp_gym.kernels import Categorical, Kernel, SquaredExponential
from wgp_gym.types import Array
from wgp_gym.validation import check_choice, is_number, reject

__all__ = ["KnobRange", "Knobs", "knobs_of_columns", "ranges_of"]

KnobRange: TypeAlias = "Sequence[object]"
"""A tuple (low, high), (low, high, "int") or (low, high, "log"), or a list of categories."""

KINDS = ("float", "int", "log")
RANGE_RULE = (
    "(low, high), (low, high, 'int') or (low, high, 'log') with low < high, or a list of texts, "
    "numbers or bools of which none is there twice"
)
ALIKE = 0.5  # what two categories of one knob share, before anything is known
LENGTHSCALE = 0.2  # of a knob's range


@dataclass(frozen=True)
class Axis:
    """One numeric knob.

    Attributes:
        name: Its name.
        low: The least value.
        high: The largest.
        kind: "float", "int", or "log" for one that is looked at by its logarithm.
    """

    name: str
    low: float
    high: float
    kind: str

    def place(self, value: object, owner: str, name: str) -> float:
        """Return where a value stands in [0, 1]; messages call it by `name`."""
        if not is_number(value, int, float, np.integer, np.floating):
            reject(name, owner, f"a number in [{self.low:g}, {self.high:g}]", value)
        if not self.low <= value <= self.high:  # type: ignore[operator]  # one of the kinds above
            reject(name, owner, f"in [{self.low:g}, {self.high:g}]", value)
        number = float(value)  # type: ignore[arg-type]
        if self.kind == "int" and number != round(number):
            reject(name, owner, "a whole number", value)
        if self.kind == "log":
            return math.log(number / self.low) / math.log(self.high / self.low)
        return (number - self.low) / (self.high - self.low)

    def value(self, place: float) -> KnobValue:
        """Return the value at a place in [0, 1]."""
        number: float
        if self.kind == "log":
            number = self.low * (self.high / self.low) ** place
        else:
            number = self.low + place * (self.high - self.low)
        if self.kind == "int":
            return round(number)
        short = float(f"{number:.9g}")
        return min(max(short, self.low), self.high)  # 30, not 30.000000000000004

    @property
    def count(self) -> float:
        """How many values there are."""
        return self.high - self.low + 1 if self.kind == "int" else math.inf

    def to_json(self) -> dict[str, object]:
        """Return the range, by words, so that it is not read as categories."""
        return {"low": self.low, "high": self.high, "kind": self.kind}


@dataclass(frozen=True)
class Choice:
    """One knob of categories.

    Attributes:
        name: Its name.
        values: Its categories.
    """

    name: str
    values: tuple[KnobValue, ...]

    def place(self, value: object, owner: str, name: str) -> float:
        """Return where a category stands in [0, 1]; messages call it by `name`."""
        known, same = [*map(kind_and_value, self.values)], kind_and_value(value)
        if same not in known:
            hint = hint_of(value, self.values)
            reject(name, owner, f"one of {list(self.values)}{hint}", value)
        return known.index(same) / max(len(self.values) - 1, 1)

    def value(self, place: float) -> KnobValue:
        """Return the category at a place."""
        return self.values[round(place * max(len(self.values) - 1, 1))]

    @property
    def count(self) -> float:
        """How many values there are."""
        return len(self.values)

    def to_json(self) -> list[object]:
        """Return the categories."""
        return list(self.values)


class Knobs:
    """Named quantities in physical units: what a machine can be set to, or what a context tells.

    `Knobs(speed=(0, 300), depth=(1, 8, "int"), rate=(1e-4, 1, "log"), tool=["A", "B"])`. A point
    is a dict by these names. Its place is in [0, 1]^d, a column for each knob: numbers by how far
    they are from low to high, categories by their code.

    Args:
        knobs: The range of each knob, by name.

    Attributes:
        names: The names, in order.

    Raises:
        ValueError: If a range is none.
    """

    def __init__(self, **knobs: KnobRange) -> None:
        if not knobs:
            reject("knobs", "Knobs", "at least one named range", knobs)
        self._axes = tuple(axis_of(name, given) for name, given in knobs.items())
        self.names = tuple(knobs)

    @property
    def dim(self) -> int:
        """The number of knobs d."""
        return len(self._axes)

    @property
    def categories(self) -> dict[str, tuple[KnobValue, ...]]:
        """The categories of the knobs that have some, by name."""
        return {axis.name: axis.values for axis in self._axes if isinstance(axis, Choice)}

    def place(
        self, point: Mapping[str, object], owner: str = "Knobs", name: str | None = None
    ) -> Array:
        """Return where a point stands, `(d,)`.

        Args:
            point: A value for each knob.
            owner: Whose parameter it is, for messages.
            name: The parameter's name; default: "point", or a knob's by itself.

        Raises:
            ValueError: If a knob is missing, unknown or out of its range.
        """
        whole = name or "point"
        if not isinstance(point, Mapping):
            reject(whole, owner, f"a dict of {', '.join(self.names)}", point)
        for word in point:
            if word not in self.names:
                reject(whole, owner, f"a dict of {', '.join(self.names)}", word)
        if any(word not in point for word in self.names):
            reject(whole, owner, f"a dict with all of {', '.join(self.names)}", dict(point))
        parts = {word: word if name is None else f"{name}[{word!r}]" for word in self.names}
        return np.array([a.place(point[a.name], owner, parts[a.name]) for a in self._axes])

    def point(self, place: Array) -> dict[str, KnobValue]:
        """Return the point at a place `(d,)`."""
        return {
            axis.name: axis.value(x) for axis, x in zip(self._axes, place.tolist(), strict=True)
        }

    def points(self, most: int) -> list[dict[str, KnobValue]]:
        """Return points that fill the ranges evenly, none twice.

        Args:
            most: How many there are; fewer where the knobs have no more values.
        """
        total = math.prod(axis.count for axis in self._axes)
        if total <= most:
            return list(self._all())
        if self.dim == 1:
            places = np.linspace(0.0, 1.0, most)[:, None]
        else:
            from scipy.stats import qmc  # a second to import

            places = qmc.Sobol(self.dim, scramble=False).random(2 ** math.ceil(math.log2(most)))
            # Stretched, so that some lie on the faces, where many an optimum is.
            places = np.clip(1.1 * places[:most] - 0.05, 0.0, 1.0)
        found = {tuple(point.items()): point for point in map(self.point, places)}
        return list(found.values())

    def _all(self) -> Iterator[dict[str, KnobValue]]:
        steps = [np.linspace(0.0, 1.0, max(int(axis.count), 1)) for axis in self._axes]
        for place in itertools.product(*steps):
            yield self.point(np.array(place))

    def columns(self, *names: str, first: int = 0) -> tuple[int, ...]:
        """Return the columns of some knobs, for `OnColumns`.

        Args:
            names: The knobs.
            first: The column of the first of all: behind arms of d columns, contexts begin at d.

        Raises:
            ValueError: If there is no such knob.
        """
        for name in names:
            check_choice("names", name, "Knobs", self.names)
        return tuple(first + self.names.index(name) for name in names)

    def kernel(self, first: int = 0) -> Kernel:
        """Return the kernel: a product over the knobs, whose columns begin at `first`.

        Numbers have a squared exponential one, categories share half of what they do.
        """
        columns = range(first, first + self.dim)
        numeric = [j for j, axis in zip(columns, self._axes, strict=True) if isinstance(axis, Axis)]
        parts: list[Kernel] = [
            OnColumns(Categorical(ALIKE), (j,)) for j in columns if j not in numeric
        ]
        if numeric:
            scales = LENGTHSCALE
            parts.insert(0, OnColumns(SquaredExponential(scales), tuple(numeric)))
        return functools.reduce(operator.mul, parts)

    def to_json(self) -> dict[str, object]:
        """Return what `from_json` makes again."""
        return {axis.name: axis.to_json() for axis in self._axes}

    @classmethod
    def from_json(cls, found: Mapping[str, object]) -> Self:
        """Return the knobs that `to_json` wrote."""
        return cls(**ranges_of(found))


def ranges_of(found: Mapping[str, object]) -> dict[str, KnobRange]:
    """Return the ranges that `Knobs.to_json` wrote, as `Knobs` takes them."""
    return {
        name: tuple(row[word] for word in ("low", "high", "kind"))
        if isinstance(row, Mapping)
        else cast("Sequence[object]", row)
        for name, row in found.items()
    }


def axis_of(name: str, given: object) -> Axis | Choice:
    """Return the knob of a range.

    Raises:
        ValueError: If the range is none.
    """
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        reject(name, "Knobs", RANGE_RULE, given)
    keys = [kind_and_value(one) for one in given]
    numbers = [one for one in keys[:2] if one is not None and one[0] == "number"]
    if len(numbers) == 2 and isinstance(given, tuple):
        low, high = (float(cast(float, number)) for _, number in numbers)
        kind = plain(given[2]) if len(given) == 3 else "float"
        fits = len(given) <= 3 and kind in KINDS and low < high
        fits = fits and math.isfinite(high - low) and not (kind == "log" and low <= 0)
        if kind == "int":
            fits = fits and low == round(low) and high == round(high)
        if not fits:
            reject(name, "Knobs", RANGE_RULE, given)
        return Axis(name, low, high, cast(str, kind))
    if len(numbers) == 2 and len(given) == 3 and plain(given[2]) in KINDS:
        rule = f"a tuple for a range, {(given[0], given[1], given[2])}: a list is of categories"
        reject(name, "Knobs", rule, given)
    if None in keys or len({*keys}) < len(keys):
        reject(name, "Knobs", RANGE_RULE, given)
    return Choice(name, tuple(cast(KnobValue, plain(one)) for one in given))


def knobs_of_columns(columns: Mapping[str, Sequence[KnobValue]]) -> Knobs:
    """Return the knobs whose ranges are those of the values in some columns."""
    found: dict[str, KnobRange] = {}
    for name, values in columns.items():
        numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(numbers) == len(values):
            low, high = float(min(numbers)), float(max(numbers))
            found[name] = (low, high if high > low else low + 1.0)
        else:
            found[name] = sorted({kind_and_value(v): v for v in values}.values(), key=str)
    return Knobs(**found)
