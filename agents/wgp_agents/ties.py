"""The largest of B rows of numbers, ties broken at random: the last step of nearly every agent."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wgp_agents.base import TIE
from wgp_agents.gp.compiled import compiled
from wgp_gym.kernels import Array

__all__ = ["argmax"]


def argmax(index: Array, uniform: Array) -> NDArray[np.int64]:
    """Return where the largest number of every learner is, `(B,)`; a uniform draw breaks ties.

    Args:
        index: `(B, n)`; not a number counts as the smallest.
        uniform: One draw from [0, 1) for each learner, `(B,)`.
    """
    chosen = np.zeros(len(index), np.int64)
    fill_argmax(index, uniform, TIE, chosen)
    return chosen


@compiled
def is_tied(value: float, least: float) -> bool:
    """Return whether an index is one of the largest, which all are where none is a number."""
    return value >= least or least == -math.inf


@compiled
def fill_argmax(index: Array, uniform: Array, tie: float, chosen: NDArray[np.int64]) -> None:
    """Fill in where the largest index of every learner is. See `argmax`."""
    for i in range(len(index)):
        best, count = -math.inf, 0
        for value in index[i]:
            if value > best:  # not if it is not a number
                best = value
        for value in index[i]:
            count += is_tied(value, best - tie)
        rank = min(int(uniform[i] * count), count - 1)
        for k in range(index.shape[1]):
            if is_tied(index[i, k], best - tie):
                if rank == 0:
                    chosen[i] = k
                    break
                rank -= 1
