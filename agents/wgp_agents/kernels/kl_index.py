"""The upper confidence bounds of kl-UCB.

References:
    [CGMMS13] Cappe, Garivier, Maillard, Munos, Stoltz. Kullback-Leibler Upper Confidence Bounds
    for Optimal Sequential Allocation. Annals of Statistics 41, 2013.
"""

from __future__ import annotations

import math

from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array, Mask

__all__ = ["kl_indices", "kl_upper"]

STEPS = 100  # of Newton's method, which mostly needs about 5
CLOSE = 1e-13  # a step below it changes no decision


@compiled
def kl_upper(mean: float, level: float) -> float:
    """Return the largest q in [0, 1] with kl(mean, q) <= level, at least 0, for a mean in [0, 1].

    Newton's method from above, where kl is convex and rises: no step passes the root.
    """
    p = min(max(mean, 0.0), 1.0)
    if level <= 0.0 or p >= 1.0:
        return p
    if p <= 0.0:  # kl(0, q) = -log(1 - q)
        return -math.expm1(-level)
    negative_entropy = p * math.log(p) + (1.0 - p) * math.log1p(-p)
    # Start at the smaller of two upper bounds: Pinsker's, p + (level / 2)^{1/2}, and the q at which
    # p log p + (1 - p) log((1 - p) / (1 - q)), which is below kl(p, q), reaches the level.
    largest = -math.expm1((negative_entropy - level) / (1.0 - p))
    q = min(p + math.sqrt(level / 2.0), largest)
    for _ in range(STEPS):
        if q >= 1.0 or q <= p:
            break
        # The slope of kl(p, q) in q is (q - p) / (q (1 - q)).
        excess = negative_entropy - p * math.log(q) - (1.0 - p) * math.log1p(-q) - level
        step = excess * q * (1.0 - q) / (q - p)
        q = max(q - step, p)
        if abs(step) < CLOSE:
            break
    return q


@compiled
def kl_indices(
    counts: Array, sums: Array, level: Array, bernoulli: Mask, sigma: Array, index: Array
) -> None:
    """Compute the largest q with N d(mean, q) <= level, of every arm; infinity without plays.

    d is kl where `bernoulli`, `(B,)`, else (x - y)^2 / (2 sigma^2); the mean is `sums` / N, with N
    the `counts`. The `index` is filled in; it and `level` are `(B, K)`.
    """
    for i in range(counts.shape[0]):
        for k in range(counts.shape[1]):
            n = counts[i, k]
            if n == 0.0:
                index[i, k] = math.inf
            elif bernoulli[i]:
                index[i, k] = kl_upper(sums[i, k] / n, level[i, k] / n)
            else:  # the root of N (mean - q)^2 / (2 sigma^2) = level
                index[i, k] = sums[i, k] / n + sigma[i] * math.sqrt(2.0 * level[i, k] / n)
