"""What a folder of results says of itself; how it is checked, and how two of them differ."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wgp_agents.benchmark.experiment import Experiment, TaskSpec
from wgp_agents.benchmark.files import Damaged, read_whole, versions
from wgp_agents.benchmark.inputs import files_of, names_of
from wgp_agents.benchmark.layout import Size
from wgp_agents.benchmark.rollout import make_vector
from wgp_gym.validation import check_int

__all__ = [
    "FORMAT",
    "LONGEST",
    "cut",
    "describe",
    "differences",
    "places",
    "read_manifest",
    "shortened",
    "unmoved",
]

FORMAT = "wgp-gym results 2"
WORDS = {"title", "description", "source", "cuts"}  # of an experiment, that move no number
EXTENDED = "seeds is"  # what --extend is for
KEYS = ("format", "experiment", "files", "sizes", "versions")
MOST_BYTES = 1 << 26
MOST_NESTED = 100
MOST_STEPS = 2**32  # and arms, and dimensions
LONGEST = 80  # characters of a value in a message
LONGEST_FAULT = 400


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return in what two manifests differ that matters; what can be extended comes last."""
    # Sizes follow from the rest, unless one was edited.
    found = list(differing(old, new)) or list(compared(old, new, "sizes"))
    return sorted(found, key=lambda text: text.startswith(EXTENDED))


def describe(experiment: Experiment) -> dict[str, Any]:
    """Return the manifest of an experiment: all that its numbers follow from.

    Raises:
        ValueError: If an environment cannot be made, or the experiment is larger than a folder
            takes.
        OSError: If a file that a parameter names is not there.
    """
    return checked(
        {
            "format": FORMAT,
            "experiment": json.loads(json.dumps(experiment.as_dict())),
            "files": files_of(*experiment.tasks, *experiment.agents),
            "sizes": {task.name: size_of(task)._asdict() for task in experiment.tasks},
            "versions": versions(),
        }
    )


def size_of(task: TaskSpec) -> Size:
    """Return what the shapes of a task's results follow from."""
    return Size.of(make_vector(task.id, 1, **task.kwargs).unwrapped.problem)


def read_manifest(path: Path) -> dict[str, Any]:
    """Return the manifest in a file.

    Raises:
        FileNotFoundError: If there is none.
        Damaged: If it is not one that `describe` has made.
    """
    try:
        return checked(json.loads(read_whole(path, MOST_BYTES).decode()))
    except RecursionError:
        fault = "it is nested too deep"
    except Damaged as error:
        raise Damaged(f"{path} {error}") from None
    except ValueError as error:
        fault = str(error)
    raise Damaged(f"{path} is no manifest of `wgp-gym run`: {cut(fault, LONGEST_FAULT)}")


def checked(found: Any) -> dict[str, Any]:
    """Return a manifest that has all that it must have, and nothing else.

    Raises:
        Damaged: If it is of another format.
        ValueError: If it has not.
    """
    if not isinstance(found, dict) or nested(found, MOST_NESTED):
        raise ValueError("it is no table, or nested too deep")
    written = found.get("format")
    if isinstance(written, str) and written != FORMAT:
        raise Damaged(
            f"is of the format {shortened(written)}, not {FORMAT!r}: it belongs to another "
            "version of wgp-gym."
        )
    if set(found) != set(KEYS) or written != FORMAT:
        raise ValueError(f"it must hold {', '.join(KEYS)}")
    experiment = Experiment.from_dict(found["experiment"])
    texts(found, "versions", r"[^\r\n]+", None)
    texts(found, "files", r"[0-9a-f]{64}", names_of(*experiment.tasks, *experiment.agents))
    if "wgp-gym" not in found["versions"]:
        raise ValueError("its 'versions' must name that of wgp-gym")
    sizes = found["sizes"]
    if not isinstance(sizes, dict) or set(sizes) != {task.name for task in experiment.tasks}:
        raise ValueError("its 'sizes' must be those of its tasks")
    for size in sizes.values():
        if not isinstance(size, dict) or set(size) != set(Size._fields):
            raise ValueError(f"each of its 'sizes' must hold {', '.join(Size._fields)}")
        for (name, value), low in zip(Size(**size)._asdict().items(), (1, 1, 0), strict=True):
            check_int(name, value, "its sizes", low, MOST_STEPS)
    return found


def texts(found: dict[str, Any], key: str, pattern: str, names: list[str] | None) -> None:
    """Check a table of texts, and the names in it."""
    table = found[key]
    if not isinstance(table, dict) or (names is not None and sorted(table) != names):
        which = "texts by name" if names is None else f"those of {shortened(names)}"
        raise ValueError(f"its {key!r} must be {which}")
    for value in table.values():
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(f"its {key!r} cannot have {shortened(value)}")


def nested(value: Any, most: int) -> bool:
    """Tell whether tables and lists stand in each other more than so often."""
    level = [value]
    for _ in range(most):
        inner = (one.values() if isinstance(one, dict) else one for one in level)
        level = [two for one in inner for two in one if isinstance(two, (dict, list))]
        if not level:
            return False
    return True


def unmoved(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Tell whether the files and the release are the same that the runs before were played with."""
    files = all(new["files"].get(name) == was for name, was in old["files"].items())
    return files and new["versions"]["wgp-gym"] == old["versions"]["wgp-gym"]


def differing(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Yield in what two manifests differ that matters."""
    yield from compared(old, new, "files")
    yield from compared(old, new, "experiment")
    was, now = old["versions"]["wgp-gym"], new["versions"]["wgp-gym"]
    if was != now:
        yield f"it was played by wgp-gym {cut(was, LONGEST)}, and this is {now}"


def compared(old: dict[str, Any], new: dict[str, Any], key: str) -> Iterator[str]:
    """Yield in what a part of two manifests differs."""
    words = WORDS if key == "experiment" else set()
    for name in sorted({*old[key], *new[key]} - words):
        for place, was, now in places(old[key].get(name), new[key].get(name), name):
            where = place if len(place) <= 2 * LONGEST else f"...{place[-2 * LONGEST :]}"
            yield f"{where} is {shortened(was)} there, and {shortened(now)} here"


def places(was: Any, now: Any, name: str) -> Iterator[tuple[str, Any, Any]]:
    """Yield the innermost places at which two JSON values differ, as "agents.1.label"."""
    if isinstance(was, list) and isinstance(now, list):
        was, now = dict(enumerate(was)), dict(enumerate(now))
    if isinstance(was, dict) and isinstance(now, dict):
        for key in dict.fromkeys([*was, *now]):
            yield from places(was.get(key), now.get(key), f"{name}.{key}")
    elif was != now:
        yield name, was, now


def shortened(value: Any) -> str:
    """Return a value for a message."""
    return cut(json.dumps(value), LONGEST)


def cut(text: str, most: int) -> str:
    """Return a text of at most so many characters."""
    return text if len(text) <= most else f"{text[: most - 3]}..."
