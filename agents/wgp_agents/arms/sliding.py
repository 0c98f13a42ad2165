"""The counts and sums of the last W plays, exact and at O(1) a step."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wgp_agents.arms.statistics import ArmStatistics
from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array, Mask

__all__ = ["WindowPlays"]

SMALLEST = 64  # plays that the ring has room for at first


class WindowPlays(ArmStatistics):
    """The last W plays count alike, those before not at all.

    Nothing is ever subtracted from a sum of rewards, so that a huge one leaves no rounding behind.
    A ring holds the plays in blocks of W. What an arm has in the window is what it was paid in
    the block at hand (`newer`) and in the part of the last block that is still inside (`older`).
    When a block is full it is read once from its end, and the reward of each play makes way for
    the sum of those that came after it on the same arm: this is what is left when it drops out.

    Args:
        batch: B.
        num_arms: K.
        window: W, whole numbers of at least 1, or infinite, `(B,)`.
    """

    def __init__(self, batch: int, num_arms: int, window: Array) -> None:
        super().__init__(batch, num_arms)
        self.window = window
        finite = window < np.iinfo(np.int64).max / 2
        self._length = np.where(finite, window, 0).astype(np.int64)  # 0: no play drops out
        self._older, self._newer = np.zeros((2, batch, num_arms))
        room = min(SMALLEST, int(self._length.max()))
        self._arms = np.zeros((batch, room), np.int64)
        self._rewards = np.zeros((batch, room))

    def add(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        """Take in one play of every learner in `active`; its oldest drops out of a full window."""
        self._make_room(active)
        slide(
            arms,
            rewards,
            active,
            self._length,
            self.steps,
            self.counts,
            self.sums,
            self._older,
            self._newer,
            self._arms,
            self._rewards,
        )

    def _make_room(self, active: Mask) -> None:
        """Double a ring that is too short for the coming play: a long window may never be full."""
        room, longest = self._arms.shape[1], int(self._length.max())
        if (
            room == longest
            or not (active & (self.steps % np.maximum(self._length, 1) >= room)).any()
        ):
            return
        more = ((0, 0), (0, min(room, longest - room)))
        self._arms, self._rewards = np.pad(self._arms, more), np.pad(self._rewards, more)


@compiled
def slide(
    arms: NDArray[np.int64],
    rewards: Array,
    active: Mask,
    length: NDArray[np.int64],
    steps: NDArray[np.int64],
    counts: Array,
    sums: Array,
    older: Array,
    newer: Array,
    ring_arms: NDArray[np.int64],
    ring_rewards: Array,
) -> None:
    """Move the window of every learner in `active` on by one play. See `WindowPlays`."""
    for i in range(len(arms)):
        if not active[i]:
            continue
        if steps[i] == 0:
            older[i, :] = 0.0
            newer[i, :] = 0.0
        arm, size = arms[i], length[i]
        if size > 0:
            place = steps[i] % size
            if steps[i] >= size:
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
    size: int, ring_arms: NDArray[np.int64], ring_rewards: Array, older: Array, newer: Array
) -> None:
    """Make a full block the older one, with the sums of later rewards for its rewards."""
    older[:] = 0.0
    newer[:] = 0.0
    for j in range(size - 1, -1, -1):
        arm, reward = ring_arms[j], ring_rewards[j]
        ring_rewards[j] = older[arm]
        older[arm] += reward
