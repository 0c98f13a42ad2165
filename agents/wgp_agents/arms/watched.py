"""Plays since the last alarm, with a change detector that watches each arm."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wgp_agents.arms.memory import AllPlays
from wgp_agents.base import Mask
from wgp_agents.detectors.detector import Detector
from wgp_gym.kernels import Array

__all__ = ["WatchedPlays"]


class WatchedPlays:
    """Counts and sums of every arm, and a detector of a change of its mean.

    An alarm changes nothing by itself: the agent decides what is then forgotten.

    Args:
        detector: Of streams `(B, K)`, one for each arm.

    Attributes:
        memory: The plays that are not forgotten.
    """

    def __init__(self, detector: Detector) -> None:
        batch, num_arms = detector.shape
        self.detector = detector
        self._places = np.arange(num_arms)
        self.memory = AllPlays(batch, num_arms)

    def clear(self, mask: Mask) -> None:
        """Forget all plays of the learners in `mask` `(B,)`; `memory.steps` starts anew."""
        self.memory.clear(mask)
        self.detector.restart(np.broadcast_to(mask[:, None], self.detector.shape))

    def forget(self, arms: Mask) -> None:
        """Forget all plays of the arms in `arms` `(B, K)`; `memory.steps` goes on counting."""
        self.memory.forget(arms)
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
        self.memory.add(arms, rewards, active)
        played = active[:, None] & (arms[:, None] == self._places)
        return self.detector.update(np.broadcast_to(rewards[:, None], played.shape), played)
