"""Plays since the last alarm, with a change detector that watches each arm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wgp_agents.arms.statistics import AllPlays
from wgp_agents.detectors.detector import Detector
from wgp_gym.types import Array, Mask

__all__ = ["WatchedPlays"]


class WatchedPlays:
    """Counts and sums of every arm, and a detector of a change of its mean.

    An alarm changes nothing by itself: the agent decides what is then forgotten.

    Args:
        detector: Of streams `(B, K)`, one for each arm.

    Attributes:
        statistics: The plays that are not forgotten.
    """

    def __init__(self, detector: Detector) -> None:
        batch, num_arms = detector.shape
        self.detector = detector
        self._places = np.arange(num_arms)
        self.statistics = AllPlays(batch, num_arms)

    def clear(self, mask: Mask) -> None:
        """Forget all plays of the learners in `mask` `(B,)`; `statistics.steps` starts anew."""
        self.statistics.clear(mask)
        self.detector.restart(np.broadcast_to(mask[:, None], self.detector.shape))

    def forget(self, arms: Mask) -> None:
        """Forget all plays of the arms in `arms` `(B, K)`; `statistics.steps` goes on counting."""
        self.statistics.forget(arms)
        self.detector.restart(arms)

    def add(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> Mask:
        """Take in one play of every learner in `active`, and test the arm played.

        Args:
            arms: The arm played, `(B,)`.
            rewards: What it paid, `(B,)`.
            active: Who played, `(B,)`.

        Returns:
            Which arms have changed, `(B, K)`.
        """
        self.statistics.add(arms, rewards, active)
        played = active[:, None] & (arms[:, None] == self._places)
        return self.detector.update(np.broadcast_to(rewards[:, None], played.shape), played)
