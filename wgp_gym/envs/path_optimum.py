"""The best arm at every step of a path between two functions, without a look at every arm.

Between two knots every arm's reward is a line in the weight w, so an arm that is worse than
another at both ends of a stretch is worse all along it. Few arms are left, mostly neighbours of
the best; their rewards, and the choice among equal ones, are those of a look at all, bit for bit.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_gym.schedules import Schedule
from wgp_gym.types import Array, Indices, Mask

__all__ = ["maxima_along"]

SLACK = 1e-13  # of the largest reward: more than an interpolation is rounded by, ten times over
STRETCHES = 0.7  # times the root of the steps are cut at; more cost all arms, fewer the steps


def maxima_along(schedule: Schedule, values: Array) -> tuple[Array, Indices]:
    """Return the largest reward at each position, `(B, U)`, and its arm, the first of equals.

    Args:
        schedule: How the functions move.
        values: Their rewards at the knots, `(B, K, n)`.
    """
    shape = (len(values), len(schedule.left))
    top, best = np.empty(shape), np.empty(shape, np.int64)
    for start, stop in schedule.paths:
        left, right, path = schedule.left[start], schedule.right[start], slice(start, stop)
        found = maxima_between(values[:, left], values[:, right], schedule.weight[path])
        top[:, path], best[:, path] = found
    return top, best


def maxima_between(start: Array, end: Array, weights: Array) -> tuple[Array, Indices]:
    """Return the maxima of (1 - w) start + w end for every w, and their arms, `(B, L)` each.

    Args:
        start: Rewards for w = 0, `(B, n)`.
        end: Rewards for w = 1, `(B, n)`.
        weights: The w, `(L,)`, which do not decrease.
    """
    length = len(weights)
    size = max(round(math.sqrt(length) / STRETCHES), 1)  # steps of a stretch
    cuts = np.minimum(np.arange(0, length + size, size), length - 1)
    share = weights[cuts][:, None]
    found = contenders((1 - share) * start[:, None] + share * end[:, None])
    # `flatnonzero` and a division take a tenth of the time of `nonzero`.
    stretch, arm = np.divmod(np.flatnonzero(found), start.shape[1])
    episode, cut = np.divmod(stretch, len(cuts) - 1)
    steps = np.minimum(cuts[:-1, None] + np.arange(size), length - 1)
    w = weights[steps][cut]  # (P, size) for P contenders, one after the other
    reward = (1 - w) * start[episode, arm][:, None] + w * end[episode, arm][:, None]
    first = np.flatnonzero(np.diff(stretch, prepend=-1))  # every stretch has a contender
    count = np.diff(first, append=len(arm))
    top, best = reward[first], np.repeat(arm[first], size).reshape(-1, size)
    for rank in range(1, count.max()):  # the first of equals stays
        group = np.flatnonzero(count > rank)
        pair = first[group] + rank
        better = reward[pair] > top[group]
        top[group] = np.where(better, reward[pair], top[group])
        best[group] = np.where(better, arm[pair][:, None], best[group])
    shape = (len(start), -1)
    return top.reshape(shape)[:, :length], best.reshape(shape)[:, :length]


def contenders(ends: Array) -> Mask:
    """Return which arms may be best somewhere between two cuts, `(B, C - 1, n)`.

    Left out is what is worse at both by more than rounding than the best arm of one of them.

    Args:
        ends: The rewards at the cuts, `(B, C, n)`.
    """
    best = ends.argmax(axis=2)[:, :, None]
    slack = SLACK * np.abs(ends).max(axis=(1, 2))[:, None, None]
    low, high = ends[:, :-1], ends[:, 1:]
    near = [
        (low >= np.take_along_axis(low, arm, 2) - slack)
        | (high >= np.take_along_axis(high, arm, 2) - slack)
        for arm in (best[:, :-1], best[:, 1:])
    ]
    both: Mask = near[0] & near[1]
    return both
