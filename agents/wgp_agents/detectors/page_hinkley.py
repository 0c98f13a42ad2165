"""The two-sided Page-Hinkley test of a mean that all samples so far give."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.detectors.detector import Detector
from wgp_agents.kernels.detectors import page_hinkley
from wgp_gym.types import Array, Mask

__all__ = ["PageHinkley"]


class PageHinkley(Detector):
    """Two random walks that drift down while nothing changes: the PHT of [Liu18].

    With u_k the mean of the first k samples, y_k among them, g+ = max(0, g+ + y_k - u_k - epsilon)
    and g- = max(0, g- + u_k - y_k - epsilon); an alarm where one of them reaches h, a tie
    counted as in `CUSUM`. It is CUSUM without samples set apart for the mean, which then follows a
    change.

    Delay: after a change of size D that k samples came before, and without noise, u is D k / n
    away from the n-th sample, so that the walk rises by D k / n - epsilon as long as n < D k /
    epsilon, and by k (D log(D / epsilon) - D + epsilon) in all, up to D. A change that comes so
    early that this is below h is never seen.

    Args:
        shape: The shape of the streams.
        drift: epsilon > 0.
        threshold: h > 0.

    Attributes:
        drift, threshold: Of the streams' shape; they may be set anew where a stream restarts.

    Raises:
        ValueError: If a parameter is out of its range, or does not broadcast to `shape`.

    Source: [Liu18] Liu, Lee, Shroff. A Change-Detection Based Framework for Piecewise-Stationary
    Multi-Armed Bandit Problem. AAAI 2018. Its text could not be read; the form is that of public
    code (SMPyBandits).
    """

    def __init__(self, shape: tuple[int, ...], *, drift: ArrayLike, threshold: ArrayLike) -> None:
        super().__init__(shape)
        self.drift = self._per_stream("drift", drift, 0)
        self.threshold = self._per_stream("threshold", threshold, 0)
        self._count = np.zeros(self.drift.size, np.int64)
        self._mean, self._up, self._down = np.zeros((3, self.drift.size))

    def _forget(self, mask: Mask) -> None:
        chosen = mask.ravel()
        self._count[chosen] = 0
        for state in (self._mean, self._up, self._down):
            state[chosen] = 0.0

    def _test(self, values: Array, active: Mask) -> Mask:
        alarms = np.zeros(len(values), bool)
        drift, threshold = self.drift.ravel(), self.threshold.ravel()
        mean, walks = self._mean, (self._up, self._down)
        page_hinkley(values, active, drift, threshold, self._count, mean, *walks, alarms)
        return alarms
