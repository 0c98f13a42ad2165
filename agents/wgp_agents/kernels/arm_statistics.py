"""Counts and sums of the plays of K arms: all alike, fading, or of the last W plays.

Arrays are `(B, K)` of B learners, or `(B,)`; loops change only the learners in `active`.
"""

from __future__ import annotations

from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array, Indices, Mask

__all__ = ["add_plays", "fade", "slide"]

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


@compiled
def slide(
    arms: Indices,
    rewards: Array,
    active: Mask,
    length: Indices,
    steps: Indices,
    counts: Array,
    sums: Array,
    older: Array,
    newer: Array,
    ring_arms: Indices,
    ring_rewards: Array,
) -> None:
    """Move the window of every active learner on by one play.

    Nothing is ever subtracted from a sum of rewards, so that a huge one leaves no rounding behind.
    A ring holds the plays in blocks of W. An arm's sum in the window is `newer`, of the block at
    hand, plus `older`, of the part of the last block that is still inside. When a block is full,
    the reward of each play makes way for the sum of those that came after it on the same arm: this
    is what is left of `older` when the play drops out.

    `length` is W, or 0 where no play drops out; `steps` are the plays so far. A ring has room,
    `(B, room)`, for W plays, or for all that there were.
    """
    for i in range(len(arms)):
        if not active[i]:
            continue
        if steps[i] == 0:
            older[i, :] = 0.0
            newer[i, :] = 0.0
        arm, size = arms[i], length[i]
        if size > 0:
            place = steps[i] % size
            if steps[i] >= size:  # the window is full: the play of W steps ago drops out
                if place == 0:
                    turn_block(size, ring_arms[i], ring_rewards[i], older[i], newer[i])
                leaving = ring_arms[i, place]
                older[i, leaving] = ring_rewards[i, place]
                counts[i, leaving] -= 1.0
                sums[i, leaving] = older[i, leaving] + newer[i, leaving]
            ring_arms[i, place] = arm
            ring_rewards[i, place] = rewards[i]
        newer[i, arm] += rewards[i]
        counts[i, arm] += 1.0
        sums[i, arm] = older[i, arm] + newer[i, arm]
        steps[i] += 1


@compiled
def turn_block(
    size: int, ring_arms: Indices, ring_rewards: Array, older: Array, newer: Array
) -> None:
    """Make a full block the older one, with the sums of later rewards for its rewards."""
    older[:] = 0.0
    newer[:] = 0.0
    for j in range(size - 1, -1, -1):
        arm, reward = ring_arms[j], ring_rewards[j]
        ring_rewards[j] = older[arm]
        older[arm] += reward
