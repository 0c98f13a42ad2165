"""Reading a table of times x arms, with an error that names the column and the row."""

from __future__ import annotations

import csv
import functools
import math
from array import array
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import chain, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wgp_gym.datasets.source import DATASETS, label, locate, read_lines
from wgp_gym.types import Array
from wgp_gym.validation import check_bool, shown

__all__ = ["MAX_ARMS", "MAX_CELLS", "MAX_NAME", "Table", "constant", "read_table"]

MAX_ARMS = 2_000  # whose kernel matrix is factorised, in two seconds
MAX_CELLS = 20_000_000  # of a table; a task on it takes 50 bytes for each, 1 GB
MAX_NAME = 1_000  # characters of an arm's name
LARGEST = 1e30  # size of a cell; rewards are rounded to single precision, which ends at 3e38
SMALLEST = 1e-30  # price, and range of a column; squares of either must be numbers
PRECISION = 1e-12  # range of a column, over its size, of which double precision leaves digits

Rows = Iterator[tuple[int, list[str]]]
"""Rows of cells, each with its number in the file, counted from 1."""


@dataclass(frozen=True, eq=False)
class Table:
    """What every arm is worth at every time.

    Attributes:
        times: The times as the file writes them, T of them, in increasing order.
        names: The arms' names, n of them.
        values: `(T, n)`, all finite.
    """

    times: list[str]
    names: list[str]
    values: Array


def read_table(
    source: str | Path, *, header: bool = True, positive: bool = False, parameter: str = "source"
) -> Table:
    """Read a CSV file whose first column is the time and whose others are the arms.

    Cells are separated by commas, semicolons or tabs; numbers have a decimal point. Times are
    ISO dates, ISO date-times, or numbers, one of these throughout. Files whose name ends in .gz
    are decompressed. The file is read once, row by row. A table has at most 2,000 arms and
    20,000,000 cells, blank lines at its end included; its text, unpacked, 500,000,000 characters,
    and 1,000,000 a line; an arm's name 1,000.

    Args:
        source: The name of an embedded data set (see `DATASETS`) or a path.
        header: Whether the first row names the arms; otherwise they are "arm 0", "arm 1", ...
        positive: Whether every value must be above zero, as prices are.
        parameter: What the caller calls the source, for its errors.

    Raises:
        FileNotFoundError: If there is no such file or data set.
        ValueError: If the file is not text or is too large; a cell is empty, not a number, beyond
            1e30 in size or, where it must be positive, below 1e-30; a time is unreadable,
            repeated or out of order; a column is constant; a row has the wrong length; there are
            fewer than two arms or two rows; or the header is a row of numbers. The message names
            the place.
    """
    check_bool("header", header, "the table")
    path = locate(source, parameter)
    if str(source) not in DATASETS:
        return parsed(path, header, positive)
    kept = embedded(path, header, positive)
    return Table([*kept.times], [*kept.names], kept.values.copy())


@functools.cache  # files of the package do not change; each task and agent asks for them again
def embedded(path: Path, header: bool, positive: bool) -> Table:
    """Return an embedded data set."""
    return parsed(path, header, positive)


def parsed(path: Path, header: bool, positive: bool) -> Table:
    """Return what a file holds; `read_table` says what is taken."""
    with closing(read_lines(path)) as lines:
        rows = read_rows(path, lines)
        number, first = next(rows, (1, []))
        body = rows if header else chain([(number, first)], rows)
        check_arms(path, first, body)
        names = read_names(path, first) if header else [f"arm {i}" for i in range(len(first) - 1)]
        times, values = read_body(path, names, body, positive)
    if len(times) < 2:
        raise too_few(path, len(names), len(times), first)
    check_constant(path, names, values)
    return Table(times, names, values)


def read_rows(path: Path, lines: Iterator[str]) -> Rows:
    """Yield each row's cells, with its number."""
    first = list(islice(lines, 2))
    separator = find_separator(first[0], first[-1]) if first else ","
    reader = csv.reader(chain(first, lines), delimiter=separator, strict=True)
    number = 0
    try:
        for row in reader:
            number += 1
            yield number, row
    except csv.Error as error:  # as a quotation mark that is never closed
        raise ValueError(f"{label(path)}, row {number + 1} must be CSV: {error}.") from None


def find_separator(first: str, second: str) -> str:
    """Return what separates the cells of a table that begins with these two lines.

    It is what both have equally often, at least twice; else what the first has most often.
    Numbers of a table with semicolons may have commas, but not the other way round.
    """
    for separator in ";,\t":
        if first.count(separator) == second.count(separator) >= 2:
            return separator
    return max(",;\t", key=first.count)


def check_arms(path: Path, first: list[str], body: Rows) -> None:
    """Check how many columns the first row has; `body` is the rows of times."""
    arms = max(len(first) - 1, 0)
    if arms > MAX_ARMS:
        raise ValueError(f"{label(path)} must have at most {MAX_ARMS:,} arms. Got {arms:,}.")
    if arms < 2:
        rows = sum(1 for _, row in islice(body, MAX_CELLS) if row)
        raise too_few(path, arms, rows, first)


def too_few(path: Path, arms: int, rows: int, first: list[str]) -> ValueError:
    """Return the error of a table that leaves nothing to choose, with its likely cause."""
    cells = "; ".join(map(shown, first[:3])) or "empty"
    return ValueError(
        f"{label(path)} must have at least two arms and two rows. Got {arms} and {rows}. Cells "
        f"are separated by commas, semicolons or tabs; those of row 1 were read as {cells}."
    )


def read_names(path: Path, header: list[str]) -> list[str]:
    """Return the arms' names, all different; else raise ValueError."""
    if time_of(header[0].strip()) and any(map(is_number, header[1:])):
        raise ValueError(
            f"{label(path)}, row 1 must name the columns. Got {shown(header[0])} and numbers: "
            "header=False reads a table without names."
        )
    names = [name.strip() for name in header[1:]]
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise ValueError(f"{label(path)} names the column {shown(name)} twice.")
        if len(name) > MAX_NAME:
            rule = f"names of at most {MAX_NAME:,} characters. Got {shown(name)}"
            raise ValueError(f"{label(path)}, row 1 must have {rule}.")
        seen.add(name)
    return names


def read_body(path: Path, names: list[str], rows: Rows, positive: bool) -> tuple[list[str], Array]:
    """Return the times and the values `(T, n)` of the rows; blank ones at the end do not count."""
    times: list[str] = []
    values = array("d")
    width, blank, last = len(names) + 1, 0, None
    for number, row in rows:
        if number * width > MAX_CELLS:
            raise ValueError(f"{label(path)} must have at most {MAX_CELLS:,} cells. Got more.")
        if not row:
            blank = blank or number
            continue
        if blank or len(row) != width:
            place = f"{label(path)}, row {blank or number}"
            got = 0 if blank else len(row)
            raise ValueError(f"{place} must have {width} cells. Got {got}.")
        values.extend(read_numbers(path, names, number, row, positive))
        times.append(row[0].strip())
        last = read_time(path, number, times[-1], last)
    return times, np.array(values).reshape(len(times), len(names))


def read_numbers(
    path: Path, names: list[str], number: int, row: list[str], positive: bool
) -> list[float]:
    """Return a row's values."""
    low = SMALLEST if positive else -LARGEST
    try:
        values = list(map(float, row[1:]))
    except ValueError:
        values = [math.nan]
    inside = low <= min(values) and max(values) <= LARGEST and not math.isnan(sum(values))
    if inside and "_" not in "".join(row[1:]):  # Python reads 1_000, others don't
        return values
    for name, cell in zip(names, row[1:], strict=True):
        value = float(cell) if is_number(cell) else math.nan
        if not low <= value <= LARGEST:
            place = f"{label(path)}, row {number} ({shown(row[0])[1:-1]}), column {shown(name)}"
            raise ValueError(f"{place} must be {wanted(cell, value, positive)}")
    raise AssertionError("a row that is refused has a cell that is")


def wanted(cell: str, value: float, positive: bool) -> str:
    """Return what a cell must be that is not, and what it is."""
    rule = f"a {'positive' if positive else 'finite'} number"
    if math.isfinite(value) and (value > 0 or not positive):
        rule = f"a number in [{SMALLEST if positive else -LARGEST:g}, {LARGEST:g}]"
    hint = " Numbers have a decimal point, no commas and no semicolons."
    return f"{rule}. Got {shown(cell)} instead.{hint if set(cell) & set(',;') else ''}"


def is_number(cell: str) -> bool:
    """Return whether a cell is a finite number."""
    try:
        return math.isfinite(float(cell)) and "_" not in cell
    except ValueError:
        return False


def read_time(
    path: Path, number: int, text: str, last: tuple[str, float] | None
) -> tuple[str, float]:
    """Return a row's time, later than the last one; else raise ValueError."""
    time = time_of(text)
    if time is None:
        raise ValueError(
            f"{label(path)}, row {number}, column 1 must be an ISO date (as 2016-01-04) or a "
            f"number. Got {shown(text)} instead."
        )
    if last is not None:
        if last[0] != time[0]:
            raise ValueError(f"{label(path)}, row {number} mixes dates and numbers as times.")
        if not last < time:
            fault = "repeats the time" if last == time else "is earlier than the row above:"
            where = f"{label(path)}, row {number}"
            raise ValueError(f"{where} {fault} {shown(text)[1:-1]}.")
    return time


def time_of(text: str) -> tuple[str, float] | None:
    """Return a time's kind, "number" or "date", and what can be compared: it, or seconds."""
    if is_number(text):
        return "number", float(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return "date", (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def constant(values: Array) -> NDArray[np.bool_]:
    """Return which columns of `values` `(T, n)` are constant but for rounding, `(n,)`.

    So are those that vary by less than 1e-12 of their size, or by less than 1e-30.
    """
    low, high = values.min(axis=0), values.max(axis=0)
    least = np.maximum(PRECISION * np.maximum(high, -low), SMALLEST)
    flat: NDArray[np.bool_] = high - low < least
    return flat


def check_constant(path: Path, names: list[str], values: Array) -> None:
    """Check that every arm's value changes, by more than rounding."""
    for i in np.flatnonzero(constant(values)):
        column, low, high = values[:, i], values[:, i].min(), values[:, i].max()
        place = f"{label(path)}, column {shown(names[i])} must"
        if low == high:
            raise ValueError(f"{place} not be constant. Got {column[0]:g} in every row.")
        raise ValueError(
            f"{place} vary by at least {PRECISION:g} of its size, and by {SMALLEST:g}. "
            f"Got {low!s} to {high!s}: subtract a constant from its values, or multiply them."
        )
