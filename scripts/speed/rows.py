"""A row of the table of speeds, and how its times are taken."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

__all__ = ["Row", "best", "printed", "times"]


class Row(NamedTuple):
    """What was measured, beside what one would use instead.

    Attributes:
        what: What was done.
        ours: What it took here.
        unit: In which unit both are.
        peer: What it is compared with; empty: nothing.
        theirs: What it took there.
        more: Whether more is better, as of steps a second.
    """

    what: str
    ours: float
    unit: str
    peer: str = ""
    theirs: float = float("nan")
    more: bool = False

    @property
    def ratio(self) -> float:
        """How many times as fast ours is; NaN without a peer."""
        return self.ours / self.theirs if self.more else self.theirs / self.ours


def times(step: Callable[[], object], count: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Return the seconds of each of `count` calls."""
    found = np.empty(count)
    for t in range(count):
        start = time.perf_counter()
        step()
        found[t] = time.perf_counter() - start
    return found


def best(call: Callable[[], object], repeats: int = 3) -> float:
    """Return the fewest seconds of some calls."""
    return float(times(call, repeats).min())


def three_digits(value: float) -> str:
    """Return a number to three digits, without a power of ten; nothing for NaN."""
    return "" if np.isnan(value) else f"{float(f'{value:.3g}'):,.10g}"


def amount(value: float, unit: str) -> str:
    """Return a value with its unit, many microseconds as milliseconds; nothing for NaN."""
    if unit == "µs" and value >= 10_000:
        value, unit = value / 1_000, "ms"
    return f"{three_digits(value)} {unit}" if value == value else ""


def printed(rows: Sequence[Row]) -> str:
    """Return the rows as a Markdown table, ratios first."""
    lines = ["| times as fast | what | ours | instead | theirs |", "|---:|---|---:|---|---:|"]
    for row in rows:
        ours, theirs = amount(row.ours, row.unit), amount(row.theirs, row.unit)
        cells = three_digits(row.ratio), row.what, ours, row.peer, theirs
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)
