"""Times as users write them: dates, or numbers in a unit of their own."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta
from typing import TypeAlias

import numpy as np

from wgp_gym.validation import is_number, reject

__all__ = ["Time", "Timescale", "as_seconds", "as_time", "when"]

Time: TypeAlias = "float | str | date | datetime | np.datetime64"
Timescale: TypeAlias = "float | str | timedelta"

SECONDS = {
    "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0,
    "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0,
}  # fmt: skip
DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)?\s*([a-z]+?)s?\s*")
SCALE_RULE = "a number > 0, or a duration such as '1 day', '6 hours' or a timedelta"
TIME_RULE = "a finite number, a date, or a text such as '2026-05-01T12:00'"


def as_seconds(timescale: object, owner: str) -> tuple[float, bool]:
    """Return a timescale as a number, and whether it is a duration: then in seconds.

    Raises:
        ValueError: If it is no timescale.
    """
    if isinstance(timescale, timedelta):
        found, dated = timescale.total_seconds(), True
    elif isinstance(timescale, str):
        match = DURATION.fullmatch(timescale.lower())
        unit = None if match is None else SECONDS.get(match[2], SECONDS.get(match[2] + "s"))
        if match is None or unit is None:
            reject("timescale", owner, SCALE_RULE, timescale)
        found, dated = float(match[1] or 1) * unit, True
    elif is_number(timescale, int, float, np.integer, np.floating):
        found, dated = float(timescale), False  # type: ignore[arg-type]  # one of the kinds above
    else:
        reject("timescale", owner, SCALE_RULE, timescale)
    if not (found > 0 and math.isfinite(found)):
        reject("timescale", owner, SCALE_RULE, timescale)
    return found, dated


def as_time(given: object, owner: str) -> float:
    """Return a time as a number; a date as seconds since 1970, in UTC where it names no zone.

    Raises:
        ValueError: If it is no time.
    """
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given)
        except ValueError:
            reject("time", owner, TIME_RULE, given)
    if isinstance(given, np.datetime64):
        given = given.astype("datetime64[us]").item()
    if isinstance(given, date) and not isinstance(given, datetime):
        given = datetime.combine(given, time())
    if isinstance(given, datetime):
        moment = given if given.tzinfo is not None else given.replace(tzinfo=UTC)
        return moment.timestamp()
    if not is_number(given, int, float, np.integer, np.floating) or isinstance(given, bool):
        reject("time", owner, TIME_RULE, given)
    number = float(given)  # type: ignore[arg-type]  # one of the kinds above
    if not math.isfinite(number):
        reject("time", owner, TIME_RULE, given)
    return number


def when(number: float | None, dated: bool) -> float | datetime | None:
    """Return a time as the user has it: a date in UTC, or a number."""
    return datetime.fromtimestamp(number, UTC) if dated and number is not None else number
