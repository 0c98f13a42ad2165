"""Wrappers that show more than the last observation: agents read that one off what is shown."""

from __future__ import annotations

import math
from typing import Any

from gymnasium import spaces

from wgp_gym.types import Array, Observation
from wgp_gym.validation import as_floats
from wgp_gym.wrappers import Frame

__all__ = ["frame_of", "last_observations", "same_numbers"]

STACKS = {("gymnasium", "FrameStackObservation"), ("stable_baselines3", "VecFrameStack")}


def frame_of(wrapper: Any, shown: spaces.Space[Any], inner: spaces.Space[Any]) -> Frame | None:
    """Return where a wrapper shows the last observation; None of one of which that is not known.

    Somebody's own wrapper may do otherwise than the one that it is made from: it is not known.

    Args:
        wrapper: The wrapper.
        shown: The space of what it shows.
        inner: The space of what it is shown itself.
    """
    home, _, _ = type(wrapper).__module__.partition(".")
    if home == "wgp_gym":
        return getattr(wrapper, "frame", None)
    if (home, type(wrapper).__name__) not in STACKS or not inner.shape or not shown.shape:
        return None
    size, last = math.prod(shown.shape), math.prod(inner.shape)
    return Frame(size, size - last, size)  # the newest stands last


def same_numbers(shown: spaces.Space[Any], inner: spaces.Space[Any]) -> bool:
    """Tell whether observations of two spaces are the same numbers, though of other shapes."""
    if shown.shape is None or inner.shape is None:
        return False
    return math.prod(shown.shape) == math.prod(inner.shape)


def last_observations(
    observation: Observation, shape: tuple[int, ...], frames: tuple[Frame, ...], places: Array
) -> Array:
    """Return the task's observation, `(size,)` or `(B, size)`, of what wrappers show.

    Args:
        observation: What is shown, of `shape`, or `(B, *shape)`.
        shape: The shape of what the outermost wrapper shows of one environment.
        frames: Those of the wrappers, the outermost first.
        places: The arms' places in [0, 1]^d, `(n, d)`.

    Raises:
        ValueError: If the shape is another one.
    """
    rule = f"an array of shape {shape}, or one for each learner"
    given = as_floats("observation", observation, "an agent", rule)
    if given.ndim not in (len(shape), len(shape) + 1) or given.shape[-len(shape) :] != shape:
        raise ValueError(f"An observation has the shape {shape}. Got {given.shape} instead.")
    rows = given.reshape(-1, math.prod(shape))
    for frame in frames:
        rows = frame.read(rows, places)
    return rows if given.ndim > len(shape) else rows[0]
