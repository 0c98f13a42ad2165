"""The folder of an experiment's results: units written whole, checked when they are read.

A unit's file is an ordinary .npz archive of arrays. Its archive comment holds the format and the
SHA-256 of all bytes before it, so that numpy reads it as any other and damage is noticed.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np
import tomli_w
from filelock import FileLock, Timeout

from wgp_agents.benchmark.experiment import Experiment, Unit
from wgp_agents.benchmark.files import write_json, write_whole
from wgp_agents.benchmark.manifest import FORMAT, describe, differences, unmoved
from wgp_agents.benchmark.play import PER_RUN, PER_STEP, Arrays

__all__ = ["FORMAT", "REPORT_LOCK", "Damaged", "ResultsFolder"]

UNITS = "units/*/*/*.npz"
MOST_CHANGES = 3  # that a message names
MANIFEST, LOCK, REPORT_LOCK = "manifest.json", ".lock", ".report.lock"
COMMENT = f"{FORMAT} sha256 "
TAIL = len(COMMENT) + 64
EVERYTHING = (*PER_RUN, *PER_STEP)


class Damaged(ValueError):
    """A file that does not hold what it should."""


class ResultsFolder:
    """The results of one experiment.

    Attributes:
        path: The folder.
        experiment: What is played.
        manifest: What the folder says of itself: format, experiment, digests of the files that
            parameters name, versions.
    """

    def __init__(self, path: Path, manifest: dict[str, Any]) -> None:
        self.path = path
        self.manifest = manifest
        self.experiment = Experiment.from_dict(manifest["experiment"])

    @classmethod
    @contextmanager
    def held(cls, path: Path, experiment: Experiment, *, extend: bool = False) -> Iterator[Self]:
        """Hold a folder for this process, to write an experiment's results.

        The system lets go of it when the process ends, however it ends.

        Args:
            path: The folder: empty (it is made if need be), or with results of this experiment.
            experiment: What is to be played.
            extend: Whether the experiment there may be a part of this one.

        Raises:
            ValueError: If it holds anything else, or another process holds it.
            OSError: If it cannot be made.
        """
        begun = {
            LOCK,
            REPORT_LOCK,
            f"{MANIFEST}.part",
        }  # what a kill or a full disk leaves at the very start
        others = {one.name for one in path.iterdir()} - begun if path.exists() else set()
        if others and MANIFEST not in others:
            remedy = "Choose an empty folder, or one that `wgp-gym run` has begun"
            raise ValueError(f"{path} holds other files, as {min(others)}. {remedy}.")
        path.mkdir(parents=True, exist_ok=True)
        with cls.locked(path):
            yield cls._claimed(path, experiment, extend)

    @staticmethod
    @contextmanager
    def locked(path: Path, name: str = LOCK) -> Iterator[None]:
        """Keep other processes from writing to a folder.

        Args:
            path: The folder.
            name: The lock's file: a report has one of its own, so that it can be made of what
                there is while a run goes on.

        Raises:
            ValueError: If another process does.
        """
        try:
            with FileLock(path / name, timeout=0):
                yield
        except Timeout:
            rule = "Wait for it, or choose another folder"
            raise ValueError(f"Another process is writing to {path}. {rule}.") from None

    @classmethod
    def _claimed(cls, path: Path, experiment: Experiment, extend: bool) -> Self:
        found: dict[str, Any] = json.loads(json.dumps(describe(experiment)))
        if (path / MANIFEST).exists():
            there = cls.open(path)
            if any(path.glob(UNITS)):  # what has no unit yet is as good as empty
                there._admit(experiment, found, extend)
        write_json(path / MANIFEST, found)
        write_whole(path / "experiment.toml", tomli_w.dumps(experiment.source).encode())
        return cls(path, found)

    def _admit(self, experiment: Experiment, found: dict[str, Any], extend: bool) -> None:
        """Check that an experiment may go on here, and complete its manifest `found`."""
        changes = differences(self.manifest, found)
        extends = experiment.extends(self.experiment) and unmoved(self.manifest, found)
        cuts = self.experiment.cuts
        if not changes:
            found["versions"] = self.manifest["versions"]
        elif extend and extends:
            cuts += (self.experiment.seeds,)
        else:
            more = "or add --extend to keep its runs and play what is new"
            remedy = more if extends else "(--extend only adds seeds, agents and environments)"
            raise ValueError(
                f"{self.path} holds results of another experiment: "
                f"{'; '.join(changes[:MOST_CHANGES])}. Choose another folder {remedy}."
            )
        found["experiment"]["cuts"] = list(dict.fromkeys(cuts))

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a folder to read it.

        Raises:
            ValueError: If it holds no results, or those of another format.
        """
        manifest = path / MANIFEST
        if not manifest.is_file():
            raise ValueError(f"{path} holds no results of `wgp-gym run`: it has no {MANIFEST}.")
        try:
            found = json.loads(manifest.read_text("utf-8"))
            if found["format"] != FORMAT:
                raise Damaged(f"{manifest} is of the format {found['format']!r}, not {FORMAT!r}.")
            return cls(path, found)
        except (ValueError, KeyError, TypeError) as error:
            if isinstance(error, Damaged):
                raise
            raise Damaged(f"{manifest} is no manifest of `wgp-gym run`: {error!r}.") from error

    def file(self, unit: Unit) -> Path:
        """Return where a unit's results stand."""
        what = digest(unit.identity, "environment", "kwargs", "seed_name")
        task = f"{slug(unit.task.seed_name)}-{what}"
        agent = f"{slug(unit.agent.name)}-{digest(unit.identity, 'agent', 'parameters')}"
        return self.path / "units" / task / agent / f"{unit.runs.start:07d}.npz"

    def write(self, unit: Unit, arrays: Arrays) -> None:
        """Write a unit, whole or not at all."""
        path = self.file(unit)
        path.parent.mkdir(parents=True, exist_ok=True)
        identity = json.dumps(unit.identity, sort_keys=True).encode()
        buffer = io.BytesIO()
        given: dict[str, Any] = {**arrays, "identity": np.frombuffer(identity, np.uint8)}
        np.savez(buffer, allow_pickle=False, **given)
        archive = buffer.getvalue()[:-2]  # less the length of its comment, which is 0
        comment = (COMMENT + hashlib.sha256(archive).hexdigest()).encode()
        write_whole(path, archive + len(comment).to_bytes(2, "little") + comment)

    def read(self, unit: Unit, names: Iterable[str] = EVERYTHING) -> Arrays:
        """Read a unit, or the arrays of it that are named.

        Raises:
            FileNotFoundError: If it was not played yet.
            Damaged: If the file does not hold what was written for this very unit.
        """
        path = self.file(unit)
        data = path.read_bytes()
        archive, comment = data[: -TAIL - 2], data[-TAIL:].decode("latin-1")
        length = data[-TAIL - 2 : -TAIL]
        if not comment.startswith(COMMENT) or length != TAIL.to_bytes(2, "little"):
            raise Damaged(f"{path} is no whole file of the format {FORMAT!r}.")
        if comment != COMMENT + hashlib.sha256(archive).hexdigest():
            raise Damaged(f"{path} is damaged: its checksum does not fit. A run plays it again.")
        with np.load(io.BytesIO(data), allow_pickle=False) as stored:
            held = set(stored.files)
            arrays = {name: stored[name] for name in {*names, "identity"} & held}
        identity = json.loads(arrays.pop("identity").tobytes())
        if identity != json.loads(json.dumps(unit.identity)):
            raise Damaged(f"{path} holds the results of another unit: {identity}.")
        if held != {*EVERYTHING, "identity"}:
            raise Damaged(f"{path} holds other arrays: {', '.join(sorted(held))}.")
        return arrays


def slug(text: str) -> str:
    """Return a text for the name of a file."""
    return re.sub(r"[^\w.=+-]+", "_", text)[:60]


def digest(identity: dict[str, Any], *keys: str) -> str:
    """Return eight digits that tell the parts of an identity from others."""
    part = json.dumps([identity[key] for key in keys], sort_keys=True)
    return hashlib.sha256(part.encode()).hexdigest()[:8]
