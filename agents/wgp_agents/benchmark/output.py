"""The folder that a command writes to: one process at a time, and nothing but the same results."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from filelock import FileLock, Timeout
from tqdm import tqdm

from wgp_agents.benchmark.files import Damaged, check_ordinary
from wgp_agents.benchmark.manifest import told

__all__ = [
    "LOCK",
    "changes",
    "check_no_link",
    "held",
    "locked",
    "refuse_to_mix",
    "warn_of_versions",
]

LOCK = ".lock"
MOST_CHANGES = 3  # that a message names


@contextmanager
def held(path: Path, mark: str, begun: Collection[str], command: str) -> Iterator[None]:
    """Hold a folder for this process; it is made if need be.

    The system lets go of it when the process ends, however it ends.

    Args:
        path: The folder.
        mark: A file that is in every folder of the command's results.
        begun: What a kill or a full disk may leave before there is that file.
        command: The command.

    Raises:
        ValueError: If it holds anything else, or another process holds it.
        OSError: If it cannot be made.
    """
    others = {one.name for one in path.iterdir()} - {LOCK, *begun} if path.exists() else set()
    if others and not (path / mark).exists():
        remedy = f"Choose an empty folder, or one that `{command}` has begun"
        raise ValueError(f"{path} holds other files, as {min(others)}. {remedy}.")
    path.mkdir(parents=True, exist_ok=True)
    with locked(path / LOCK):
        yield


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """Keep other processes from writing what a file stands for.

    Raises:
        ValueError: If another process does.
    """
    try:
        with FileLock(file, timeout=0):
            yield
    except Timeout:
        rule = "Wait for it, or choose another folder"
        raise ValueError(f"Another process is writing to {file.parent}. {rule}.") from None


def changes(was: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return in what two tables of settings differ, each for a message."""
    names = sorted({*was, *now})
    return [text for name in names for text in told(was.get(name), now.get(name), name)]


def refuse_to_mix(path: Path, what: str, found: Sequence[str], remedy: str = "") -> NoReturn:
    """Raise the error of results that were made otherwise.

    Args:
        path: Where they are.
        what: Whose results they are.
        found: In what they differ.
        remedy: What else there is to do than to choose another folder.

    Raises:
        ValueError: Always.
    """
    text = "; ".join(found[:MOST_CHANGES])
    end = " ".join(filter(None, ["Choose another folder", remedy]))
    raise ValueError(f"{path} holds results of another {what}: {text}. {end}.")


def warn_of_versions(path: Path, found: Sequence[str]) -> None:
    """Say on the terminal that what is there was made with other versions of some packages."""
    if found:
        text = f"{path}: other versions than now, of {', '.join(found)}."
        tqdm.write(f"{text} Numbers may differ in their last digits.", file=sys.stderr)


def check_no_link(path: Path, *, folder: bool) -> None:
    """Check that what stands at a path within the results, if anything does, is no link.

    Raises:
        ValueError: If it is, or a file where a folder should be, or a folder for a file.
    """
    try:
        check_ordinary(path, folder=folder)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except Damaged as error:
        raise ValueError(f"{path} {error} Remove it.") from None
