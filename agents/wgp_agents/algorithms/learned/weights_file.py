"""Files of trained weights: what they are called; arrays in single precision, no pickle."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

import numpy as np

from wgp_agents.core.state import Entry, State
from wgp_agents.core.state_file import unpacked
from wgp_gym.types import Floats32
from wgp_gym.validation import cut, shown

__all__ = ["check_weights", "model_file", "read_weights", "state_file", "weights_in"]

Made = TypeVar("Made")


def model_file(algo: str, environment: str, seed: int, ending: str = "npz") -> str:
    """Return what a file of trained weights is called, as "ppo-wgpbandit-abrupt-seed0.zip"."""
    task = re.split("[/:]", environment)[-1].removesuffix("-v0").lower()
    return f"{algo}-{task}-seed{seed}.{ending}"


def state_file(path: Path) -> Path:
    """Return where the state of a training stands until it is done: beside the model."""
    return path.with_suffix(".training")


def read_weights(
    path: str, make: Callable[[State], Made], most: int, parameter: str, owner: str, rule: str
) -> Made:
    """Return what is made of the entries of a file.

    Args:
        path: The file.
        make: Makes it of them, or raises.
        most: How many bytes the file may have.
        parameter: The parameter that names it, for errors.
        owner: Whose parameter that is.
        rule: What it must be.

    Raises:
        ValueError: If there is no such file, or it is damaged or too large.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(most + 1)
        if len(data) > most:
            raise ValueError(f"more than {most:,} bytes")
        return make(unpacked(data))
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        fault = cut(f"{type(error).__name__}: {error}", 200)
        raise ValueError(
            f"The {parameter!r} parameter of {owner} must be {rule}. Got {shown(path)} instead: "
            f"{fault}."
        ) from None


def weights_in(state: Mapping[str, Entry]) -> dict[str, Floats32]:
    """Return the arrays among the entries of a file."""
    return {name: entry for name, entry in state.items() if isinstance(entry, np.ndarray)}


def check_weights(weights: Mapping[str, Floats32], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise ValueError unless these are finite numbers in single precision, of these shapes."""
    if {name: array.shape for name, array in weights.items()} != dict(shapes):
        raise ValueError("its weights are not those of its network")
    for array in weights.values():
        if array.dtype != np.float32 or not np.isfinite(array).all():
            raise ValueError("its weights are no finite numbers in single precision")
