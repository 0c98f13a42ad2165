"""The spaces of a task."""

from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium import spaces

from wgp_gym.envs.dynamics import REWARD_LIMIT
from wgp_gym.envs.task import Task

__all__ = ["action_space", "observation_space"]


def observation_space(task: Task) -> spaces.Space[Any]:
    """Return the space of [t / T, has_last, last action in [0, 1]^d, last reward]."""
    d = task.domain.shape[1]
    low = np.array([0.0] * (2 + d) + [-REWARD_LIMIT], np.float32)
    high = np.array([1.0] * (2 + d) + [REWARD_LIMIT], np.float32)
    return spaces.Box(low, high, dtype=np.float32)


def action_space(task: Task) -> spaces.Space[Any]:
    """Return the space of arms, or the box [0, 1]^d."""
    if task.continuous:
        return spaces.Box(0.0, 1.0, (task.domain.shape[1],), np.float32)
    return spaces.Discrete(len(task.domain))
