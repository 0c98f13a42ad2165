"""The decisions of another system that a bandit learns from: read, and seen to be in order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from wgp_agents.live.arms import Choices
from wgp_agents.live.decisions import NO_TIMES, SORTED
from wgp_agents.live.occasion import time_of
from wgp_agents.live.past import Row, rows_of_log, table_of
from wgp_agents.live.settings import Settings
from wgp_agents.live.times import Time
from wgp_gym.validation import reject

if TYPE_CHECKING:
    from wgp_agents.live.decisions import LogLike

__all__ = ["owner_of_row", "rows_to_fit"]


def rows_to_fit(log: LogLike, settings: Settings, choices: Choices) -> list[Row]:
    """Return the decisions of a log; where times are missing, and need not be there, they are None.

    Raises:
        ValueError: If they are not in the order of time, or a time is missing that is needed.
        ModuleNotFoundError: If pandas is not installed: the extra "live" brings it.
    """
    table = table_of(log, settings, choices)
    rows = list(rows_of_log(table))
    if settings.timescale is not None and "time" not in table.columns:
        reject("timescale", "fit", NO_TIMES, settings.timescale)
    rows = [row._replace(time=None) if is_missing(row.time) else row for row in rows]
    check_order(rows, settings)
    return rows


def check_order(rows: Sequence[Row], settings: Settings) -> None:
    """Raise ValueError unless times never fall and, with a timescale, none is missing."""
    before: float | None = None
    for i, row in enumerate(rows):
        if row.time is None and settings.timescale is None:
            continue
        if row.time is None:
            reject("log", "fit", SORTED, f"none in row {i}")
        now = time_of(settings, cast("Time", row.time), owner_of_row(i))
        if before is not None and now < before:
            reject("log", "fit", SORTED, f"{row.time} in row {i}")
        before = now


def is_missing(time: object) -> bool:
    """Tell whether a table has no time in a cell: None, NaN or NaT."""
    return time is None or bool(time != time)


def owner_of_row(i: int) -> str:
    """Return how messages call a row of the log."""
    return f"fit (row {i})"
