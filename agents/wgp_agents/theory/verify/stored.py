"""The folder of `wgp-gym verify`: each check's findings in a file of its own, written whole."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np

from wgp_agents.benchmark.files import (
    JSON,
    Damaged,
    other_versions,
    read_whole,
    write_json,
    write_manifest,
)
from wgp_agents.benchmark.output import (
    check_no_link,
    diff_settings,
    locked_folder,
    raise_other_results,
    warn_of_versions,
)
from wgp_agents.theory.verify.row import Curve, Findings, Row
from wgp_gym.types import Array

__all__ = ["TEXTS", "ChecksFolder", "Settings"]

FORMAT = "wgp-gym verify 2"
MANIFEST, FOLDER = "manifest.json", "checks"
MOST_BYTES = 1 << 24  # of a file of findings: the largest has 100,000
TEXTS = ("statement", "claim", "instance", "documented", "control")
OPTIONAL = ("bound", "trivial")  # null where there is none; elsewhere null stands for NaN


class Settings(NamedTuple):
    """What the findings follow from, beside the release."""

    quick: bool  # whether runs are fewer and horizons shorter
    seed: int  # what all randomness follows from


class ChecksFolder:
    """The findings of the checks that were done with the same settings."""

    def __init__(self, path: Path, settings: Settings) -> None:
        self.path = path
        self.settings = settings

    @classmethod
    @contextmanager
    def open_to_write(cls, path: Path, settings: Settings) -> Iterator[Self]:
        """Lock a folder for this process, to write findings; it is made if need be."""
        for name in (MANIFEST, FOLDER):
            check_no_link(path / name, folder=name == FOLDER)
        with locked_folder(path, MANIFEST, [f"{MANIFEST}.part"], "wgp-gym verify"):
            folder = cls(path, settings)
            folder._claim()
            yield folder

    def _claim(self) -> None:
        """Write the manifest, unless that of the same settings is there."""
        settings = self.settings._asdict() | {"wgp-gym": version("wgp-gym")}
        manifest = self.path / MANIFEST
        if manifest.exists():
            content = read_manifest(manifest)
            if found := diff_settings(content["settings"], settings):
                raise_other_results(self.path, "run of the checks", found)
            warn_of_versions(manifest, other_versions(content["versions"]))
            return
        write_manifest(manifest, {"format": FORMAT, "settings": settings})

    def read(self, name: str) -> Findings:
        """Return the findings of a check.

        Raises:
            FileNotFoundError: If it was not done yet.
            Damaged: If the file does not hold what was written for this very check.
        """
        path = self.path / FOLDER / f"{name}.json"
        try:
            content = json.loads(read_whole(path, MOST_BYTES))
            if content["check"] != name or content["settings"] != self.settings._asdict():
                raise Damaged("holds the findings of another check.")
            rows = [read_row(row) for row in content["rows"]]
            return Findings(rows, [read_curve(curve) for curve in content["curves"]])
        except Damaged as error:
            raise Damaged(f"{path} {error}") from None
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise Damaged(f"{path} holds no findings ({type(error).__name__}).") from error

    def write(self, name: str, findings: Findings) -> None:
        """Write the findings of a check, whole or not at all."""
        whose = {"check": name, "settings": self.settings._asdict()}
        (self.path / FOLDER).mkdir(exist_ok=True)
        write_json(self.path / FOLDER / f"{name}.json", whose | encoded(findings))


def read_manifest(path: Path) -> dict[str, Any]:
    """Return what a manifest says."""
    try:
        content = json.loads(read_whole(path, MOST_BYTES))
        tables = content["settings"], content["versions"]
        if content["format"] == FORMAT and all(isinstance(one, dict) for one in tables):
            return dict(content)
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise ValueError(f"{path} is no manifest of `wgp-gym verify`. Choose another folder.")


def encoded(findings: Findings) -> dict[str, object]:
    """Return findings as plain JSON values; null stands for NaN, and for what is not there."""
    return {
        name: [{key: encode(key, value) for key, value in one._asdict().items()} for one in part]
        for name, part in findings._asdict().items()
    }


def encode(key: str, value: object) -> object:
    """Return a field's plain value; a bound that is NaN stays so, since null is none at all."""
    found = plain(value)
    return math.nan if key in OPTIONAL and found is None and value is not None else found


def plain(value: object) -> object:
    """Return a value without types of numpy's and without NaN."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list):
        return [plain(one) for one in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def read_row(row: dict[str, JSON]) -> Row:
    """Return a row of the plain values in a table."""
    values = {name: row[name] for name in Row._fields}
    for name, value in values.items():
        number = value is None or type(value) in (int, float)
        if not (isinstance(value, str) if name in TEXTS else number):
            raise ValueError(name)
    given: dict[str, Any] = {
        name: math.nan if v is None and name not in OPTIONAL else v for name, v in values.items()
    }
    return Row(**given)


def read_curve(curve: dict[str, Any]) -> Curve:
    """Return a curve of the plain values in a table."""
    columns = [None if curve[key] is None else array(curve[key]) for key in ("low", "high")]
    x, y = array(curve["x"]), array(curve["y"])
    if any(column is not None and column.shape != x.shape for column in (y, *columns)):
        raise ValueError("columns of one length")
    return Curve(str(curve["panel"]), str(curve["label"]), x, y, *columns)


def array(values: list[int | float | None]) -> Array:
    """Return numbers as an array of one axis; whole ones stay whole."""
    if not all(value is None or type(value) in (int, float) for value in values):
        raise TypeError("numbers")
    return np.array([math.nan if value is None else value for value in values])
