"""Indices of the arms: upper confidence bounds, and arms that must be played whatever they say."""

from __future__ import annotations

import numpy as np

from wgp_agents.arms.statistics import ArmStatistics
from wgp_agents.kernels.arm_statistics import fill_upper_bounds
from wgp_gym.types import Array, Indices, Mask

__all__ = ["NOBODY", "exploration_level", "force", "forced_exploration", "upper_bound"]

NOBODY = -1  # in the place of an arm where none is forced


def upper_bound(statistics: ArmStatistics, factor: Array, total: Array | Indices) -> Array:
    """Return mean + factor (log(total) / N)^{1/2} of every arm, `(B, K)`; infinity where N = 0.

    Args:
        statistics: Means and counts N of the arms.
        factor: `(B,)`, at least 0.
        total: What stands for time, `(B,)`; below 1, where the root is none, counts as 1.
    """
    index = np.empty(statistics.counts.shape)
    fill_upper_bounds(statistics.counts, statistics.sums, factor, total, index)
    return index


def exploration_level(steps: Indices, c: Array) -> Array:
    """Return the f(t) = log t + c log log t of kl-UCB, at least 0; 0 at t = 1.

    Args:
        steps: t >= 1.
        c: 3 in the analysis of [CGMMS13], 0 in its experiments; broadcasts to `steps`.

    Source: [CGMMS13]: see `wgp_agents.kernels.kl_index`.
    """
    logarithm = np.log(np.maximum(steps, 2))
    level: Array = np.where(steps > 1, logarithm + c * np.log(logarithm), 0.0)
    return np.maximum(level, 0.0)


def forced_exploration(step: Indices, rate: Array, num_arms: int) -> Indices:
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


def force(index: Array, arms: Indices, allowed: Mask | None) -> Array:
    """Return the index `(B, K)` with infinity for the arms `(B,)` that must be played.

    Their learners' other indices become 0, an arm's without plays as well: that one waits.

    Args:
        index: `(B, K)`; it is changed in its place.
        arms: The arm that each learner must play, or NOBODY.
        allowed: Which arms are there, `(B, K)`; one that is not is not forced. None: all.
    """
    forced = arms != NOBODY
    if allowed is not None:
        forced &= allowed[np.arange(len(arms)), arms]
    rows = np.flatnonzero(forced)
    index[rows] = 0.0
    index[rows, arms[rows]] = np.inf
    return index
