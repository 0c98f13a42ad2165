"""The best arm at every step of a path between two functions, without a look at every arm.

Between two knots every arm's reward is a line in the weight w, so an arm that is worse than
another at both ends of a stretch is worse all along it. Few arms are left, mostly neighbours of
the best; their rewards, and the choice among equal ones, are those of a look at all, bit for bit.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_gym.schedules import Schedule
from wgp_gym.types import AnyArray, Array, Indices, Mask

__all__ = ["maxima_along"]

SLACK = np.float32(1e-6)  # of the largest reward: more than single precision rounds by
STRETCHES = 0.7  # times the root of the steps are cut at; more cost all arms, fewer the steps


def maxima_along(schedule: Schedule, values: Array) -> tuple[Array, Indices]:
    """Return the largest reward at each position, `(B, U)`, and its arm, the first of equals.

    What is returned is contiguous over the episodes at each position, as a step reads it.

    Args:
        schedule: How the functions move.
        values: Their rewards at the knots, `(B, K, n)`.
    """
    shape = (len(schedule.left), len(values))
    top, best = np.empty(shape), np.empty(shape, np.int64)
    knots = np.ascontiguousarray(values.swapaxes(0, 1))
    for start, stop in schedule.paths:
        left, right, path = schedule.left[start], schedule.right[start], slice(start, stop)
        top[path], best[path] = maxima_between(knots[left], knots[right], schedule.weight[path])
    return top.T, best.T


def maxima_between(start: Array, end: Array, weights: Array) -> tuple[Array, Indices]:
    """Return the maxima of (1 - w) start + w end for every w, and their arms, `(L, B)` each.

    Args:
        start: Rewards for w = 0, `(B, n)`, contiguous.
        end: Rewards for w = 1, `(B, n)`, contiguous.
        weights: The w, `(L,)`, which do not decrease.
    """
    length, (batch, n) = len(weights), start.shape
    size = max(round(math.sqrt(length) / STRETCHES), 1)  # steps of a stretch
    cuts = np.minimum(np.arange(0, length + size, size), length - 1)
    # `flatnonzero` and a division take a tenth of the time of `nonzero`.
    found = np.flatnonzero(contenders(start, end, weights[cuts]))
    stretch, arm = np.divmod(found, n)  # C B stretches, C of each episode
    place = stretch % batch * n + arm
    first = np.flatnonzero(np.diff(stretch, prepend=-1))  # every stretch has a contender
    count = np.diff(first, append=len(arm))
    order = np.argsort(-count, kind="stable")  # so that those with a next contender come first
    first, more = first[order], np.cumsum(np.bincount(count)[::-1])[::-1]
    steps = np.minimum(cuts[:-1] + np.arange(size)[:, None], length - 1)
    w = weights[steps].take(order // batch, 1)  # (size, C B): rows are long
    rest = 1 - w
    place, arm = place.astype(np.int32), arm.astype(np.int32)
    top = rest * start.take(place[first])
    top += w * end.take(place[first])
    best = np.repeat(arm[None, first], size, axis=0)
    reward, part = np.empty_like(top), np.empty_like(top)
    for rank, groups in enumerate(more[2:], 1):
        pair = first[:groups] + rank
        highest, arms, one, two = (each[:, :groups] for each in (top, best, reward, part))
        np.multiply(rest[:, :groups], start.take(place[pair]), out=one)
        one += np.multiply(w[:, :groups], end.take(place[pair]), out=two)
        better = one > highest  # the first of equals stays
        np.copyto(highest, one, where=better)
        np.copyto(arms, arm[pair], where=better)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    back = back.reshape(-1, batch)
    return unfolded(top.take(back, 1))[:length], unfolded(best.take(back, 1))[:length]


def unfolded(stretches: AnyArray) -> AnyArray:
    """Return what stands at each step of B paths: `(size, C, B)` in stretches, as `(C size, B)`."""
    return stretches.swapaxes(0, 1).reshape(-1, stretches.shape[2])


def contenders(start: Array, end: Array, weights: Array) -> Mask:
    """Return which arms may be best somewhere between two cuts, `(C - 1, B, n)`.

    Left out is what is worse at both by more than rounding than the best arm of one of them.

    Args:
        start: Rewards for w = 0, `(B, n)`.
        end: Rewards for w = 1, `(B, n)`.
        weights: The w of the cuts, `(C,)`.
    """
    scale = np.maximum(np.abs(start), np.abs(end)).max(axis=1)[:, None]
    scale[scale == 0] = 1.0
    start, end = ((ends / scale).astype(np.float32) for ends in (start, end))
    w = weights.astype(np.float32)[:, None, None]
    rewards = (1 - w) * start  # (C, B, n)
    rewards += w * end
    best = rewards.argmax(axis=2)[:, :, None]

    def _near(rewards: Array, arm: Indices) -> Mask:
        return rewards >= np.take_along_axis(rewards, arm, 2) - SLACK

    near = _near(rewards, best)
    found = near[:-1] | _near(rewards[1:], best[:-1])
    found &= near[1:] | _near(rewards[:-1], best[1:])
    return found
