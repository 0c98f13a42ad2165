"""The posterior of weighted observations, factorised anew at each step: O(m^3 + m^2 n).

Notation, for one learner, as in `wgp_agents.gp.surrogates.weighted`: `phi` is the feature table
turned `(m, n)`; V = A + lambda I, with A = sum of w phi phi^T `(m, m)` and b = sum of w y phi
`(m,)`; A2 = sum of w^2 phi phi^T; R and R2 are the upper Cholesky factors, V = R^T R and
A2 + lambda I = R2^T R2.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.cholesky import cholesky
from wgp_agents.kernels.gram_arrays import DiscountArrays, arrays_at
from wgp_agents.kernels.handle import basis_at
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import (
    FIRST,
    backward,
    combine_rows,
    copy,
    flushed,
    forward,
    subtract_from_two,
    subtract_rows,
    transposed_product,
)
from wgp_gym.types import Array, Indices, Mask

__all__ = [
    "add",
    "context_posteriors",
    "deviations",
    "discount_update",
    "information_gain",
    "learn",
    "posterior",
    "posteriors",
]

ARM_BLOCK = 128  # arms solved for together: with few features they fit the first-level cache


@subroutine
def add(sums: Array, lost: Array, i: int, value: float) -> None:
    """Add to the i-th sum, and keep what rounding loses (Neumaier 1974): rewards leave again."""
    total = sums[i] + value
    if abs(sums[i]) >= abs(value):
        lost[i] += (sums[i] - total) + value
    else:
        lost[i] += (value - total) + sums[i]
    sums[i] = total


@subroutine
def fade_and_add(
    i: int, sign: float, f: Array, reward: float, eta: float, state: DiscountArrays
) -> None:
    """Discount A, b and the double-weighted A2 of learner i and add an observation.

    With sign -1 an observation is taken away: the discount is then 1. Numbers below `SMALLEST`
    become 0: products of smaller ones would be denormal, with which a processor takes ten times
    as long.
    """
    m, b, lost = len(f), state.target[i], state.lost[i]
    for k in range(m):
        factor = sign * f[k]
        # b <- eta b + y phi
        if eta == 1.0:  # a window takes rewards away again, large ones too
            add(b, lost, k, reward * factor)
        else:
            b[k] = flushed(eta * (b[k] + lost[k]) + reward * factor)
            lost[k] = 0.0
        # A <- eta A + phi phi^T, A2 <- eta^2 A2 + phi phi^T
        A, A2 = state.gram[i, k], state.double_gram[i, k]
        for j in range(m):
            A[j] = flushed(eta * A[j] + factor * f[j])
            A2[j] = flushed(eta * eta * A2[j] + factor * f[j])


@compiled
def discount_update(
    sign: float,
    features: Array,
    rewards: Array,
    active: Mask,
    discount: Array,
    basis: Basis,
    state: DiscountArrays,
) -> None:
    """Do for every active learner what `fade_and_add` does."""
    for i in range(len(rewards)):
        if active[i]:
            f = features[i, : basis.rank[i]]
            fade_and_add(i, sign, f, rewards[i], discount[i], state)


@subroutine
def information_gain(R: Array, m: int, lam: float) -> float:
    """Return 1/2 log det(I + A / lambda) from the factor R of A + lambda I."""
    gain: float = -0.5 * m * math.log(lam)
    for i in range(m):
        gain += math.log(R[i, i])
    return gain


@subroutine
def solve_target(A: Array, b: Array, lost: Array, lam: float, R: Array, z: Array) -> None:
    """Compute R of A + lambda I and z = R^{-T} b, so that V^{-1} b = R^{-1} z."""
    cholesky(A, len(z), lam, 0.0, R)
    for k in range(len(z)):
        z[k] = b[k] + lost[k]
    forward(R, FIRST, z)


@subroutine
def tight_factor(R: Array, m: int, R2: Array) -> None:
    """Put R2 R^{-1} in the place of R2, upper: the factor of R^{-T} (A2 + lambda I) R^{-1}."""
    for i in range(m):
        forward(R, i, R2[i, i:m])


@subroutine
def posterior(
    R: Array,
    G: Array | None,
    z: Array,
    phi: Array,
    lam: float,
    residual: Array,
    mean: Array,
    variance: Array,
    tight: Array | None,
) -> None:
    """Compute the posterior of n arms, [Deng22] Eq. (3)-(4) in feature space, in blocks of arms.

    Args:
        R: The factor of V, `(m, m)`.
        G: `tight_factor`; None if `tight` is.
        z: R^{-T} b, `(m,)`.
        phi: The arms' features, `(m, n)`.
        lam: lambda.
        residual: What the features leave out of k(x, x), `(n,)`.
        mean: Where phi^T V^{-1} b goes, `(n,)`.
        variance: Where lambda phi^T V^{-1} phi goes, `(n,)`.
        tight: Where lambda phi^T V^{-1} (A2 + lambda I) V^{-1} phi goes, Theorem 2, `(n,)`.
    """
    m, n = len(z), phi.shape[1]
    Y = np.empty((m, ARM_BLOCK))
    for start in range(0, n, ARM_BLOCK):
        end = min(start + ARM_BLOCK, n)
        size, left = end - start, residual[start:end]
        centre, square = mean[start:end], variance[start:end]
        centre[:] = 0.0
        square[:] = 0.0
        # Rows i and i + 1 of Y = R^{-T} phi; the mean is Y^T z, the variance lambda |y_a|^2.
        for i in range(0, m - 1, 2):
            upper, lower = Y[i, :size], Y[i + 1, :size]
            copy(phi[i, start:end], upper)
            copy(phi[i + 1, start:end], lower)
            subtract_from_two(R, i, Y, upper, lower)
            between, scale, scale_below = R[i, i + 1], 1.0 / R[i, i], 1.0 / R[i + 1, i + 1]
            weight, weight_below = z[i], z[i + 1]
            for a in range(size):
                y = upper[a] * scale
                below = (lower[a] - between * y) * scale_below
                upper[a] = y
                lower[a] = below
                square[a] += y * y + below * below
                centre[a] += y * weight + below * weight_below
        if m % 2 == 1:
            row, weight, scale = Y[m - 1, :size], z[m - 1], 1.0 / R[m - 1, m - 1]
            copy(phi[m - 1, start:end], row)
            subtract_rows(R, m - 1, Y, FIRST, row)
            for a in range(size):
                y = row[a] * scale
                row[a] = y
                square[a] += y * y
                centre[a] += y * weight
        for a in range(size):
            square[a] = lam * square[a] + left[a]
        if tight is not None:
            tight_variances(G, m, Y, lam, left, tight[start:end])  # type: ignore[arg-type]


@subroutine
def tight_variances(G: Array, m: int, Y: Array, lam: float, residual: Array, tight: Array) -> None:
    """Compute lambda |G y_a|^2 of a block of arms: [Deng22] Theorem 2."""
    n = len(tight)
    tight[:] = 0.0
    row = np.empty(n)
    for i in range(m):
        combine_rows(Y[i:], G[i, i:m], row)
        for a in range(n):
            tight[a] += row[a] * row[a]
    for a in range(n):
        tight[a] = lam * tight[a] + residual[a]


def posteriors(active: Mask, basis: Basis, state: DiscountArrays) -> None:
    """Compute the posterior and the double-weighted gain of every active learner."""
    fill_posteriors(active, basis, state, state.tight if state.tight.shape[1] else None)


@subroutine
def fill_posterior(
    i: int,
    basis: Basis,
    state: DiscountArrays,
    tight: Array | None,
    R: Array,
    R2: Array,
    work: Array,
) -> None:
    """Compute what `posteriors` does for learner i, with room for `(m, m)` twice, and `(m,)`."""
    m, lam = basis.rank[i], basis.regularization[i]
    z, mean, variance, left = work[:m], state.mean[i], state.variance[i], basis.residual[i]
    # gamma-bar, the gain with A2
    cholesky(state.double_gram[i], m, lam, 0.0, R2)
    state.gain[i] = information_gain(R2, m, lam)
    # Eq. (3)-(4), and Theorem 2 if wanted
    solve_target(state.gram[i], state.target[i], state.lost[i], lam, R, z)
    if tight is None:
        posterior(R, None, z, basis.phi, lam, left, mean, variance, None)
    else:
        tight_factor(R, m, R2)
        posterior(R, R2, z, basis.phi, lam, left, mean, variance, tight[i])


@compiled
def fill_posteriors(active: Mask, basis: Basis, state: DiscountArrays, tight: Array | None) -> None:
    """Compute what `posteriors` does; what is None is not compiled either."""
    size = len(basis.phi)
    R, R2, work = np.empty((size, size)), np.empty((size, size)), np.empty(size)
    for i in range(len(active)):
        if active[i]:
            fill_posterior(i, basis, state, tight, R, R2, work)


@compiled
def learn(
    active: Mask,
    features: Array,
    rewards: Array,
    discount: Array,
    table: Indices,
    tight: Array | None,
) -> None:
    """Discount, add an observation and compute the posterior of every active learner.

    `table` is that of the `Handle` of `Basis` and `DiscountArrays`; `tight` is None if it is not
    wanted.
    """
    basis, state = basis_at(table), arrays_at(table)
    size = len(basis.phi)
    room = np.empty((2 * size + 1, size))
    R, R2, work = room[:size], room[size : 2 * size], room[2 * size]
    for i in range(len(active)):
        if active[i]:
            f = features[i, : basis.rank[i]]
            fade_and_add(i, 1.0, f, rewards[i], discount[i], state)
            fill_posterior(i, basis, state, tight, R, R2, work)


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
    tight = bound_variance if bound_variance.shape[1] else None
    fill_context_posteriors(tables, basis, state, mean, variance, tight)


@compiled
def fill_context_posteriors(
    tables: Array,
    basis: Basis,
    state: DiscountArrays,
    mean: Array,
    variance: Array,
    tight: Array | None,
) -> None:
    """Compute what `context_posteriors` does."""
    size, nothing = tables.shape[1], np.zeros(tables.shape[2])
    R, R2, work = np.empty((size, size)), np.empty((size, size)), np.empty(size)
    for i in range(len(tables)):
        m, lam = basis.rank[i], basis.regularization[i]
        z = work[:m]
        solve_target(state.gram[i], state.target[i], state.lost[i], lam, R, z)
        if tight is None:
            posterior(R, None, z, tables[i], lam, nothing, mean[i], variance[i], None)
        else:
            cholesky(state.double_gram[i], m, lam, 0.0, R2)
            tight_factor(R, m, R2)
            posterior(R, R2, z, tables[i], lam, nothing, mean[i], variance[i], tight[i])


@compiled
def deviations(
    normals: Array, active: Mask, basis: Basis, state: DiscountArrays, drawn: Array
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
    size = normals.shape[1]
    R = np.empty((size, size))
    for i in range(len(normals)):
        if not active[i]:
            continue
        m, lam = basis.rank[i], basis.regularization[i]
        drawn[i, m:] = 0.0
        w = drawn[i, :m]
        # R2^T z has covariance A2 + lambda I; two solves multiply it by V^{-1}.
        cholesky(state.double_gram[i], m, lam, 0.0, R)
        transposed_product(R, normals[i, :m], w)
        cholesky(state.gram[i], m, lam, 0.0, R)
        forward(R, FIRST, w)
        backward(R, w)
        for j in range(m):
            w[j] *= math.sqrt(lam)
