"""The folder of an experiment's results: units written whole, checked when they are read.

Nothing in it is a link: what is elsewhere is neither read nor written.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Self

import tomli_w

from wgp_agents.benchmark.archive import pack, room_for, unpack
from wgp_agents.benchmark.experiment import Experiment, TaskSpec, Unit
from wgp_agents.benchmark.files import JSON, Damaged, read_whole, write_json, write_whole
from wgp_agents.benchmark.inputs import names_of
from wgp_agents.benchmark.layout import EVERYTHING, Arrays, Size
from wgp_agents.benchmark.manifest import (
    Manifest,
    describe,
    differences,
    read_manifest,
    same_inputs,
)
from wgp_agents.benchmark.output import (
    LOCK,
    check_no_link,
    locked,
    locked_folder,
    raise_other_results,
)

__all__ = ["LOG", "REPORT_LOCK", "TIMINGS", "ResultsFolder"]

UNITS = "units/*/*/*.npz"
MANIFEST, REPORT_LOCK = "manifest.json", ".report.lock"
DECLARATION, LOG, TIMINGS = "experiment.toml", "log.txt", "timings.csv"
FILES = (MANIFEST, LOCK, REPORT_LOCK, DECLARATION, LOG, TIMINGS)
FOLDERS = ("units", "figures")


class ResultsFolder:
    """The results of one experiment in `path`, with the manifest that says how they came about."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path = path
        self.manifest = manifest
        self.experiment = manifest.experiment

    @classmethod
    @contextmanager
    def open_to_write(
        cls, path: Path, experiment: Experiment, *, extend: bool = False
    ) -> Iterator[Self]:
        """Lock a folder for this process, to write an experiment's results.

        It is made if need be; with `extend`, the experiment there may be a part of this one.

        Raises:
            ValueError: If it holds anything else, or another process has locked it.
            OSError: If it cannot be made.
        """
        check_links(path)
        begun = REPORT_LOCK, f"{MANIFEST}.part"
        with locked_folder(path, MANIFEST, begun, "wgp-gym run"):
            yield cls._begun(path, experiment, extend)

    @staticmethod
    @contextmanager
    def locked(path: Path, name: str = LOCK) -> Iterator[None]:
        """Keep other processes from writing to a folder.

        A report has a lock of its own, so that it can be made of what there is while a run goes on.
        """
        check_links(path)
        with locked(path / name):
            yield

    @classmethod
    def _begun(cls, path: Path, experiment: Experiment, extend: bool) -> Self:
        found = describe(experiment)
        if (path / MANIFEST).exists():
            there = cls.open(path)
            if any(path.glob(UNITS)):  # what has no unit yet is as good as empty
                found = there._continued(found, extend)
        write_json(path / MANIFEST, found.as_dict())
        write_whole(path / DECLARATION, tomli_w.dumps(experiment.source).encode())
        return cls(path, found)

    def _continued(self, found: Manifest, extend: bool) -> Manifest:
        """Return the manifest of an experiment that goes on here."""
        changes = differences(self.manifest, found)
        extends = found.experiment.extends(self.experiment) and same_inputs(self.manifest, found)
        cuts = self.experiment.cuts
        if not changes:
            found = replace(found, versions=self.manifest.versions)
        elif extend and extends:
            cuts += (self.experiment.seeds,)
        else:
            more = "or add --extend to keep its runs and play what is new"
            remedy = more if extends else "(--extend only adds seeds, agents and environments)"
            raise_other_results(self.path, "experiment", changes, remedy)
        cuts = tuple(dict.fromkeys(cuts))
        return replace(found, experiment=replace(found.experiment, cuts=cuts))

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open a folder to read it.

        Raises:
            ValueError: If it holds no results, those of another format, or links.
        """
        check_links(path)
        try:
            return cls(path, read_manifest(path / MANIFEST))
        except (FileNotFoundError, NotADirectoryError):
            what = f"it has no {MANIFEST}"
            raise ValueError(f"{path} holds no results of `wgp-gym run`: {what}.") from None

    def file(self, unit: Unit) -> Path:
        """Return where a unit's results stand."""
        what = digest(unit.identity, "environment", "kwargs", "seed_name", "first_seed")
        task = f"{slug(unit.task.seed_name)}-{what}"
        agent = f"{slug(unit.agent.name)}-{digest(unit.identity, 'agent', 'parameters')}"
        return self.path / "units" / task / agent / f"{unit.runs.start:07d}.npz"

    def identity(self, unit: Unit) -> dict[str, object]:
        """Return what a unit's numbers follow from: what it says itself, and the files it reads."""
        names = names_of(unit.task, unit.agent)
        return {**unit.identity, "files": {name: self.manifest.files[name] for name in names}}

    def size(self, task: TaskSpec) -> Size:
        """Return what the shapes of a task's arrays follow from."""
        return self.manifest.sizes[task.name]

    def write(self, unit: Unit, arrays: Arrays) -> None:
        """Write a unit, whole or not at all.

        Raises:
            Damaged: If the arrays are not what the unit must hold.
            ValueError: If a link or a folder stands in its place, or on the way there.
        """
        if set(arrays) != set(EVERYTHING):
            raise Damaged(f"holds other arrays: {', '.join(sorted(arrays))}.")
        self.size(unit.task).check(unit, arrays)
        path = self.file(unit)
        self._check_way(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, pack(arrays, self.identity(unit)))

    def read(self, unit: Unit, names: Iterable[str] = EVERYTHING) -> Arrays:
        """Read a unit, or the arrays of it that are named.

        Raises:
            FileNotFoundError: If it was not played yet.
            Damaged: If the file does not hold what was written for this very unit.
            ValueError: If a link or a folder stands in its place, or on the way there.
        """
        path, identity, size = self.file(unit), self.identity(unit), self.size(unit.task)
        layout = size.layout(len(unit.runs))
        self._check_way(path)
        try:
            data = read_whole(path, room_for(layout, identity))
            arrays = unpack(data, layout, identity, names)
            size.check(unit, arrays)
        except Damaged as error:
            raise Damaged(f"{path} {error} A run plays it again.") from error
        return arrays

    def _check_way(self, path: Path) -> None:
        """Check that no link leads to a unit, and no folder stands in its place."""
        agent, task, units, *_ = path.parents
        for folder in (units, task, agent):
            check_no_link(folder, folder=True)
        if path.is_dir() and not path.is_symlink():
            check_no_link(path, folder=False)


def check_links(path: Path) -> None:
    """Check that what a folder of results has by name is no link to elsewhere."""
    for name in (*FILES, *FOLDERS):
        check_no_link(path / name, folder=name in FOLDERS)


def slug(text: str) -> str:
    """Return a text for the name of a file."""
    return re.sub(r"[^\w.=+-]+", "_", text)[:60]


def digest(identity: dict[str, JSON], *keys: str) -> str:
    """Return eight digits that tell the parts of an identity from others."""
    part = json.dumps([identity[key] for key in keys if key in identity], sort_keys=True)
    return hashlib.sha256(part.encode()).hexdigest()[:8]
