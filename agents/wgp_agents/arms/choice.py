"""The choice of an arm by its index."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wgp_agents.base import TIE
from wgp_gym.kernels import Array

__all__ = ["argmax", "drawn"]


def argmax(index: Array, uniform: Array) -> NDArray[np.int64]:
    """Return the arm of the largest index of every learner, `(B,)`; a uniform draw breaks ties.

    Args:
        index: `(B, K)`; not a number counts as the smallest.
        uniform: One draw from [0, 1) for each learner, `(B,)`.
    """
    index = np.where(np.isnan(index), -np.inf, index)
    best = index.max(axis=1, keepdims=True)
    tied = (index >= best - TIE) | (index == best)  # infinity less anything is no tie of its own
    count = tied.sum(axis=1)
    rank = np.minimum((uniform * count).astype(np.int64), count - 1) + 1
    chosen: NDArray[np.int64] = (tied.cumsum(axis=1) == rank[:, None]).argmax(axis=1)
    return chosen


def drawn(probabilities: Array, uniform: Array) -> NDArray[np.int64]:
    """Return an arm of every learner, drawn with its probabilities, `(B,)`.

    Args:
        probabilities: `(B, K)`; rows add up to 1, up to rounding.
        uniform: One draw from [0, 1) for each learner, `(B,)`.
    """
    reached = probabilities.cumsum(axis=1)
    chosen: NDArray[np.int64] = (reached <= (uniform * reached[:, -1])[:, None]).sum(axis=1)
    return np.minimum(chosen, np.int64(probabilities.shape[1] - 1))
