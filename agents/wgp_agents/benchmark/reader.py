"""Reading the units of a folder of results, each file once however often it is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from wgp_agents.benchmark.experiment import Unit
from wgp_agents.benchmark.folder import ResultsFolder
from wgp_agents.benchmark.layout import Arrays

__all__ = ["UnitReader"]

MOST_KEPT = 2**28  # bytes; past them what was asked for least lately is read again


@dataclass(frozen=True)
class Stamp:
    """What changes when a file is written anew: a unit is always another file then."""

    inode: int
    modified: int
    size: int


class UnitReader:
    """Reads whole units, and keeps the last ones as long as their files stay the same."""

    def __init__(self, folder: ResultsFolder) -> None:
        self._folder = folder
        self._kept: dict[Path, tuple[Stamp, Arrays]] = {}  # the one asked for last stands last
        self._room = MOST_KEPT

    def read(self, unit: Unit) -> Arrays:
        """Return all arrays of a unit, which cannot be written to.

        Raises:
            ValueError, FileNotFoundError: As `ResultsFolder.read` does.
        """
        path = self._folder.file(unit)
        stamp = stamp_of(path)
        was, arrays = self._kept.pop(path, (None, {}))
        self._room += held(arrays)
        if was is None or was != stamp:
            arrays = self._folder.read(unit)
        if stamp is not None:
            self._kept[path] = stamp, arrays
            self._room -= held(arrays)
        while self._room < 0:
            self._room += held(self._kept.pop(next(iter(self._kept)))[1])
        return arrays


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of a file, None where there is none."""
    try:
        found = path.lstat()
    except OSError:
        return None
    return Stamp(found.st_ino, found.st_mtime_ns, found.st_size)


def held(arrays: Arrays) -> int:
    """Return the bytes of arrays."""
    return sum(array.nbytes for array in arrays.values())
