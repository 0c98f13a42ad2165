"""The compiled loops of `design`: minimising F(p) = sum_a p_a c_a - log det S(p).

They add up in a fixed order, so that no learner's numbers depend on the others.

Notation, for one learner: phi_a `(m,)` are the features of arm a, p a distribution of plays,
S(p) = sum_a p_a phi_a phi_a^T + sigma I = R^T R with R upper, v_a = phi_a^T S(p)^{-1} phi_a.
The gradient of F is c - v.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.kernels.cholesky import cholesky
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import (
    FIRST,
    add_outer,
    backward,
    column_squares,
    combine_rows,
    dot,
    forward,
    inverse,
    subtract_rows,
)
from wgp_gym.types import Array, Indices

__all__ = ["fill_designs", "fill_factors"]


TOLERANCE = 1e-9  # the gap, in units of max(1, sum_a p_a v_a), at which a design is done
ROUNDS = 1_000  # some 20 are what 100 arms take
FULL_STEP = 0.25  # the Newton decrement below which no step need be shortened
LEAST_DOWNDATE = 1e-4  # 1 - t v below which an inverse is computed anew
JITTER = 1e-13  # of the Hessian's trace: arms whose features are alike make it singular


@subroutine
def factor_of(phi: Array, m: int, regularization: float, p: Array, R: Array) -> None:
    """Compute R with S(p) = R^T R, upper."""
    column = np.empty(m)
    for i in range(m):
        for j in range(m):
            R[i, j] = 0.0
    # sum_a p_a phi_a phi_a^T, then the factor of it and sigma I
    for a in range(len(p)):
        if p[a] > 0.0:
            for i in range(m):
                column[i] = phi[i, a]
            add_outer(R, p[a], column)
    cholesky(R, m, regularization, 0.0, R)
    for i in range(m):
        for j in range(i):
            R[i, j] = 0.0


@subroutine
def move(p: Array, arms: Indices, step: Array, length: float) -> bool:
    """Add `length` times the step to some arms of positive p, or as much as leaves all positive.

    Returns:
        Whether an arm was in the way; it is left without weight.
    """
    # The first arm to reach zero bounds the length.
    last = -1
    for a in range(len(arms)):
        if p[arms[a]] + length * step[a] <= 0.0:
            length, last = -p[arms[a]] / step[a], a
    # p <- p + length d, and rounding scaled away
    total = 0.0
    for a in range(len(arms)):
        p[arms[a]] = max(p[arms[a]] + length * step[a], 0.0) if a != last else 0.0
        total += p[arms[a]]
    for a in range(len(arms)):
        p[arms[a]] /= total
    return last >= 0


@subroutine
def newton_step(Y: Array, m: int, costs: Array, p: Array, arms: Indices) -> bool:
    """Take a Newton step on the arms of positive p, and return whether one dropped out.

    The Hessian is H = W o W, W = Y^T Y. With H = U^T U and g the gradient, the step whose sum is
    zero is d = U^{-1} (l y - x), where x = U^{-T} g, y = U^{-T} 1 and l = x^T y / y^T y.

    Args:
        Y: R^{-T} phi of these arms, in its first k columns.
        m: The number of features.
        costs: c of all arms, `(n,)`.
        p: Probabilities, `(n,)`.
        arms: Which arms have positive p, `(k,)`.
    """
    k = len(arms)
    H, x, y, step, trace = np.empty((k, k)), np.empty(k), np.empty(k), np.empty(k), 0.0
    H[:] = 0.0
    # W, whose diagonal is v of these arms; g = c - v; H = W o W
    for i in range(m):
        add_outer(H, 1.0, Y[i, :k])
    for a in range(k):
        x[a], y[a] = costs[arms[a]] - H[a, a], 1.0
        for b in range(a, k):
            H[a, b] *= H[a, b]
        trace += H[a, a]
    # x = U^{-T} g, y = U^{-T} 1
    cholesky(H, k, JITTER * trace, 0.0, H)
    forward(H, FIRST, x)
    forward(H, FIRST, y)
    # d = U^{-1} (l y - x), shortened unless its decrement |l y - x| is small
    multiplier = dot(x, y) / dot(y, y)
    for a in range(k):
        step[a] = multiplier * y[a] - x[a]
    decrement = math.sqrt(dot(step, step))
    backward(H, step)
    return move(p, arms, step, 1.0 if decrement < FULL_STEP else 1.0 / (1.0 + decrement))


@subroutine
def solve(R: Array, m: int, phi: Array, arms: Indices, Y: Array) -> None:
    """Compute Y = R^{-T} phi of some arms `(k,)`, in the first m rows and k columns."""
    k = len(arms)
    for i in range(m):
        row, scale = Y[i, :k], 1.0 / R[i, i]
        for a in range(k):
            row[a] = phi[i, arms[a]]
        subtract_rows(R, i, Y, FIRST, row)
        for a in range(k):
            row[a] *= scale


@subroutine
def extremes(v: Array, costs: Array, p: Array) -> tuple[int, int]:
    """Return the arm of the largest v - c, and that of the smallest among those of positive p."""
    best, worst = 0, -1
    for a in range(len(p)):
        if v[a] - costs[a] > v[best] - costs[best]:
            best = a
        if p[a] > 0.0 and (worst < 0 or v[a] - costs[a] < v[worst] - costs[worst]):
            worst = a
    return best, worst


@subroutine
def amount(gaining: float, losing: float, both: float, difference: float, most: float) -> float:
    """Return how much weight is best moved from one arm to another, at most `most`.

    Moving t multiplies det S by q(t) = 1 + t (v - v') - t^2 (v v' - w^2). The derivative of
    t (c - c') - log q(t) vanishes where a quadratic in t does.

    Args:
        gaining: v of the arm that gains.
        losing: v' of the arm that loses.
        both: w = phi^T S^{-1} phi'.
        difference: c - c' < v - v'.
        most: p of the arm that loses.
    """
    slope, curve = gaining - losing, max(gaining * losing - both * both, 0.0)
    root = math.sqrt(difference * difference * (slope * slope + 4.0 * curve) + 4.0 * curve * curve)
    denominator = difference * slope + 2.0 * curve + root
    return min(2.0 * (slope - difference) / denominator, most) if denominator > 0.0 else most


@subroutine
def shift(P: Array, v: Array, phi: Array, m: int, arm: int, moved: float) -> bool:
    """Change P = S^{-1} and v as adding `moved` to an arm's p does (Sherman and Morrison).

    Returns:
        Whether it was done: not where it would lose most of the digits.
    """
    denominator = 1.0 + moved * v[arm]
    if denominator < LEAST_DOWNDATE:
        return False
    # u = P phi_arm; P <- P - t u u^T / (1 + t v); v likewise, by phi_a^T u of every arm
    f, u, along, factor = np.empty(m), np.empty(m), np.empty(len(v)), moved / denominator
    for i in range(m):
        f[i] = phi[i, arm]
    combine_rows(P, f, u)
    combine_rows(phi, u, along)
    add_outer(P, -factor, u)
    for a in range(len(v)):
        v[a] -= factor * along[a] * along[a]
    return True


@subroutine
def exchange(P: Array, v: Array, phi: Array, m: int, costs: Array, p: Array) -> None:
    """Move weight to the arm of the largest v - c, again and again while that one has none.

    Args:
        P: S^{-1}, `(m, m)`; it is changed.
        v: `(n,)`; it is changed.
        phi: The features, `(., n)`.
        m: How many of them count.
        costs: c, `(n,)`.
        p: Probabilities, `(n,)`.
    """
    for _ in range(len(p)):
        best, worst = extremes(v, costs, p)
        if p[best] > 0.0:
            return
        # w = phi^T S^{-1} phi' of the two arms
        both = 0.0
        for i in range(m):
            for h in range(m):
                both += phi[i, best] * P[i, h] * phi[h, worst]
        moved = amount(v[best], v[worst], both, costs[best] - costs[worst], p[worst])
        p[best] = moved
        p[worst] = p[worst] - moved if moved < p[worst] else 0.0
        for arm, change in ((best, moved), (worst, -moved)):
            if not shift(P, v, phi, m, arm, change):
                return


@subroutine
def gap_of(v: Array, costs: Array, p: Array) -> tuple[float, float]:
    """Return max_a (v_a - c_a) - sum_a p_a (v_a - c_a), and the unit of its tolerance."""
    best, _ = extremes(v, costs, p)
    mean, unit = 0.0, 0.0
    for a in range(len(p)):
        if p[a] > 0.0:
            mean += p[a] * (v[a] - costs[a])
            unit += p[a] * v[a]
    return v[best] - costs[best] - mean, max(unit, 1.0)


@subroutine
def arms_in_use(p: Array, arms: Indices) -> int:
    """Write down the arms of positive p; return how many there are."""
    k = 0
    for a in range(len(p)):
        if p[a] > 0.0:
            arms[k] = a
            k += 1
    return k


@compiled
def fill_designs(
    phi: Array,
    rank: Indices,
    regularization: Array,
    costs: Array,
    probabilities: Array,
    gaps: Array,
    factors: Array,
) -> None:
    """Fill in the designs, the gaps and the factors of all learners. See `optimal_designs`."""
    q, n = phi.shape
    everyone, some = np.empty(n, np.int64), np.empty(n, np.int64)
    v, Y = np.empty(n), np.empty((q, n))
    for a in range(n):
        everyone[a] = a
    for i in range(len(rank)):
        m, lam, c, p, R = rank[i], regularization[i], costs[i], probabilities[i], factors[i]
        # Begin with the cheapest arm.
        best, stepping = 0, False
        for a in range(n):
            p[a] = 0.0
            if c[a] < c[best]:
                best = a
        p[best] = 1.0
        for _ in range(ROUNDS):
            arms = some[: arms_in_use(p, some)] if stepping else everyone
            factor_of(phi, m, lam, p, R)
            solve(R, m, phi, arms, Y)
            if stepping:  # Newton's steps until none drops an arm
                stepping = newton_step(Y, m, c, p, arms)
                continue
            # The gap bounds how far F is from its minimum.
            column_squares(Y, m, v)
            gaps[i], unit = gap_of(v, c, p)
            if gaps[i] <= TOLERANCE * unit:
                break
            # Let in arms that are worth more than those in use.
            P = np.empty((m, m))
            inverse(R, m, P)
            exchange(P, v, phi, m, c, p)
            stepping = True


@compiled
def fill_factors(
    phi: Array, rank: Indices, regularization: Array, probabilities: Array, factors: Array
) -> None:
    """Fill in the factors of all learners. See `design_factors`."""
    for i in range(len(rank)):
        factor_of(phi, rank[i], regularization[i], probabilities[i], factors[i])
