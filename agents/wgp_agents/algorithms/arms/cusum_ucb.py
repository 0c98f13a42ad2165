"""CUSUM-UCB: forgets an arm once two cumulative sums tell that its mean has changed."""

from __future__ import annotations

import math
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.arms.change_detection import ChangeDetectionParameters, ChangeDetectionUCB
from wgp_agents.arms.statistics import MonitoredPlays
from wgp_agents.core.access import EnvLike
from wgp_agents.detectors.cusum import CUSUM
from wgp_gym.types import Array, Mask

__all__ = ["CUSUMUCB"]

MISS = 0.1  # the probability with which the mean of the default's M samples is off by epsilon


class CUSUMUCB(ChangeDetectionUCB):
    """UCB on the plays of each arm since its last alarm, with a CUSUM test of each arm.

    See `ChangeDetectionUCB` and `CUSUM`.

    Deviation: where the noise is larger than that of rewards in [0, 1], `scale` times, the
    default M is `scale`^2 times as large, as h is: the bound on false alarms in `CUSUM` is then
    the same. Its second term is larger where the cap of the default M tells, and where M is
    given: that one is not scaled.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        num_samples: M, the plays of an arm that give the mean it is compared with, a whole number
            >= 1. Default: enough for an error below epsilon with probability 0.9, ceil(`scale`^2
            log(2 / 0.1) / (2 epsilon^2)), but at most T / (K (num_changes + 1)), a segment's
            plays of an arm if all take turns. Deviation: [Liu18] leaves it open.
        **common: See `ChangeDetectionUCB`.

    Attributes:
        num_samples: `(B,)`; a default is that of `scale` = 1 before the first `reset`.

    Raises:
        ValueError: If a parameter is out of its range, or the task does not fit: see `ArmsAgent`.

    Source: [Liu18] Liu, Lee, Shroff. A Change-Detection Based Framework for Piecewise-Stationary
    Multi-Armed Bandit Problem. AAAI 2018, CD-UCB with the two-sided CUSUM test.
    """

    _instead = ("threshold", "alpha", "num_samples")
    detector: CUSUM

    def __init__(
        self,
        env: EnvLike,
        *,
        num_samples: ArrayLike | None = None,
        **common: Unpack[ChangeDetectionParameters],
    ) -> None:
        super().__init__(env, **common)
        self._tunes_samples = num_samples is None
        self._segment = np.full(self.num_learners, math.inf)
        if self._tunes_samples:
            self._segment = self._horizon(*self._instead) / (self.num_arms * (self.changes + 1))
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
