"""What the observations of W-DBO say of the future: the posterior, and what each one adds to it.

The function is a Gaussian process of covariance v k(x, x') c(t - t'), v the signal variance and
c(u) = (1 + r u) e^{-r u}, r = 3^{1/2} / l, the Matern-3/2 correlation in time. For times t + u
after the present t it splits: c(t + u - t_a) = e^{-r u} (g_a + r u h_a), with
h_a = e^{-r (t - t_a)} and g_a = (1 + r (t - t_a)) h_a. So all that n observations say of the
future has 2 m coordinates, phi_a being the m features of play a. For one learner:

| symbol | code | meaning |
|---|---|---|
| P | `inverse` | (K + D)^{-1} of the covariance and the noise variances, both over v, `(n, n)` |
| alpha | `alpha` | P y |
| g_a, h_a | `g` | rows of `(2, n)` |
| M | `weights` | sum of alpha_a (g_a, h_a) phi_a, `(2, m)`: the posterior mean of the future |
| W_a | | sum over b of P_ab (g_b, h_b) phi_b, `(2, m)` |
| R W_a | `influence` | the same, R such that R^T R is the mean of phi phi^T over all points |
| Q | `shrinkage` | sum of (g_a, h_a) phi_a W_a^T, its blocks 11, 12 and 22, `(3, m, m)` |

Without observation a the mean at (x, t + u) is smaller by z_a alpha_a / P_aa, and the variance
larger by v z_a^2 / P_aa, where z_a = e^{-r u} phi(x) . (W_a1 + r u W_a2). The integral of z_a^2
over u >= 0 and its mean over x is |R W_a1|^2 / 2 + R W_a1 . R W_a2 / 2 + |R W_a2|^2 / 4, up to a
factor 1 / r that all have in common. That is why a step costs O(n^2 + n m + m^2) and the points.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import combine_rows, dot, quadratic_forms
from wgp_gym.types import Array, Indices, Mask

__all__ = [
    "ROOT3",
    "Rules",
    "Space",
    "StaleArrays",
    "advance_time",
    "decay",
    "gather",
    "removal_criteria",
    "rotate",
    "solve",
    "stalest",
]

ROOT3 = math.sqrt(3.0)


class StaleArrays(NamedTuple):
    """What B learners keep: at most L - 1 observations each between steps.

    Attributes:
        mean: Posterior means of all points at the next step, `(B, n)`.
        variance: Their posterior variances, `(B, n)`.
        gain: 1/2 log det(I + D^{-1} K) of what is held, `(B,)`.
        held: How many observations are held, `(B,)`.
        features: Their features, `(B, L, m)`.
        times: When they were made, in steps from 0, `(B, L)`.
        rewards: Their rewards, `(B, L)`.
        noise: Their noise variances over v, `(B, L)`.
        inverse: P, `(B, L, L)`.
        influence: R W, `(B, L, 2, m)`.
        shrinkage: Q, `(B, 3, m, m)`.
        weights: M, `(B, 2, m)`.
        clock: The time, in steps from 0, `(B,)`.
        seen: Observations so far, `(B,)`.
        since: The steps since the last one, `(B,)`.
        lengthscale: l of the time kernel, in steps, `(B,)`.
        budget: The removal budget, `(B,)`.
        age: Changes since all was last computed anew, `(B,)`.
    """

    mean: Array
    variance: Array
    gain: Array
    held: Indices
    features: Array
    times: Array
    rewards: Array
    noise: Array
    inverse: Array
    influence: Array
    shrinkage: Array
    weights: Array
    clock: Array
    seen: Indices
    since: Array
    lengthscale: Array
    budget: Array
    age: Indices


class Space(NamedTuple):
    """What the integral over space is made of.

    Attributes:
        root: R, upper, `(m, m)`: that of the first m features is its own leading block.
        gram: R^T R, the mean of phi phi^T over all points, `(m, m)`.
    """

    root: Array
    gram: Array


class Rules(NamedTuple):
    """How B learners fit and drop.

    Attributes:
        signal: The signal variance v, `(B,)`.
        alpha: The budget grows by the factor 1 + alpha in each lengthscale, `(B,)`.
        fitted: Whose lengthscale is fitted, `(B,)`.
        grid: The lengthscales to choose from, in steps.
        initial: Observations before any is dropped, and before the first fit.
        refit_every: Steps from one fit to the next.
        capacity: The most observations to hold.
    """

    signal: Array
    alpha: Array
    fitted: Mask
    grid: Array
    initial: int
    refit_every: int
    capacity: int


@subroutine
def decay(i: int, state: StaleArrays, g: Array) -> None:
    """Compute g_a and h_a of the observations held, `(2, L)`."""
    rate = ROOT3 / state.lengthscale[i]
    for a in range(state.held[i]):
        gap = rate * (state.clock[i] - state.times[i, a])
        g[1, a] = math.exp(-gap)
        g[0, a] = (1.0 + gap) * g[1, a]


@subroutine
def gather(factors: Array, g: Array, features: Array, out: Array) -> None:
    """Compute the sum of factor_a (g_a, h_a) phi_a, `(2, m)`."""
    n = len(factors)
    weights = np.empty(n)
    for k in range(2):
        for a in range(n):
            weights[a] = factors[a] * g[k, a]
        combine_rows(features, weights, out[k])


@subroutine
def rotate(root: Array, w: Array, out: Array) -> None:
    """Compute R w of both rows of w `(2, m)`, R upper."""
    m = w.shape[1]
    for i in range(m):
        row = root[i, i:m]
        out[0, i] = dot(row, w[0, i:m])
        out[1, i] = dot(row, w[1, i:m])


@subroutine
def solve(i: int, m: int, g: Array, alpha: Array, state: StaleArrays) -> None:
    """Compute alpha and M: not step by step, or a large reward would leave its rounding behind.

    `g` is that of `decay`.
    """
    n, M = state.held[i], np.empty((2, m))
    combine_rows(state.inverse[i], state.rewards[i, :n], alpha[:n])
    gather(alpha[:n], g, state.features[i], M)
    for j in range(m):
        state.weights[i, 0, j], state.weights[i, 1, j] = M[0, j], M[1, j]


@subroutine
def squared(w: Array, m: int) -> float:
    """Return the integral of e^{-2 r u} |w_1 + r u w_2|^2 over u >= 0, times r, of `(2, m)`."""
    total = 0.0
    for j in range(m):
        x, y = w[0, j], w[1, j]
        total += 0.5 * x * (x + y) + 0.25 * y * y
    return total


@subroutine
def known(i: int, m: int, scale: float, signal: float, space: Space, state: StaleArrays) -> float:
    """Return how far the posterior is from the prior, squared, over `scale` squared.

    The integral over the future of mean^2 + prior variance - variance: J of [BTR24].
    """
    M, turned = np.empty((2, m)), np.empty((2, m))
    for j in range(m):
        M[0, j] = state.weights[i, 0, j] / scale
        M[1, j] = state.weights[i, 1, j] / scale
    rotate(space.root, M, turned)
    trace, Q = 0.0, state.shrinkage[i]
    for j in range(m):
        for k in range(m):
            trace += space.gram[j, k] * (0.5 * (Q[0, j, k] + Q[1, j, k]) + 0.25 * Q[2, j, k])
    return squared(turned, m) + (signal / scale) / scale * trace


@subroutine
def stalest(
    i: int, m: int, signal: float, space: Space, alpha: Array, state: StaleArrays, criteria: Array
) -> int:
    """Compute the relative change of the posterior that each removal makes; return the least's.

    Numbers are divided by the largest alpha, so that no square overflows.
    """
    n, scale, least = state.held[i], 1.0, 0
    for a in range(n):
        scale = max(scale, abs(alpha[a]))
    total = known(i, m, scale, signal, space, state)
    for a in range(n):
        # I: (alpha_a / P_aa)^2 + v / P_aa, times the integral of z_a^2
        own, ratio = state.inverse[i, a, a], alpha[a] / scale
        change = (ratio / own) * (ratio / own) + (signal / scale) / scale / own
        change *= squared(state.influence[i, a], m)
        criteria[a] = math.sqrt(change / total) if total > 0.0 else 0.0
        if criteria[a] < criteria[least]:
            least = a
    return least


@compiled
def removal_criteria(
    rules: Rules, space: Space, basis: Basis, state: StaleArrays, criteria: Array
) -> None:
    """Compute the relative change that each removal would make to the future from now, `(B, L)`."""
    g, alpha = np.empty((2, rules.capacity + 1)), np.empty(rules.capacity + 1)
    for i in range(len(criteria)):
        decay(i, state, g)
        solve(i, basis.rank[i], g, alpha, state)
        stalest(i, basis.rank[i], rules.signal[i], space, alpha, state, criteria[i])


@compiled
def advance_time(
    active: Mask, steps: Array, signal: Array, basis: Basis, state: StaleArrays
) -> None:
    """Let time go by for every active learner, and compute the posterior then.

    Args:
        active: For whom, `(B,)`.
        steps: How many steps, `(B,)`.
        signal: The signal variances v, `(B,)`.
        basis: The features.
        state: What the learners keep.
    """
    for i in range(len(active)):
        if not active[i]:
            continue
        m, rate = basis.rank[i], steps[i] * (ROOT3 / state.lengthscale[i])
        fade = math.exp(-rate)
        # (g, h) becomes e^{-r} (g + r h, h), and so do M, R W and, on both sides, Q.
        fade_pair(fade, rate, m, state.weights[i])
        for a in range(state.held[i]):
            fade_pair(fade, rate, m, state.influence[i, a])
        fade_blocks(fade * fade, rate, m, state.shrinkage[i])
        state.clock[i] += steps[i]
        # The mean is phi^T M_1, the variance v (k(x, x) - phi^T Q_11 phi).
        mean, variance = state.mean[i], state.variance[i]
        combine_rows(basis.phi, state.weights[i, 0, :m], mean)
        quadratic_forms(state.shrinkage[i, 0], m, basis.phi, variance)
        for a in range(len(basis.prior)):
            variance[a] = signal[i] * max(basis.prior[a] - variance[a], 0.0)


@subroutine
def fade_pair(fade: float, rate: float, m: int, w: Array) -> None:
    """Let time go by for a pair of vectors, `(2, m)`; `rate` is r times the steps."""
    first, second = w[0], w[1]
    for j in range(m):
        first[j] = fade * (first[j] + rate * second[j])
        second[j] *= fade


@subroutine
def fade_blocks(square: float, rate: float, m: int, Q: Array) -> None:
    """Let time go by for the blocks 11, 12 and 22 of Q, `(3, m, m)`."""
    for j in range(m):
        for k in range(m):
            cross = Q[1, j, k] + Q[1, k, j]
            Q[0, j, k] = square * (Q[0, j, k] + rate * (cross + rate * Q[2, j, k]))
    for j in range(m):
        for k in range(m):
            Q[1, j, k] = square * (Q[1, j, k] + rate * Q[2, j, k])
            Q[2, j, k] *= square
