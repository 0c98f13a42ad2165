"""A log of decisions, as another system has kept it: a pandas DataFrame or a CSV file."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from os import PathLike
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from wgp_gym.types import Array, Indices, Mask
from wgp_gym.validation import as_floats, cut, is_number, reject, shown

if TYPE_CHECKING:
    import pandas

__all__ = [
    "Context",
    "Decisions",
    "Label",
    "LogLike",
    "Reader",
    "read_decisions",
    "read_table",
    "reader_of",
]

Label: TypeAlias = Any
"""What a user calls an arm: a name, a number."""
Context: TypeAlias = Mapping[str, object]
"""What was known when a decision was taken, by the names of its columns."""
Reader: TypeAlias = Callable[[str], object]
"""What makes a value of a text in a file."""
LogLike: TypeAlias = "pandas.DataFrame | str | PathLike[str]"

NEEDED = ("arm", "reward")
CONTEXT = "context"
NO_TIMES = "left out: the log has no column 'time'"
SORTED = "sorted by 'time', with a time in every row"


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decisions in the order in which they were taken, those without a reward left out.

    Attributes:
        arms: The arms that were played, as indices, `(n,)`.
        rewards: Their rewards, finite, `(n,)`.
        num_arms: How many arms K there are.
        num_missing: How many decisions were left out, since they have no reward.
        propensities: The probability of each choice when it was taken, in (0, 1], `(n,)`; None
            where the log does not say.
        elapsed: The time since the row before, in units of `timescale`, `(n,)`, 0 in the first;
            None: time is not told.
        allowed: Which arms there were to choose from, `(n, K)`; None: all.
        contexts: What was known, one for each decision; None where the log has no such columns.
    """

    arms: Indices
    rewards: Array
    num_arms: int
    num_missing: int = 0
    propensities: Array | None = None
    elapsed: Array | None = None
    allowed: Mask | None = None
    contexts: Sequence[Context] | None = None

    def __len__(self) -> int:
        return len(self.arms)

    def among(self, there: Mask) -> Decisions:
        """Return the same log for an agent that has only the arms that are there, `(K,)`.

        What was played may be another.

        Raises:
            ValueError: If none of them was allowed in some row.
        """
        allowed = np.broadcast_to(there, (len(self), self.num_arms))
        if self.allowed is not None:
            allowed = allowed & self.allowed
        none = ~allowed.any(axis=1)
        if none.any():
            rule = "a table whose every row allows an arm that is there"
            reject("log", "replay", rule, f"row {int(none.argmax())}")
        return replace(self, allowed=allowed)


def read_decisions(
    log: LogLike,
    arms: Sequence[Label] | Callable[[Label], int],
    *,
    num_arms: int | None = None,
    timescale: float | str | timedelta | None = None,
) -> Decisions:
    """Read a log with the columns `arm` and `reward`, and others that it may have.

    `propensity` is the probability with which the choice was taken; `time` when, a number or a
    date; `allowed` the arms that there were, as a list of labels (in a CSV file: in JSON);
    columns whose names begin with "context" are what was known.

    Args:
        log: A DataFrame, or the path of a CSV file.
        arms: The labels of all arms, in the agent's order; or what gives a label's index.
        num_arms: How many arms there are; needed where `arms` is a function.
        timescale: How long a step of the world takes: a number in the unit of `time`, or, where
            `time` is a date, a span as "1 day". Default: time is not read.

    Raises:
        ValueError: If a column is missing, or holds what it should not; the message names the row.
        ModuleNotFoundError: If pandas is not installed: the extra "tables" brings it.
    """
    index, count = _indices(arms, num_arms)
    texts = not callable(arms) and all(isinstance(one, str) for one in arms)
    frame = read_table(log, {"arm": str} if texts else {})
    for name in NEEDED:
        if name not in frame.columns:
            reject("log", "replay", f"a table with the columns {NEEDED}", list(frame.columns))
    rewards = _numbers(frame, "reward")
    kept = ~np.isnan(rewards)
    elapsed = None if timescale is None else _elapsed(frame, timescale, kept)
    frame, rewards = frame[kept], rewards[kept]
    if not len(rewards) or not np.isfinite(rewards).all():
        reject("log", "replay", "a table with at least one reward, all of them finite", rewards)
    propensities = None
    if "propensity" in frame.columns:
        propensities = _numbers(frame, "propensity")
        _check_each(propensities, (propensities > 0) & (propensities <= 1), "propensity", "(0, 1]")
    played = np.array([index(label) for label in frame["arm"].tolist()], np.int64)
    return Decisions(
        played,
        rewards,
        count,
        int((~kept).sum()),
        propensities,
        elapsed,
        _allowed(frame, index, count, played),
        _contexts(frame),
    )


def read_table(log: LogLike, readers: Mapping[str, Reader]) -> pandas.DataFrame:
    """Return the table of a log; of a file, some columns as they are read from its texts.

    Args:
        log: A DataFrame, or the path of a CSV file.
        readers: What makes a value of each text in these columns, as "007" and "NA".
    """
    import pandas

    if isinstance(log, pandas.DataFrame):
        return log
    return pandas.read_csv(log, converters=dict(readers))


def reader_of(labels: Sequence[object]) -> Reader | None:
    """Return what reads these labels from a file; None: none is a text, pandas reads the rest."""
    if not any(isinstance(one, str) for one in labels):
        return None
    known = {f"{one:g}": one for one in labels if is_number(one, int, float)}  # 10.0 is also "10"
    known |= {str(one): one for one in labels if not isinstance(one, str)}
    known |= {one: one for one in labels if isinstance(one, str)}  # the text "1" before the number
    return lambda text: known.get(text, text)


def _indices(
    arms: Sequence[Label] | Callable[[Label], int], num_arms: int | None
) -> tuple[Callable[[Label], int], int]:
    """What gives a label's index, and how many arms there are."""
    labels: dict[Label, int] = {}
    if callable(arms):
        if num_arms is None:
            reject("num_arms", "replay", "given where arms is a function", num_arms)
        given, count = arms, num_arms
    else:
        labels = {label: k for k, label in enumerate(arms)}
        given, count = labels.__getitem__, len(arms)
        if len(labels) != count or not count:
            reject("arms", "replay", "labels that are all different, at least one", arms)

    def _index(label: Label) -> int:
        try:
            found = given(label)
        except (KeyError, TypeError):  # TypeError: of a list, which no dictionary has
            found = -1
        if not 0 <= found < count:
            known = f"one of {cut(', '.join(map(shown, labels)))}" if labels else "known"
            reject("log", "replay", f"a table whose every arm is {known}", label)
        return int(found)

    return _index, count


def _numbers(frame: pandas.DataFrame, column: str) -> Array:
    """A column as floats; NaN where nothing stands."""
    values = frame[column]
    rule = f"a table whose {column!r} are numbers"
    if values.dtype == object and values.isna().any():
        values = values.astype(float) if all(isinstance(v, int | float) for v in values) else values
    return as_floats("log", values.to_numpy(), "replay", rule)


def _check_each(values: Array, good: Mask, column: str, rule: str) -> None:
    if not good.all():
        row = int(good.argmin())
        at = f"a table whose {column!r} are all in {rule}, row {row} too"
        reject("log", "replay", at, float(values[row]))


def _elapsed(frame: pandas.DataFrame, timescale: float | str | timedelta, kept: Mask) -> Array:
    """The steps since the row before, of the rows that are kept."""
    import pandas

    if "time" not in frame.columns:
        reject("timescale", "replay", NO_TIMES, timescale)
    times = frame["time"]
    if not pandas.api.types.is_numeric_dtype(times):
        if isinstance(timescale, int | float):
            rule = "a span as '1 day', where times are dates"
            reject("timescale", "replay", rule, timescale)
        try:
            dates = pandas.to_datetime(times, utc=True, format="ISO8601")
            timescale = pandas.Timedelta(timescale).total_seconds()
        except ValueError:
            rule = "a span as '1 day', beside times that are dates as 2026-12-31 or numbers"
            reject("timescale", "replay", rule, timescale)
        times = (dates - pandas.Timestamp(0, tz="UTC")) / pandas.Timedelta(seconds=1)
    if not (isinstance(timescale, int | float) and timescale > 0):
        rule = "a number above 0, in the unit of 'time', where that is no date"
        reject("timescale", "replay", rule, timescale)
    steps = np.diff(as_floats("log", times.to_numpy(), "replay", "of numeric times")[kept])
    if not (steps >= 0).all():  # NaN is not either
        reject("log", "replay", SORTED, times.to_numpy())
    return np.concatenate([[0.0], steps / timescale])


def _allowed(
    frame: pandas.DataFrame, index: Callable[[Label], int], count: int, played: Indices
) -> Mask | None:
    """Which arms there were, `(n, K)`."""
    if "allowed" not in frame.columns:
        return None
    found = np.zeros((len(frame), count), bool)
    for row, cell in enumerate(frame["allowed"].tolist()):
        labels = json.loads(cell) if isinstance(cell, str) else cell
        if not isinstance(labels, Sequence | set | frozenset | np.ndarray):
            reject("log", "replay", "a table whose 'allowed' are lists of labels", cell)
        found[row, [index(label) for label in labels]] = True
        if not found[row, played[row]]:
            reject("log", "replay", f"a table whose row {row} has its arm among 'allowed'", cell)
    return found


def _contexts(frame: pandas.DataFrame) -> list[Context] | None:
    """What was known at each decision."""
    names = [name for name in frame.columns if str(name).startswith(CONTEXT)]
    if not names:
        return None
    return [
        {str(key): value for key, value in row.items()} for row in frame[names].to_dict("records")
    ]
