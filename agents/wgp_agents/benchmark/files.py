"""Result files, each written whole or not at all, and the versions that stand in them."""

from __future__ import annotations

import csv
import io
import json
import os
import platform
import stat
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

PACKAGES = (
    "wgp-gym",
    "gymnasium",
    "numpy",
    "scipy",
    "numba",
    "joblib",
    "threadpoolctl",
    "matplotlib",
)


JSON: TypeAlias = "bool | int | float | str | list[JSON] | dict[str, JSON] | None"
"""A value of JSON; one of TOML as well, which has no null."""

Row: TypeAlias = Mapping[str, object]
"""A row of a table by its columns' names, of values that are written as they are."""


class Damaged(ValueError):
    """A file that does not hold what it should."""


def versions(others: Sequence[str] = ()) -> dict[str, str]:
    """Return the versions of Python and of the packages that results depend on."""
    named = {package: version(package) for package in (*PACKAGES, *others)}
    return named | {"python": platform.python_version()}


def other_versions(was: Mapping[str, str], others: Sequence[str] = ()) -> list[str]:
    """Return the packages whose versions are others than those of earlier results."""
    return [name for name, now in versions(others).items() if was.get(name) != now]


def write_manifest(path: Path, content: Mapping[str, object], others: Sequence[str] = ()) -> None:
    """Write what is to be said of results, and the versions."""
    write_json(path, {**content, "versions": versions(others)})


def write_json(path: Path, content: Mapping[str, object]) -> None:
    """Write what JSON can hold, for people and programs."""
    write_whole(path, (json.dumps(content, indent=2) + "\n").encode())


def write_csv(path: Path, rows: Sequence[Row], columns: Sequence[str] | None = None) -> None:
    """Write rows of equal keys; without a row, the columns must be named."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, columns or list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_whole(path, text.getvalue().encode())


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that an interrupt leaves the old one or the new one, never a half."""
    part = path.with_name(path.name + ".part")
    part.unlink(missing_ok=True)  # were it a link, something else would be written
    part.write_bytes(data)
    os.replace(part, path)


def read_whole(path: Path, most: int) -> bytes:
    """Return what a file of at most `most` bytes holds.

    Raises:
        FileNotFoundError: If there is none.
        Damaged: If it is a link, a folder or anything else than a file, or larger.
    """
    check_ordinary(path)
    if path.lstat().st_size > most:
        raise Damaged("is larger than it can be.")
    with path.open("rb") as file:
        return file.read(most)


def check_ordinary(path: Path, *, folder: bool = False) -> None:
    """Check that what stands at a path is a file, or a folder, and no link to one elsewhere."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        raise Damaged("is a link: nothing that is elsewhere is read or written.")
    if not (stat.S_ISDIR if folder else stat.S_ISREG)(mode):
        raise Damaged(f"is not {'a folder' if folder else 'an ordinary file'}.")
