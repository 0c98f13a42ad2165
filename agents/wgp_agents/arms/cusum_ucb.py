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
from wgp_agents.arms.forced import NOBODY, force
from wgp_agents.base import Mask
from wgp_agents.detectors.cusum import CUSUM
from wgp_agents.parameters import per_learner
from wgp_agents.randomness import UniformStreams
from wgp_gym.kernels import Array

__all__ = ["CUSUMUCB"]

MISS = 0.1  # the probability with which the mean of the default's M samples is off by epsilon


class CUSUMUCB(IndexAgent):
    """UCB on the plays of each arm since its last alarm, with a CUSUM test of each arm.

    With probability alpha a uniformly random arm; else the one of the largest mean + (xi log(n) /
    N_k)^{1/2}, N_k the plays of arm k since its last alarm and n their sum over the arms. An alarm
    forgets that arm alone.

    Deviation: where the noise is larger than that of rewards in [0, 1], `scale` times, the
    padding is `scale` and h `scale`^2 times as large: false alarms then are no more likely.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        M: The plays of an arm that give the mean it is compared with, a whole number >= 1.
            Default: enough for an error below epsilon with probability 0.9, ceil(log(2 / 0.1) /
            (2 epsilon^2)), but at most T / (K (num_changes + 1)), a segment's plays of an arm if
            all take turns. Deviation: [Liu18] leaves it open.
        epsilon: The drift of the two walks, > 0, in units of the range: the least change that can
            be seen. Default 0.1, which its authors' successors took.
        h: The threshold, > 0. Default: log(T / num_changes), at least 1.
        alpha: The share of random plays, in [0, 1]. Default: (num_changes log(T / num_changes) /
            T)^{1/2}.
        xi: Of the padding, > 0.
        num_changes: How many changes theory is to expect, >= 1.
        reward_range: See `ArmsAgent`.

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
        changes = per_learner(owner, "num_changes", num_changes, batch, 1, np.inf, "left")
        ratio = np.maximum(np.log(horizon / changes), 0.0)
        if M is None:
            enough = np.ceil(np.log(2 / MISS) / (2 * self.epsilon**2))
            M = np.floor(np.minimum(enough, horizon / (self.num_arms * (changes + 1))))
            M = np.maximum(M, 1)
        h = np.maximum(ratio, 1.0) if h is None else h
        alpha = np.sqrt(changes * ratio / horizon) if alpha is None else alpha
        self.M = per_learner(owner, "M", M, batch, 1, np.inf, "left", whole=True)
        self.h = per_learner(owner, "h", h, batch, 0, np.inf, "neither")
        self.alpha = per_learner(owner, "alpha", alpha, batch, 0, 1)
        self.xi = per_learner(owner, "xi", xi, batch, 0, np.inf, "neither")
        shape = batch, self.num_arms
        parts = {"samples": self.M, "drift": self.epsilon, "threshold": self.h}
        self._detector = CUSUM(shape, **{name: part[:, None] for name, part in parts.items()})
        self._plays = np.zeros(shape, np.int64)
        self._total = np.zeros(shape)

    def _clear(self, mask: Mask) -> None:
        self._detector.threshold[mask] = (self.h * self.scale**2)[mask, None]
        self._forget(np.broadcast_to(mask[:, None], self._plays.shape))

    def _forget(self, arms: Mask) -> None:
        self._plays[arms] = 0
        self._total[arms] = 0.0
        self._detector.restart(arms)

    def _index(self, uniform: UniformStreams) -> Array:
        known = np.maximum(self._plays, 1)
        logarithm = np.log(np.maximum(self._plays.sum(axis=1), 1))
        width = self.scale * np.sqrt(self.xi * logarithm)
        index = self._total / known + width[:, None] / np.sqrt(known)
        index[self._plays == 0] = np.inf
        explores = uniform.draw() < self.alpha
        anyone = (uniform.draw() * self.num_arms).astype(np.int64)
        return force(index, np.where(explores, anyone, NOBODY))

    def _take(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        played = active[:, None] & (arms[:, None] == np.arange(self.num_arms))
        values = np.broadcast_to(rewards[:, None], played.shape)
        self._plays[played] += 1
        self._total[played] += values[played]
        self._forget(self._detector.update(values, played))
