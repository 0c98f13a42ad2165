"""The compiled loops of a step that passes: what observations say of the next one.

Notation as in `wgp_agents.kernels.stale_arrays`. Tested against dense algebra.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.jit import compiled
from wgp_agents.kernels.stale_arrays import StaleArrays
from wgp_gym.types import Array

__all__ = ["pass_step"]

ROOT3 = math.sqrt(3.0)


@compiled
def foresee(i: int, m: int, signal: float, rate: float, basis: Basis, state: StaleArrays) -> None:
    """Let a step pass for learner i, and compute the posterior of all points at the next."""
    fade = math.exp(-rate)
    M, Q = state.weights[i], state.shrinkage[i]
    for j in range(m):
        M[0, j] = fade * (M[0, j] + rate * M[1, j])
        M[1, j] *= fade
    for a in range(state.held[i]):
        first, second = state.influence[i, a, 0], state.influence[i, a, 1]
        for j in range(m):
            first[j] = fade * (first[j] + rate * second[j])
            second[j] *= fade
    square = fade * fade
    for j in range(m):
        for k in range(m):
            cross = Q[1, j, k] + Q[1, k, j]
            Q[0, j, k] = square * (Q[0, j, k] + rate * (cross + rate * Q[2, j, k]))
    for j in range(m):
        for k in range(m):
            Q[1, j, k] = square * (Q[1, j, k] + rate * Q[2, j, k])
            Q[2, j, k] *= square
    state.clock[i] += 1
    tabulate(Q[0], M[0], basis.phi[:m], state.mean[i], state.variance[i])
    for a in range(len(basis.prior)):
        state.variance[i, a] = signal * max(basis.prior[a] - state.variance[i, a], 0.0)


@compiled
def tabulate(Q: Array, w: Array, phi: Array, mean: Array, reduction: Array) -> None:
    """Compute phi^T w and phi^T Q phi of all points, Q symmetric: O(m^2 n / 2)."""
    m, n = phi.shape
    y = np.empty(n)
    mean[:] = 0.0
    reduction[:] = 0.0
    for i in range(m):
        row, own, weight = phi[i], 0.5 * Q[i, i], w[i]
        for a in range(n):
            y[a] = own * row[a]
            mean[a] += weight * row[a]
        for j in range(i + 1, m):
            other, factor = phi[j], Q[i, j]
            for a in range(n):
                y[a] += factor * other[a]
        for a in range(n):
            reduction[a] += 2.0 * row[a] * y[a]


@compiled
def pass_step(active: NDArray[np.bool_], signal: Array, basis: Basis, state: StaleArrays) -> None:
    """Let a step pass for every active learner, of signal variances `(B,)`."""
    for i in range(len(active)):
        if active[i]:
            rate = ROOT3 / state.lengthscale[i]
            foresee(i, basis.rank[i], signal[i], rate, basis, state)
