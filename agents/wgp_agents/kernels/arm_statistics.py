"""Counts and sums of the plays of K arms: all alike, fading, or of the last W steps.

Arrays are `(B, K)` of B learners, or `(B,)`; loops change only the learners in `active`.
"""

from __future__ import annotations

import math

from wgp_agents.kernels.jit import compiled, subroutine
from wgp_gym.types import Array, Indices, Mask

__all__ = ["add_plays", "expire", "fade", "slide"]

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


@compiled
def fade(active: Mask, discount: Array, counts: Array, sums: Array) -> None:
    """Discount the counts and sums of every active learner: N_k *= gamma, S_k *= gamma."""
    for i in range(len(counts)):
        if not active[i]:
            continue
        for k in range(counts.shape[1]):
            counts[i, k] *= discount[i]
            sums[i, k] *= discount[i]
            if counts[i, k] < FADED:
                counts[i, k] = sums[i, k] = 0.0


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
