"""The observations of W-DBO: how they are taken in, fitted, dropped, and all is computed anew.

Notation as in `wgp_agents.kernels.wdbo_future`. What is seldom needed is a loop of its own, so
that a first step does not wait for it to be compiled.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.cholesky import cholesky
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import (
    add_outer,
    combine_rows,
    dot,
    inverse,
)
from wgp_agents.kernels.wdbo_fit import (
    GAPS,
    correlation,
    covariance_row,
    fill_gram,
    fill_known,
    fit,
)
from wgp_agents.kernels.wdbo_future import (
    ROOT3,
    Rules,
    Space,
    StaleArrays,
    decay,
    gather,
    rotate,
    solve,
    stalest,
)
from wgp_gym.types import Array, Indices, Mask

__all__ = ["FEWEST", "await_reward", "observe"]

FEWEST = 2  # observations that are never dropped, as in the authors' code
REFRESH = 256  # changes after which everything is computed anew
LOST = 1e-4  # a variance below so much of its prior would carry the rounding of its terms


def observe(
    features: Array,
    rewards: Array,
    noise: Array,
    active: Mask,
    rules: Rules,
    space: Space,
    basis: Basis,
    state: StaleArrays,
) -> None:
    """Take in one observation of every active learner, of noise variances `(B,)`, and clean up.

    Then time goes by: see `advance_time`.
    """
    stale, alpha = np.zeros(len(rewards), np.bool_), np.empty(state.times.shape)
    add(features, rewards, noise, active, rules, space, basis, alpha, state, stale)
    state.seen[active] += 1
    seen = state.seen
    due = (seen >= max(rules.initial, 1)) & ((seen - rules.initial) % rules.refit_every == 0)
    fitted = active & rules.fitted & due
    if fitted.any():
        fit(fitted, rules, basis, state, stale)
    if stale.any():
        rebuild(stale, space, basis, alpha, state)
    # The budget grows by 1 + alpha in a lengthscale; the first time only sets the clock.
    grown = active & (seen > max(rules.initial, 1))
    with np.errstate(over="ignore"):  # of the shortest lengthscales: then nothing is kept
        growth = (1.0 + rules.alpha) ** (state.since / state.lengthscale)
        np.multiply(state.budget, growth, out=state.budget, where=grown)
    clean(active & (state.held > FEWEST), rules, space, basis, alpha, state)
    state.budget[active & (state.held <= FEWEST)] = 1.0


def await_reward(
    features: Array,
    means: Array,
    noise: Array,
    active: Mask,
    rules: Rules,
    space: Space,
    basis: Basis,
    state: StaleArrays,
) -> None:
    """Take in the posterior means `(B,)` of plays in the place of rewards that are to come.

    Nothing is fitted, and nothing dropped but beyond the capacity.
    """
    stale, alpha = np.zeros(len(means), np.bool_), np.empty(state.times.shape)
    add(features, means, noise, active, rules, space, basis, alpha, state, stale)
    if stale.any():
        rebuild(stale, space, basis, alpha, state)
    poor = state._replace(budget=np.ones(len(means)))
    clean(active & (state.held > rules.capacity), rules, space, basis, alpha, poor)


def clean(
    going: Mask, rules: Rules, space: Space, basis: Basis, alpha: Array, state: StaleArrays
) -> None:
    """Drop the stalest of each in `going` while the budget, or the capacity, asks for it."""
    going &= (state.seen >= rules.initial) | (state.held > rules.capacity)
    places, stale = np.empty(len(going), np.int64), np.empty_like(going)
    while going.any():
        choose(going, rules, space, basis, alpha, state, places)
        if going.any():
            drop(going, places, basis, alpha, state, stale)
            if stale.any():
                rebuild(stale, space, basis, alpha, state)
        paid = state.seen >= rules.initial
        going &= (state.held > FEWEST) & (paid | (state.held > rules.capacity))


@subroutine
def add_blocks(factor: float, w: Array, Q: Array) -> None:
    """Add factor w w^T of w `(2, m)` to the blocks 11, 12 and 22 of Q."""
    m, first, second = w.shape[1], w[0], w[1]
    add_outer(Q[0], factor, first)
    add_outer(Q[2], factor, second)
    for i in range(m):
        row, scaled = Q[1, i], factor * first[i]
        for j in range(m):
            row[j] += scaled * second[j]


@compiled
def add(
    features: Array,
    rewards: Array,
    noise: Array,
    active: Mask,
    rules: Rules,
    space: Space,
    basis: Basis,
    alpha: Array,
    state: StaleArrays,
    stale: Mask,
) -> None:
    """Take in the observations; mark in `stale` whose arrays have yet to be rebuilt."""
    size = rules.capacity + 1
    g, k, u = np.empty((2, size)), np.empty(size), np.empty(size)
    for i in range(len(rewards)):
        if not active[i]:
            continue
        m, n, rate = basis.rank[i], state.held[i], ROOT3 / state.lengthscale[i]
        for j in range(m):
            state.features[i, n, j] = features[i, j]
        state.rewards[i, n], state.times[i, n] = rewards[i], state.clock[i]
        state.noise[i, n] = noise[i] / rules.signal[i]
        # k: the covariances with what is held; u = P k; s: the variance given what is held
        f = features[i, :m]
        for a in range(n):
            gap = state.clock[i] - state.times[i, a]
            k[a] = dot(f, state.features[i, a]) * correlation(gap, rate)
        combine_rows(state.inverse[i], k[:n], u[:n])
        prior = dot(f, f) + state.noise[i, n]
        s = prior - dot(k[:n], u[:n])
        state.held[i] = n + 1
        if s < LOST * prior or state.age[i] >= REFRESH:
            stale[i] = True
            continue
        border(i, m, s, u[:n], f, space, g, state)
        state.gain[i] += 0.5 * math.log(s / state.noise[i, n])
        state.age[i] += 1
        solve(i, m, g, alpha[i], state)


@subroutine
def border(
    i: int, m: int, s: float, u: Array, f: Array, space: Space, g: Array, state: StaleArrays
) -> None:
    """Give P, R W and Q another observation: P of a bordered matrix, from u and s."""
    n, P, W = len(u), state.inverse[i], state.influence[i]
    # r = sum of u_a (g_a, h_a) phi_a less (1, 1) phi, the new observation's own
    r, turned = np.empty((2, m)), np.empty((2, m))
    decay(i, state, g)
    gather(u, g, state.features[i], r)
    for j in range(m):
        r[0, j] -= f[j]
        r[1, j] -= f[j]
    rotate(space.root, r, turned)
    # P <- [[P + u u^T / s, -u / s], [-u^T / s, 1 / s]], and W with it
    add_outer(P, 1.0 / s, u)
    for a in range(n):
        P[a, n] = P[n, a] = -u[a] / s
    P[n, n] = 1.0 / s
    for a in range(n + 1):
        factor = u[a] / s if a < n else -1.0 / s
        for k in range(2):
            out, row = W[a, k], turned[k]
            if a == n:
                out[:] = 0.0
            for j in range(m):
                out[j] += factor * row[j]
    add_blocks(1.0 / s, r, state.shrinkage[i])


@compiled
def rebuild(stale: Mask, space: Space, basis: Basis, alpha: Array, state: StaleArrays) -> None:
    """Compute all that follows from the observations held, anew: O(n^3 + n m (n + m))."""
    g = np.empty((2, state.times.shape[1]))
    for i in range(len(stale)):
        if not stale[i]:
            continue
        n, m, rate = state.held[i], basis.rank[i], ROOT3 / state.lengthscale[i]
        features, P, Q = state.features[i], state.inverse[i], state.shrinkage[i]
        # P = (K + D)^{-1}, and the gain 1/2 log det(I + D^{-1} K)
        A, w, turned = np.empty((n, n)), np.empty((2, m)), np.empty((2, m))
        fill_gram(features, n, m, A)
        known = np.empty(GAPS)
        fill_known(rate, known)
        for a in range(n):
            covariance_row(a, A, state.times[i, :n], state.noise[i], rate, known, A)
        cholesky(A, n, 0.0, 0.0, A)
        inverse(A, n, P)
        state.gain[i] = 0.0
        for a in range(n):
            state.gain[i] += math.log(A[a, a]) - 0.5 * math.log(state.noise[i, a])
        # W_a and R W_a; Q = sum of (g_a, h_a) phi_a W_a^T
        decay(i, state, g)
        Q[:] = 0.0
        for a in range(n):
            gather(P[a, :n], g, features, w)
            rotate(space.root, w, turned)
            for j in range(m):
                state.influence[i, a, 0, j], state.influence[i, a, 1, j] = (
                    turned[0, j],
                    turned[1, j],
                )
                first, second = g[0, a] * features[a, j], g[1, a] * features[a, j]
                for k in range(m):
                    Q[0, j, k] += first * w[0, k]
                    Q[1, j, k] += first * w[1, k]
                    Q[2, j, k] += second * w[1, k]
        state.age[i] = 0
        solve(i, m, g, alpha[i], state)


@compiled
def choose(
    going: Mask,
    rules: Rules,
    space: Space,
    basis: Basis,
    alpha: Array,
    state: StaleArrays,
    places: Indices,
) -> None:
    """Fill in the place of what each learner in `going` drops, and take those who drop nothing out.

    A removal divides the budget by 1 + its criterion, which must be less than the budget; above
    the capacity it costs nothing.
    """
    criteria = np.empty(rules.capacity + 1)
    for i in range(len(going)):
        if not going[i]:
            continue
        full = state.held[i] > rules.capacity
        places[i] = stalest(i, basis.rank[i], rules.signal[i], space, alpha[i], state, criteria)
        price = 1.0 + criteria[places[i]]
        if full:
            continue
        if price < state.budget[i]:
            state.budget[i] /= price
        else:
            going[i] = False


@compiled
def drop(
    going: Mask, places: Indices, basis: Basis, alpha: Array, state: StaleArrays, stale: Mask
) -> None:
    """Take an observation of every learner in `going` away; the last one takes its place."""
    size = state.times.shape[1]
    g, p = np.empty((2, size)), np.empty(size)
    for i in range(len(going)):
        stale[i] = False
        if not going[i]:
            continue
        a, m, n, last = places[i], basis.rank[i], state.held[i], state.held[i] - 1
        features, P, W = state.features[i], state.inverse[i], state.influence[i]
        own, w, turned = P[a, a], np.empty((2, m)), np.empty((2, m))
        for b in range(n):
            p[b] = P[a, b]
        for j in range(m):
            turned[0, j], turned[1, j] = W[a, 0, j], W[a, 1, j]
        # Q, P and W less what came by way of the observation: P <- P - p p^T / P_aa
        decay(i, state, g)
        gather(p[:n], g, features, w)
        add_blocks(-1.0 / own, w, state.shrinkage[i])
        add_outer(P, -1.0 / own, p[:n])
        for b in range(n):
            for k in range(2):
                out, row, factor = W[b, k], turned[k], p[b] / own
                for j in range(m):
                    out[j] -= factor * row[j]
        state.gain[i] += 0.5 * math.log(own * state.noise[i, a])
        # The last one takes its place.
        for b in range(n):
            P[a, b] = P[last, b]
        for b in range(n):
            P[b, a] = P[b, last]
        for j in range(m):
            features[a, j] = features[last, j]
            W[a, 0, j], W[a, 1, j] = W[last, 0, j], W[last, 1, j]
        g[0, a], g[1, a] = g[0, last], g[1, last]
        state.rewards[i, a], state.noise[i, a] = state.rewards[i, last], state.noise[i, last]
        state.times[i, a] = state.times[i, last]
        state.held[i] = last
        state.age[i] += 1
        stale[i] = own * LOST > 1.0 or state.age[i] >= REFRESH
        if not stale[i]:
            solve(i, m, g, alpha[i], state)
