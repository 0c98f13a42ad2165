"""Gates of `learned-wgp-ucb` in files: arrays and plain notes, no pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from wgp_agents.algorithms.learned.weights_file import check_weights, read_weights, weights_in
from wgp_agents.core.state import Entry
from wgp_agents.core.state_file import write_file
from wgp_agents.kernels.gate import INPUTS, GateWeights
from wgp_gym.validation import reject

__all__ = ["SHIPPED", "Gate", "load_gate", "untrained", "write_gate"]

SHIPPED = ("general", "untrained")
FOLDER = Path(__file__).parent / "gates"
MOST_BYTES = 1 << 22
MOST_UNITS = 1_024
LARGEST_WIDTH = 100.0
NOTES = "notes"
UNTRAINED_WIDTH = 1.5  # chosen on validation episodes, too


@dataclass(frozen=True)
class Gate:
    """A gate.

    Attributes:
        weights: Those of its network.
        width: Standard deviations of the bound, chosen on validation episodes.
        notes: How it was trained, as plain JSON values.
    """

    weights: GateWeights
    width: float
    notes: Mapping[str, object]


def untrained() -> Gate:
    """Return the gate whose network corrects nothing: the formula alone."""
    weights = GateWeights(*(np.zeros(shape) for shape in weight_shapes(1).values()))
    return Gate(weights, UNTRAINED_WIDTH, {})


def weight_shapes(hidden: int) -> dict[str, tuple[int, ...]]:
    """Return the shape of each array of weights, by name, with so many hidden units."""
    first, second, last = (INPUTS, hidden), (3 * hidden, hidden), (hidden, 2)
    shapes = first, (hidden,), second, (hidden,), last, (2,)
    return dict(zip(GateWeights._fields, shapes, strict=True))


def write_gate(path: Path, gate: Gate) -> None:
    """Write a gate in single precision, whole or not at all."""
    state: dict[str, Entry] = {NOTES: json.dumps({**gate.notes, "width": gate.width}, indent=1)}
    arrays = {name: a.astype(np.float32) for name, a in gate.weights._asdict().items()}
    write_file(state | arrays, path)


def load_gate(gate: str | PathLike[str], owner: str) -> Gate:
    """Return a gate: one of `SHIPPED`, or that of a file.

    Raises:
        ValueError: If there is no such file, or it is damaged.
    """
    if not isinstance(gate, (str, PathLike)):
        reject("gate", owner, f"one of {', '.join(map(repr, SHIPPED))}, or a file", gate)
    if gate == "untrained":
        return untrained()
    if gate in SHIPPED:
        return read_shipped(gate, owner)
    return read_gate(fspath(gate), owner)


@lru_cache(8)
def read_shipped(name: str, owner: str) -> Gate:
    """Return one of `SHIPPED`, whose file stays as it is; a file of one's own may change."""
    return read_gate(str(FOLDER / f"{name}.npz"), owner)


def read_gate(path: str, owner: str) -> Gate:
    """Return the gate in a file.

    Raises:
        ValueError: If there is none, or it is damaged or too large.
    """
    rule = f"one of {', '.join(map(repr, SHIPPED))}, or the file of a gate"
    return read_weights(path, gate_of, MOST_BYTES, "gate", owner, rule)


def gate_of(state: Mapping[str, Entry]) -> Gate:
    """Return the gate that the entries of a file make.

    Raises:
        ValueError: If they make none.
    """
    notes = json.loads(str(state[NOTES]))
    width = float(notes["width"])
    if not 0.0 <= width <= LARGEST_WIDTH:
        raise ValueError(f"its width is no number in [0, {LARGEST_WIDTH:g}]")
    arrays = weights_in(state)
    hidden = len(arrays["first_offset"])
    if not 0 < hidden <= MOST_UNITS:
        raise ValueError("its network is empty or too large")
    check_weights(arrays, weight_shapes(hidden))
    weights = {name: a.astype(float) for name, a in arrays.items()}
    return Gate(GateWeights(**weights), width, notes)
