"""Times as users write them: dates, or numbers in a unit of their own."""

from __future__ import annotations

import math
import re
from datetime import UTC, date, datetime, time, timedelta
from typing import TypeAlias

import numpy as np

from wgp_gym.validation import is_number, reject

__all__ = ["Time", "Timescale", "as_seconds", "as_time", "is_date", "when"]

Time: TypeAlias = "float | str | date | datetime | np.datetime64"
Timescale: TypeAlias = "float | str | timedelta"

SECONDS = {
    "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "week": 604800.0,
    "s": 1.0, "sec": 1.0, "min": 60.0, "h": 3600.0, "hr": 3600.0, "d": 86400.0, "w": 604800.0,
}  # fmt: skip
DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)?\s*([a-z]+?)s?\s*")
SCALE_RULE = (
    "a number > 0, a timedelta, or a duration such as '1 day' or '6 hours' "
    f"(of {', '.join(SECONDS)})"
)
DATE_RULE = "a date, or a text such as '2026-05-01T12:00'"
TIME_RULES = {
    None: f"a finite number, {DATE_RULE}",
    True: f"{DATE_RULE}, as the timescale is a duration",
    False: "a finite number, as the timescale is one",
}  # by whether times are dates


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
        found, dated = as_float(timescale), False
    else:
        reject("timescale", owner, SCALE_RULE, timescale)
    if not (found > 0 and math.isfinite(found)):
        reject("timescale", owner, SCALE_RULE, timescale)
    return found, dated


def is_date(given: object) -> bool:
    """Tell whether a time is one of a calendar."""
    return isinstance(given, str | date | np.datetime64)


def as_time(given: object, owner: str, dated: bool | None = None) -> float:
    """Return a time as a number; a date as seconds since 1970, in UTC where it names no zone.

    Args:
        given: The time.
        owner: Whose parameter it is, for messages.
        dated: Whether it must be a date (True), or a number (False). Default: either.

    Raises:
        ValueError: If it is no such time.
    """
    rule = TIME_RULES[dated]
    if is_date(given) and dated is not False:
        moment = as_datetime(given)
        if moment is None:
            reject("time", owner, rule, given)
        return moment.timestamp()
    if dated or not is_number(given, int, float, np.integer, np.floating):
        reject("time", owner, rule, given)
    number = as_float(given)
    if not math.isfinite(number):
        reject("time", owner, rule, given)
    return number


def as_datetime(given: object) -> datetime | None:
    """Return a date with its zone; None if there is no such date."""
    if isinstance(given, str):
        try:
            given = datetime.fromisoformat(given)
        except ValueError:
            return None
    if isinstance(given, np.datetime64):
        given = given.astype("datetime64[us]").item()  # None or an int where it is none
    if isinstance(given, date) and not isinstance(given, datetime):
        given = datetime.combine(given, time())
    if not isinstance(given, datetime) or given != given:  # pandas' NaT
        return None
    return given if given.tzinfo is not None else given.replace(tzinfo=UTC)


def as_float(number: object) -> float:
    """Return a number as a float; one that is too large as inf."""
    try:
        return float(number)  # type: ignore[arg-type]  # whoever calls has looked
    except OverflowError:
        return math.inf


def when(number: float | None, dated: bool) -> float | datetime | None:
    """Return a time as the user has it: a date in UTC, or a number."""
    return datetime.fromtimestamp(number, UTC) if dated and number is not None else number
