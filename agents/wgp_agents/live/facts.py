"""What there is to say of a live bandit, as plain values: `Facts`, which reports are made of.

Everything is in the user's unit. A `time` is a number as the user gave it; where the clock shows
dates, seconds since 1970 in UTC.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Literal, Self, TypeAlias, TypeVar, get_args

import numpy as np

from wgp_gym.types import Json
from wgp_gym.validation import check_int, reject

__all__ = ["Arm", "Change", "Choice", "Clock", "Considered", "Facts", "History", "Series", "Unit"]

Clock: TypeAlias = Literal["decisions", "numbers", "dates"]
"""What time is told by: nothing but the decisions, the user's numbers, or dates."""
Series: TypeAlias = tuple[float | None, ...]
"""One number for each row of a history; None where there is none."""

MOST = 600  # rows of a history that a report shows
Made = TypeVar("Made")


@dataclass(frozen=True)
class Arm:
    """What is known of one choice now.

    Attributes:
        label: The user's own name or number.
        mean: What it is expected to earn; None where nobody knows.
        low: The lower end of the band that holds its expected reward with 95 per cent.
        high: The upper end.
        plays: How often it was played.
        share: Its share of the last 100 decisions, in [0, 1].
        last_decision: The number of the decision that played it last, from 1; None: never.
        last_time: When that was.
        last_reward: The last reward that came for it.
        there: Whether it can still be chosen; it was removed else.
    """

    label: str | float
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    plays: int = 0
    share: float = 0.0
    last_decision: int | None = None
    last_time: float | None = None
    last_reward: float | None = None
    there: bool = True


@dataclass(frozen=True)
class Considered:
    """An arm as it stood when a decision was taken.

    Attributes:
        label: Its name or number.
        bound: What the agent chose by: the upper bound (of rewards to be kept small, the lower);
            None where it draws its choices.
        mean: What it was expected to earn.
        std: The standard deviation of that.
    """

    label: str | float
    bound: float | None = None
    mean: float | None = None
    std: float | None = None


@dataclass(frozen=True)
class Choice:
    """Why a decision was taken.

    Attributes:
        decision: Its number, from 1.
        chosen: The arm chosen.
        runner_up: The next best by its bound; None where there was no other.
        time: When it was taken.
        propensity: The probability of the choice, where the agent draws it.
    """

    decision: int
    chosen: Considered
    runner_up: Considered | None = None
    time: float | None = None
    propensity: float | None = None


@dataclass(frozen=True)
class Change:
    """A change that the agent noticed: at which decision and time, and its size.

    The size is by how much rewards were off what was expected on the average, from where they began
    to be off until it was noticed: the last ten at most.
    """

    decision: int
    size: float | None = None
    time: float | None = None


@dataclass(frozen=True)
class Unit:
    """How rewards are turned into the agent's own unit: (transform(y) - centre) / scale."""

    centre: float = 0.0
    scale: float = 1.0
    transform: str = ""  # as "log(1 + y)"; "": y itself


@dataclass(frozen=True)
class History:
    """Decisions of the past, oldest first; all of the same length.

    Attributes:
        decision: Their numbers, from 1.
        time: When they were taken; empty where time is not told.
        reward: What came; None: nothing yet, or never.
        expected: What the agent expected of the arm that it chose, before.
        low: The lower end of the band that holds 95 per cent of such rewards.
        high: The upper end.
        memory: The agent's memory in steps, infinite where it forgets nothing.
    """

    decision: tuple[int, ...] = ()
    time: Series = ()
    reward: Series = ()
    expected: Series = ()
    low: Series = ()
    high: Series = ()
    memory: Series = ()

    def __post_init__(self) -> None:
        for column in fields(self):
            length = len(getattr(self, column.name))
            if length != len(self.decision) and not (column.name == "time" and not length):
                rule = f"as long as 'decision', {len(self.decision)}"
                reject(column.name, "History", rule, length)

    def thinned(self, most: int = MOST) -> History:
        """Return at most so many rows, evenly spread, with the first and the last."""
        check_int("most", most, "thinned", 2)
        if len(self.decision) <= most:
            return self
        rows = np.linspace(0, len(self.decision) - 1, most).round().astype(int).tolist()
        columns = {one.name: getattr(self, one.name) for one in fields(self)}
        kept = {name: tuple(values[k] for k in rows) for name, values in columns.items() if values}
        return replace(self, **kept)


@dataclass(frozen=True)
class Facts:
    """All that is said of a live bandit.

    Attributes:
        name: Its name.
        agent: The name of its agent.
        arms: What is chosen from, in the user's order.
        num_decisions: How many decisions were asked for.
        num_open: How many of them wait for their reward.
        num_missing: How many will never have one.
        num_told: How many have theirs.
        num_given_up: How many are no longer waited for, as more than `lookback` came after them.
        time: Of when what is expected of the arms is: of the last decision or later; None where
            time is not told, or no decision was taken.
        noise_std: The standard deviation of a reward around its expected value, as learned.
        drift: That of the change of an expected reward in one step.
        drift_per_time: The same in one `time_unit`.
        memory: The number of past steps that the agent goes by; infinite: all.
        memory_time: The same in `time_unit`s.
        time_unit: What time is counted in, as "day"; empty: the user's numbers.
        clock: What time is told by.
        minimize: Whether rewards are to be small.
        unit: The agent's own unit.
        changes: The changes that it noticed, oldest first.
        choice: Why the last decision was taken.
        history: The past, thinned out.
    """

    name: str
    agent: str
    arms: tuple[Arm, ...]
    num_decisions: int = 0
    num_open: int = 0
    num_missing: int = 0
    num_told: int = 0
    num_given_up: int = 0
    time: float | None = None
    noise_std: float | None = None
    drift: float | None = None
    drift_per_time: float | None = None
    memory: float | None = None
    memory_time: float | None = None
    time_unit: str = ""
    clock: Clock = "decisions"
    minimize: bool = False
    unit: Unit = field(default_factory=Unit)
    changes: tuple[Change, ...] = ()
    choice: Choice | None = None
    history: History = field(default_factory=History)

    def __post_init__(self) -> None:
        if self.clock not in get_args(Clock):
            reject("clock", "Facts", f"one of {get_args(Clock)}", self.clock)

    @property
    def numeric(self) -> bool:
        """Whether the arms are numbers, which have places on an axis."""
        kinds = int | float | np.integer | np.floating
        return all(isinstance(a.label, kinds) and not isinstance(a.label, bool) for a in self.arms)

    def to_dict(self) -> dict[str, Json]:
        """Return everything as JSON holds it; what has no end is "inf"."""
        return {name: _plain(value) for name, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Json]) -> Self:
        """Return what `to_dict` was made of.

        Raises:
            ValueError: If it is nothing of the kind.
        """
        try:
            return _made(cls, values)
        except (TypeError, ValueError, AttributeError, KeyError) as error:
            reject("values", cls.__name__, f"what to_dict returns ({error})", values)


PARTS: Mapping[str, type] = {
    "arms": Arm,
    "unit": Unit,
    "changes": Change,
    "choice": Choice,
    "chosen": Considered,
    "runner_up": Considered,
    "history": History,
}
"""What stands in a field that holds one of these, or a tuple of them."""
TEXTS = ("label", "name", "agent", "time_unit", "clock", "transform")
"""Fields in which "inf" is a text."""


def _made(kind: Callable[..., Made], values: Mapping[str, Json]) -> Made:
    """Return a part, or the whole, from what JSON holds of it."""
    return kind(**{name: _read(name, value) for name, value in values.items()})


def _read(name: str, value: Json) -> object:
    """Return the value of a field."""
    if isinstance(value, list | tuple):
        return tuple(_read(name, one) for one in value)
    if isinstance(value, Mapping):
        return _made(PARTS[name], value)
    return float(value) if isinstance(value, str) and name not in TEXTS else value


def _plain(value: object) -> Json:
    """Return a value as JSON holds it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, bool | int | float) else str(value)
