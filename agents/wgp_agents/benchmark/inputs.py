"""The files that parameters name: tables and trained models. What is played follows from them."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator, Mapping
from pathlib import Path

from wgp_agents.benchmark.experiment import AgentSpec, TaskSpec, Unit
from wgp_agents.registry import AGENTS
from wgp_gym.datasets import DATASETS, locate

__all__ = ["check_files", "digest", "files_of", "names_of"]

TABLES = ("prices", "table")  # the parameters of environments that name a data set or a file


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
    """Check that the files that a unit reads are, here and now, those that are meant.

    Raises:
        ValueError: If one is not.
        OSError: If one is not there.
    """
    for name, found in files_of(unit.task, unit.agent).items():
        if found != digests.get(name):
            raise ValueError(
                f"The file {name!r} is another one on {socket.gethostname()} now than when the "
                "experiment began: it was changed, or this is another folder or machine."
            )


def named(spec: TaskSpec | AgentSpec) -> Iterator[tuple[str, str]]:
    """Yield each file's name, and the parameter that gives it."""
    if isinstance(spec, TaskSpec):
        for key in TABLES:
            name = spec.kwargs.get(key)
            if isinstance(name, str) and name not in DATASETS:
                yield name, key
        return
    for key in AGENTS[spec.name].files:
        name = spec.parameters.get(key)
        if isinstance(name, str):
            yield name, key
            yield Path(name).with_suffix(".json").as_posix(), key  # its notes


def digest(name: str, key: str) -> str:
    """Return the SHA-256 of a file."""
    path = locate(name, key) if key in TABLES else Path(name)
    if not path.is_file():  # a pipe would never end
        raise FileNotFoundError(f"There is no file {name!r}.")
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
