"""Reading a table of times x arms, with an error that names the column and the row."""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import numpy as np

from wgp_gym.kernels import Array
from wgp_gym.validation import reject

__all__ = ["DATASETS", "Table", "read_table"]

DATASETS = {
    "dow29": "dow29_2013_2016.csv.gz",
    "parking": "parking_birmingham16.csv.gz",
}
"""The embedded tables. Their provenance is in the README beside them."""


@dataclass(frozen=True, eq=False)
class Table:
    """Values of n arms at T times.

    Attributes:
        times: The first column as it stands in the file, T of them, in increasing order.
        names: The arms' names, n of them.
        values: `(T, n)`, all finite.
    """

    times: list[str]
    names: list[str]
    values: Array


def read_table(source: str | Path, *, positive: bool = False, parameter: str = "source") -> Table:
    """Read a CSV file whose first column is the time and whose others are the arms.

    Times are ISO dates, ISO date-times, or numbers, one of these throughout. Files whose name
    ends in .gz are decompressed.

    Args:
        source: The name of an embedded data set (see `DATASETS`) or a path.
        positive: Whether every value must be above zero, as prices are.
        parameter: What the caller calls the source, for its errors.

    Raises:
        FileNotFoundError: If there is no such file or data set.
        ValueError: If a cell is empty, not a number or not positive where it must be, a time
            is unreadable, repeated or out of order, a column is constant, a row has the wrong
            length, or there are fewer than two arms or two rows. The message names the place.
    """
    path = locate(source, parameter)
    with io.StringIO(read_text(path), newline="") as text:
        rows = list(csv.reader(text))
    while rows and not rows[-1]:
        rows.pop()  # blank lines at the end
    header, body = (rows[0], rows[1:]) if rows else ([], [])
    names = [name.strip() for name in header[1:]]
    if len(names) < 2 or len(body) < 2:
        found = f"{len(names)} and {len(body)}"
        raise ValueError(f"{path.name} must have at least two arms and two rows. Got {found}.")
    if len(set(names)) < len(names):
        double = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{path.name} names the column {double!r} twice.")
    values = np.array([list(read_row(path, names, *row, positive)) for row in numbered(body)])
    times = [row[0].strip() for row in body]
    check_times(path, times)
    check_constant(path, names, values)
    return Table(times, names, values)


def locate(source: str | Path, parameter: str) -> Path:
    """Return the file of a data set's name or of a path.

    Raises:
        FileNotFoundError: If there is none.
    """
    if not isinstance(source, (str, Path)):
        reject(parameter, "the table", "a path or the name of a data set", source)
    if str(source) in DATASETS:
        return Path(__file__).parent / DATASETS[str(source)]
    path = Path(source).expanduser()
    if not path.is_file():
        known = ", ".join(map(repr, DATASETS))
        raise FileNotFoundError(
            f"There is no file {str(source)!r} and no data set of that name (embedded: {known})."
        )
    return path


def read_text(path: Path) -> str:
    """Return a file's text, decompressed if its name ends in .gz; a byte order mark is dropped.

    Raises:
        ValueError: If it is not text, or not compressed where its name says so.
    """
    data = path.read_bytes()
    try:
        return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8-sig")
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error):
        kind = "gzip-compressed UTF-8 text" if path.suffix == ".gz" else "UTF-8 text"
        raise ValueError(f"{path.name} must be {kind}.") from None


def numbered(body: list[list[str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield each row with its number in the file, where the header is row 1."""
    yield from enumerate(body, start=2)


def read_row(
    path: Path, names: list[str], number: int, row: list[str], positive: bool
) -> Iterator[float]:
    """Yield a row's values."""
    if len(row) != len(names) + 1:
        raise ValueError(
            f"{path.name}, row {number} must have {len(names) + 1} cells. Got {len(row)}."
        )
    for name, cell in zip(names, row[1:], strict=True):
        try:
            value = float(cell) if "_" not in cell else math.nan  # Python reads 1_000, others don't
        except ValueError:
            value = math.nan
        if not math.isfinite(value) or (positive and value <= 0):
            rule = "a positive number" if positive else "a finite number"
            raise ValueError(
                f"{path.name}, row {number} ({row[0]}), column {name!r} must be {rule}. "
                f"Got {cell!r} instead."
            )
        yield value


def check_times(path: Path, times: list[str]) -> None:
    """Check that the first column increases from row to row."""
    keys = [read_time(path, number, time) for number, time in enumerate(times, start=2)]
    for number, (earlier, later) in enumerate(pairwise(keys), start=3):
        if earlier[0] != later[0]:
            raise ValueError(f"{path.name}, row {number} mixes dates and numbers as times.")
        if not earlier < later:
            fault = "repeats the time" if earlier == later else "is earlier than the row above:"
            raise ValueError(f"{path.name}, row {number} {fault} {times[number - 2]}.")


def read_time(path: Path, number: int, text: str) -> tuple[str, float]:
    """Return a time's kind, "number" or "date", and what can be compared: it, or seconds."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isfinite(value):
        return "number", value
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{path.name}, row {number}, column 1 must be an ISO date (as 2016-01-04) or a "
            f"number. Got {text!r} instead."
        ) from None
    return "date", (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def check_constant(path: Path, names: list[str], values: Array) -> None:
    """Check that every arm's value changes at least once."""
    for name, column in zip(names, values.T, strict=True):
        if np.ptp(column) == 0:
            raise ValueError(
                f"{path.name}, column {name!r} must not be constant. Got {column[0]:g} in every "
                "row."
            )
