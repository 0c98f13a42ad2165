"""What an earlier call of `wgp-gym train` has left under a model's name."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping
from pathlib import Path

from tqdm import tqdm

from wgp_agents.algorithms.learned.sb3.model import PACKAGES
from wgp_agents.algorithms.learned.sb3.notes import brief, notes_of
from wgp_agents.algorithms.learned.weights_file import state_file
from wgp_agents.benchmark.files import JSON, other_versions
from wgp_agents.benchmark.output import diff_settings, raise_other_results, warn_of_versions
from wgp_agents.training.resume import State, read_state

__all__ = ["finished", "interrupted", "settings_of"]

SETTINGS = (  # entries of the notes that a training follows from
    "algo",
    "environment",
    "kwargs",
    "seed",
    "settings",
    "files",
    "dim",
    "horizon",
    "arms",
    "noise_scale",
)


def settings_of(notes: Mapping[str, object]) -> dict[str, JSON]:
    """Return what a training follows from, as its notes say it, in plain JSON values."""
    release = notes.get("versions")
    found = {key: notes.get(key) for key in SETTINGS}
    found["wgp-gym"] = release.get("wgp-gym") if isinstance(release, dict) else None
    plain: dict[str, JSON] = json.loads(json.dumps(found))
    return plain


def interrupted(path: Path, notes: Mapping[str, object]) -> State | None:
    """Return the state of a training that was interrupted, None where there is none.

    Raises:
        ValueError: If what is at `path` was trained with other settings than `notes`.
    """
    state = state_there(file := state_file(path))
    if state is not None:
        was = json.loads(state["settings"])
    elif path.exists() or notes_of(path).exists():
        was = settings_of(noted(path))
    else:
        return None
    if found := diff_settings(was, settings_of(notes)):
        raise_other_results(path, "training", found)
    if state is not None:
        steps = state["curve"][-1]["steps"] if state["curve"] else 0
        tqdm.write(f"{file}: the training goes on after {steps:,} steps.", file=sys.stderr)
        warn_of_versions(file, other_versions(state["versions"], PACKAGES))
    return state


def state_there(file: Path) -> State | None:
    """Return the state in a file, None where there is none that can be read."""
    if not file.exists():
        return None
    try:
        state = read_state(file)
        state["seconds"] = float(state["seconds"])
        state["curve"] = [point_of(row) for row in state["curve"]]
        tables = json.loads(state["settings"]), state["versions"]
        if not all(isinstance(one, dict) for one in tables):
            raise TypeError("it has no tables of settings and versions")
    except Exception as error:  # there is no end to what damaged bytes can raise
        text = f"{file} cannot be read ({brief(error)}): the training begins anew."
        tqdm.write(text, file=sys.stderr)
        return None
    return state


def noted(path: Path) -> dict[str, JSON]:
    """Return the notes beside a model, or none where they cannot be read."""
    try:
        found = json.loads(notes_of(path).read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        found = {}
    return found if isinstance(found, dict) else {}


def finished(path: Path, steps: int) -> list[dict[str, float]]:
    """Return the learning curve of a model that was trained for so many steps, else nothing."""
    try:
        with path.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
            rows = [point_of(row) for row in csv.DictReader(file)]
        done = rows[-1]["steps"]
    except (OSError, ValueError, LookupError, TypeError):
        return []
    return rows if done >= steps and path.exists() and noted(path).get("steps") == done else []


def point_of(row: Mapping[str, str | float]) -> dict[str, float]:
    """Return a point of a learning curve; its steps are a whole number."""
    return {key: int(row[key]) if key == "steps" else float(row[key]) for key in row}
