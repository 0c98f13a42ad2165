"""M-UCB: starts anew once the halves of an arm's last w rewards differ.

References:
    [Cao19] Cao, Wen, Kveton, Xie. Nearly Optimal Adaptive Procedure with Change Detection for
    Piecewise-Stationary Bandit. AISTATS 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.bound import upper_bound
from wgp_agents.arms.forced import force, forced_exploration
from wgp_agents.arms.tuning import num_changes_of
from wgp_agents.arms.watched import WatchedPlays
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.detectors.two_window import TwoWindowMean
from wgp_agents.parameters import per_learner
from wgp_gym.types import Array, Mask
from wgp_gym.validation import reject

__all__ = ["MUCB"]

MAX_RATE = 0.5  # of forced exploration, where theory's exceeds it


class MUCB(IndexAgent):
    """UCB on all plays since the last alarm of any arm, with a test of two windows of each arm.

    At the t-th step after the last alarm: arm k if t mod floor(K / gamma) = k in {1, ..., K};
    else the one of the largest mean + (2 log(t) / N_k)^{1/2}. An alarm of one arm, where |sum of
    the newer half - sum of the older half| of its last w rewards is above b, forgets all.

    Deviation: where the noise is larger than that of rewards in [0, 1], `scale` times, the
    padding and b are as many times as large. See also `forced_exploration`.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        w: The window, an even number >= 2. Default: (4 / smallest_change^2) (log(2 K T^2)^{1/2} +
            log(2 T)^{1/2})^2, rounded up. Deviation: at most half of T / (num_changes + 1), the
            mean length of a segment; a short horizon never fills the window otherwise.
        b: The threshold, > 0. Default: (w log(2 K T^2) / 2)^{1/2}.
        gamma: The share of forced plays, in (0, 1]. Default: (num_changes K (2 b + 3 w^{1/2}) /
            (2 T))^{1/2}. Deviation: at most 1/2; a short horizon asks for more than 1.
        smallest_change: The smallest change of an arm's mean that counts, in (0, 1], in units of
            the range; for the default w.
        num_changes: How many changes theory is to expect, whole numbers in [0, T], scalar or
            `(B,)`. Deviation: 0 counts as 1, or no play would be forced.
        reward_range: See `ArmsAgent`.

    Raises:
        ValueError: If a parameter is out of its range, or the task does not fit: see `ArmsAgent`.

    Source: [Cao19], M-UCB.
    """

    def __init__(
        self,
        env: Any,
        *,
        w: Any = None,
        b: Any = None,
        gamma: Any = None,
        smallest_change: Any = 1.0,
        num_changes: Any = 1,
        reward_range: Any = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        owner, batch, horizon = type(self).__name__, self.num_learners, self.problem.horizon
        changes = np.maximum(num_changes_of(owner, num_changes, horizon, batch), 1)
        smallest = per_learner(owner, "smallest_change", smallest_change, batch, 0, 1, "right")
        union = np.log(2 * self.num_arms) + 2 * np.log(horizon)
        if w is None:
            roots = np.sqrt(union) + np.sqrt(np.log(2 * horizon))
            length = np.minimum((2 * roots / smallest) ** 2, horizon / (2 * (changes + 1)))
            w = np.maximum(2 * np.ceil(length / 2), 2)
        self.w = per_learner(owner, "w", w, batch, 2, 2**31, whole=True)
        if (self.w % 2 != 0).any():
            reject("w", owner, "even", w)
        b = np.sqrt(self.w * union / 2) if b is None else b
        self.b = per_learner(owner, "b", b, batch, 0, np.inf, "neither")
        if gamma is None:
            delay = 2 * self.b + 3 * np.sqrt(self.w)
            gamma = np.sqrt(changes * self.num_arms * delay / (2 * horizon))
            gamma = np.minimum(gamma, MAX_RATE)
        self.gamma = per_learner(owner, "gamma", gamma, batch, 0, 1, "right")
        shape = batch, self.num_arms
        window = np.minimum(self.w, 2 * horizon)  # one that is longer is never full either
        self.detector = TwoWindowMean(shape, window=window[:, None], threshold=self.b[:, None])
        self.watched = WatchedPlays(self.detector)

    def _clear(self, mask: Mask) -> None:
        self.detector.threshold[mask] = (self.b * self.scale)[mask, None]
        self.watched.clear(mask)

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        del uniform
        step = self.watched.statistics.steps + 1
        index = upper_bound(self.watched.statistics, self.scale * np.sqrt(2.0), step.astype(float))
        return force(index, forced_exploration(step, self.gamma, self.num_arms))

    def _take(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        alarms = self.watched.add(arms, rewards, active)
        self.watched.clear(alarms.sum(axis=1) > 0)
