"""The compiled loops of observations that go stale: what is held, and what is dropped.

Notation as in `wgp_agents.kernels.stale_arrays`; loops as in `wgp_agents.kernels.gram`. They stand
in one file, longer than others: taking in, fitting and dropping all end in computing anew.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.jit import compiled
from wgp_agents.kernels.stale_arrays import Rules, Space, StaleArrays
from wgp_gym.types import Array

__all__ = ["FEWEST", "observe", "removal_criteria"]

FEWEST = 2  # observations that are never dropped, as in the authors' code
REFRESH = 256  # changes after which everything is computed anew
LOST = 1e-4  # a variance below so much of its prior would carry the rounding of its terms
ROOT3 = math.sqrt(3.0)


@compiled
def correlation(gap: float, rate: float) -> float:
    """Return the Matern-3/2 correlation of two times."""
    return (1.0 + rate * gap) * math.exp(-rate * gap)


@compiled
def dot(x: Array, y: Array) -> float:
    """Return the sum of products."""
    total = 0.0
    for j in range(len(x)):
        total += x[j] * y[j]
    return total


@compiled
def factorise(A: Array, n: int) -> None:
    """Put the upper R of A = R^T R in the place of A's upper triangle."""
    for i in range(n):
        row = A[i, i:n]
        for k in range(i):
            above, factor = A[k, i:n], A[k, i]
            for j in range(n - i):
                row[j] -= factor * above[j]
        inverse = 1.0 / math.sqrt(row[0])
        for j in range(n - i):
            row[j] *= inverse


@compiled
def fill_gram(features: Array, n: int, m: int, gram: Array) -> None:
    """Compute phi_a . phi_b of the observations held, its upper triangle."""
    for a in range(n):
        f = features[a, :m]
        for b in range(a, n):
            gram[a, b] = dot(f, features[b, :m])


@compiled
def fill_covariance(
    gram: Array, times: NDArray[np.int64], noise: Array, n: int, rate: float, A: Array
) -> None:
    """Compute K + D, its upper triangle."""
    for a in range(n):
        for b in range(a, n):
            A[a, b] = gram[a, b] * correlation(float(abs(times[a] - times[b])), rate)
        A[a, a] += noise[a]


@compiled
def log_likelihood(A: Array, n: int, rewards: Array, signal: float, z: Array) -> float:
    """Return the log density of rewards of covariance v A, but for a constant; A is spent."""
    factorise(A, n)
    total = 0.0
    for i in range(n):
        z[i] = rewards[i]
    for i in range(n):
        z[i] /= A[i, i]
        row, factor = A[i], z[i]
        for j in range(i + 1, n):
            z[j] -= factor * row[j]
        total -= 0.5 * z[i] * (z[i] / signal) + math.log(A[i, i])
    return total


@compiled
def fit(i: int, m: int, rules: Rules, state: StaleArrays) -> bool:
    """Take the likeliest lengthscale of the grid, the first of equals; return if it is another."""
    n = state.held[i]
    gram, A, z = np.empty((n, n)), np.empty((n, n)), np.empty(n)
    fill_gram(state.features[i], n, m, gram)
    best, most = state.lengthscale[i], -math.inf
    for lengthscale in rules.grid:
        fill_covariance(gram, state.times[i], state.noise[i], n, ROOT3 / lengthscale, A)
        found = log_likelihood(A, n, state.rewards[i], rules.signal[i], z)
        if found > most:  # not if the rewards are near the largest number
            best, most = lengthscale, found
    changed: bool = best != state.lengthscale[i]
    state.lengthscale[i] = best
    return changed


@compiled
def decay(i: int, state: StaleArrays, g: Array) -> None:
    """Compute g_a and h_a of the observations held, `(2, L)`."""
    rate = ROOT3 / state.lengthscale[i]
    for a in range(state.held[i]):
        gap = rate * (state.clock[i] - state.times[i, a])
        g[1, a] = math.exp(-gap)
        g[0, a] = (1.0 + gap) * g[1, a]


@compiled
def gather(factors: Array, g: Array, features: Array, n: int, m: int, out: Array) -> None:
    """Compute the sum of factor_a (g_a, h_a) phi_a, `(2, m)`."""
    out[:, :m] = 0.0
    for a in range(n):
        f, first, second = features[a, :m], factors[a] * g[0, a], factors[a] * g[1, a]
        for j in range(m):
            out[0, j] += first * f[j]
            out[1, j] += second * f[j]


@compiled
def rotate(root: Array, w: Array, m: int, out: Array) -> None:
    """Compute R w of both rows of w `(2, m)`, R upper."""
    for i in range(m):
        row = root[i, i:m]
        out[0, i] = dot(row, w[0, i:m])
        out[1, i] = dot(row, w[1, i:m])


@compiled
def add_outer(sign: float, w: Array, m: int, Q: Array) -> None:
    """Add sign w w^T of w `(2, m)` to the blocks of Q."""
    first, second = w[0, :m], w[1, :m]
    for i in range(m):
        x, y = sign * w[0, i], sign * w[1, i]
        Q1, Q2, Q3 = Q[0, i], Q[1, i], Q[2, i]
        for j in range(m):
            Q1[j] += x * first[j]
            Q2[j] += x * second[j]
            Q3[j] += y * second[j]


@compiled
def invert(A: Array, n: int, P: Array) -> None:
    """Compute P = (R^T R)^{-1} from the factor R in A's upper triangle."""
    L = np.zeros((n, n))
    for i in range(n):
        row = L[i]
        row[i] = 1.0
        for k in range(i):
            above, factor = L[k], A[k, i]
            for j in range(k + 1):
                row[j] -= factor * above[j]
        for j in range(i + 1):
            row[j] /= A[i, i]
    P[:n, :n] = 0.0
    for k in range(n):
        row = L[k]
        for a in range(k + 1):
            out, factor = P[a], row[a]
            for b in range(k + 1):
                out[b] += factor * row[b]


@compiled
def rebuild(i: int, m: int, root: Array, g: Array, state: StaleArrays) -> None:
    """Compute all that follows from the observations held, anew: O(n^3 + n m (n + m))."""
    n, rate = state.held[i], ROOT3 / state.lengthscale[i]
    features, P, Q = state.features[i], state.inverse[i], state.shrinkage[i]
    A = np.empty((n, n))
    fill_gram(features, n, m, A)
    fill_covariance(A, state.times[i], state.noise[i], n, rate, A)
    factorise(A, n)
    invert(A, n, P)
    decay(i, state, g)
    w = np.empty((2, m))
    Q[:] = 0.0
    state.gain[i] = 0.0
    for a in range(n):
        state.gain[i] += math.log(A[a, a]) - 0.5 * math.log(state.noise[i, a])
        gather(P[a], g, features, n, m, w)
        rotate(root, w, m, state.influence[i, a])
        f = features[a, :m]
        for j in range(m):
            first, second = g[0, a] * f[j], g[1, a] * f[j]
            Q1, Q2, Q3 = Q[0, j], Q[1, j], Q[2, j]
            for k in range(m):
                Q1[k] += first * w[0, k]
                Q2[k] += first * w[1, k]
                Q3[k] += second * w[1, k]
    state.age[i] = 0


@compiled
def add(i: int, m: int, root: Array, g: Array, state: StaleArrays) -> bool:
    """Take the observation in that stands behind those held; return if all must be rebuilt."""
    n, rate = state.held[i], ROOT3 / state.lengthscale[i]
    features, P, W = state.features[i], state.inverse[i], state.influence[i]
    f, noise = features[n, :m], state.noise[i, n]
    k, u = np.empty(n), np.zeros(n)
    for a in range(n):
        gap = float(state.clock[i] - state.times[i, a])
        k[a] = dot(f, features[a, :m]) * correlation(gap, rate)
    for a in range(n):
        row, factor = P[a], k[a]
        for b in range(n):
            u[b] += factor * row[b]
    prior = dot(f, f) + noise
    s = prior - dot(k, u)
    state.held[i] = n + 1
    if s < LOST * prior or state.age[i] >= REFRESH:
        return True
    r, turned = np.empty((2, m)), np.empty((2, m))
    decay(i, state, g)
    gather(u, g, features, n, m, r)
    for j in range(m):
        r[0, j] -= f[j]
        r[1, j] -= f[j]
    rotate(root, r, m, turned)
    for a in range(n):
        row, out, factor = P[a], W[a], u[a] / s
        for b in range(n):
            row[b] += factor * u[b]
        row[n] = P[n, a] = -factor
        for j in range(m):
            out[0, j] += factor * turned[0, j]
            out[1, j] += factor * turned[1, j]
    P[n, n] = 1.0 / s
    for j in range(m):
        W[n, 0, j] = -turned[0, j] / s
        W[n, 1, j] = -turned[1, j] / s
    add_outer(1.0 / s, r, m, state.shrinkage[i])
    state.gain[i] += 0.5 * math.log(s / noise)
    state.age[i] += 1
    return False


@compiled
def drop(i: int, a: int, m: int, g: Array, state: StaleArrays) -> bool:
    """Take observation a away, the last takes its place; return if all must be rebuilt."""
    n = state.held[i]
    features, P, W = state.features[i], state.inverse[i], state.influence[i]
    own, w, turned, p = P[a, a], np.empty((2, m)), np.empty((2, m)), np.empty(n)
    for b in range(n):
        p[b] = P[a, b]
    for j in range(m):
        turned[0, j] = W[a, 0, j]
        turned[1, j] = W[a, 1, j]
    gather(p, g, features, n, m, w)
    add_outer(-1.0 / own, w, m, state.shrinkage[i])
    for b in range(n):
        row, out, factor = P[b], W[b], p[b] / own
        for c in range(n):
            row[c] -= factor * p[c]
        for j in range(m):
            out[0, j] -= factor * turned[0, j]
            out[1, j] -= factor * turned[1, j]
    state.gain[i] += 0.5 * math.log(own * state.noise[i, a])
    last = n - 1
    for b in range(n):
        P[a, b] = P[last, b]
    for b in range(n):
        P[b, a] = P[b, last]
    for j in range(m):
        features[a, j] = features[last, j]
        W[a, 0, j] = W[last, 0, j]
        W[a, 1, j] = W[last, 1, j]
    g[0, a], g[1, a] = g[0, last], g[1, last]
    state.rewards[i, a], state.noise[i, a] = state.rewards[i, last], state.noise[i, last]
    state.times[i, a] = state.times[i, last]
    state.held[i] = last
    state.age[i] += 1
    stale: bool = own * LOST > 1.0 or state.age[i] >= REFRESH
    return stale


@compiled
def solve(i: int, m: int, g: Array, alpha: Array, state: StaleArrays) -> None:
    """Compute alpha and M: not step by step, or a large reward would leave its rounding behind."""
    n, y = state.held[i], state.rewards[i]
    alpha[:n] = 0.0
    for a in range(n):
        row, factor = state.inverse[i, a], y[a]
        for b in range(n):
            alpha[b] += factor * row[b]
    gather(alpha, g, state.features[i], n, m, state.weights[i])


@compiled
def known(i: int, m: int, scale: float, signal: float, space: Space, state: StaleArrays) -> float:
    """Return how far the posterior is from the prior, squared, over `scale` squared.

    The integral over the future of mean^2 + prior variance - variance.
    """
    M, turned = np.empty((2, m)), np.empty((2, m))
    for j in range(m):
        M[0, j] = state.weights[i, 0, j] / scale
        M[1, j] = state.weights[i, 1, j] / scale
    rotate(space.root, M, m, turned)
    trace = 0.0
    for j in range(m):
        row, Q = space.gram[j], state.shrinkage[i, :, j]
        for k in range(m):
            trace += row[k] * (0.5 * (Q[0, k] + Q[1, k]) + 0.25 * Q[2, k])
    return squared(turned, m) + (signal / scale) / scale * trace


@compiled
def squared(w: Array, m: int) -> float:
    """Return the integral of e^{-2 r u} |w_1 + r u w_2|^2 over u >= 0, times r."""
    total = 0.0
    for j in range(m):
        x, y = w[0, j], w[1, j]
        total += 0.5 * x * (x + y) + 0.25 * y * y
    return total


@compiled
def stalest(
    i: int,
    m: int,
    signal: float,
    space: Space,
    alpha: Array,
    state: StaleArrays,
    criteria: Array,
) -> int:
    """Compute the relative change of the posterior that each removal makes; return the least's.

    Numbers are divided by the largest alpha, so that no square overflows.
    """
    n, scale, least = state.held[i], 1.0, 0
    for a in range(n):
        scale = max(scale, abs(alpha[a]))
    total = known(i, m, scale, signal, space, state)
    for a in range(n):
        own, ratio = state.inverse[i, a, a], alpha[a] / scale
        change = (ratio / own) * (ratio / own) + (signal / scale) / scale / own
        change *= squared(state.influence[i, a], m)
        criteria[a] = math.sqrt(change / total) if total > 0.0 else 0.0
        if criteria[a] < criteria[least]:
            least = a
    return least


@compiled
def clean(
    i: int,
    m: int,
    rules: Rules,
    space: Space,
    g: Array,
    alpha: Array,
    criteria: Array,
    state: StaleArrays,
) -> None:
    """Drop the stalest while the budget, or the capacity, asks for it."""
    paid = state.clock[i] + 1 >= rules.initial
    if state.clock[i] + 1 > max(rules.initial, 1):  # the first time only sets the clock
        state.budget[i] *= (1.0 + rules.alpha[i]) ** (1.0 / state.lengthscale[i])
    while state.held[i] > FEWEST:
        full = state.held[i] > rules.capacity
        if not (paid or full):
            break
        a = stalest(i, m, rules.signal[i], space, alpha, state, criteria)
        price = 1.0 + criteria[a]
        if not full and not price < state.budget[i]:
            break
        if not full:
            state.budget[i] /= price
        if drop(i, a, m, g, state):
            rebuild(i, m, space.root, g, state)
        solve(i, m, g, alpha, state)
    if state.held[i] <= FEWEST:
        state.budget[i] = 1.0


@compiled
def observe(
    features: Array,
    rewards: Array,
    noise: Array,
    active: NDArray[np.bool_],
    rules: Rules,
    space: Space,
    basis: Basis,
    state: StaleArrays,
) -> None:
    """Take in one observation of every active learner, of noise variances `(B,)`, and clean up.

    Then a step passes: see `wgp_agents.kernels.stale_future`.
    """
    size = rules.capacity + 1
    g, alpha, criteria = np.empty((2, size)), np.empty(size), np.empty(size)
    for i in range(len(rewards)):
        if not active[i]:
            continue
        m, n, seen = basis.rank[i], state.held[i], state.clock[i] + 1
        for j in range(m):
            state.features[i, n, j] = features[i, j]
        state.rewards[i, n], state.times[i, n] = rewards[i], state.clock[i]
        state.noise[i, n] = noise[i] / rules.signal[i]
        stale = add(i, m, space.root, g, state)
        due = seen >= max(rules.initial, 1) and (seen - rules.initial) % rules.refit_every == 0
        if rules.fitted[i] and due and fit(i, m, rules, state):
            stale = True
        if stale:
            rebuild(i, m, space.root, g, state)
        decay(i, state, g)
        solve(i, m, g, alpha, state)
        clean(i, m, rules, space, g, alpha, criteria, state)


@compiled
def removal_criteria(
    rules: Rules, space: Space, basis: Basis, state: StaleArrays, criteria: Array
) -> None:
    """Compute the relative change that each removal would make to the future from now, `(B, L)`."""
    size = rules.capacity + 1
    g, alpha = np.empty((2, size)), np.empty(size)
    for i in range(len(criteria)):
        m = basis.rank[i]
        decay(i, state, g)
        solve(i, m, g, alpha, state)
        stalest(i, m, rules.signal[i], space, alpha, state, criteria[i])
