"""A model's settings, and the notes that stand beside its file."""

from __future__ import annotations

import json
import reprlib
import tomllib
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from wgp_gym.validation import cut

__all__ = [
    "NETWORK_RULES",
    "RULES",
    "brief",
    "default_settings",
    "network_of",
    "notes_of",
    "read_notes",
    "refuse",
]

LONGEST = 2**20  # bytes of notes: those that a training writes have about a thousand
PATH_SHOWN = 200  # characters of a path that an error shows, the last ones
ERROR_SHOWN = 160  # characters of another's message, the first ones


class Rule(NamedTuple):
    """What one entry of the notes must be: in words, and whether a value is such a one."""

    text: str
    holds: Callable[[Any], bool]


def whole(low: int, high: int) -> Rule:
    """Return the rule of a whole number in [low, high]."""
    return Rule(f"an int in [{low}, {high}]", lambda value: is_whole(value, low, high))


def is_whole(value: Any, low: int, high: int) -> bool:
    """Tell whether a value is an int in [low, high]; True and False are none."""
    return type(value) is int and low <= value <= high


MOST_LAYERS = 8
WIDTH = whole(1, 10**4)
NETWORK_RULES = {  # the entries of the settings that a network follows from
    "history": whole(1, 10**4),
    "frequencies": whole(1, 1000),
    "net_arch": Rule(
        f"a list of up to {MOST_LAYERS} widths, each {WIDTH.text}",
        lambda value: (
            isinstance(value, list) and len(value) <= MOST_LAYERS and all(map(WIDTH.holds, value))
        ),
    ),
    "lstm_hidden_size": WIDTH,
}
RULES = {
    "dim": whole(1, 1000),
    "arms": Rule(
        "an int in [1, 1000000], or null for a box",
        lambda value: value is None or is_whole(value, 1, 10**6),
    ),
    "reward_scale": Rule(
        "a number in [1e-06, 1e+12]",
        lambda value: type(value) in (int, float) and 1e-6 <= value <= 1e12,
    ),
    "deterministic": Rule("true or false", lambda value: isinstance(value, bool)),
    "settings": Rule("an object", lambda value: isinstance(value, dict)),
}


def refuse(rule: str, path: Path) -> NoReturn:
    """Raise the error of a model that cannot be had from a file: what it must be, and is not."""
    shown = str(path)[-PATH_SHOWN:]
    raise ValueError(f"The 'model' parameter of SB3Agent must be {rule}. Got {shown!r} instead.")


def brief(error: Exception) -> str:
    """Return an error's kind, and the beginning of its message on one line."""
    return cut(" ".join(f"{type(error).__name__}: {error}".split()), ERROR_SHOWN)


def notes_of(path: Path) -> Path:
    """Return where a model's notes stand: beside it."""
    return path.with_suffix(".json")


def default_settings(algo: str) -> dict[str, Any]:
    """Return the tuned settings of an algorithm, from settings.toml."""
    text = files("wgp_agents.algorithms.learned.sb3").joinpath("settings.toml").read_text("utf-8")
    chosen: dict[str, Any] = tomllib.loads(text)[algo]
    return chosen


def network_of(algo: str, notes: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that a model's network follows from: its own, else the default ones."""
    default = default_settings(algo)
    return {
        key: notes["settings"].get(key, default[key]) for key in NETWORK_RULES if key in default
    }


def read_notes(algo: str, file: Path) -> dict[str, Any]:
    """Return the notes of the model in a file, which `algo` must have trained.

    Raises:
        ValueError: If there are none, or an entry that a model is made from is not what it must be.
    """
    path = notes_of(file)
    notes = read_object(path)
    if notes.get("algo") != algo:
        refuse(f"trained by {algo!r} (not by {reprlib.repr(notes.get('algo'))})", path)
    check(notes, RULES, path)
    if algo == "dqn" and notes["arms"] is None:
        refuse("a file whose notes have 'arms' as an int, for 'dqn' chooses among arms", path)
    if algo == "dqn" and not notes.get("deterministic", True):
        refuse("a file whose notes have 'deterministic' as true, for 'dqn' draws no action", path)
    network = network_of(algo, notes)
    check(network, {key: NETWORK_RULES[key] for key in network}, path)
    return notes


def read_object(path: Path) -> dict[str, Any]:
    """Return the JSON object in a file."""
    try:
        with path.open("rb") as file:
            text = file.read(LONGEST + 1)
        notes = json.loads(text) if len(text) <= LONGEST else None
    except (OSError, ValueError, RecursionError) as error:
        refuse(f"a file whose notes can be read ({brief(error)})", path)
    if not isinstance(notes, dict):
        refuse(f"a file whose notes are a JSON object of at most {LONGEST} bytes", path)
    return notes


def check(values: dict[str, Any], rules: dict[str, Rule], path: Path) -> None:
    """Check that entries of the notes are there, and what they must be."""
    for key, rule in rules.items():
        if key not in values:
            refuse(f"a file whose notes have {key!r}, {rule.text}", path)
        if not rule.holds(values[key]):
            found = reprlib.repr(values[key])
            refuse(f"a file whose notes have {key!r} as {rule.text} (not {found})", path)
