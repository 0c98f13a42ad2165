"""Counts and sums of the plays of K arms: all alike, fading, or of the last W steps.

Arrays are `(B, K)` of B learners, or `(B,)`; loops change only the learners in `active`.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.kernels.jit import compiled, subroutine
from wgp_gym.types import Array, Indices, Mask

__all__ = [
    "add_plays",
    "expire",
    "fade",
    "fade_and_add",
    "fill_upper_bounds",
    "in_unit",
    "slide",
    "toss",
]

GOLDEN = (5**0.5 - 1) / 2
FADED = 1e-100  # a count below is none: its digits would soon be lost to underflow


@compiled
def add_plays(
    arms: Indices, rewards: Array, active: Mask, counts: Array, sums: Array, steps: Indices
) -> None:
    """Add a play of every active learner: N_k += 1, S_k += r."""
    for i in range(len(arms)):
        if active[i]:
            counts[i, arms[i]] += 1.0
            sums[i, arms[i]] += rewards[i]
            steps[i] += 1


@subroutine
def fade_row(discount: float, counts: Array, sums: Array) -> None:
    """Discount one learner's counts and sums: N_k *= gamma, S_k *= gamma."""
    for k in range(len(counts)):
        counts[k] *= discount
        sums[k] *= discount
        if counts[k] < FADED:
            counts[k] = sums[k] = 0.0


@compiled
def fade(active: Mask, discount: Array, counts: Array, sums: Array) -> None:
    """Discount the counts and sums of every active learner."""
    for i in range(len(counts)):
        if active[i]:
            fade_row(discount[i], counts[i], sums[i])


@compiled
def fade_and_add(
    arms: Indices,
    rewards: Array,
    active: Mask,
    discount: Array,
    counts: Array,
    sums: Array,
    steps: Indices,
) -> None:
    """Discount the counts and sums of every active learner, and add its play."""
    for i in range(len(arms)):
        if active[i]:
            fade_row(discount[i], counts[i], sums[i])
            counts[i, arms[i]] += 1.0
            sums[i, arms[i]] += rewards[i]
            steps[i] += 1


@compiled
def in_unit(rewards: Array, low: Array, width: Array) -> Array:
    """Return (r - low) / width, `(B,)`: rewards in the unit of their range."""
    scaled = np.empty(len(rewards))
    for i in range(len(rewards)):
        scaled[i] = (rewards[i] - low[i]) / width[i]
    return scaled


@subroutine
def expire_of(
    i: int,
    window: Array,
    clock: Array,
    counts: Array,
    sums: Array,
    older: Array,
    newer: Array,
    places: Indices,
    ring_arms: Indices,
    ring_rewards: Array,
    ring_times: Array,
) -> None:
    """Let the plays of learner i that are too old drop out. See `slide`."""
    while places[i, 0] < places[i, 2]:
        place = places[i, 0] % ring_arms.shape[1]
        if clock[i] - ring_times[i, place] < window[i]:
            break
        if places[i, 0] == places[i, 1]:
            turn_block(places[i], ring_arms[i], ring_rewards[i], older[i], newer[i])
        leaving = ring_arms[i, place]
        older[i, leaving] = ring_rewards[i, place]
        counts[i, leaving] -= 1.0
        sums[i, leaving] = older[i, leaving] + newer[i, leaving]
        places[i, 0] += 1


@subroutine
def turn_block(
    places: Indices, ring_arms: Indices, ring_rewards: Array, older: Array, newer: Array
) -> None:
    """Make the newer plays the older ones, with the sums of later rewards for their rewards."""
    older[:] = 0.0
    newer[:] = 0.0
    for k in range(places[2] - 1, places[0] - 1, -1):
        j = k % len(ring_arms)
        arm, reward = ring_arms[j], ring_rewards[j]
        ring_rewards[j] = older[arm]
        older[arm] += reward
    places[1] = places[2]


@compiled
def expire(
    active: Mask,
    window: Array,
    clock: Array,
    counts: Array,
    sums: Array,
    older: Array,
    newer: Array,
    places: Indices,
    ring_arms: Indices,
    ring_rewards: Array,
    ring_times: Array,
) -> None:
    """Let the plays of every active learner that are too old drop out. See `slide`."""
    rings = ring_arms, ring_rewards, ring_times
    for i in range(len(active)):
        if active[i]:
            expire_of(i, window, clock, counts, sums, older, newer, places, *rings)


@compiled
def slide(
    arms: Indices,
    rewards: Array,
    active: Mask,
    window: Array,
    clock: Array,
    counts: Array,
    sums: Array,
    older: Array,
    newer: Array,
    places: Indices,
    ring_arms: Indices,
    ring_rewards: Array,
    ring_times: Array,
) -> None:
    """Let plays that are `window` steps old, or older, drop out, and add one of every active one.

    Nothing is ever subtracted from a sum of rewards, so that a huge one leaves no rounding behind.
    A ring, `(B, room)`, holds the plays in the window, the k-th of all at k modulo its length:
    the older ones, from `places[:, 0]` to before `places[:, 1]`, and the newer ones to before
    `places[:, 2]`. An arm's sum is `newer` plus `older`. When the last of the older plays has
    dropped out, all newer ones become older: the reward of each makes way for the sum of those
    that came after it on the same arm, which is what is left of `older` when the play drops out.

    A learner whose window is infinite needs no ring; that of the others must have room for a play.
    """
    rings = ring_arms, ring_rewards, ring_times
    for i in range(len(arms)):
        if not active[i]:
            continue
        arm = arms[i]
        if window[i] < math.inf:
            expire_of(i, window, clock, counts, sums, older, newer, places, *rings)
            place = places[i, 2] % ring_arms.shape[1]
            ring_arms[i, place], ring_rewards[i, place] = arm, rewards[i]
            ring_times[i, place] = clock[i]
            places[i, 2] += 1
        newer[i, arm] += rewards[i]
        counts[i, arm] += 1.0
        sums[i, arm] = older[i, arm] + newer[i, arm]


@compiled
def fill_upper_bounds(
    counts: Array, sums: Array, factor: Array, total: Array | Indices, index: Array
) -> None:
    """Compute S / N + factor (log(max(total, 1)) / N)^{1/2} of every arm; infinity where N = 0."""
    for i in range(len(counts)):
        logarithm = math.log(max(float(total[i]), 1.0))
        for k in range(counts.shape[1]):
            n = counts[i, k]
            bound = sums[i, k] / n + factor[i] * math.sqrt(logarithm / n)
            index[i, k] = bound if n > 0.0 else math.inf


@compiled
def toss(rewards: Array, active: Mask, coin: Array, successes: Array) -> None:
    """Put each reward to a trial that succeeds with that probability, by its learner's coin.

    The coins of the active move on by the golden ratio, modulo 1. A coin is from [0, 1), so that
    rewards are clipped to [0, 1].
    """
    for i in range(len(coin)):
        successes[i] = 1.0 if coin[i] < rewards[i] else 0.0
        if active[i]:
            coin[i] = (coin[i] + GOLDEN) % 1.0
