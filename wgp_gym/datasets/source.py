"""Where a table is found, and its lines, read once and within limits."""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path

from wgp_gym.validation import reject, shown

__all__ = ["DATASETS", "MAX_LINE", "MAX_TEXT", "label", "locate", "read_lines"]

DATASETS = {
    "dow29": "dow29_2013_2016.csv.gz",
    "parking": "parking_birmingham16.csv.gz",
}
"""The embedded tables. Their provenance is in the README beside them."""

MAX_TEXT = 500_000_000  # characters of a table, unpacked
MAX_LINE = 1_000_000  # characters of a line


def label(path: Path) -> str:
    """Return a file's name as messages show it."""
    return path.name if path.name.isprintable() else shown(path.name)


def locate(source: str | Path, parameter: str) -> Path:
    """Return the absolute path of a data set's name or of a path; `~` is expanded.

    Args:
        source: The name of an embedded data set, or a path.
        parameter: What the caller calls the source, for its error.

    Raises:
        FileNotFoundError: If there is no such file, or it is a folder, a pipe or a device.
        ValueError: If the source is neither a text nor a path.
    """
    if not isinstance(source, (str, Path)):
        reject(parameter, "the table", "a path or the name of a data set", source)
    if str(source) in DATASETS:
        return Path(__file__).parent.absolute() / DATASETS[str(source)]
    try:
        path = Path(source).expanduser().absolute()
        found = path.is_file()
    except (OSError, RuntimeError, ValueError):  # as a name too long, or the home of nobody
        found = False
    if not found:
        known = ", ".join(map(repr, DATASETS))
        raise FileNotFoundError(
            f"There is no file {shown(str(source))} that can be read, and no data set of that "
            f"name (embedded: {known})."
        )
    return path


def read_lines(path: Path) -> Generator[str, None, None]:
    """Yield a file's lines with their ends, decompressed if its name ends in .gz.

    A byte order mark is dropped. No more than one line is held, however much a file unpacks to.

    Raises:
        ValueError: If it cannot be read, is not text, is not compressed where its name says so,
            or a line or the whole is longer than `MAX_LINE` or `MAX_TEXT` characters.
    """
    packed = path.suffix.lower() == ".gz"
    try:
        with (
            gzip.open(path, "rb") if packed else path.open("rb") as file,
            io.TextIOWrapper(file, "utf-8-sig", newline="") as text,
        ):
            yield from bounded(path, text)
    except (UnicodeDecodeError, gzip.BadGzipFile, EOFError, zlib.error):
        kind = "gzip-compressed UTF-8 text" if packed else "UTF-8 text"
        raise ValueError(f"{label(path)} must be {kind}.") from None
    except OSError as error:
        raise ValueError(f"{label(path)} cannot be read: {error.strerror or error}.") from None


def bounded(path: Path, text: io.TextIOWrapper) -> Iterator[str]:
    """Yield the lines of a text that is within the limits."""
    size = number = 0
    while line := text.readline(MAX_LINE + 1):
        number += 1
        size += len(line)
        if len(line) > MAX_LINE:
            rule = f"have at most {MAX_LINE:,} characters. It begins with {shown(line[:100])}"
            raise ValueError(f"{label(path)}, row {number} must {rule}.")
        if size > MAX_TEXT:
            rule = f"have at most {MAX_TEXT:,} characters, unpacked. Got more up to row {number}"
            raise ValueError(f"{label(path)} must {rule}.")
        if "\0" in line:
            raise ValueError(f"{label(path)} must be UTF-8 text. Row {number} has a NUL in it.")
        yield line
