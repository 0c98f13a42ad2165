"""The compiled inner loops: arithmetic per learner, so that no learner's numbers depend on B.

Inner loops run along rows, from index 0 (numba checks an index that could be negative, which
bars vector instructions), and never reorder a sum at run time, so results are reproducible. They
take two rows at a time, twice the work for what a loop loads; an odd row goes alone. Each kernel
is tested against plain numpy.

Notation, for one learner, as in `wgp_agents.gp.surrogates.weighted`: `phi` is the feature table
turned `(m, n)`; V = A + lambda I, with A = sum of w phi phi^T `(m, m)` and b = sum of w y phi
`(m,)`; R is the upper Cholesky factor, V = R^T R; P = V^{-1}.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wgp_agents.kernels.arrays import DiscountArrays, RankOneArrays
from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array

__all__ = [
    "context_posteriors",
    "deviations",
    "discount_update",
    "inverse_deviations",
    "posteriors",
    "rank_one_update",
]


ARM_BLOCK = 128  # arms solved for together: with few features they fit the first-level cache
REFRESH = 64  # rank-one changes after which an inverse is computed anew
MAX_DOWNDATE = 1e6  # reward minus mean above which a removal would leave its rounding behind
MIN_DOWNDATE = 1e-5  # lambda (1 - phi^T P phi) below which a downdate would lose the digits


@compiled
def cholesky(V: Array, m: int, regularization: float, R: Array) -> None:
    """Factorise V + regularization I = R^T R, R upper; of both only the leading `(m, m)` counts."""
    for i in range(m):
        row = R[i, i:m]
        row[:] = V[i, i:m]
        row[0] += regularization
        for k in range(0, i - 1, 2):
            first, second = R[k, i:m], R[k + 1, i:m]
            f1, f2 = first[0], second[0]
            for j in range(m - i):
                row[j] -= f1 * first[j] + f2 * second[j]
        if i % 2 == 1:
            above = R[i - 1, i:m]
            factor = above[0]
            for j in range(m - i):
                row[j] -= factor * above[j]
        inverse = 1.0 / math.sqrt(row[0])
        for j in range(m - i):
            row[j] *= inverse


@compiled
def information_gain(R: Array, m: int, regularization: float) -> float:
    """Return 1/2 log det(I + A / lambda) from the factor of A + lambda I."""
    gain: float = -0.5 * m * math.log(regularization)
    for i in range(m):
        gain += math.log(R[i, i])
    return gain


@compiled
def solve_lower(R: Array, m: int, b: Array, z: Array) -> None:
    """Solve R^T z = b, `(m,)`."""
    z[:m] = b[:m]
    for i in range(m):
        rest = z[i:m]
        row = R[i, i:m]
        rest[0] /= row[0]
        for j in range(1, m - i):
            rest[j] -= row[j] * rest[0]


@compiled
def solve_block(
    R: Array,
    z: Array,
    phi: Array,
    regularization: float,
    residual: Array,
    mean: Array,
    variance: Array,
    Y: Array,
) -> None:
    """Compute the posterior of a block of arms. See `posterior`."""
    m, n = phi.shape
    mean[:] = 0.0
    variance[:] = 0.0
    for i in range(0, m - 1, 2):
        upper, lower = Y[i], Y[i + 1]
        for a in range(n):
            upper[a] = phi[i, a]
            lower[a] = phi[i + 1, a]
        for j in range(0, i, 2):
            first, second = Y[j], Y[j + 1]
            u1, u2 = R[j, i], R[j + 1, i]
            l1, l2 = R[j, i + 1], R[j + 1, i + 1]
            for a in range(n):
                upper[a] -= u1 * first[a] + u2 * second[a]
                lower[a] -= l1 * first[a] + l2 * second[a]
        between, inverse, inverse_below = R[i, i + 1], 1.0 / R[i, i], 1.0 / R[i + 1, i + 1]
        weight, weight_below = z[i], z[i + 1]
        for a in range(n):
            y = upper[a] * inverse
            below = (lower[a] - between * y) * inverse_below
            upper[a] = y
            lower[a] = below
            variance[a] += y * y + below * below
            mean[a] += y * weight + below * weight_below
    if m % 2 == 1:
        last, weight, inverse = Y[m - 1], z[m - 1], 1.0 / R[m - 1, m - 1]
        for a in range(n):
            last[a] = phi[m - 1, a]
        for j in range(0, m - 1, 2):
            first, second = Y[j], Y[j + 1]
            u1, u2 = R[j, m - 1], R[j + 1, m - 1]
            for a in range(n):
                last[a] -= u1 * first[a] + u2 * second[a]
        for a in range(n):
            y = last[a] * inverse
            last[a] = y
            variance[a] += y * y
            mean[a] += y * weight
    for a in range(n):
        variance[a] = regularization * variance[a] + residual[a]


@compiled
def tight_factor(R: Array, R2: Array, m: int, G: Array) -> None:
    """Compute G = R2 R^{-1}, upper: the factor of R^{-T} (A2 + lambda I) R^{-1}."""
    for i in range(m):
        row = G[i, i:m]
        row[:] = R2[i, i:m]
        for j in range(m - i):
            below = R[i + j, i + j : m]
            row[j] /= below[0]
            for k in range(1, m - i - j):
                row[j + k] -= row[j] * below[k]


@compiled
def tight_block(
    G: Array, m: int, Y: Array, regularization: float, residual: Array, tight: Array
) -> None:
    """Compute lambda phi^T V^{-1} (A2 + lambda I) V^{-1} phi of a block: [Deng22] Theorem 2."""
    n = len(tight)
    tight[:] = 0.0
    row = np.empty(n)
    for i in range(m):
        row[:] = 0.0
        for j in range(i, m - 1, 2):
            first, second = Y[j], Y[j + 1]
            g1, g2 = G[i, j], G[i, j + 1]
            for a in range(n):
                row[a] += g1 * first[a] + g2 * second[a]
        if (m - i) % 2 == 1:
            last, g1 = Y[m - 1], G[i, m - 1]
            for a in range(n):
                row[a] += g1 * last[a]
        for a in range(n):
            tight[a] += row[a] * row[a]
    for a in range(n):
        tight[a] = regularization * tight[a] + residual[a]


@compiled
def posterior(
    R: Array,
    m: int,
    z: Array,
    phi: Array,
    regularization: float,
    residual: Array,
    mean: Array,
    variance: Array,
    G: Array,
    tight: Array,
) -> None:
    """Compute mean = Y^T z and variance = lambda sum Y^2 with R^T Y = phi, in blocks of arms.

    [Deng22] Eq. (3)-(4) in feature space: phi^T V^{-1} b and lambda phi^T V^{-1} phi. Where
    `tight` has room, also `tight_block`.
    """
    n = phi.shape[1]
    Y = np.empty((m, ARM_BLOCK))
    for start in range(0, n, ARM_BLOCK):
        end = min(start + ARM_BLOCK, n)
        block, rest = phi[:m, start:end], residual[start:end]
        solve_block(R, z, block, regularization, rest, mean[start:end], variance[start:end], Y)
        if len(tight) > 0:
            tight_block(G, m, Y, regularization, rest, tight[start:end])


@compiled
def invert(R: Array, m: int, P: Array) -> None:
    """Compute P = (R^T R)^{-1} by two triangular solves for each column."""
    unit = np.zeros(m)
    for k in range(m):
        unit[:] = 0.0
        unit[k] = 1.0
        column = P[k]
        solve_lower(R, m, unit, column)
        for i in range(m - 1, -1, -1):
            for j in range(i + 1, m):
                column[i] -= R[i, j] * column[j]
            column[i] /= R[i, i]


@compiled
def rank_one(
    sign: float,
    arm: int,
    reward: float,
    m: int,
    phi: Array,
    regularization: float,
    P: Array,
    mean: Array,
    variance: Array,
) -> float:
    """Add (sign 1) or remove (sign -1) one observation by the Sherman-Morrison formula.

    Returns:
        The change of the information gain 1/2 log det(I + A / lambda). A removal that would
        lose too many digits changes nothing and returns NaN.
    """
    n = phi.shape[1]
    f = phi[:m, arm].copy()
    u = np.zeros(m)
    for i in range(m):
        row = P[i]
        for j in range(m):
            u[j] += row[j] * f[i]
    s = 0.0
    for i in range(m):
        s += f[i] * u[i]
    outlier = abs(reward - mean[arm]) > MAX_DOWNDATE
    if sign < 0 and (outlier or regularization * (1.0 - s) < MIN_DOWNDATE):
        return math.nan
    scale = sign / (1.0 + sign * s)
    w = np.zeros(n)
    for i in range(0, m - 1, 2):
        row, below = phi[i], phi[i + 1]
        factor, factor_below = u[i], u[i + 1]
        for a in range(n):
            w[a] += factor * row[a] + factor_below * below[a]
    if m % 2 == 1:
        row, factor = phi[m - 1], u[m - 1]
        for a in range(n):
            w[a] += factor * row[a]
    shift = scale * (reward - mean[arm])
    for a in range(n):
        mean[a] += shift * w[a]
        variance[a] = max(variance[a] - regularization * scale * w[a] * w[a], 0.0)
    for i in range(m):
        row = P[i]
        factor = scale * u[i]
        for j in range(m):
            row[j] -= factor * u[j]
    return 0.5 * math.log(1.0 + sign * s)


@compiled
def recompute(
    counts: NDArray[np.int64],
    sums: Array,
    m: int,
    phi: Array,
    regularization: float,
    residual: Array,
    P: Array,
    mean: Array,
    variance: Array,
) -> float:
    """Compute P and the posterior anew from the plays of each arm; return the gain."""
    A = np.zeros((m, m))
    b = np.zeros(m)
    for arm in range(len(counts)):
        if counts[arm] > 0:
            for i in range(m):
                b[i] += sums[arm] * phi[i, arm]
                factor = counts[arm] * phi[i, arm]
                for j in range(m):
                    A[i, j] += factor * phi[j, arm]
    R = np.empty((m, m))
    z = np.empty(m)
    cholesky(A, m, regularization, R)
    solve_lower(R, m, b, z)
    posterior(R, m, z, phi, regularization, residual, mean, variance, np.empty((0, 0)), np.empty(0))
    invert(R, m, P)
    return information_gain(R, m, regularization)


@compiled
def add(sums: Array, lost: Array, i: int, value: float) -> None:
    """Add to the i-th sum, and keep what rounding loses (Neumaier 1974): rewards leave again."""
    total = sums[i] + value
    if abs(sums[i]) >= abs(value):
        lost[i] += (sums[i] - total) + value
    else:
        lost[i] += (value - total) + sums[i]
    sums[i] = total


@compiled
def rank_one_update(
    sign: float,
    arms: NDArray[np.int64],
    rewards: Array,
    active: NDArray[np.bool_],
    basis: Basis,
    state: RankOneArrays,
) -> None:
    """Add or remove one observation of every active learner."""
    phi, regularization, rank, residual, _ = basis
    P, mean, variance, gain, counts, sums, lost, age = state
    for i in range(len(arms)):
        if not active[i]:
            continue
        arm, m = arms[i], rank[i]
        counts[i, arm] += 1 if sign > 0 else -1
        add(sums[i], lost[i], arm, sign * rewards[i])
        if counts[i, arm] == 0:
            sums[i, arm] = lost[i, arm] = 0.0
        change = math.nan
        if age[i] < REFRESH:
            change = rank_one(
                sign, arm, rewards[i], m, phi, regularization[i], P[i], mean[i], variance[i]
            )
        if math.isnan(change):
            gain[i] = recompute(
                counts[i],
                sums[i] + lost[i],
                m,
                phi,
                regularization[i],
                residual[i],
                P[i],
                mean[i],
                variance[i],
            )
            age[i] = 0
        else:
            gain[i] += change
            age[i] += 1


@compiled
def discount_update(
    sign: float,
    features: Array,
    rewards: Array,
    active: NDArray[np.bool_],
    discount: Array,
    basis: Basis,
    state: DiscountArrays,
) -> None:
    """Discount A, b and the double-weighted A2 of every active learner and add an observation.

    With sign -1 an observation is taken away: the discount is then 1.
    """
    for learner in range(len(rewards)):
        if not active[learner]:
            continue
        eta, m = discount[learner], basis.rank[learner]
        f = features[learner, :m].copy()
        b, lost = state.target[learner], state.lost[learner]
        for i in range(m):
            factor = sign * f[i]
            if eta == 1.0:  # a window takes rewards away again, large ones too
                add(b, lost, i, rewards[learner] * factor)
            else:
                b[i] = eta * (b[i] + lost[i]) + rewards[learner] * factor
                lost[i] = 0.0
            A, A2 = state.gram[learner, i], state.double_gram[learner, i]
            for j in range(m):
                A[j] = eta * A[j] + factor * f[j]
                A2[j] = eta * eta * A2[j] + factor * f[j]


@compiled
def posteriors(active: NDArray[np.bool_], basis: Basis, state: DiscountArrays) -> None:
    """Compute the posterior and the double-weighted gain of every active learner."""
    phi, regularization, rank, residual, _ = basis
    R = np.empty((phi.shape[0], phi.shape[0]))
    R2, G = np.empty_like(R), np.empty_like(R)
    z = np.empty(phi.shape[0])
    for i in range(len(active)):
        if active[i]:
            m, rest = rank[i], residual[i]
            cholesky(state.double_gram[i], m, regularization[i], R2)
            state.gain[i] = information_gain(R2, m, regularization[i])
            cholesky(state.gram[i], m, regularization[i], R)
            solve_lower(R, m, state.target[i] + state.lost[i], z)
            mean, variance, tight = state.mean[i], state.variance[i], state.tight[i]
            if len(tight) > 0:
                tight_factor(R, R2, m, G)
            posterior(R, m, z, phi, regularization[i], rest, mean, variance, G, tight)


@compiled
def context_posteriors(
    tables: Array,
    basis: Basis,
    state: DiscountArrays,
    mean: Array,
    variance: Array,
    bound_variance: Array,
) -> None:
    """Compute the posteriors of arms that each learner has for itself.

    Args:
        tables: Their features, `(B, m, n)`.
        basis: The learners' lambda and number of features.
        state: What they keep.
        mean: Where the means go, `(B, n)`.
        variance: Where the variances go, `(B, n)`.
        bound_variance: Where those of [Deng22] Theorem 2 go, `(B, n)`; `(B, 0)` if not wanted.
    """
    _, regularization, rank, _, _ = basis
    m = tables.shape[1]
    R, R2, G, z = np.empty((m, m)), np.empty((m, m)), np.empty((m, m)), np.empty(m)
    nothing = np.zeros(tables.shape[2])
    for i in range(len(tables)):
        r = rank[i]
        cholesky(state.gram[i], r, regularization[i], R)
        solve_lower(R, r, state.target[i] + state.lost[i], z)
        if bound_variance.shape[1] > 0:
            cholesky(state.double_gram[i], r, regularization[i], R2)
            tight_factor(R, R2, r, G)
        posterior(
            R,
            r,
            z,
            tables[i],
            regularization[i],
            nothing,
            mean[i],
            variance[i],
            G,
            bound_variance[i],
        )


@compiled
def inverse_deviations(normals: Array, basis: Basis, inverse: Array, drawn: Array) -> None:
    """Draw weights around the posterior mean, of covariance lambda P, for every learner.

    Args:
        normals: Standard normal draws, `(B, m)`.
        basis: The learners' lambda and number of features.
        inverse: P, `(B, m, m)`.
        drawn: Where the draws go, `(B, m)`.
    """
    _, regularization, rank, _, _ = basis
    R = np.empty(inverse.shape[1:])
    for learner in range(len(normals)):
        m, w = rank[learner], drawn[learner]
        cholesky(inverse[learner], m, 0.0, R)
        w[:] = 0.0
        for i in range(m):
            factor = math.sqrt(regularization[learner]) * normals[learner, i]
            for j in range(m - i):
                w[i + j] += R[i, i + j] * factor


@compiled
def deviations(
    normals: Array,
    active: NDArray[np.bool_],
    basis: Basis,
    state: DiscountArrays,
    drawn: Array,
) -> None:
    """Draw weights around the posterior mean for active learners.

    Their covariance is lambda V^{-1} (A2 + lambda I) V^{-1}, of [Deng22] Theorem 2: that of the
    posterior mean if the noise were drawn anew. Without weights it is lambda V^{-1}.

    Args:
        normals: Standard normal draws, `(B, m)`.
        active: Who draws, `(B,)`.
        basis: The learners' lambda and number of features.
        state: What they keep.
        drawn: Where the draws go, `(B, m)`.
    """
    _, regularization, rank, _, _ = basis
    size = normals.shape[1]
    R, R2, y, z = np.empty((size, size)), np.empty((size, size)), np.empty(size), np.empty(size)
    for learner in range(len(normals)):
        if not active[learner]:
            continue
        m, w = rank[learner], drawn[learner]
        cholesky(state.gram[learner], m, regularization[learner], R)
        cholesky(state.double_gram[learner], m, regularization[learner], R2)
        y[:] = 0.0
        for i in range(m):
            factor = normals[learner, i]
            for j in range(m - i):
                y[i + j] += R2[i, i + j] * factor
        solve_lower(R, m, y, z)
        for i in range(m - 1, -1, -1):
            for j in range(i + 1, m):
                z[i] -= R[i, j] * z[j]
            z[i] /= R[i, i]
        for i in range(size):
            w[i] = math.sqrt(regularization[learner]) * z[i] if i < m else 0.0
