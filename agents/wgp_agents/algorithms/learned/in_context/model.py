"""Models of in-context learners in files: arrays and plain notes, no pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path

import numpy as np

from wgp_agents.algorithms.learned.in_context.memory import Shape
from wgp_agents.algorithms.learned.in_context.network import InContextNetwork, weight_shapes
from wgp_agents.algorithms.learned.weights_file import check_weights, read_weights, weights_in
from wgp_agents.core.state import Entry
from wgp_agents.core.state_file import write_file
from wgp_gym.types import Floats32
from wgp_gym.validation import reject

__all__ = ["FOLDER", "LARGEST_WIDTH", "SHIPPED", "Model", "load_model", "read_model", "write_model"]

SHIPPED = ("general", "abrupt", "slow")
FOLDER = Path(__file__).parent / "models"
MOST_BYTES = 1 << 24
MOST_UNITS, MOST_MEMORIES = 4_096, 64
LARGEST_WIDTH = 100.0
NOTES = "notes"


@dataclass(frozen=True)
class Model:
    """A trained model.

    Attributes:
        network: Its network.
        shape: What the network is shown.
        width: Standard deviations of the bound, chosen on validation episodes.
        notes: How it was trained, as plain JSON values.
    """

    network: InContextNetwork
    shape: Shape
    width: float
    notes: Mapping[str, object]


def write_model(
    path: Path, weights: Mapping[str, Floats32], shape: Shape, notes: Mapping[str, object]
) -> None:
    """Write a model, whole or not at all.

    Args:
        path: The file, .npz.
        weights: The network's arrays, by name.
        shape: What the network is shown.
        notes: How it was trained; "width" is its own.
    """
    said = {"rates": shape.rates, "powers": shape.powers, "clock": shape.clock, **notes}
    state: dict[str, Entry] = {NOTES: json.dumps(said, indent=1)}
    write_file(state | {name: np.asarray(array) for name, array in weights.items()}, path)


def load_model(model: str | PathLike[str], owner: str) -> Model:
    """Return a model: one of `SHIPPED`, or that of a file.

    Raises:
        ValueError: If there is no such file, or it is damaged.
    """
    if isinstance(model, str) and model in SHIPPED:
        return read_shipped(model, owner)
    if not isinstance(model, (str, PathLike)):
        reject("model", owner, f"one of {', '.join(map(repr, SHIPPED))}, or a file", model)
    return read_model(fspath(model), owner)


@lru_cache(8)
def read_shipped(name: str, owner: str) -> Model:
    """Return one of `SHIPPED`, whose file stays as it is; a file of one's own may change."""
    return read_model(str(FOLDER / f"{name}.npz"), owner)


def read_model(path: str, owner: str) -> Model:
    """Return the model in a file.

    Raises:
        ValueError: If there is none, or it is damaged or too large.
    """
    rule = f"one of {', '.join(map(repr, SHIPPED))}, or a file of `wgp-gym train`"
    return read_weights(path, model_of, MOST_BYTES, "model", owner, rule)


def model_of(state: Mapping[str, Entry]) -> Model:
    """Return the model that the entries of a file make.

    Raises:
        ValueError: If they make none.
    """
    notes = json.loads(str(state[NOTES]))
    rates, powers = (tuple(map(float, notes[name])) for name in ("rates", "powers"))
    if not (0 < len(rates) <= MOST_MEMORIES and all(0 < rate <= 1 for rate in rates)):
        raise ValueError("its rates are no numbers in (0, 1]")
    if not (0 < len(powers) <= MOST_MEMORIES and all(0 < power <= 1e6 for power in powers)):
        raise ValueError("its powers are no positive numbers")
    shape, width = Shape(rates, powers, bool(notes["clock"])), float(notes["width"])
    if not 0 <= width <= LARGEST_WIDTH:
        raise ValueError("its width is no number in [0, 100]")
    weights = weights_in(state)
    context, hidden = weights["context"].shape
    if not 0 < min(context, hidden) <= max(context, hidden) <= MOST_UNITS:
        raise ValueError("its network is empty or too large")
    check_weights(weights, weight_shapes(shape, context, hidden))
    return Model(InContextNetwork(weights), shape, width, notes)
