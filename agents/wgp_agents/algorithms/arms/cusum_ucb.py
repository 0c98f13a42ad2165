"""CUSUM-UCB: forgets an arm once two cumulative sums tell that its mean has changed.

References:
    [Liu18] Liu, Lee, Shroff. A Change-Detection Based Framework for Piecewise-Stationary
    Multi-Armed Bandit Problem. AAAI 2018.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.bound import upper_bound
from wgp_agents.arms.forced import NOBODY, force
from wgp_agents.arms.tuning import num_changes_of
from wgp_agents.arms.watched import WatchedPlays
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.detectors.cusum import CUSUM
from wgp_agents.parameters import per_learner
from wgp_gym.types import Array, Mask

__all__ = ["CUSUMUCB"]

MISS = 0.1  # the probability with which the mean of the default's M samples is off by epsilon


class CUSUMUCB(IndexAgent):
    """UCB on the plays of each arm since its last alarm, with a CUSUM test of each arm.

    With probability alpha a uniformly random arm; else the one of the largest mean + (xi log(n) /
    N_k)^{1/2}, N_k the plays of arm k since its last alarm and n their sum over the arms. An alarm
    forgets that arm alone.

    Deviation: where the noise is larger than that of rewards in [0, 1], `scale` times, the
    padding is `scale` times as large, h, given or not, and the default M `scale`^2 times: the
    bound on false alarms in `CUSUM` is then the same. Its second term is larger where the cap
    of the default M tells, and where M is given: that one is not scaled.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        M: The plays of an arm that give the mean it is compared with, a whole number >= 1.
            Default: enough for an error below epsilon with probability 0.9, ceil(`scale`^2
            log(2 / 0.1) / (2 epsilon^2)), but at most T / (K (num_changes + 1)), a segment's
            plays of an arm if all take turns. Deviation: [Liu18] leaves it open.
        epsilon: The drift of the two walks, > 0, in units of the range: the least change that can
            be seen. Default 0.1, which its authors' successors took.
        h: The threshold, > 0. Default: log(T / num_changes), at least 1.
        alpha: The share of random plays, in [0, 1]. Default: (num_changes log(T / num_changes) /
            T)^{1/2}.
        xi: Of the padding, > 0.
        num_changes: How many changes theory is to expect, whole numbers in [0, T], scalar or
            `(B,)`. Deviation: 0 counts as 1, or h would be infinite.
        reward_range: See `ArmsAgent`.

    Attributes:
        M: `(B,)`; a default is that of `scale` = 1 before the first `reset`.

    Raises:
        ValueError: If a parameter is out of its range, or the task does not fit: see `ArmsAgent`.

    Source: [Liu18], CD-UCB with the two-sided CUSUM test.
    """

    def __init__(
        self,
        env: Any,
        *,
        M: Any = None,
        epsilon: Any = 0.1,
        h: Any = None,
        alpha: Any = None,
        xi: Any = 1.0,
        num_changes: Any = 1,
        reward_range: Any = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        owner, batch, horizon = type(self).__name__, self.num_learners, self.problem.horizon
        self.epsilon = per_learner(owner, "epsilon", epsilon, batch, 0, np.inf, "neither")
        changes = np.maximum(num_changes_of(owner, num_changes, horizon, batch), 1)
        ratio = np.log(horizon / changes)
        h = np.maximum(ratio, 1.0) if h is None else h
        alpha = np.sqrt(changes * ratio / horizon) if alpha is None else alpha
        self._given_M = M
        self._segment = horizon / (self.num_arms * (changes + 1))
        M = self._enough() if M is None else M
        self.M = per_learner(owner, "M", M, batch, 1, np.inf, "left", whole=True)
        self.h = per_learner(owner, "h", h, batch, 0, np.inf, "neither")
        self.alpha = per_learner(owner, "alpha", alpha, batch, 0, 1)
        self.xi = per_learner(owner, "xi", xi, batch, 0, np.inf, "neither")
        parts = {"samples": self.M, "drift": self.epsilon, "threshold": self.h}
        columns = {name: part[:, None] for name, part in parts.items()}
        self.detector = CUSUM((batch, self.num_arms), **columns)
        self.watched = WatchedPlays(self.detector)

    def _enough(self) -> Array:
        """Return the default M, `(B,)`."""
        enough = np.ceil(self.scale**2 * np.log(2 / MISS) / (2 * self.epsilon**2))
        samples: Array = np.maximum(np.floor(np.minimum(enough, self._segment)), 1)
        return samples

    def _clear(self, mask: Mask) -> None:
        self.detector.threshold[mask] = (self.h * self.scale**2)[mask, None]
        if self._given_M is None:
            self.M[mask] = self._enough()[mask]
            self.detector.samples[mask] = self.M[mask, None]
        self.watched.clear(mask)

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        total = self.watched.statistics.counts.sum(axis=1)
        index = upper_bound(self.watched.statistics, self.scale * np.sqrt(self.xi), total)
        explores = uniform.draw() < self.alpha
        anyone = (uniform.draw() * self.num_arms).astype(np.int64)
        return force(index, np.where(explores, anyone, NOBODY))

    def _take(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        self.watched.forget(self.watched.add(arms, rewards, active))
