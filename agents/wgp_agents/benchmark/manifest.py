"""What a folder of results says of itself, and how two such manifests differ."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from wgp_agents.benchmark.experiment import Experiment
from wgp_agents.benchmark.files import versions

__all__ = ["FORMAT", "describe", "differences", "unmoved"]

FORMAT = "wgp-gym results 1"
WORDS = {"title", "description", "source", "cuts"}  # of an experiment, that move no number
EXTENDED = "seeds is"  # what --extend is for


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return in what two manifests differ that matters; what can be extended comes last."""
    return sorted(differing(old, new), key=lambda text: text.startswith(EXTENDED))


def describe(experiment: Experiment) -> dict[str, Any]:
    """Return the manifest of an experiment: all that its numbers follow from."""
    specs = [task.kwargs for task in experiment.tasks]
    specs += [agent.parameters for agent in experiment.agents]
    named = {value for spec in specs for value in spec.values() if isinstance(value, str)}
    files = {name: Path(name) for name in sorted(named) if Path(name).is_file()}
    return {
        "format": FORMAT,
        "experiment": experiment.as_dict(),
        "files": {n: hashlib.sha256(path.read_bytes()).hexdigest() for n, path in files.items()},
        "versions": versions(),
    }


def unmoved(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Tell whether the files and the release are the same that the runs before were played with."""
    files = all(new["files"].get(name) == was for name, was in old["files"].items())
    return files and new["versions"]["wgp-gym"] == old["versions"]["wgp-gym"]


def differing(old: dict[str, Any], new: dict[str, Any]) -> Iterator[str]:
    """Yield in what two manifests differ that matters."""
    for key in ("files", "experiment"):
        for name in sorted({*old[key], *new[key]} - WORDS):
            pair = old[key].get(name), new[key].get(name)
            for place, was, now in places(*pair, name):
                yield f"{place} is {shortened(was)} there, and {shortened(now)} here"
    was, now = old["versions"]["wgp-gym"], new["versions"]["wgp-gym"]
    if was != now:
        yield f"it was played by wgp-gym {was}, and this is {now}"


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
    text = json.dumps(value)
    return text if len(text) < 80 else f"{text[:77]}..."
