"""The generalised likelihood ratio test, with geometric splits.

References:
    [BKMS22] Besson, Kaufmann, Maillard, Seznec. Efficient Change-Point Detection for Tackling
    Piecewise-Stationary Bandits. JMLR 23, 2022. Its first version is Besson and Kaufmann, 2019.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.detectors.detector import Detector, per_stream
from wgp_agents.detectors.threshold import THRESHOLDS, thresholds
from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array, Mask
from wgp_gym.validation import check_choice, check_int, reject

__all__ = ["GLR"]

ROOM = 64  # buckets that a stream has room for at first


class GLR(Detector):
    """Alarm where the likelihood of two means, split somewhere, is too much above that of one.

    The generalised likelihood ratio test of [BKMS22]: with n values so far, an alarm where

        max over s of s d(mean of the first s, mean) + (n - s) d(mean of the rest, mean)

    reaches beta(n, delta); d is the divergence of Bernoulli laws, kl, or of Gaussian ones of
    known sigma, (x - y)^2 / (2 sigma^2).

    Deviation: [BKMS22] tries all s, at a cost that grows with n (and thins them out evenly in
    its experiments). Here the values stand in buckets, and s is tried where two of them meet.
    Neighbours become one as soon as both together hold at most 1 / M of the values that came
    after them (M is `resolution`), so of the distances n - s there is one tried within a factor
    1 + 1 / M below each, and all up to 2 M; there are O(M log(n / M)) buckets.

    False alarms: fewer splits give no more of them: with the "proven" threshold the chance of one
    ever is at most delta where nothing changes.

    Delay: x values after a change by D that k values came before, the test with all s has
    x k D^2 / (2 sigma^2 (x + k)) in the Gaussian case without noise; the split that is tried
    next to it keeps at least 1 / ((1 + 1 / M) (1 + x / ((M + 1) k))) of that: about 1 - 1 / M for
    x well below k, which makes the delay longer by a share of about 1 / M at most; at x = k about
    1 - 2 / M, and a share of 4 / M. With M = 10 its mean was longer by 1 to 2 % where the chance
    of a coin went from 0.2 to 0.8, and by 6 to 7 % where from 0.5 to 0.8.

    Args:
        shape: The shape of the streams.
        delta: In (0, 1]: see the threshold.
        threshold: "proven" or "simple": see `wgp_agents.detectors.threshold`.
        sigma: The sub-Gaussian constant of the values, > 0, where `bernoulli` is False.
        bernoulli: Whether the values lie in [0, 1], and kl is to be taken: one bool, or an array
            that broadcasts to `shape`. Values beyond [0, 1] are then cut off there.
        resolution: M >= 1. From n / 2 on, all s are tried.

    Attributes:
        delta, sigma, bernoulli: Of the streams' shape; they may be set anew where one restarts.

    Raises:
        ValueError: If a parameter is out of its range, or does not broadcast to `shape`.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        delta: Any,
        threshold: str = "simple",
        sigma: Any = 0.5,
        bernoulli: Any = False,
        resolution: int = 10,
    ) -> None:
        super().__init__(shape)
        self.delta = per_stream("GLR", "delta", delta, shape, 0, 1)
        self.sigma = per_stream("GLR", "sigma", sigma, shape, 0, np.inf)
        self._proven = check_choice("threshold", threshold, "GLR", THRESHOLDS) == "proven"
        self._resolution = check_int("resolution", resolution, "GLR", 1, 2**31)
        flags = np.asarray(bernoulli)
        if flags.dtype != bool:
            reject("bernoulli", "GLR", "True or False, or an array of them", bernoulli)
        self.bernoulli = np.broadcast_to(flags, shape).copy()
        streams = self.delta.size
        self.size, self._n = np.zeros((2, streams), np.int64)
        self.counts = np.zeros((streams, ROOM), np.int64)
        self.sums = np.zeros((streams, ROOM))

    def _forget(self, mask: Mask) -> None:
        """Make the streams in `mask` forget all."""
        self.size[mask.ravel()] = 0

    def _test(self, values: Array, active: Mask) -> Mask:
        room = self.counts.shape[1]
        if self.size.max(initial=0) == room:
            self.counts = np.pad(self.counts, ((0, 0), (0, room)))
            self.sums = np.pad(self.sums, ((0, 0), (0, room)))
        family = self.bernoulli.ravel(), self.sigma.ravel(), self._resolution
        state = self.size, self.counts, self.sums
        found = statistics(values, active, *family, *state, self._n)
        alarms: Mask = found >= thresholds(self._n, self.delta.ravel(), self._proven, active)
        return alarms


@compiled
def entropy(p: float) -> float:
    """Return -p ln p - (1 - p) ln(1 - p)."""
    if p <= 0.0 or p >= 1.0:
        return 0.0
    return -p * math.log(p) - (1.0 - p) * math.log1p(-p)


@compiled
def statistic(s: int, before: float, n: int, total: float, bernoulli: bool, sigma: float) -> float:
    """Return s d(mean of s, mean of n) + (n - s) d(mean of the rest, mean of n).

    For kl the two add up to n H(mean) - s H(mean of s) - (n - s) H(mean of the rest), H the
    entropy.
    """
    r = n - s
    first, rest = before / s, (total - before) / r
    if bernoulli:
        return n * entropy(total / n) - s * entropy(first) - r * entropy(rest)
    gap = (first - rest) / sigma
    return s / n * r * gap * gap / 2.0


@compiled
def merge(size: int, counts: NDArray[np.int64], sums: Array, n: int, resolution: int) -> int:
    """Join neighbouring buckets, the oldest first; return how many are left.

    Two become one where together they hold at most 1 / M of the values after them.
    """
    kept, after = 0, n - counts[0]
    for j in range(1, size):
        after -= counts[j]
        both = counts[kept] + counts[j]
        if both * resolution <= after:
            counts[kept] = both
            sums[kept] += sums[j]
        else:
            kept += 1
            counts[kept] = counts[j]
            sums[kept] = sums[j]
    return kept + 1


@compiled
def statistics(
    values: Array,
    active: Mask,
    bernoulli: Mask,
    sigma: Array,
    resolution: int,
    size: NDArray[np.int64],
    counts: NDArray[np.int64],
    sums: Array,
    length: NDArray[np.int64],
) -> Array:
    """Add a value to every active stream; return the statistic of `GLR` `(S,)`, 0 elsewhere.

    Args:
        values: `(S,)`.
        active: `(S,)`.
        bernoulli: `(S,)`; see `GLR`.
        sigma: `(S,)`.
        resolution: M.
        size: How many buckets there are, `(S,)`.
        counts: How many values each holds, the oldest bucket first, `(S, room)`.
        sums: What they add up to, `(S, room)`.
        length: Where n goes, `(S,)`.
    """
    largest = np.zeros(len(values))
    for i in range(len(values)):
        if not active[i]:
            continue
        value = min(max(values[i], 0.0), 1.0) if bernoulli[i] else values[i]
        counts[i, size[i]], sums[i, size[i]] = 1, value
        size[i] += 1
        n, total = 0, 0.0
        for j in range(size[i]):
            n += counts[i, j]
            total += sums[i, j]
        length[i] = n
        size[i] = merge(size[i], counts[i], sums[i], n, resolution)
        s, before = 0, 0.0
        for j in range(size[i] - 1):
            s += counts[i, j]
            before += sums[i, j]
            found = statistic(s, before, n, total, bernoulli[i], sigma[i])
            largest[i] = max(largest[i], found)
    return largest
