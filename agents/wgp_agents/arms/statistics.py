"""What is kept of the plays of every arm: counts and sums of rewards, of all plays or fading.

The last W plays are in `wgp_agents.arms.sliding`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array, Mask

__all__ = ["AllPlays", "ArmStatistics", "DiscountedPlays"]

FADED = 1e-100  # a count below is none: its digits would soon be lost to underflow


class ArmStatistics(ABC):
    """Counts and sums of rewards of K arms, for B learners whose clocks run on their own.

    Args:
        batch: B.
        num_arms: K.

    Attributes:
        counts: Plays of every arm, weighted where they fade, `(B, K)`.
        sums: Rewards of every arm, weighted alike, `(B, K)`.
        steps: Plays since the start, `(B,)`.
    """

    def __init__(self, batch: int, num_arms: int) -> None:
        self.counts, self.sums = np.zeros((2, batch, num_arms))
        self.steps = np.zeros(batch, np.int64)

    def clear(self, mask: Mask) -> None:
        """Forget all plays of the learners in `mask` `(B,)`."""
        self.counts[mask] = self.sums[mask] = 0.0
        self.steps[mask] = 0

    @abstractmethod
    def add(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        """Take in one play of every learner in `active` `(B,)`.

        Args:
            arms: The arm played, `(B,)`.
            rewards: What it paid, `(B,)`.
            active: Who played.
        """

    def mean(self) -> Array:
        """Return the (weighted) mean reward of every arm, `(B, K)`; 0 for one without plays."""
        return np.divide(self.sums, self.counts, out=np.zeros_like(self.sums), where=self.played())

    def played(self) -> Mask:
        """Return which arms have a play that still counts, `(B, K)`."""
        return self.counts > 0


class AllPlays(ArmStatistics):
    """Every play counts alike, until its arm is forgotten.

    Args:
        batch: B.
        num_arms: K.
    """

    def add(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        """Take in one play of every learner in `active`."""
        add_plays(arms, rewards, active, self.counts, self.sums, self.steps)

    def forget(self, arms: Mask) -> None:
        """Forget all plays of the arms in `arms` `(B, K)`; `steps` goes on counting."""
        self.counts[arms] = self.sums[arms] = 0.0


class DiscountedPlays(ArmStatistics):
    """A play that is s steps old counts gamma^s: N = sum of gamma^{t - s} over an arm's plays.

    Args:
        batch: B.
        num_arms: K.
        discount: gamma in [0, 1], `(B,)`.
    """

    def __init__(self, batch: int, num_arms: int, discount: Array) -> None:
        super().__init__(batch, num_arms)
        self.discount = discount

    def add(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        """Let the learners in `active` forget a little, and take in one play of each."""
        fade(active, self.discount, self.counts, self.sums)
        add_plays(arms, rewards, active, self.counts, self.sums, self.steps)


@compiled
def add_plays(
    arms: NDArray[np.int64],
    rewards: Array,
    active: Mask,
    counts: Array,
    sums: Array,
    steps: NDArray[np.int64],
) -> None:
    """Add a play of every learner in `active`. See `ArmStatistics`."""
    for i in range(len(arms)):
        if active[i]:
            counts[i, arms[i]] += 1.0
            sums[i, arms[i]] += rewards[i]
            steps[i] += 1


@compiled
def fade(active: Mask, discount: Array, counts: Array, sums: Array) -> None:
    """Discount the counts and sums of every learner in `active`. See `DiscountedPlays`."""
    for i in range(len(counts)):
        if not active[i]:
            continue
        for k in range(counts.shape[1]):
            counts[i, k] *= discount[i]
            sums[i, k] *= discount[i]
            if counts[i, k] < FADED:
                counts[i, k] = sums[i, k] = 0.0
