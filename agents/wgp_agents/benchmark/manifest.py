"""What a folder of results says of itself; how it is read, and how two of them differ."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from wgp_agents.benchmark.experiment import Experiment
from wgp_agents.benchmark.files import Damaged, read_whole, versions
from wgp_agents.benchmark.inputs import files_of, names_of
from wgp_agents.benchmark.layout import Size
from wgp_agents.benchmark.output import LONGEST, diff_settings, shortened
from wgp_agents.benchmark.rollout import make_vector
from wgp_agents.core.access import problem_reader
from wgp_gym.validation import cut

__all__ = ["FORMAT", "Manifest", "describe", "differences", "read_manifest", "same_inputs"]

FORMAT = "wgp-gym results 2"
WORDS = {"title", "description", "source", "cuts"}  # of an experiment, that move no number
EXTENDED = "seeds is"  # what --extend is for
MOST_BYTES = 1 << 26


@dataclass(frozen=True)
class Manifest:
    """All that the numbers in a folder follow from."""

    experiment: Experiment  # what is played
    files: dict[str, str]  # the SHA-256 of each file that a parameter names, by that name
    sizes: dict[str, Size]  # what the shapes of results follow from, by the tasks' names
    versions: dict[str, str]  # of Python and the packages that played first

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
    """Check a table of texts, and the names in it."""
    if set(table) != set(names):
        raise ValueError(f"its {key!r} must be those of {shortened(list(names))}")
    for value in table.values():
        if not isinstance(value, str) or not re.fullmatch(pattern, value):
            raise ValueError(f"its {key!r} cannot have {shortened(value)}")


def describe(experiment: Experiment) -> Manifest:
    """Return the manifest of an experiment as it is played here and now."""
    files = files_of(*experiment.tasks, *experiment.agents)
    envs = {task.name: make_vector(task.id, 1, **task.kwargs) for task in experiment.tasks}
    sizes = {name: Size.of(problem_reader(env)()) for name, env in envs.items()}
    return Manifest(experiment, files, sizes, versions())


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
    """Return the manifest that was written as a JSON value."""
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
    found = diff_settings(by_words(was["files"]), by_words(now["files"]))
    found += diff_settings(was["experiment"], now["experiment"], WORDS)
    then, here = old.versions["wgp-gym"], new.versions["wgp-gym"]
    if then != here:
        found += [f"it was played by wgp-gym {cut(then, LONGEST)}, and this is {here}"]
    # Sizes follow from the rest, unless one was edited.
    found = found or diff_settings(was["sizes"], now["sizes"])
    return sorted(found, key=lambda text: text.startswith(EXTENDED))


def by_words(files: dict[str, str]) -> dict[str, str]:
    """Return the digests of files by what a message calls them."""
    return {f"the SHA-256 of {name}": found for name, found in files.items()}


def same_inputs(old: Manifest, new: Manifest) -> bool:
    """Tell whether the files and the release are the same that the runs before were played with."""
    files = all(new.files.get(name) == was for name, was in old.files.items())
    return files and new.versions["wgp-gym"] == old.versions["wgp-gym"]
