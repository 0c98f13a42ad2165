"""How fast the arms' memories forget, by the number of changes: [GM11].

References:
    [GM11] Garivier, Moulines. On Upper-Confidence Bound Policies for Switching Bandit Problems.
    ALT 2011.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wgp_agents.parameters import per_learner
from wgp_gym.types import Array

__all__ = ["discount_of", "num_changes_of", "window_of"]


def num_changes_of(owner: str, num_changes: Any, horizon: int, batch: int) -> Array:
    """Return Upsilon_T of every learner, `(B,)`.

    Raises:
        ValueError: If it is not whole numbers in [0, T].
    """
    return per_learner(owner, "num_changes", num_changes, batch, 0, horizon, whole=True)


def discount_of(owner: str, discount: Any, num_changes: Any, horizon: int, batch: int) -> Array:
    """Return gamma as given or, by default, 1 - (Upsilon_T / T)^{1/2} / 4, `(B,)`.

    This is [GM11]'s choice for a known number of changes Upsilon_T, with rewards in [0, 1]. No
    change means no forgetting.

    Args:
        owner: The agent whose parameters they are.
        discount: gamma in [0, 1], scalar or `(B,)`, or None.
        num_changes: Upsilon_T, whole numbers in [0, T], scalar or `(B,)`.
        horizon: T.
        batch: B.

    Raises:
        ValueError: If one is out of its range.
    """
    changes = num_changes_of(owner, num_changes, horizon, batch)
    if discount is not None:
        return per_learner(owner, "discount", discount, batch, 0.0, 1.0)
    return 1 - np.sqrt(changes / horizon) / 4


def window_of(
    owner: str, window: Any, num_changes: Any, horizon: int, batch: int, num_arms: int
) -> Array:
    """Return tau as given or, by default, 2 (T log T / Upsilon_T)^{1/2}, rounded up, `(B,)`.

    This is [GM11]'s choice for a known number of changes Upsilon_T, with rewards in [0, 1].
    Deviation: it is at least K + 1, or each step would go to an arm that the window has lost; one
    that spans T is infinite.

    Args:
        owner: The agent whose parameters they are.
        window: tau, whole numbers of at least 1 or infinite, scalar or `(B,)`, or None.
        num_changes: Upsilon_T, whole numbers in [0, T], scalar or `(B,)`.
        horizon: T.
        batch: B.
        num_arms: K.

    Raises:
        ValueError: If one is out of its range.
    """
    changes = num_changes_of(owner, num_changes, horizon, batch)
    if window is not None:
        return per_learner(owner, "window", window, batch, 1, math.inf, whole=True)
    steps = 2 * np.sqrt(horizon * math.log(horizon) / np.maximum(changes, 1))
    length = np.maximum(np.ceil(steps), num_arms + 1)
    return np.where((changes == 0) | (length >= horizon), math.inf, length)
