"""Small experiments for the tests of the harness."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w

from wgp_agents.benchmark.declaration import declare
from wgp_agents.benchmark.experiment import Unit
from wgp_agents.benchmark.parallel import Workers
from wgp_agents.benchmark.run import run

ABRUPT = "WGPBandit-Abrupt-v0"
Table = dict[str, Any]

WINDOWS: Table = {"name": "sw-gp-ucb", "parameters": {"window": [5, 10]}}
CHANCE: Table = {"name": "random"}
SIX_RUNS: Table = {
    "title": "small",
    "seeds": 6,
    "horizon": 20,
    "batch": 2,
    "environment": [{"id": ABRUPT, "kwargs": {"change_points": [[7, 14]]}}],
    "agent": [WINDOWS, CHANCE],
}
"""Three agents, nine units."""

FAILS: Table = SIX_RUNS | {
    "seeds": 4,
    "batch": 1,
    "environment": [
        {
            "id": ABRUPT,
            "kwargs": {"change_points": [[7, 14]], "norm_bound": 5, "variation_budget": 10},
        }
    ],
}
"""Run 1 cannot be drawn: its changes do not fit into the norm bound."""


def play(values: Table, folder: Path, jobs: int = 1, *, extend: bool = False) -> list[Unit]:
    """Run a declaration; return the units that failed."""
    return run(declare(values), folder, Workers(jobs), extend=extend)


def stored(folder: Path, *endings: str) -> dict[str, bytes]:
    """Return what stands in a folder's files, those of its units without endings."""
    found = sorted(folder.rglob("*"))
    wanted = [path for path in found if path.suffix in (endings or (".npz",))]
    return {str(path.relative_to(folder)): path.read_bytes() for path in wanted}


def members(data: bytes) -> dict[str, bytes]:
    """Return what an archive holds, by name."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(parts: dict[str, bytes], method: int = zipfile.ZIP_STORED) -> bytes:
    """Return an archive, with checksums that fit."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return buffer.getvalue()


def saved(array: Any) -> bytes:
    """Return the bytes of an array's file."""
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def write_toml(path: Path, values: Table) -> Path:
    """Write a declaration to a file."""
    path.write_text(tomli_w.dumps(values), "utf-8")
    return path


@contextmanager
def full_disk(path: Path) -> Iterator[None]:
    """Let the system say that the disk is full when a file is written."""
    part = path.with_name(f"{path.name}.part")
    write_bytes = Path.write_bytes

    def _write(self: Path, data: bytes) -> int:
        return write_bytes(Path("/dev/full") if self == part else self, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "write_bytes", _write)
        yield
