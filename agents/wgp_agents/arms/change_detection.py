"""UCB with a test of each arm for a change, and random plays that feed the tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.index import NOBODY, force, upper_bound
from wgp_agents.arms.statistics import MonitoredPlays
from wgp_agents.arms.weights import sample_categorical
from wgp_agents.core.access import EnvLike
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.detectors.cusum import CUSUM
from wgp_agents.detectors.page_hinkley import PageHinkley
from wgp_gym.types import Array, Mask

__all__ = ["ChangeDetectionParameters", "ChangeDetectionUCB"]


class ChangeDetectionParameters(TypedDict, total=False):
    """The parameters that these agents share. See `ChangeDetectionUCB`."""

    epsilon: ArrayLike
    threshold: ArrayLike | None
    alpha: ArrayLike | None
    xi: ArrayLike
    num_changes: ArrayLike
    reward_range: Sequence[float] | None


class ChangeDetectionUCB(IndexAgent):
    """CD-UCB: UCB on the plays of each arm since its last alarm.

    With probability alpha a uniformly random arm of those that are there; else the one of the
    largest mean + (xi log(n) / N_k)^{1/2}, N_k the plays of arm k since its last alarm and n their
    sum over the arms. An alarm forgets that arm alone.

    Deviation: where the noise is larger than that of rewards in [0, 1], `scale` times, the
    padding is `scale` times as large and h, given or not, `scale`^2 times.

    Its class sets the test, `detector`, and `statistics`.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        epsilon: The drift of the test's walks, > 0, in units of the range: the least change that
            can be seen. Default 0.1, which the successors of [Liu18]'s authors took.
        threshold: h > 0. Default: log(T / num_changes), at least 1.
        alpha: The share of random plays, in [0, 1]. Default: (num_changes log(T / num_changes) /
            T)^{1/2}.
        xi: Of the padding, > 0.
        num_changes: How many changes theory is to expect, whole numbers in [0, T], scalar or
            `(B,)`. Deviation: 0 counts as 1, or h would be infinite.
        reward_range: See `ArmsAgent`.

    Attributes:
        changes: `num_changes`, at least 1, `(B,)`.

    Raises:
        ValueError: If a parameter is out of its range, or the task does not fit: see `ArmsAgent`.

    Source: [Liu18] Liu, Lee, Shroff. A Change-Detection Based Framework for Piecewise-Stationary
    Multi-Armed Bandit Problem. AAAI 2018, Algorithm 1.
    """

    _instead: ClassVar[tuple[str, ...]] = ("threshold", "alpha")
    """The parameters that would do in the place of T."""
    learns_by_acting = False
    detector: CUSUM | PageHinkley
    statistics: MonitoredPlays

    def __init__(
        self,
        env: EnvLike,
        *,
        epsilon: ArrayLike = 0.1,
        threshold: ArrayLike | None = None,
        alpha: ArrayLike | None = None,
        xi: ArrayLike = 1.0,
        num_changes: ArrayLike = 1,
        reward_range: Sequence[float] | None = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        self.changes = np.maximum(self._num_changes(num_changes), 1)
        if threshold is None or alpha is None:
            horizon = self._horizon(*self._instead)
            ratio = np.log(horizon / self.changes)
            threshold = np.maximum(ratio, 1.0) if threshold is None else threshold
            alpha = np.sqrt(self.changes * ratio / horizon) if alpha is None else alpha
        self.epsilon = self._parameter("epsilon", epsilon, 0, closed="neither")
        self.threshold = self._parameter("threshold", threshold, 0, closed="neither")
        self.alpha = self._parameter("alpha", alpha, 0, 1)
        self.xi = self._parameter("xi", xi, 0, closed="neither")

    def _clear(self, mask: Mask) -> None:
        self.detector.threshold[mask] = (self.threshold * self.scale**2)[mask, None]
        super()._clear(mask)

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        total = self.statistics.counts.sum(axis=1)
        index = upper_bound(self.statistics, self.scale * np.sqrt(self.xi), total)
        explores, draw = uniform.draw() < self.alpha, uniform.draw()
        if self.allowed is None:
            arms = (draw * self.num_arms).astype(np.int64)
        else:
            arms = sample_categorical(self.allowed.astype(float), draw)
        return force(index, np.where(explores, arms, NOBODY), self.allowed)
