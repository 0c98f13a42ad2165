"""The two-sided CUSUM test of a mean that its first samples give."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.detectors.detector import Detector
from wgp_agents.kernels.detectors import cusum
from wgp_gym.types import Array, Mask

__all__ = ["CUSUM"]


class CUSUM(Detector):
    """Two random walks that drift down while nothing changes: CUSUM of [Liu18].

    With u the mean of the first M samples, each later sample y makes g+ = max(0, g+ + y - u -
    epsilon) and g- = max(0, g- + u - y - epsilon); an alarm where one of them reaches h. One that
    equals h up to a share of 1e-9 reaches it: such a tie is not left to rounding.

    False alarms: for samples in [0, 1], or whose sub-Gaussian constant is at most 1/2, the
    chance of one among n samples after the first M is at most 2 n exp(-4 epsilon h) +
    2 exp(-M epsilon^2 / 2). Up to the second term, Hoeffding's, u is off by less than
    epsilon / 2; then a walk's drift is below -epsilon / 2, exp(4 epsilon g) shrinks in
    expectation, and each of the n places where it may have begun to rise reaches h with
    probability at most exp(-4 epsilon h), on either side. If u is exact: 2 n exp(-8 epsilon h).
    With a sub-Gaussian constant c > 1/2: h / (4 c^2) and M / (4 c^2) in the places of h and M.

    Delay: after a change of size D > epsilon + |u - mean|, samples in [0, 1] are seen through
    after at most (h + 1) / (D - epsilon - |u - mean|) of them on average: Wald's identity.

    Args:
        shape: The shape of the streams.
        samples: M >= 1, those that give the mean.
        drift: epsilon > 0, half the smallest change that is worth an alarm.
        threshold: h > 0.

    Attributes:
        samples, drift, threshold: Of the streams' shape; they may be set anew where a stream
            restarts.

    Raises:
        ValueError: If a parameter is out of its range, or does not broadcast to `shape`.

    Source: [Liu18] Liu, Lee, Shroff. A Change-Detection Based Framework for Piecewise-Stationary
    Multi-Armed Bandit Problem. AAAI 2018.
    """

    def __init__(
        self, shape: tuple[int, ...], *, samples: ArrayLike, drift: ArrayLike, threshold: ArrayLike
    ) -> None:
        super().__init__(shape)
        first = self._per_stream("samples", samples, 1, whole=True)
        self.drift = self._per_stream("drift", drift, 0)
        self.threshold = self._per_stream("threshold", threshold, 0)
        self.samples = np.minimum(first, np.iinfo(np.int32).max).astype(np.int64)
        self._count = np.zeros(first.size, np.int64)
        self._mean, self._up, self._down = np.zeros((3, first.size))

    def _forget(self, mask: Mask) -> None:
        chosen = mask.ravel()
        self._count[chosen] = 0
        for state in (self._mean, self._up, self._down):
            state[chosen] = 0.0

    def _test(self, values: Array, active: Mask) -> Mask:
        alarms = np.zeros(len(values), bool)
        parameters = self.samples.ravel(), self.drift.ravel(), self.threshold.ravel()
        cusum(values, active, *parameters, self._count, self._mean, self._up, self._down, alarms)
        return alarms
