"""The choice of an arm from a posterior."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wgp_agents.base import TIE
from wgp_agents.gp.compiled import compiled
from wgp_gym.kernels import Array

__all__ = ["upper_confidence_bound"]


@compiled
def upper_confidence_bound(
    mean: Array, variance: Array, width: Array, uniform: Array, chosen: NDArray[np.int64]
) -> None:
    """Choose argmax mean + width * std for every learner; a tie goes to a uniform draw.

    Args:
        mean: Posterior means, `(B, n)`.
        variance: Posterior variances, `(B, n)`.
        width: Confidence widths beta, `(B,)`.
        uniform: One draw from [0, 1) for each learner, `(B,)`.
        chosen: Where the arms go, `(B,)`.
    """
    batch, n = mean.shape
    bound = np.empty(n)
    for i in range(batch):
        centre, square, beta = mean[i], variance[i], width[i]
        for a in range(n):
            bound[a] = centre[a] + beta * math.sqrt(square[a])
        best = -math.inf
        for a in range(n):
            best = max(best, bound[a])
        ties = 0
        for a in range(n):
            ties += bound[a] >= best - TIE
        if ties == 0:  # rewards so large that no bound is a number: any arm is as good
            chosen[i] = int(uniform[i] * n)
        rank = min(int(uniform[i] * ties), ties - 1)
        for a in range(n):
            if bound[a] >= best - TIE:
                if rank == 0:
                    chosen[i] = a
                    break
                rank -= 1
