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
    # `flatnonzero` and a division take a tenth of the time of `nonzero`.
    found = np.flatnonzero(contenders(start, end, weights[cuts]))
    stretch, arm = np.divmod(found, start.shape[1])
    place = stretch // (len(cuts) - 1) * start.shape[1] + arm
    first = np.flatnonzero(np.diff(stretch, prepend=-1))  # every stretch has a contender
    count = np.diff(first, append=len(arm))
    order = np.argsort(-count, kind="stable")  # so that those with a next contender come first
    first, more = first[order], np.cumsum(np.bincount(count)[::-1])[::-1]
    steps = np.minimum(cuts[:-1] + np.arange(size)[:, None], length - 1)
    w = weights[steps][:, order % (len(cuts) - 1)]  # (size, B C): rows are long
    rest = 1 - w
    top, best = np.full(w.shape, -np.inf), np.empty(w.shape, np.int64)
    for rank, groups in enumerate(more[1:]):
        pair = first[:groups] + rank
        a, b = start.take(place[pair]), end.take(place[pair])
        reward = rest[:, :groups] * a + w[:, :groups] * b
        better = reward > top[:, :groups]  # the first of equals stays
        np.copyto(top[:, :groups], reward, where=better)
        np.copyto(best[:, :groups], arm[pair], where=better)
    back = np.empty_like(order)
    back[order] = np.arange(len(order))
    back = back.reshape(len(start), -1)
    return unfolded(top[:, back])[:, :length], unfolded(best[:, back])[:, :length]


def unfolded(stretches: AnyArray) -> AnyArray:
    """Return what stands at each step of B paths: `(size, B, C)` in stretches, as `(B, C size)`."""
    return stretches.transpose(1, 2, 0).reshape(stretches.shape[1], -1)


def contenders(start: Array, end: Array, weights: Array) -> Mask:
    """Return which arms may be best somewhere between two cuts, `(B, C - 1, n)`.

    Left out is what is worse at both by more than rounding than the best arm of one of them.

    Args:
        start: Rewards for w = 0, `(B, n)`.
        end: Rewards for w = 1, `(B, n)`.
        weights: The w of the cuts, `(C,)`.
    """
    scale = np.maximum(np.abs(start), np.abs(end)).max(axis=1)[:, None, None]
    scale[scale == 0] = 1.0
    start, end = ((ends[:, None] / scale).astype(np.float32) for ends in (start, end))
    w = weights.astype(np.float32)[:, None]
    rewards = (1 - w) * start + w * end  # (B, C, n)
    best = rewards.argmax(axis=2)[:, :, None]
    low, high = rewards[:, :-1], rewards[:, 1:]
    near = [
        (low >= np.take_along_axis(low, arm, 2) - SLACK)
        | (high >= np.take_along_axis(high, arm, 2) - SLACK)
        for arm in (best[:, :-1], best[:, 1:])
    ]
    both: Mask = near[0] & near[1]
    return both
