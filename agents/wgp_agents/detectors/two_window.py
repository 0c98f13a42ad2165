"""The test that compares the two halves of a window.

References:
    [Cao19] Cao, Wen, Kveton, Xie. Nearly Optimal Adaptive Procedure with Change Detection for
    Piecewise-Stationary Bandit. AISTATS 2019.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.detectors.detector import Detector, per_stream
from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array, Mask
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
        window: w, an even number of at least 2. Surrogate grows with it, the mean time of a test
            does not.
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
        self._half = (length // 2).astype(np.int64)
        self.threshold = per_stream("TwoWindowMean", "threshold", threshold, shape, 0, np.inf)
        self._count = np.zeros(length.size, np.int64)
        self._newer = np.zeros(length.size)
        self._block, self.sums = np.zeros((2, length.size, int(self._half.max(initial=1))))

    def _forget(self, mask: Mask) -> None:
        """Make the streams in `mask` forget all."""
        self._count[mask.ravel()] = 0

    def _test(self, values: Array, active: Mask) -> Mask:
        alarms = np.zeros(len(values), bool)
        half, threshold = self._half.ravel(), self.threshold.ravel()
        state = self._count, self._newer, self._block, self.sums
        two_windows(values, active, half, threshold, *state, alarms)
        return alarms


@compiled
def two_windows(
    values: Array,
    active: Mask,
    half: NDArray[np.int64],
    threshold: Array,
    count: NDArray[np.int64],
    newer: Array,
    block: Array,
    sums: Array,
    alarms: Mask,
) -> None:
    """Take in a value of every active stream, and compare the halves of its window.

    Nothing is ever subtracted from a sum, so that a huge value leaves no rounding behind. Values
    come in blocks of w / 2. The sum of the last w / 2 is that of the block at hand, `newer`, and
    of the end of the block before. When a block is full it is read once from its end, and each
    value makes way for the sum of those after it. The older half's sum is that of w / 2 steps ago.

    Args:
        values: `(S,)`.
        active: `(S,)`.
        half: w / 2, `(S,)`.
        threshold: b, `(S,)`.
        count: How many values there were, `(S,)`.
        newer: `(S,)`.
        block: What is left of the block before, and values of that at hand, `(S, w / 2)`.
        sums: Of the last w / 2 values, at each of the last w / 2 steps, `(S, w / 2)`.
        alarms: Where they go, `(S,)`.
    """
    for i in range(len(values)):
        if not active[i]:
            continue
        place = count[i] % half[i]
        if place == 0:
            newer[i] = rest = 0.0
            for j in range(half[i] - 1, -1, -1):
                block[i, j], rest = rest, rest + block[i, j]
        newer[i] += values[i]
        total = block[i, place] + newer[i]
        difference = total - sums[i, place]
        block[i, place], sums[i, place] = values[i], total
        count[i] += 1
        # A stream's first w / 2 sums hold what was there before it: they are compared with none.
        alarms[i] = count[i] >= 2 * half[i] and abs(difference) > threshold[i]
