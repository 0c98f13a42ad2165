"""The folder that a command writes to: one process at a time, and nothing but the same results."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from filelock import FileLock, Timeout
from tqdm import tqdm

from wgp_agents.benchmark.files import Damaged, check_ordinary
from wgp_gym.validation import cut

LOCK = ".lock"
MOST_DIFFERENCES = 3  # that a message names
LONGEST = 80  # characters of a value in a message


@contextmanager
def locked_folder(path: Path, mark: str, begun: Collection[str], command: str) -> Iterator[None]:
    """Lock a folder for this process, to write a command's results; it is made if need be.

    The system releases the lock when the process ends, however it ends.

    Args:
        path: The folder.
        mark: A file that is in every folder of the command's results.
        begun: What a kill or a full disk may leave before there is that file.
        command: The command.
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
    """Lock a file; ValueError if another process has locked it."""
    try:
        with FileLock(file, timeout=0):
            yield
    except Timeout:
        rule = "Wait for it, or choose another folder"
        raise ValueError(f"Another process is writing to {file.parent}. {rule}.") from None


def raise_other_results(path: Path, what: str, found: Sequence[str], remedy: str = "") -> NoReturn:
    """Raise the ValueError of a folder that holds the results of another `what`.

    It says in what they differ (`found`, from `diff_settings`), and what else there is to do than
    to choose another folder (`remedy`).
    """
    text = "; ".join(found[:MOST_DIFFERENCES])
    end = " ".join(filter(None, ["Choose another folder", remedy]))
    raise ValueError(f"{path} holds results of another {what}: {text}. {end}.")


def diff_settings(
    was: Mapping[str, object], now: Mapping[str, object], ignored: Collection[str] = ()
) -> list[str]:
    """Return in what two tables of settings differ, each for a message."""
    names = sorted({*was, *now} - set(ignored))
    return [text for name in names for text in diff_values(was.get(name), now.get(name), name)]


def diff_values(was: object, now: object, name: str) -> Iterator[str]:
    """Yield in what two JSON values differ, each place for a message, as "agents.1.label"."""
    if isinstance(was, list) and isinstance(now, list):
        was, now = dict(enumerate(was)), dict(enumerate(now))
    if isinstance(was, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*was, *now]):
            yield from diff_values(was.get(key), now.get(key), f"{name}.{key}")
    elif was != now:
        place = name if len(name) <= 2 * LONGEST else f"...{name[-2 * LONGEST :]}"
        yield f"{place} is {shortened(was)} there, and {shortened(now)} here"


def shortened(value: object) -> str:
    """Return a value for a message."""
    return cut(json.dumps(value), LONGEST)


def warn_of_versions(path: Path, found: Sequence[str]) -> None:
    """Say on the terminal that what is there was made with other versions of some packages."""
    if found:
        text = f"{path}: other versions than now, of {', '.join(found)}."
        tqdm.write(f"{text} Numbers may differ in their last digits.", file=sys.stderr)


def check_no_link(path: Path, *, folder: bool) -> None:
    """Check that what is at a path is a folder, or else a file, and no link; it may be nothing.

    Raises:
        ValueError: If it is anything else.
    """
    try:
        check_ordinary(path, folder=folder)
    except (FileNotFoundError, NotADirectoryError):
        pass
    except Damaged as error:
        raise ValueError(f"{path} {error} Remove it.") from None
