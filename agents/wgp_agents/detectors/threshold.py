"""The thresholds of the generalised likelihood ratio test.

References:
    [BKMS22] Besson, Kaufmann, Maillard, Seznec. Efficient Change-Point Detection for Tackling
    Piecewise-Stationary Bandits. JMLR 23, 2022. Its first version is Besson and Kaufmann, 2019.
    [KK21] Kaufmann, Koolen. Mixture Martingales Revisited with Applications to Sequential Tests
    and Confidence Intervals. JMLR 22, 2021.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array

__all__ = ["THRESHOLDS", "inverse_h", "proven_threshold", "simple_threshold", "thresholds"]

THRESHOLDS = ("proven", "simple")
LOG_RATIO = math.log(1.5)
# h^{-1}(1 / ln(3 / 2)), where the other branch of h~ begins, as printed. It could at h(1 / ln(3 /
# 2)) = 1.56: h~ is the smallest z (x - ln ln z) over z <= 3 / 2, so it is larger in between.
BRANCH = 3.8017702851374455
LOG_2_ZETA_2 = math.log(math.pi**2 / 3)
STEPS = 50  # of Newton's method, which needs about 5


@compiled
def inverse_h(x: float) -> float:
    """Return u >= 1 with u - ln u = x >= 1, by Newton's method, from above.

    The start is above the root: with z = (2 x - 2)^{1/2}, ln(1 + z + z^2 / 2) <= z.
    """
    u = x + math.sqrt(2.0 * max(x - 1.0, 0.0))
    for _ in range(STEPS):
        if u <= 1.0:
            return 1.0
        step = (u - math.log(u) - x) * u / (u - 1.0)
        if step <= 1e-14 * u:
            break
        u -= step
    return u


@compiled
def time_uniform(x: float) -> float:
    """Return the function T(x) of [BKMS22], from [KK21]; about x + 4 ln(1 + x + (2 x)^{1/2})."""
    half = (inverse_h(1.0 + x) + LOG_2_ZETA_2) / 2.0
    if half >= BRANCH:
        u = inverse_h(half)
        return 2.0 * math.exp(1.0 / u) * u
    return 3.0 * (half - math.log(LOG_RATIO))


@compiled
def proven_threshold(n: int, delta: float) -> float:
    """Return beta(n, delta) = 2 T(ln(3 n^{3/2} / delta) / 2) + 6 ln(1 + ln n).

    It bounds by delta the chance that a stream that does not change ever gives an alarm, for
    sub-Bernoulli values and for any exponential family's divergence: [BKMS22].
    """
    leading = math.log(3.0 / delta) + 1.5 * math.log(n)
    return 2.0 * time_uniform(leading / 2.0) + 6.0 * math.log(1.0 + math.log(n))


@compiled
def simple_threshold(n: int, delta: float) -> float:
    """Return beta(n, delta) = ln(3 n^{3/2} / delta), the leading term of the proven one.

    The first version of [BKMS22] recommends it in practice, without a proof; the authors' code
    leaves out the 3.
    """
    return math.log(3.0 / delta) + 1.5 * math.log(n)


@compiled
def thresholds(
    counts: NDArray[np.int64], delta: Array, proven: bool, active: NDArray[np.bool_]
) -> Array:
    """Return beta(n, delta) of every stream, `(S,)`; infinity where not active or n < 2."""
    levels = np.full(len(counts), math.inf)
    for i in range(len(counts)):
        if active[i] and counts[i] > 1:
            n = counts[i]
            levels[i] = proven_threshold(n, delta[i]) if proven else simple_threshold(n, delta[i])
    return levels
