"""The files that parameters name, tables, trained models, modules: plays follow from them."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from wgp_agents.benchmark.experiment import AgentSpec, TaskSpec, Unit
from wgp_agents.benchmark.modules import OURS, module_files
from wgp_gym.datasets import DATASETS, locate

__all__ = ["check_files", "digest", "files_of", "names_of"]

MODULE, FILE = "module", "file"
TABLES = ("prices", "table", "places")  # parameters of environments: a data set or a file


def names_of(*specs: TaskSpec | AgentSpec) -> list[str]:
    """Return the files that tasks and agents read, as their parameters name them, sorted.

    What the package brings is not among them: it follows from the version.
    """
    return sorted({name for spec in specs for name, _ in named(spec)})


def files_of(*specs: TaskSpec | AgentSpec) -> dict[str, str]:
    """Return the SHA-256 of every file that tasks and agents read, by the names of `names_of`.

    Raises:
        OSError: If there is no such file, or it cannot be read.
    """
    return dict(sorted((name, digest(name, key)) for spec in specs for name, key in named(spec)))


def check_files(unit: Unit, digests: Mapping[str, str]) -> None:
    """Check that the files that a unit reads are, here and now, those that are meant."""
    for name, found in files_of(unit.task, unit.agent).items():
        if found != digests.get(name):
            raise ValueError(
                f"The file {name!r} is another one on {socket.gethostname()} now than when the "
                "experiment began: it was changed (of a module: or one that it imports), or this "
                "is another folder or machine."
            )


def named(spec: TaskSpec | AgentSpec) -> Iterator[tuple[str, str]]:
    """Yield each file's name, and the parameter that gives it."""
    if isinstance(spec, TaskSpec):
        yield from module_of(spec.id)
        for key in TABLES:
            name = spec.kwargs.get(key)
            if isinstance(name, str) and name not in DATASETS:
                yield name, key
        return
    yield from module_of(spec.entry.entry_point)
    for key in spec.entry.objects:
        yield from module_of(str(spec.parameters.get(key)))
    for key in spec.entry.files:
        name = spec.parameters.get(key)
        if isinstance(name, str) and name not in spec.entry.brought:
            yield name, key
            if Path(name).suffix == ".zip":  # of stable-baselines3, which has its notes beside it
                yield Path(name).with_suffix(".json").as_posix(), key


def module_of(name: str) -> Iterator[tuple[str, str]]:
    """Yield the module in "module:name", where it is not of these packages."""
    module = name.rpartition(":")[0]
    if module and module.split(".")[0] not in OURS:
        yield module, MODULE


def digest(name: str, key: str) -> str:
    """Return the SHA-256 of a file; of a module that imports others of its kind, one of all."""
    if key == MODULE:
        files = module_files(name)
        each = {one: digest(str(path), FILE) for one, path in files.items()}
        lines = "".join(f"{one} {found}\n" for one, found in each.items())
        return each[name] if len(each) == 1 else hashlib.sha256(lines.encode()).hexdigest()
    path = locate(name, key) if key in TABLES else Path(name)
    if not path.is_file():  # a pipe would never end
        raise FileNotFoundError(f"There is no file {name!r}.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
