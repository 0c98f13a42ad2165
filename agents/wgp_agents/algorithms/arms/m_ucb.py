"""M-UCB: starts anew once the halves of an arm's last w rewards differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.index import force, forced_exploration, upper_bound
from wgp_agents.arms.statistics import MonitoredPlays
from wgp_agents.core.access import EnvLike
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.detectors.two_window import TwoWindowMean
from wgp_gym.types import Array, Mask
from wgp_gym.validation import check_choice, reject

__all__ = ["MUCB"]

MAX_RATE = 0.5  # of forced exploration, where theory's exceeds it
Tuning = Literal["experiments", "theorem"]


class MUCB(IndexAgent):
    """UCB on all plays since the last alarm of any arm, with a test of two windows of each arm.

    At the t-th step after the last alarm: arm k if t mod floor(K / gamma) = k in {1, ..., K};
    else the one of the largest mean + (2 log(t) / N_k)^{1/2}. An alarm of one arm, where |sum of
    the newer half - sum of the older half| of its last w rewards is above b, forgets all.

    Deviation: where the noise is larger than that of rewards in [0, 1], `scale` times, the
    padding and b are as many times as large. See also `forced_exploration`.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        window: w, an even number >= 2. Default: (4 / smallest_change^2) (log(2 K T^2)^{1/2} +
            log(2 T)^{1/2})^2, rounded up. Deviation: at most half of T / (num_changes + 1), the
            mean length of a segment; a short horizon never fills the window otherwise.
        threshold: b > 0. Default: (w log(2 K T^2) / 2)^{1/2}.
        gamma: The share of forced plays, in (0, 1]. Default: (num_changes K delay / (2 T))^{1/2},
            the delay by `tuning`. Deviation: at most 1/2; a short horizon asks for more than 1.
        tuning: The delay of an alarm, in samples of an arm, for the default gamma: "experiments",
            2 b + 3 w^{1/2}, which [Cao19] takes in its experiments, without the smallest change;
            or "theorem", min(w / 2, ceil(b / smallest_change) + 3 w^{1/2}), that of its regret
            bound (Theorem 6.1 of the first version), never larger than w / 2.
        smallest_change: The smallest change of an arm's mean that counts, in (0, 1], in units of
            the range; for the default w, and for "theorem".
        num_changes: How many changes theory is to expect, whole numbers in [0, T], scalar or
            `(B,)`. Deviation: 0 counts as 1, or no play would be forced.
        reward_range: See `ArmsAgent`.

    Raises:
        ValueError: If a parameter is out of its range, or the task does not fit: see `ArmsAgent`.

    Source: [Cao19] Cao, Wen, Kveton, Xie. Nearly Optimal Adaptive Procedure with Change Detection
    for Piecewise-Stationary Bandit. AISTATS 2019.
    """

    learns_by_acting = False
    statistics: MonitoredPlays

    def __init__(
        self,
        env: EnvLike,
        *,
        window: ArrayLike | None = None,
        threshold: ArrayLike | None = None,
        gamma: ArrayLike | None = None,
        tuning: Tuning = "experiments",
        smallest_change: ArrayLike = 1.0,
        num_changes: ArrayLike = 1,
        reward_range: Sequence[float] | None = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        arms, horizon = self.num_arms, self.problem.horizon or math.inf
        if window is None or threshold is None or gamma is None:
            horizon = self._horizon("window", "threshold", "gamma")
        changes = np.maximum(self._num_changes(num_changes), 1)
        smallest = self._parameter("smallest_change", smallest_change, 0, 1, "right")
        union = np.log(2 * arms) + 2 * np.log(horizon)
        if window is None:
            roots = np.sqrt(union) + np.sqrt(np.log(2 * horizon))
            length = np.minimum((2 * roots / smallest) ** 2, horizon / (2 * (changes + 1)))
            window = np.maximum(2 * np.ceil(length / 2), 2)
        self.window = self._parameter("window", window, 2, 2**31, whole=True)
        if (self.window % 2 != 0).any():
            reject("window", type(self).__name__, "even", window)
        threshold = np.sqrt(self.window * union / 2) if threshold is None else threshold
        self.threshold = self._parameter("threshold", threshold, 0, closed="neither")
        check_choice("tuning", tuning, type(self).__name__, get_args(Tuning))
        if gamma is None:
            delay = alarm_delay(tuning, self.window, self.threshold, smallest)
            gamma = np.minimum(np.sqrt(changes * arms * delay / (2 * horizon)), MAX_RATE)
        self.gamma = self._parameter("gamma", gamma, 0, 1, "right")
        shape = self.num_learners, arms
        length = np.minimum(self.window, 2 * horizon)  # one that is longer is never full either
        self.detector = TwoWindowMean(
            shape, window=length[:, None], threshold=self.threshold[:, None]
        )
        self.statistics = MonitoredPlays(self.detector, restart="global")

    def _clear(self, mask: Mask) -> None:
        self.detector.threshold[mask] = (self.threshold * self.scale)[mask, None]
        super()._clear(mask)

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        del uniform
        step = self.statistics.age[:, 0] + 1  # all arms start anew together
        index = upper_bound(self.statistics, self.scale * np.sqrt(2.0), step)
        return force(index, forced_exploration(step, self.gamma, self.num_arms), self.allowed)


def alarm_delay(tuning: Tuning, window: Array, threshold: Array, smallest_change: Array) -> Array:
    """Return how many samples of an arm its alarm takes, by `tuning` of `MUCB`, `(B,)`."""
    slack: Array = 3 * np.sqrt(window)
    if tuning == "experiments":
        return 2 * threshold + slack
    return np.minimum(window / 2, np.ceil(threshold / smallest_change) + slack)
