"""CUSUM-UCB: forgets an arm once two cumulative sums tell that its mean has changed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.arms.change_detection import ChangeDetectionUCB
from wgp_agents.arms.statistics import MonitoredPlays
from wgp_agents.core.access import EnvLike
from wgp_agents.detectors.cusum import CUSUM
from wgp_gym.types import Array, Mask

__all__ = ["CUSUMUCB"]

MISS = 0.1  # the probability with which the mean of the default's M samples is off by epsilon


class CUSUMUCB(ChangeDetectionUCB):
    """UCB on the plays of each arm since its last alarm, with a CUSUM test of each arm.

    With probability alpha a uniformly random arm of those that are there; else the one of the
    largest mean + (xi log(n) / N_k)^{1/2}, N_k the plays of arm k since its last alarm and n their
    sum over the arms. An alarm forgets that arm alone.

    Deviation: where the noise is larger than that of rewards in [0, 1], `scale` times, the
    padding is `scale` times as large, h, given or not, and the default M `scale`^2 times: the
    bound on false alarms in `CUSUM` is then the same. Its second term is larger where the cap
    of the default M tells, and where M is given: that one is not scaled.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        num_samples: M, the plays of an arm that give the mean it is compared with, a whole number
            >= 1. Default: enough for an error below epsilon with probability 0.9, ceil(`scale`^2
            log(2 / 0.1) / (2 epsilon^2)), but at most T / (K (num_changes + 1)), a segment's
            plays of an arm if all take turns. Deviation: [Liu18] leaves it open.
        epsilon: The drift of the two walks, > 0, in units of the range: the least change that can
            be seen. Default 0.1, which its authors' successors took.
        threshold: h > 0. Default: log(T / num_changes), at least 1.
        alpha: The share of random plays, in [0, 1]. Default: (num_changes log(T / num_changes) /
            T)^{1/2}.
        xi: Of the padding, > 0.
        num_changes: How many changes theory is to expect, whole numbers in [0, T], scalar or
            `(B,)`. Deviation: 0 counts as 1, or h would be infinite.
        reward_range: See `ArmsAgent`.

    Attributes:
        num_samples: `(B,)`; a default is that of `scale` = 1 before the first `reset`.

    Raises:
        ValueError: If a parameter is out of its range, or the task does not fit: see `ArmsAgent`.

    Source: [Liu18] Liu, Lee, Shroff. A Change-Detection Based Framework for Piecewise-Stationary
    Multi-Armed Bandit Problem. AAAI 2018, CD-UCB with the two-sided CUSUM test.
    """

    detector: CUSUM

    def __init__(
        self,
        env: EnvLike,
        *,
        num_samples: ArrayLike | None = None,
        epsilon: ArrayLike = 0.1,
        threshold: ArrayLike | None = None,
        alpha: ArrayLike | None = None,
        xi: ArrayLike = 1.0,
        num_changes: ArrayLike = 1,
        reward_range: Sequence[float] | None = None,
    ) -> None:
        super().__init__(
            env,
            epsilon=epsilon,
            threshold=threshold,
            alpha=alpha,
            xi=xi,
            num_changes=num_changes,
            reward_range=reward_range,
        )
        self._segment = self.problem.horizon / (self.num_arms * (self.changes + 1))
        self._tunes_samples = num_samples is None
        samples = self._enough() if num_samples is None else num_samples
        self.num_samples = self._parameter("num_samples", samples, 1, closed="left", whole=True)
        self.detector = CUSUM(
            (self.num_learners, self.num_arms),
            samples=self.num_samples[:, None],
            drift=self.epsilon[:, None],
            threshold=self.threshold[:, None],
        )
        self.statistics = MonitoredPlays(self.detector)

    def _enough(self) -> Array:
        """Return the default M, `(B,)`."""
        enough = np.ceil(self.scale**2 * np.log(2 / MISS) / (2 * self.epsilon**2))
        samples: Array = np.maximum(np.floor(np.minimum(enough, self._segment)), 1)
        return samples

    def _clear(self, mask: Mask) -> None:
        if self._tunes_samples:
            self.num_samples[mask] = self._enough()[mask]
            self.detector.samples[mask] = self.num_samples[mask, None]
        super()._clear(mask)
