"""Lazy evaluation: the exact variances of those arms alone that may be the best.

With many arms the variances are nearly all of a step's cost, O(m^2 n). An upper bound of each is
known from earlier steps (`wgp_agents.kernels.stale`), means are cheap, and the upper bounds of most
arms do not reach the best arm's score. So a score that never falls where the variance rises is
maximised with the variances of a few arms, exactly, ties included.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from wgp_agents.core.argmax import TIE
from wgp_gym.types import Array, Indices, Mask

__all__ = ["settle"]

FIRST = 128  # arms evaluated at first: enough to fill BLAS's blocks
MOST = 8_192  # arms evaluated together, which bounds the room to work in


def settle(scores: Array, allowed: Mask | None, evaluate: Callable[[Indices], Array]) -> int:
    """Put exact scores in the place of upper bounds wherever these reach the best exact one.

    From the largest upper bound down, until the next one is more than a tie below the best.

    Args:
        scores: Upper bounds, `(n,)`; in the end those left are not among the best.
        allowed: What may be chosen, `(n,)`; None: everything. Others are left alone.
        evaluate: Returns the exact scores of arms, by their index `(k,)`.

    Returns:
        How many were evaluated.
    """
    bounds = scores.copy() if allowed is None else np.where(allowed, scores, -math.inf)
    first = max(len(bounds) - FIRST, 0)
    block = np.argpartition(bounds, first)[first:]
    block, best, count = block[bounds[block] > -math.inf], -math.inf, 0
    rest: Indices | None = None
    while block.size:
        block.sort()  # their features are read in the order in which they are stored
        scores[block] = exact = evaluate(block)
        bounds[block] = -math.inf
        best, count = max(best, float(exact.max())), count + len(block)
        if rest is None:
            rest = np.flatnonzero(bounds >= best - TIE)
            rest = rest[np.argsort(-bounds[rest])]
        # The best may have risen: what no longer reaches it is at the end.
        left = rest[: np.searchsorted(-bounds[rest], TIE - best, side="right")]
        block, rest = np.split(left, [min(count, MOST)])
    return count
