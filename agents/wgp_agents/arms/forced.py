"""Forced exploration: an arm that must be played, whatever the indices say."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wgp_gym.types import Array

__all__ = ["NOBODY", "force", "forced_exploration"]

NOBODY = -1  # in the place of an arm where none is forced


def force(index: Array, arms: NDArray[np.int64]) -> Array:
    """Return the index `(B, K)` with infinity for the arms `(B,)` that must be played.

    Their learners' other indices become 0, an arm's without plays as well: that one waits.

    Args:
        index: `(B, K)`; it is changed in its place.
        arms: The arm that each learner must play, or NOBODY.
    """
    rows = np.flatnonzero(arms != NOBODY)
    index[rows] = 0.0
    index[rows, arms[rows]] = np.inf
    return index


def forced_exploration(step: NDArray[np.int64], rate: Array, num_arms: int) -> NDArray[np.int64]:
    """Return the arm whose turn it is at a step, `(B,)`, or NOBODY.

    Arm k of 1, ..., K is forced at the steps t with t mod floor(K / rate) = k.

    Deviation: the period is at least K + 1, or the indices would never have their turn, nor
    would arm K where the period is K.

    Args:
        step: The number of the step, from 1, `(B,)`.
        rate: The share of forced steps, in (0, 1], `(B,)`.
        num_arms: K.
    """
    period = np.maximum(np.floor(num_arms / rate), num_arms + 1)
    place = step - (period * np.floor(step / period)).astype(np.int64)
    forced = (place >= 1) & (place <= num_arms)
    return np.where(forced, place - 1, NOBODY)
