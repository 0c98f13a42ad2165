"""Where sensors stand in the plane, read from a file of name, x and y."""

from __future__ import annotations

import csv
from contextlib import closing
from pathlib import Path

import numpy as np

from wgp_gym.datasets.source import label, locate, read_lines
from wgp_gym.datasets.table import MAX_ARMS, find_separator, is_number
from wgp_gym.types import Array
from wgp_gym.validation import shown

__all__ = ["read_places"]

LARGEST = 1e9  # size of a coordinate


def read_places(source: str | Path, names: list[str] | None = None) -> tuple[list[str], Array]:
    """Read a CSV file of one row a sensor: its name, x and y. A first row of words is left out.

    Args:
        source: A path.
        names: The sensors, in the order to return them in; None: those of the file, in its order.

    Returns:
        The names, and the places in [0, 1]^2, `(n, 2)`: shifted, and scaled by the same number
        along both axes.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If a row is not of this kind, a name stands there twice or not at all, or two
            sensors stand at one place. The message names the row or the sensor.
    """
    path = locate(source, "places")
    found = read_named(path)
    names = [*found] if names is None else names
    for name in names:
        if name not in found:
            raise ValueError(f"{label(path)} must have a row for the sensor {shown(name)}.")
    if not 2 <= len(names) <= MAX_ARMS:
        raise ValueError(f"{label(path)} must have 2 to {MAX_ARMS:,} rows. Got {len(names)}.")
    points = np.array([found[name] for name in names])
    points -= points.min(axis=0)
    size = float(points.max())
    points /= size if size > 0 else 1.0
    if len(np.unique(points.astype(np.float32), axis=0)) < len(points):
        raise ValueError(f"{label(path)} must have sensors at different places.")
    return names, points


def read_named(path: Path) -> dict[str, tuple[float, float]]:
    """Return the coordinates of every row by its name."""
    found: dict[str, tuple[float, float]] = {}
    with closing(read_lines(path)) as lines:
        text = [line for _, line in zip(range(MAX_ARMS + 3), lines, strict=False)]
    separator = find_separator(text[0], text[-1]) if text else ","
    for number, row in enumerate(csv.reader(text, delimiter=separator), start=1):
        numbers = [float(cell) for cell in row[1:] if is_number(cell)]
        if not row or (number == 1 and len(row) == 3 and not numbers):
            continue
        if len(row) != 3 or len(numbers) != 2 or max(map(abs, numbers)) > LARGEST:
            rule = f"a name and two numbers of at most {LARGEST:g}"
            raise ValueError(f"{label(path)}, row {number} must be {rule}. Got {shown(row)}.")
        name = row[0].strip()
        if name in found:
            raise ValueError(f"{label(path)}, row {number} names {shown(name)} once more.")
        found[name] = numbers[0], numbers[1]
    return found
