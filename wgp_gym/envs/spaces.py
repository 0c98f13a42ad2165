"""The spaces of a task."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from wgp_gym.envs.dynamics import REWARD_LIMIT
from wgp_gym.envs.task import Task
from wgp_gym.validation import misread, shown

__all__ = ["action_space", "checked_actions", "observation_space"]


def observation_space(task: Task) -> spaces.Space[Any]:
    """Return the space of [t / T, has_last, last action in [0, 1]^d, last reward].

    Where arms are drawn anew at each step, theirs follows, [0, 1]^(n d).
    """
    n, d = task.domain.shape
    arms = n * d if task.contextual else 0
    low = np.array([0.0] * (2 + d) + [-REWARD_LIMIT] + [0.0] * arms, np.float32)
    high = np.array([1.0] * (2 + d) + [REWARD_LIMIT] + [1.0] * arms, np.float32)
    return spaces.Box(low, high, dtype=np.float32)


def action_space(task: Task) -> spaces.Space[Any]:
    """Return the space of arms, or the box [0, 1]^d."""
    if task.continuous:
        return spaces.Box(0.0, 1.0, (task.domain.shape[1],), np.float32)
    return spaces.Discrete(len(task.domain))


def checked_actions(space: spaces.Space[Any], action: Any) -> NDArray[Any]:
    """Return an action, or a batch of them, as the array that the dynamics take.

    Points are rounded to single precision, the precision of their space.

    Args:
        space: The action space, single or batched: `Box`, `Discrete` or `MultiDiscrete`.
        action: What was asked for.

    Raises:
        ValueError: If it is not in the space.
    """
    array = np.array(None)
    with contextlib.suppress(TypeError, ValueError, RuntimeError):  # as rows of unequal length
        array = array if misread(action) else np.asarray(action)
    number = array.dtype.kind in "iuf"  # a bool would pass for 0 or 1, a text for what it reads as
    if number and isinstance(space, spaces.Box):
        with np.errstate(over="ignore"):  # to infinity, which is outside
            array = array.astype(np.float32)
    if not number or not is_in(space, array):
        raise ValueError(f"The action must be in {shown(space)}. Got {shown(action)} instead.")
    return array


def is_in(space: spaces.Space[Any], array: NDArray[Any]) -> bool:
    """Return whether a number or an array is in the space."""
    if not isinstance(space, spaces.MultiDiscrete):
        return space.contains(array)
    # `MultiDiscrete.contains` takes six times as long, a third of a whole batched step.
    fits = array.shape == space.shape and array.dtype.kind in "iu"
    return fits and bool(array.min() >= 0 and array.max() < space.nvec[0])
