"""The test that compares the two halves of a window.

References:
    [Cao19] Cao, Wen, Kveton, Xie. Nearly Optimal Adaptive Procedure with Change Detection for
    Piecewise-Stationary Bandit. AISTATS 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.detectors.detector import Detector, Mask, per_stream
from wgp_agents.gp.compiled import compiled
from wgp_gym.kernels import Array
from wgp_gym.validation import reject

__all__ = ["TwoWindowMean"]


class TwoWindowMean(Detector):
    """Alarm where |sum of the newer half - sum of the older half| > b in the last w samples.

    The change detection of M-UCB, [Cao19]. A stream with fewer than w samples is not tested.

    False alarms: for samples in [0, 1] each test gives one with probability at most
    2 exp(-2 b^2 / w) (Hoeffding; a sub-Gaussian constant c in the place of 1/2: b / (2 c) in
    the place of b), so n samples with at most n times that. [Cao19] sets b = (w log(2 K T^2) /
    2)^{1/2}, where that is 1 / (K T^2), and 1 / T over K arms and T steps.

    Delay: w / 2 samples after a change of size D >= 2 b / w + c it is seen with probability at
    least 1 - exp(-w c^2 / 2), if w / 2 samples came before it; one below 2 b / w is mostly not.

    Args:
        shape: The shape of the streams.
        window: w, an even number of at least 2. Memory and time of a test grow with it.
        threshold: b > 0.

    Attributes:
        threshold: b, of the streams' shape; it may be set anew where a stream restarts.

    Raises:
        ValueError: If a parameter is out of its range, or does not broadcast to `shape`.
    """

    def __init__(self, shape: tuple[int, ...], *, window: Any, threshold: Any) -> None:
        super().__init__(shape)
        length = per_stream("TwoWindowMean", "window", window, shape, 2, 2**31, whole=True)
        if (length % 2 != 0).any():
            reject("window", "TwoWindowMean", "even", window)
        self._window = length.astype(np.int64)
        self.threshold = per_stream("TwoWindowMean", "threshold", threshold, shape, 0, np.inf)
        self._count = np.zeros(length.size, np.int64)
        self._last = np.zeros((length.size, int(self._window.max(initial=2))))

    def restart(self, mask: Mask) -> None:
        """Make the streams in `mask` forget all."""
        self._count[mask.ravel()] = 0

    def _test(self, values: Array, active: Mask) -> Mask:
        alarms = np.zeros(len(values), bool)
        parameters = self._window.ravel(), self.threshold.ravel()
        two_windows(values, active, *parameters, self._count, self._last, alarms)
        return alarms


@compiled
def two_windows(
    values: Array,
    active: Mask,
    window: NDArray[np.int64],
    threshold: Array,
    count: NDArray[np.int64],
    last: Array,
    alarms: Mask,
) -> None:
    """Keep the last w values of every active stream in a ring, and compare its halves.

    The sums are taken anew each time: one that is kept up to date would remember the rounding of
    a huge value for good.
    """
    for i in range(len(values)):
        if not active[i]:
            continue
        w = window[i]
        place = count[i] % w
        last[i, place] = values[i]
        count[i] += 1
        if count[i] < w:
            continue
        difference = 0.0
        for k in range(w):
            age = place - k if k <= place else place - k + w
            sign = 1.0 if age < w // 2 else -1.0
            difference += sign * last[i, k]
        alarms[i] = abs(difference) > threshold[i]
