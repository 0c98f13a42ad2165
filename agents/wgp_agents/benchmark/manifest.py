"""What a folder of results says of itself; how it is read, and how two of them differ."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wgp_agents.benchmark.experiment import Experiment, TaskSpec
from wgp_agents.benchmark.files import Damaged, read_whole, versions
from wgp_agents.benchmark.inputs import files_of, names_of
from wgp_agents.benchmark.layout import Size
from wgp_agents.benchmark.rollout import make_vector
from wgp_gym.validation import cut

__all__ = [
    "FORMAT",
    "LONGEST",
    "Manifest",
    "describe",
    "differences",
    "read_manifest",
    "shortened",
    "told",
    "unmoved",
]

FORMAT = "wgp-gym results 2"
WORDS = {"title", "description", "source", "cuts"}  # of an experiment, that move no number
EXTENDED = "seeds is"  # what --extend is for
MOST_BYTES = 1 << 26
LONGEST = 80  # characters of a value in a message


@dataclass(frozen=True)
class Manifest:
    """All that the numbers in a folder follow from.

    Attributes:
        experiment: What is played.
        files: The SHA-256 of each file that a parameter names, by that name.
        sizes: What the shapes of results follow from, by the tasks' names.
        versions: Of Python and the packages that played first.
    """

    experiment: Experiment
    files: dict[str, str]
    sizes: dict[str, Size]
    versions: dict[str, str]

    def __post_init__(self) -> None:
        names = names_of(*self.experiment.tasks, *self.experiment.agents)
        check_texts("files", self.files, r"[0-9a-f]{64}", names)
        check_texts("versions", self.versions, r"[^\r\n]+", self.versions)
        if "wgp-gym" not in self.versions:
            raise ValueError("its 'versions' must name that of wgp-gym")
        if set(self.sizes) != {task.name for task in self.experiment.tasks}:
            raise ValueError("its 'sizes' must be those of its tasks")

    def as_dict(self) -> dict[str, Any]:
        """Return what is written: plain JSON values."""
        return {
            "format": FORMAT,
            "experiment": self.experiment.as_dict(),
            "files": self.files,
            "sizes": {name: asdict(size) for name, size in self.sizes.items()},
            "versions": self.versions,
        }


def check_texts(key: str, table: dict[str, str], pattern: str, names: Collection[str]) -> None:
    """Check a table of texts, and the names in it.

    Raises:
        ValueError: If a text or a name is another.
    """
    if set(table) != set(names):
        raise ValueError(f"its {key!r} must be those of {shortened(list(names))}")
    for value in table.values():
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(f"its {key!r} cannot have {shortened(value)}")


def describe(experiment: Experiment) -> Manifest:
    """Return the manifest of an experiment as it is played here and now.

    Raises:
        ValueError: If an environment cannot be made.
        OSError: If a file that a parameter names is not there.
    """
    files = files_of(*experiment.tasks, *experiment.agents)
    sizes = {task.name: size_of(task) for task in experiment.tasks}
    return Manifest(experiment, files, sizes, versions())


def size_of(task: TaskSpec) -> Size:
    """Return what the shapes of a task's results follow from."""
    return Size.of(make_vector(task.id, 1, **task.kwargs).unwrapped.problem)


def read_manifest(path: Path) -> Manifest:
    """Return the manifest in a file.

    Raises:
        FileNotFoundError: If there is none.
        Damaged: If it is not one that `describe` has made.
    """
    try:
        return parsed(json.loads(read_whole(path, MOST_BYTES).decode()))
    except Damaged as error:
        raise Damaged(f"{path} {error}") from None
    except RecursionError:
        fault = "it is nested too deep"
    except (TypeError, KeyError, AttributeError) as error:  # where a table or a list should be
        fault = f"it does not hold what it must ({type(error).__name__}: {error})"
    except ValueError as error:
        fault = str(error)
    raise Damaged(f"{path} is no manifest of `wgp-gym run`: {cut(fault)}")


def parsed(found: Any) -> Manifest:
    """Return the manifest that was written as a JSON value.

    Raises:
        Damaged: If it is of another format.
        ValueError: If a value is wrong.
        TypeError, KeyError, AttributeError: If there is something else in the place of a table.
    """
    written = found["format"]
    if isinstance(written, str) and written != FORMAT:
        raise Damaged(
            f"is of the format {shortened(written)}, not {FORMAT!r}: it belongs to another "
            "version of wgp-gym."
        )
    sizes = {name: Size(**size) for name, size in found["sizes"].items()}
    experiment = Experiment.from_dict(found["experiment"])
    manifest = Manifest(experiment, found["files"], sizes, found["versions"])
    if manifest.as_dict() != found:
        raise ValueError("it holds more, or less, than a run writes")
    return manifest


def differences(old: Manifest, new: Manifest) -> list[str]:
    """Return in what two manifests differ that matters; what can be extended comes last."""
    was, now = old.as_dict(), new.as_dict()
    # Sizes follow from the rest, unless one was edited.
    found = list(differing(was, now)) or list(compared(was, now, "sizes"))
    return sorted(found, key=lambda text: text.startswith(EXTENDED))


def unmoved(old: Manifest, new: Manifest) -> bool:
    """Tell whether the files and the release are the same that the runs before were played with."""
    files = all(new.files.get(name) == was for name, was in old.files.items())
    return files and new.versions["wgp-gym"] == old.versions["wgp-gym"]


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
        yield from told(old[key].get(name), new[key].get(name), name)


def told(old: Any, new: Any, name: str) -> Iterator[str]:
    """Yield in what two JSON values differ, each place for a message."""
    for place, was, now in places(old, new, name):
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
