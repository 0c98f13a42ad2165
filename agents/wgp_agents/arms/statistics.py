"""What is kept of the plays of every arm: counts and sums of rewards.

All plays count alike, fade, count for W steps, or count until a detector tells of a change.

References:
    [GM11] Garivier, Moulines. On Upper-Confidence Bound Policies for Switching Bandit Problems.
    ALT 2011.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Literal

import numpy as np

from wgp_agents.core.state import check_counts, check_rooms
from wgp_agents.detectors.detector import Detector
from wgp_agents.kernels.arm_statistics import add_plays, fade, slide
from wgp_gym.types import Array, Indices, Mask

__all__ = [
    "AllPlays",
    "ArmStatistics",
    "DiscountedPlays",
    "MonitoredPlays",
    "WindowPlays",
    "tuned_discount",
    "tuned_window",
]

ROOM = 64  # plays that the ring of a window has room for at first


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
    def add(self, arms: Indices, rewards: Array, active: Mask) -> None:
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
    """Every play counts alike."""

    def add(self, arms: Indices, rewards: Array, active: Mask) -> None:
        """Take in one play of every learner in `active`."""
        add_plays(arms, rewards, active, self.counts, self.sums, self.steps)


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

    def add(self, arms: Indices, rewards: Array, active: Mask) -> None:
        """Let the learners in `active` forget a little, and take in one play of each."""
        fade(active, self.discount, self.counts, self.sums)
        add_plays(arms, rewards, active, self.counts, self.sums, self.steps)


class WindowPlays(ArmStatistics):
    """The last W plays count alike, those before not at all. See `kernels.arm_statistics.slide`.

    Args:
        batch: B.
        num_arms: K.
        window: W, whole numbers of at least 1, or infinite, `(B,)`.
    """

    _stores = ("_arms", "_rewards")

    def __init__(self, batch: int, num_arms: int, window: Array) -> None:
        super().__init__(batch, num_arms)
        self.window, self._length = np.empty(batch), np.zeros(batch, np.int64)
        self.set_window(window, np.ones(batch, bool))
        self._older, self._newer = np.zeros((2, batch, num_arms))
        room = min(ROOM, int(self._length.max()))
        self._arms = np.zeros((batch, room), np.int64)
        self._rewards = np.zeros((batch, room))

    def _check_state(self) -> None:
        check_rooms(self, self._arms, self._rewards)
        check_counts(self, "arms", self._arms, self.counts.shape[1] - 1)
        check_counts(self, "plays", np.minimum(self.steps, self._length), self._arms.shape[1])

    def set_window(self, window: Array, mask: Mask) -> None:
        """Give the learners in `mask` `(B,)`, who must be without plays, another window, `(B,)`."""
        self.window[mask] = window[mask]
        finite = self.window < np.iinfo(np.int64).max / 2
        self._length = np.where(finite, self.window, 0).astype(np.int64)  # 0: no play drops out

    def add(self, arms: Indices, rewards: Array, active: Mask) -> None:
        """Take in one play of every learner in `active`; its oldest drops out of a full window."""
        self._make_room(active)
        state = self.steps, self.counts, self.sums, self._older, self._newer
        slide(arms, rewards, active, self._length, *state, self._arms, self._rewards)

    def _make_room(self, active: Mask) -> None:
        """Double a ring that is too short for the coming play: a long window may never be full."""
        room, longest = self._arms.shape[1], int(self._length.max())
        if room >= longest:
            return
        if (active & (self.steps % np.maximum(self._length, 1) >= room)).any():
            more = ((0, 0), (0, min(max(room, ROOM), longest - room)))
            self._arms, self._rewards = np.pad(self._arms, more), np.pad(self._rewards, more)


class MonitoredPlays(AllPlays):
    """Every play counts alike until a detector tells that an arm's mean has changed.

    Args:
        detector: Of streams `(B, K)`, one for each arm.
        restart: What an alarm of an arm makes forget: "local", the plays of that arm; "global", of
            all arms.

    Attributes:
        age: Steps since the last restart of every arm, `(B, K)`: t - tau_k.
        alarms: Alarms since the start, `(B,)`.
    """

    def __init__(self, detector: Detector, restart: Literal["local", "global"] = "local") -> None:
        super().__init__(*detector.shape)
        self._detector, self._global = detector, restart == "global"
        self.age = np.zeros(detector.shape, np.int64)
        self.alarms = np.zeros(len(self.steps), np.int64)
        self._arms = np.arange(detector.shape[1])

    def clear(self, mask: Mask) -> None:
        """Forget all plays of the learners in `mask` `(B,)`, and restart their tests."""
        super().clear(mask)
        self.age[mask] = 0
        self.alarms[mask] = 0
        self._detector.restart(mask[:, None])

    def add(self, arms: Indices, rewards: Array, active: Mask) -> None:
        """Take in one play of every learner in `active`, test its arm, forget after an alarm."""
        super().add(arms, rewards, active)
        self.age += active[:, None]
        played = active[:, None] & (arms[:, None] == self._arms)
        changed = self._detector.update(rewards[:, None], played)
        raised = changed.sum(axis=1) > 0
        if not raised.any():
            return
        if self._global:
            changed = np.broadcast_to(raised[:, None], changed.shape)
        self.counts[changed] = self.sums[changed] = 0.0
        self.age[changed] = 0
        self.alarms += raised
        self._detector.restart(changed)


def tuned_discount(num_changes: Array, horizon: int) -> Array:
    """Return gamma = 1 - (Upsilon_T / T)^{1/2} / 4, `(B,)`: [GM11], with rewards in [0, 1].

    Args:
        num_changes: Upsilon_T in [0, T], `(B,)`.
        horizon: T.
    """
    return 1 - np.sqrt(num_changes / horizon) / 4


def tuned_window(num_changes: Array, horizon: int, num_arms: int) -> Array:
    """Return tau = 2 (T log T / Upsilon_T)^{1/2}, rounded up, `(B,)`: [GM11], as above.

    Deviation: it is at least K + 1, or each step would go to an arm that the window has lost; one
    that spans T is infinite.

    Args:
        num_changes: Upsilon_T in [0, T], `(B,)`.
        horizon: T.
        num_arms: K.
    """
    steps = 2 * np.sqrt(horizon * math.log(horizon) / np.maximum(num_changes, 1))
    length = np.maximum(np.ceil(steps), num_arms + 1)
    return np.where((num_changes == 0) | (length >= horizon), math.inf, length)
