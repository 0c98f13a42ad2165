"""The compiled loops of `design`: minimising F(p) = sum_a p_a c_a - log det S(p).

They add up in a fixed order, so that no learner's numbers depend on the others.

Notation, for one learner: phi_a `(m,)` are the features of arm a, p a distribution of plays,
S(p) = sum_a p_a phi_a phi_a^T + sigma I = R^T R with R upper, v_a = phi_a^T S(p)^{-1} phi_a.
The gradient of F is c - v.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array, Indices

__all__ = ["fill_designs", "fill_factors"]


TOLERANCE = 1e-9  # the gap, in units of max(1, sum_a p_a v_a), at which a design is done
ROUNDS = 1_000  # some 20 are what 100 arms take
FULL_STEP = 0.25  # the Newton decrement below which no step need be shortened
LEAST_DOWNDATE = 1e-4  # 1 - t v below which an inverse is computed anew
JITTER = 1e-13  # of the Hessian's trace: arms whose features are alike make it singular


@compiled
def factorise(V: Array, k: int) -> None:
    """Replace the upper triangle of V `(k, k)` by R with V = R^T R."""
    for i in range(k):
        for h in range(i):
            factor = V[h, i]
            for j in range(i, k):
                V[i, j] -= factor * V[h, j]
        inverse = 1.0 / math.sqrt(V[i, i])
        for j in range(i, k):
            V[i, j] *= inverse


@compiled
def solve_transposed(R: Array, k: int, Y: Array, count: int) -> None:
    """Replace the first `count` columns y of Y `(k, .)` by R^{-T} y."""
    for i in range(k):
        row = Y[i, :count]
        for h in range(i):
            factor, above = R[h, i], Y[h, :count]
            for a in range(count):
                row[a] -= factor * above[a]
        inverse = 1.0 / R[i, i]
        for a in range(count):
            row[a] *= inverse


@compiled
def factor_of(phi: Array, m: int, regularization: float, p: Array, R: Array) -> None:
    """Compute R with S(p) = R^T R, upper."""
    R[:m, :m] = 0.0
    for i in range(m):
        R[i, i] = regularization
    for a in range(len(p)):
        if p[a] > 0.0:
            column = phi[:m, a].copy()
            for i in range(m):
                factor = p[a] * column[i]
                for j in range(i, m):
                    R[i, j] += factor * column[j]
    factorise(R, m)


@compiled
def newton_direction(Y: Array, m: int, costs: Array, arms: Indices, step: Array) -> float:
    """Compute the Newton step of F on some arms whose probabilities add up to the same as before.

    The Hessian is H = W o W, W = Y^T Y. With H = U^T U and g the gradient, d = U^{-1} (l y - x)
    where x = U^{-T} g, y = U^{-T} 1 and l = x^T y / y^T y, which makes the sum of d zero.

    Args:
        Y: R^{-T} phi of these arms, `(m, k)`.
        m: The number of features.
        costs: c of all arms, `(n,)`.
        arms: Which arms, `(k,)`.
        step: Where d goes, `(k,)`.

    Returns:
        The Newton decrement |l y - x|.
    """
    k = len(arms)
    H, xy, trace = np.zeros((k, k)), np.ones((k, 2)), 0.0
    for i in range(m):
        for a in range(k):
            factor = Y[i, a]
            for b in range(a, k):
                H[a, b] += factor * Y[i, b]
    for a in range(k):
        xy[a, 0] = costs[arms[a]] - H[a, a]
        for b in range(a, k):
            H[a, b] *= H[a, b]
        trace += H[a, a]
    for a in range(k):
        H[a, a] += JITTER * trace
    factorise(H, k)
    solve_transposed(H, k, xy, 2)
    along, across, square = 0.0, 0.0, 0.0
    for a in range(k):
        along += xy[a, 0] * xy[a, 1]
        across += xy[a, 1] * xy[a, 1]
    for a in range(k):
        step[a] = along / across * xy[a, 1] - xy[a, 0]
        square += step[a] * step[a]
    for a in range(k - 1, -1, -1):
        for b in range(a + 1, k):
            step[a] -= H[a, b] * step[b]
        step[a] /= H[a, a]
    return math.sqrt(square)


@compiled
def move(p: Array, arms: Indices, step: Array, length: float) -> bool:
    """Add `length` times the step to some arms of positive p, or as much as leaves all positive.

    Returns:
        Whether an arm was in the way; it is left without weight.
    """
    last = -1
    for a in range(len(arms)):
        if p[arms[a]] + length * step[a] <= 0.0:
            length, last = -p[arms[a]] / step[a], a
    total = 0.0
    for a in range(len(arms)):
        p[arms[a]] = max(p[arms[a]] + length * step[a], 0.0) if a != last else 0.0
        total += p[arms[a]]
    for a in range(len(arms)):
        p[arms[a]] /= total
    return last >= 0


@compiled
def solved(R: Array, m: int, phi: Array, arms: Indices) -> Array:
    """Return R^{-T} phi of some arms, `(m, k)`."""
    k = len(arms)
    Y = np.empty((m, k))
    for i in range(m):
        for a in range(k):
            Y[i, a] = phi[i, arms[a]]
    solve_transposed(R, m, Y, k)
    return Y


@compiled
def extremes(v: Array, costs: Array, p: Array) -> tuple[int, int]:
    """Return the arm of the largest v - c, and that of the smallest among those of positive p."""
    best, worst = 0, -1
    for a in range(len(p)):
        if v[a] - costs[a] > v[best] - costs[best]:
            best = a
        if p[a] > 0.0 and (worst < 0 or v[a] - costs[a] < v[worst] - costs[worst]):
            worst = a
    return best, worst


@compiled
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


@compiled
def shift(P: Array, v: Array, phi: Array, m: int, arm: int, moved: float) -> bool:
    """Change P = S^{-1} and v as adding `moved` to an arm's p does (Sherman and Morrison).

    Returns:
        Whether it was done: not where it would lose most of the digits.
    """
    u = np.zeros(m)
    for i in range(m):
        for h in range(m):
            u[h] += P[i, h] * phi[i, arm]
    denominator = 1.0 + moved * v[arm]
    if denominator < LEAST_DOWNDATE:
        return False
    factor, along = moved / denominator, np.zeros(len(v))
    for i in range(m):
        for h in range(m):
            P[i, h] -= factor * u[i] * u[h]
        for a in range(len(v)):
            along[a] += u[i] * phi[i, a]
    for a in range(len(v)):
        v[a] -= factor * along[a] * along[a]
    return True


@compiled
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
        both = 0.0
        for i in range(m):
            for h in range(m):
                both += phi[i, best] * P[i, h] * phi[h, worst]
        moved = amount(v[best], v[worst], both, costs[best] - costs[worst], p[worst])
        p[best] = moved
        p[worst] = p[worst] - moved if moved < p[worst] else 0.0
        if not (shift(P, v, phi, m, best, moved) and shift(P, v, phi, m, worst, -moved)):
            return


@compiled
def gap_of(v: Array, costs: Array, p: Array) -> tuple[float, float]:
    """Return max_a (v_a - c_a) - sum_a p_a (v_a - c_a), and the unit of its tolerance."""
    best, _ = extremes(v, costs, p)
    mean, unit = 0.0, 0.0
    for a in range(len(p)):
        if p[a] > 0.0:
            mean += p[a] * (v[a] - costs[a])
            unit += p[a] * v[a]
    return v[best] - costs[best] - mean, max(unit, 1.0)


@compiled
def squares(Y: Array) -> Array:
    """Return the sum of squares of each column."""
    found = np.zeros(Y.shape[1])
    for row in Y:
        for a in range(len(row)):
            found[a] += row[a] * row[a]
    return found


@compiled
def inverse(R: Array, m: int) -> Array:
    """Return (R^T R)^{-1}, `(m, m)`."""
    Z, P = np.eye(m), np.zeros((m, m))
    solve_transposed(R, m, Z, m)
    for h in range(m):
        for i in range(h + 1):
            for j in range(h + 1):
                P[i, j] += Z[h, i] * Z[h, j]
    return P


@compiled
def newton_step(R: Array, phi: Array, m: int, costs: Array, p: Array) -> bool:
    """Take a Newton step on the arms of positive p, and return whether one dropped out."""
    arms = np.flatnonzero(p)
    step = np.empty(len(arms))
    decrement = newton_direction(solved(R, m, phi, arms), m, costs, arms, step)
    return move(p, arms, step, 1.0 if decrement < FULL_STEP else 1.0 / (1.0 + decrement))


@compiled
def fill_design(phi: Array, m: int, regularization: float, costs: Array, p: Array) -> float:
    """Fill in one learner's p, and return its gap. See `optimal_designs`."""
    everyone, R, gap = np.arange(len(p)), np.empty((m, m)), math.inf
    p[:] = 0.0
    p[np.argmin(costs)] = 1.0
    for _ in range(ROUNDS):
        factor_of(phi, m, regularization, p, R)
        v = squares(solved(R, m, phi, everyone))
        gap, unit = gap_of(v, costs, p)
        if gap <= TOLERANCE * unit:
            break
        best, _ = extremes(v, costs, p)
        if p[best] == 0.0:
            exchange(inverse(R, m), v, phi, m, costs, p)
            factor_of(phi, m, regularization, p, R)
        while newton_step(R, phi, m, costs, p):  # an arm fewer each time
            factor_of(phi, m, regularization, p, R)
    return gap


@compiled
def fill_designs(
    phi: Array,
    rank: Indices,
    regularization: Array,
    costs: Array,
    probabilities: Array,
    gaps: Array,
) -> None:
    """Fill in the designs of all learners. See `optimal_designs`."""
    for i in range(len(rank)):
        gaps[i] = fill_design(phi, rank[i], regularization[i], costs[i], probabilities[i])


@compiled
def fill_factors(
    phi: Array, rank: Indices, regularization: Array, probabilities: Array, factors: Array
) -> None:
    """Fill in the factors of all learners. See `design_factors`."""
    for i in range(len(rank)):
        factor_of(phi, rank[i], regularization[i], probabilities[i], factors[i])
