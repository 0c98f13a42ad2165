"""The compiled loop of observations that age: a bank of sums, each with a discount of its own.

Loops as in `wgp_agents.kernels.gram`. Tested against plain numpy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgp_agents.kernels.gram_arrays import DiscountArrays
from wgp_agents.kernels.jit import compiled
from wgp_agents.kernels.linalg import flushed
from wgp_gym.types import Array

__all__ = ["AgeingArrays", "ageing_update"]


class AgeingArrays(NamedTuple):
    """The sums that observations of B learners age in, J for each, with a discount of their own.

    Attributes:
        terms: How many of the J each learner uses, `(B,)`.
        coefficients: a_j: how much each counts, `(B, J)`.
        decays: z_j: what each fades by in a step, `(B, J)`.
        grams: A_j, its upper triangle row by row, `(B, J, m (m + 1) / 2)`; of fewer features than
            m it fills the first places.
        targets: b_j, `(B, J, m)`.
    """

    terms: NDArray[np.int64]
    coefficients: Array
    decays: Array
    grams: Array
    targets: Array


@compiled
def ageing_update(
    features: Array,
    rewards: Array,
    active: NDArray[np.bool_],
    rank: NDArray[np.int64],
    bank: AgeingArrays,
    state: DiscountArrays,
) -> None:
    """Let all sums of every active learner fade, add an observation, and put A and b together.

    Args:
        features: Of the plays, `(B, m)`.
        rewards: Paid for them, `(B,)`.
        active: Who learns, `(B,)`.
        rank: How many features each learner uses, `(B,)`.
        bank: The sums.
        state: Where A = sum of a_j A_j and b = sum of a_j b_j go.
    """
    packed, full = bank.grams.shape[2], features.shape[1]
    added, gram, target = np.empty(packed), np.empty(packed), np.empty(full)
    for i in range(len(rewards)):
        if not active[i]:
            continue
        m, f, reward = rank[i], features[i], rewards[i]
        # phi phi^T, its upper triangle row by row
        p = 0
        for row in range(m):
            for column in range(row, m):
                added[p] = f[row] * f[column]
                p += 1
        gram[:p] = 0.0
        target[:m] = 0.0
        for j in range(bank.terms[i]):
            a, z = bank.coefficients[i, j], bank.decays[i, j]
            A, b = bank.grams[i, j], bank.targets[i, j]
            # A_j <- z_j A_j + phi phi^T, A += a_j A_j; b_j <- z_j b_j + y phi, b += a_j b_j
            for k in range(p):
                A[k] = flushed(z * A[k] + added[k])
                gram[k] += a * A[k]
            for k in range(m):
                b[k] = flushed(z * b[k] + reward * f[k])
                target[k] += a * b[k]
        for k in range(m):
            state.target[i, k] = target[k]
        # A, both triangles
        p = 0
        for row in range(m):
            for column in range(row, m):
                state.gram[i, row, column] = gram[p]
                state.gram[i, column, row] = gram[p]
                p += 1
