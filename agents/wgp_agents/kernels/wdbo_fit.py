"""The covariance of W-DBO's observations, and the lengthscale in time that is fitted to them.

Notation as in `wgp_agents.kernels.wdbo_future`.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.cholesky import cholesky_row
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import dot
from wgp_agents.kernels.wdbo_future import ROOT3, Rules, StaleArrays
from wgp_gym.types import Array, Mask

__all__ = ["GAPS", "correlation", "covariance_row", "fill_gram", "fill_known", "fit"]

GAPS = 256  # whole numbers of steps between observations whose correlations are computed once
SLACK = 1e-9  # of a likelihood: far more than its rounding


@subroutine
def correlation(gap: float, rate: float) -> float:
    """Return the Matern-3/2 correlation of two times."""
    return (1.0 + rate * gap) * math.exp(-rate * gap)


@subroutine
def fill_gram(features: Array, n: int, m: int, gram: Array) -> None:
    """Compute phi_a^T phi_b of the observations held, the upper triangle."""
    for a in range(n):
        f = features[a, :m]
        for b in range(a, n):
            gram[a, b] = dot(f, features[b])


@subroutine
def fill_known(rate: float, known: Array) -> None:
    """Compute the correlations of whole numbers of steps: most gaps are such, and few."""
    for k in range(len(known)):
        known[k] = correlation(float(k), rate)


@subroutine
def covariance_row(
    a: int, gram: Array, times: Array, noise: Array, rate: float, known: Array, A: Array
) -> None:
    """Compute row a of K + D of the observations held, from the diagonal. A may be `gram` itself.

    `known` is that of `fill_known`.
    """
    products, out, later, own = gram[a, a:], A[a, a:], times[a:], times[a]
    for b in range(len(products)):
        gap = abs(own - later[b])
        k = int(min(gap, len(known) - 1.0))
        out[b] = products[b] * (known[k] if gap == k else correlation(gap, rate))
    out[0] += noise[a]


@subroutine
def log_likelihood(
    gram: Array,
    times: Array,
    rewards: Array,
    noise: Array,
    rate: float,
    signal: float,
    known: Array,
    A: Array,
    most: float,
) -> float:
    """Return log p(y), but for a constant: -|z|^2 / (2 v) - log det R, with z = R^{-T} y.

    Row by row, and only until it cannot exceed `most` any more: a pivot is at least the noise
    variance. Then minus infinity.

    Args:
        gram: phi_a^T phi_b, `(n, n)`.
        times: When the observations were made, `(n,)`.
        rewards: y, `(n,)`.
        noise: D, `(n,)`.
        rate: r.
        signal: v.
        known: Room for `fill_known`.
        A: Room, `(n, n)`.
        most: What is to be exceeded.
    """
    n, found, left = len(gram), 0.0, 0.0
    z = np.empty(n)
    fill_known(rate, known)
    for a in range(n):
        z[a] = rewards[a]
        left -= 0.5 * math.log(noise[a])
    for a in range(n):
        covariance_row(a, gram, times, noise, rate, known, A)
        cholesky_row(A, a, n, 0.0, 0.0, A)
        row, rest = A[a, a:n], z[a:n]
        rest[0] /= row[0]
        for b in range(1, n - a):
            rest[b] -= row[b] * rest[0]
        found -= 0.5 * rest[0] * (rest[0] / signal) + math.log(row[0])
        left += 0.5 * math.log(noise[a])
        if found + left < most - SLACK * abs(most):
            return -math.inf
    return found


@compiled
def fit(due: Mask, rules: Rules, basis: Basis, state: StaleArrays, stale: Mask) -> None:
    """Take the likeliest lengthscale of the grid, the first of equals, for the learners in `due`.

    The rewards have covariance v (K + D). The lengthscale so far is looked at first, as few others
    then have to be looked at to the end.
    """
    count = len(rules.grid)
    for i in range(len(due)):
        if not due[i]:
            continue
        n, m, before = state.held[i], basis.rank[i], state.lengthscale[i]
        gram, A, known, most = np.empty((n, n)), np.empty((n, n)), np.empty(GAPS), -math.inf
        seen = gram, state.times[i, :n], state.rewards[i], state.noise[i]
        fill_gram(state.features[i], n, m, gram)
        first, best = 0, count
        for k in range(count):
            first = k if rules.grid[k] == before else first
        for turn in range(count):
            k = (first + turn) % count
            rate = ROOT3 / rules.grid[k]
            found = log_likelihood(*seen, rate, rules.signal[i], known, A, most)
            # neither holds if the rewards are near the largest number
            if found > most or (found == most and found > -math.inf and k < best):
                state.lengthscale[i], most, best = rules.grid[k], found, k
        if state.lengthscale[i] != before:
            stale[i] = True
