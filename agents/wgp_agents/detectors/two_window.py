"""The test that compares the two halves of a window."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.detectors.detector import Detector
from wgp_agents.kernels.detectors import two_windows
from wgp_gym.types import Array, Mask
from wgp_gym.validation import reject

__all__ = ["TwoWindowMean"]


class TwoWindowMean(Detector):
    """Alarm where |sum of the newer half - sum of the older half| > b in the last w samples.

    The change detection of M-UCB, [Cao19]. A stream with fewer than w samples is not tested. A
    difference that equals b up to a share of 1e-9 does not exceed it: such a tie is not left to
    rounding.

    False alarms: for samples in [0, 1] each test gives one with probability at most
    2 exp(-2 b^2 / w) (Hoeffding; a sub-Gaussian constant c in the place of 1/2: b / (2 c) in
    the place of b), so n samples with at most n times that. [Cao19] sets b = (w log(2 K T^2) /
    2)^{1/2}, where that is 1 / (K T^2), and 1 / T over K arms and T steps.

    Delay: w / 2 samples after a change of size D >= 2 b / w + c it is seen with probability at
    least 1 - exp(-w c^2 / 2), if w / 2 samples came before it; one below 2 b / w is mostly not.

    Args:
        shape: The shape of the streams.
        window: w, an even number of at least 2. The memory grows with it, the mean
            time of a test does not.
        threshold: b > 0.

    Attributes:
        threshold: b, of the streams' shape; it may be set anew where a stream restarts.

    Raises:
        ValueError: If a parameter is out of its range, or does not broadcast to `shape`.

    Source: [Cao19] Cao, Wen, Kveton, Xie. Nearly Optimal Adaptive Procedure with Change Detection
    for Piecewise-Stationary Bandit. AISTATS 2019.
    """

    _constants = ("_half",)

    def __init__(self, shape: tuple[int, ...], *, window: ArrayLike, threshold: ArrayLike) -> None:
        super().__init__(shape)
        length = self._per_stream("window", window, 2, 2**31, whole=True)
        if (length % 2 != 0).any():
            reject("window", "TwoWindowMean", "even", window)
        self._half = (length // 2).astype(np.int64)
        self.threshold = self._per_stream("threshold", threshold, 0)
        self._count = np.zeros(length.size, np.int64)
        self._newer = np.zeros(length.size)
        self._block, self.sums = np.zeros((2, length.size, int(self._half.max(initial=1))))

    def _forget(self, mask: Mask) -> None:
        self._count[mask.ravel()] = 0

    def _test(self, values: Array, active: Mask) -> Mask:
        alarms = np.zeros(len(values), bool)
        half, threshold = self._half.ravel(), self.threshold.ravel()
        state = self._count, self._newer, self._block, self.sums
        two_windows(values, active, half, threshold, *state, alarms)
        return alarms
