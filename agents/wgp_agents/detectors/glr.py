"""The generalised likelihood ratio test, with geometric splits."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.core.state import check_counts, check_rooms
from wgp_agents.detectors.detector import Detector
from wgp_agents.kernels.detectors import glr_statistics, glr_thresholds
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

    The threshold is "proven", beta(n, delta) = 2 T(ln(3 n^{3/2} / delta) / 2) + 6 ln(1 + ln n), or
    "simple", its leading term ln(3 n^{3/2} / delta), which the first version of [BKMS22] recommends
    in practice; the authors' code leaves out the 3. It is a logarithm, which no statistic equals
    but for a delta made for it: there is no tolerance for rounding, unlike in `CUSUM`.

    False alarms: with the "proven" threshold the chance that a stream that does not change ever
    gives one is at most delta, for values in [0, 1] and for any exponential family's divergence;
    fewer splits give no more of them. For the "simple" one there is no proof.

    Delay: x values after a change by D that k values came before, the test with all s has
    x k D^2 / (2 sigma^2 (x + k)) in the Gaussian case without noise; the split that is tried
    next to it keeps at least 1 / ((1 + 1 / M) (1 + x / ((M + 1) k))) of that: about 1 - 1 / M for
    x well below k, which makes the delay longer by a share of about 1 / M at most; at x = k about
    1 - 2 / M, and a share of 4 / M. With M = 10 its mean was longer by 1 to 2 % where the chance
    of a coin went from 0.2 to 0.8, and by 7 to 9 % where from 0.5 to 0.8, k from 40 to 200.

    Args:
        shape: The shape of the streams.
        delta: Of the threshold, in (0, 1].
        threshold: "proven" or "simple".
        sigma: The sub-Gaussian constant of the values, > 0, where `bernoulli` is False.
        bernoulli: Whether the values lie in [0, 1], and kl is to be taken: one bool, or an array
            that broadcasts to `shape`. Values beyond [0, 1] are then cut off there.
        resolution: M >= 1. From n / 2 on, all s are tried.

    Attributes:
        delta, sigma, bernoulli: Of the streams' shape; they may be set anew where one restarts.

    Raises:
        ValueError: If a parameter is out of its range, or does not broadcast to `shape`.

    Source: [BKMS22] Besson, Kaufmann, Maillard, Seznec. Efficient Change-Point Detection for
    Tackling Piecewise-Stationary Bandits. JMLR 23, 2022. Its first version is Besson and Kaufmann,
    2019.
    """

    _stores = ("counts", "sums")

    def __init__(
        self,
        shape: tuple[int, ...],
        *,
        delta: ArrayLike,
        threshold: Literal["proven", "simple"] = "simple",
        sigma: ArrayLike = 0.5,
        bernoulli: ArrayLike = False,
        resolution: int = 10,
    ) -> None:
        super().__init__(shape)
        self.delta = self._per_stream("delta", delta, 0, 1)
        self.sigma = self._per_stream("sigma", sigma, 0)
        self._proven = check_choice("threshold", threshold, "GLR", ("proven", "simple")) == "proven"
        self._resolution = check_int("resolution", resolution, "GLR", 1, 2**31)
        flags = np.asarray(bernoulli)
        if flags.dtype != bool:
            reject("bernoulli", "GLR", "True or False, or an array of them", bernoulli)
        self.bernoulli = np.broadcast_to(flags, shape).copy()
        streams = self.delta.size
        self.size, self._n = np.zeros((2, streams), np.int64)
        self.counts = np.zeros((streams, ROOM), np.int64)
        self.sums = np.zeros((streams, ROOM))

    def _check_state(self) -> None:
        check_rooms(self, self.counts, self.sums)
        check_counts(self, "size", self.size, self.counts.shape[1])

    def _forget(self, mask: Mask) -> None:
        self.size[mask.ravel()] = 0

    def _test(self, values: Array, active: Mask) -> Mask:
        room = self.counts.shape[1]
        if self.size.max(initial=0) == room:
            self.counts = np.pad(self.counts, ((0, 0), (0, room)))
            self.sums = np.pad(self.sums, ((0, 0), (0, room)))
        family = self.bernoulli.ravel(), self.sigma.ravel(), self._resolution
        state = self.size, self.counts, self.sums
        found = glr_statistics(values, active, *family, *state, self._n)
        alarms: Mask = found >= glr_thresholds(self._n, self.delta.ravel(), self._proven, active)
        return alarms
