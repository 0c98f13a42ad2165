"""The upper confidence bounds of kl-UCB.

References:
    [CGMMS13] Cappe, Garivier, Maillard, Munos, Stoltz. Kullback-Leibler Upper Confidence Bounds
    for Optimal Sequential Allocation. Annals of Statistics 41, 2013.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array, Mask

__all__ = ["exploration_level", "kl_indices", "kl_upper"]

STEPS = 100  # of Newton's method, which mostly needs about 5
CLOSE = 1e-13  # a step below it changes no decision


def exploration_level(steps: NDArray[np.int64], c: Array) -> Array:
    """Return f(t) = log t + c log log t, at least 0; 0 at t = 1.

    Args:
        steps: t >= 1.
        c: 3 in the analysis of [CGMMS13], 0 in its experiments; broadcasts to `steps`.
    """
    logarithm = np.log(np.maximum(steps, 2))
    level: Array = np.where(steps > 1, logarithm + c * np.log(logarithm), 0.0)
    return np.maximum(level, 0.0)


@compiled
def kl_upper(mean: float, level: float) -> float:
    """Return the largest q in [0, 1] with kl(mean, q) <= level.

    Newton's method from above, where kl is convex and rises: no step passes the root. It starts
    at the smaller of two bounds: Pinsker's, mean + (level / 2)^{1/2}, and the q at which
    mean log(mean) + (1 - mean) log((1 - mean) / (1 - q)), which is below kl, reaches the level.

    Args:
        mean: In [0, 1].
        level: At least 0.
    """
    p = min(max(mean, 0.0), 1.0)
    if level <= 0.0 or p >= 1.0:
        return p
    if p <= 0.0:
        return -math.expm1(-level)
    negative_entropy = p * math.log(p) + (1.0 - p) * math.log1p(-p)
    far = -math.expm1((negative_entropy - level) / (1.0 - p))
    q = min(p + math.sqrt(level / 2.0), far)
    for _ in range(STEPS):
        if q >= 1.0 or q <= p:
            break
        excess = negative_entropy - p * math.log(q) - (1.0 - p) * math.log1p(-q) - level
        step = excess * q * (1.0 - q) / (q - p)
        q = max(q - step, p)
        if abs(step) < CLOSE:
            break
    return q


@compiled
def kl_indices(
    plays: Array,
    total: Array,
    level: Array,
    bernoulli: Mask,
    sigma: Array,
    index: Array,
) -> None:
    """Compute the largest q with N d(mean, q) <= level, of every arm; infinity without plays.

    Args:
        plays: N, `(B, K)`.
        total: The sum of an arm's rewards, `(B, K)`.
        level: `(B, K)`.
        bernoulli: Whether d is kl, `(B,)`; else it is (x - y)^2 / (2 sigma^2).
        sigma: `(B,)`.
        index: Where they go, `(B, K)`.
    """
    for i in range(plays.shape[0]):
        for k in range(plays.shape[1]):
            n = plays[i, k]
            if n == 0.0:
                index[i, k] = math.inf
            elif bernoulli[i]:
                index[i, k] = kl_upper(total[i, k] / n, level[i, k] / n)
            else:
                index[i, k] = total[i, k] / n + sigma[i] * math.sqrt(2.0 * level[i, k] / n)
