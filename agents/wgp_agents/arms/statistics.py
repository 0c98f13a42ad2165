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
from wgp_agents.kernels.arm_statistics import add_plays, expire, fade, fade_and_add, slide
from wgp_agents.kernels.elapsed import faded
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
LONGEST = 2.0**53  # a longer window loses no play


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
    def add(
        self, arms: Indices, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Take in one play of every learner in `active` `(B,)`.

        Args:
            arms: The arm played, `(B,)`.
            rewards: What it paid, `(B,)`.
            active: Who played.
            elapsed: How many steps go by, before the play counts, `(B,)`; None: one for all.
        """

    def elapse(self, steps: Array, active: Mask) -> None:
        """Let `steps` `(B,)` go by without a play; by default nothing is forgotten."""
        del steps, active

    def hallucinate(self, arms: Indices, active: Mask) -> None:
        """Count a play whose reward is still to come as one that paid the arm's own mean.

        Of an arm without plays that is the mean of all plays, and 1/2, the middle of the range,
        where there are none. No time goes by, and `steps` does not count it.
        """
        add_plays(arms, self.expected(arms), active, self.counts, self.sums, self.steps.copy())

    def expected(self, arms: Indices) -> Array:
        """Return what `hallucinate` takes for the reward of arms, `(B,)`."""
        rows, total = np.arange(len(arms)), self.counts.sum(axis=1)
        means = np.full(len(arms), 0.5)
        np.divide(self.sums.sum(axis=1), total, out=means, where=total > 0)
        counts = self.counts[rows, arms]
        np.divide(self.sums[rows, arms], counts, out=means, where=counts > 0)
        return means

    def mean(self) -> Array:
        """Return the (weighted) mean reward of every arm, `(B, K)`; 0 for one without plays."""
        return np.divide(self.sums, self.counts, out=np.zeros_like(self.sums), where=self.played())

    def played(self) -> Mask:
        """Return which arms have a play that still counts, `(B, K)`."""
        return self.counts > 0


class AllPlays(ArmStatistics):
    """Every play counts alike, whatever time goes by."""

    def add(
        self, arms: Indices, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
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

    def add(
        self, arms: Indices, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Let the learners in `active` forget a little, and take in one play of each."""
        discount = self.discount if elapsed is None else self._left(elapsed)
        kept = self.counts, self.sums, self.steps
        fade_and_add(arms, rewards, active, discount, *kept)

    def elapse(self, steps: Array, active: Mask) -> None:
        """Let the learners in `active` forget by gamma^steps."""
        fade(active, self._left(steps), self.counts, self.sums)

    def _left(self, steps: Array) -> Array:
        """Return gamma^steps, `(B,)`."""
        return faded(self.discount[:, None], steps)[:, 0].copy()


class WindowPlays(ArmStatistics):
    """The plays of the last W steps count alike, those before not at all.

    A play drops out as soon as W steps have gone by since it: with one step a play, the last W
    plays are left. See `kernels.arm_statistics.slide`.

    Args:
        batch: B.
        num_arms: K.
        window: W, whole numbers of at least 1, or infinite, `(B,)`.
    """

    _stores = ("_arms", "_rewards", "_times")

    def __init__(self, batch: int, num_arms: int, window: Array) -> None:
        super().__init__(batch, num_arms)
        self.window = np.full(batch, math.inf)
        self.set_window(window, np.ones(batch, bool))
        self._older, self._newer = np.zeros((2, batch, num_arms))
        self._clock, self._places = np.zeros(batch), np.zeros((batch, 3), np.int64)
        self._arms = np.zeros((batch, 1), np.int64)
        self._rewards, self._times = np.zeros((2, batch, 1))

    def _check_state(self) -> None:
        check_rooms(self, self._arms, self._rewards, self._times)
        check_counts(self, "arms", self._arms, self.counts.shape[1] - 1)
        places = self._places
        check_counts(self, "places", places, 2**62)
        check_counts(self, "plays", np.diff(places), self._arms.shape[1])
        check_counts(self, "plays", places[:, 2] - places[:, 0], self._arms.shape[1])

    def set_window(self, window: Array, mask: Mask) -> None:
        """Give the learners in `mask` `(B,)`, who must be without plays, another window, `(B,)`."""
        self.window[mask] = np.where(window < LONGEST, window, math.inf)[mask]

    def clear(self, mask: Mask) -> None:
        """Forget all plays of the learners in `mask` `(B,)`."""
        super().clear(mask)
        self._older[mask] = self._newer[mask] = 0.0
        self._clock[mask], self._places[mask] = 0.0, 0

    def add(
        self, arms: Indices, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Take in one play of every learner in `active`; what is too old drops out before."""
        self._clock += active if elapsed is None else np.where(active, elapsed, 0.0)
        self._slide(arms, rewards, active)
        self.steps += active

    def elapse(self, steps: Array, active: Mask) -> None:
        """Let what is too old drop out."""
        self._clock += np.where(active, steps, 0.0)
        expire(active, *self._kept())

    def hallucinate(self, arms: Indices, active: Mask) -> None:
        """Count a play as one that paid the arm's own mean; it leaves the window as others do."""
        self._slide(arms, self.expected(arms), active)

    def _slide(self, arms: Indices, rewards: Array, active: Mask) -> None:
        self._make_room()
        slide(arms, rewards, active, *self._kept())

    def _kept(
        self,
    ) -> tuple[Array, Array, Array, Array, Array, Array, Indices, Indices, Array, Array]:
        """Return what the compiled loops take, but for plays."""
        rings = self._arms, self._rewards, self._times
        parts = self.window, self._clock, self.counts, self.sums, self._older, self._newer
        return (*parts, self._places, *rings)

    def _make_room(self) -> None:
        """Double a ring that is full, with each play at its place."""
        room = self._arms.shape[1]
        if (self._places[:, 2] - self._places[:, 0]).max() < room:
            return
        rows = np.arange(len(self._arms))[:, None]
        numbers = self._places[:, :1] + np.arange(room)
        for name in self._stores:
            ring = getattr(self, name)
            grown = np.zeros((len(ring), max(2 * room, ROOM)), ring.dtype)
            grown[rows, numbers % grown.shape[1]] = ring[rows, numbers % room]
            setattr(self, name, grown)


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

    def add(
        self, arms: Indices, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
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
