"""The posterior of unweighted observations, changed by one at a time: O(m^2 + m n).

Notation as in `wgp_agents.kernels.gram`; P = V^{-1}.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.cholesky import cholesky
from wgp_agents.kernels.gram import add, information_gain, posterior
from wgp_agents.kernels.handle import (
    MODEL,
    Handle,
    basis_at,
    cube_at,
    index_matrix_at,
    indices_at,
    matrix_at,
    vector_at,
)
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import (
    FIRST,
    add_outer,
    combine_rows,
    dot,
    forward,
    inverse,
    transposed_product,
)
from wgp_gym.types import Array, Indices, Mask

__all__ = [
    "NEVER",
    "REFRESH",
    "RankOneArrays",
    "change_inverses",
    "inverse_deviations",
    "rank_one_update",
    "refactorise",
]

REFRESH = 64  # rank-one changes after which an inverse is computed anew
NEVER = 2**62
MAX_DOWNDATE = 1e6  # reward minus mean above which a removal would leave its rounding behind
MIN_DOWNDATE = 1e-5  # lambda (1 - phi^T P phi) below which a downdate would lose the digits


class RankOneArrays(NamedTuple):
    """What is kept of unweighted data.

    Attributes:
        inverse: P, `(B, m, m)`.
        mean: Posterior means, `(B, n)`.
        variance: Posterior variances, `(B, n)`.
        gain: Information gains, `(B,)`.
        counts: The plays of each arm, `(B, n)`.
        sums: The rewards of each arm, added up, `(B, n)`.
        lost: What rounding has taken from the sums, `(B, n)`.
        age: Rank-one changes since the inverse was last computed anew, `(B,)`.
    """

    inverse: Array
    mean: Array
    variance: Array
    gain: Array
    counts: Indices
    sums: Array
    lost: Array
    age: Indices


@subroutine
def rank_one(
    sign: float,
    arm: int,
    reward: float,
    m: int,
    phi: Array,
    lam: float,
    P: Array,
    mean: Array,
    variance: Array,
    f: Array,
    u: Array,
    along: Array,
) -> float:
    """Add (sign 1) or remove (sign -1) one observation by the Sherman-Morrison formula.

    `f` and `u` `(m,)` and `along` `(n,)` are room to work in.

    Returns:
        The change of the information gain 1/2 log det(I + A / lambda). A removal that would
        lose too many digits changes nothing and returns NaN.
    """
    n = phi.shape[1]
    # u = P phi and s = phi^T P phi of the play
    for i in range(m):
        f[i] = phi[i, arm]
    combine_rows(P, f, u)
    s = dot(f, u)
    surprise = reward - mean[arm]
    if sign < 0 and (abs(surprise) > MAX_DOWNDATE or lam * (1.0 - s) < MIN_DOWNDATE):
        return math.nan
    # V +- phi phi^T has the inverse P - scale u u^T; `along` is phi_a^T u of every arm.
    scale = sign / (1.0 + sign * s)
    combine_rows(phi, u, along)
    shift = scale * surprise
    for a in range(n):
        mean[a] += shift * along[a]
        variance[a] = max(variance[a] - lam * scale * along[a] * along[a], 0.0)
    add_outer(P, -scale, u)
    return 0.5 * math.log(1.0 + sign * s)


def rank_one_update(
    active: Mask,
    sign: float,
    arms: Indices,
    rewards: Array,
    basis: Basis,
    state: RankOneArrays,
    handle: Handle,
) -> None:
    """Add (sign 1) or remove (sign -1) one observation of every active learner.

    Now and then, or where a change would lose digits, all is computed anew.
    """
    stale = np.zeros(len(arms), np.bool_)
    table = handle.table(basis, state)
    if change_inverses(sign, arms, rewards, active, REFRESH, stale, table):
        refactorise(stale, basis, state)


@subroutine
def arrays_at(table: Indices) -> RankOneArrays:
    """Return a model's arrays from the table of its handle."""
    return RankOneArrays(
        cube_at(table, MODEL),
        matrix_at(table, MODEL + 1),
        matrix_at(table, MODEL + 2),
        vector_at(table, MODEL + 3),
        index_matrix_at(table, MODEL + 4),
        matrix_at(table, MODEL + 5),
        matrix_at(table, MODEL + 6),
        indices_at(table, MODEL + 7),
    )


@compiled
def change_inverses(
    sign: float,
    arms: Indices,
    rewards: Array,
    active: Mask,
    refresh: int,
    stale: Mask,
    table: Indices,
) -> bool:
    """Do what `rank_one_update` does; mark in `stale` `(B,)` whose posterior has yet to follow.

    That is after `refresh` changes, or where one would lose digits. `table` is that of the `Handle`
    of `Basis` and `RankOneArrays`.

    Returns:
        Whether there is one.
    """
    basis, state = basis_at(table), arrays_at(table)
    phi, counts, sums, lost, age = basis.phi, state.counts, state.sums, state.lost, state.age
    size, n = phi.shape
    f, u, along, any_stale = np.empty(size), np.empty(size), np.empty(n), False
    for i in range(len(arms)):
        if not active[i]:
            continue
        arm, m, reward = arms[i], basis.rank[i], rewards[i]
        # Keep count, so that all can be computed anew.
        counts[i, arm] += 1 if sign > 0 else -1
        add(sums[i], lost[i], arm, sign * reward)
        if counts[i, arm] == 0:
            sums[i, arm] = lost[i, arm] = 0.0
        change = math.nan
        if age[i] < refresh:
            lam, P, mean, variance = (
                basis.regularization[i],
                state.inverse[i],
                state.mean[i],
                state.variance[i],
            )
            change = rank_one(
                sign, arm, reward, m, phi, lam, P, mean, variance, f[:m], u[:m], along
            )
        if math.isnan(change):
            stale[i] = any_stale = True
        else:
            state.gain[i] += change
            age[i] += 1
    return any_stale


@compiled
def refactorise(stale: Mask, basis: Basis, state: RankOneArrays) -> None:
    """Compute P and the posterior of the learners in `stale` from the plays of each arm."""
    phi, size = basis.phi, len(basis.phi)
    R, b, f = np.empty((size, size)), np.empty(size), np.empty(size)
    for i in range(len(stale)):
        if not stale[i]:
            continue
        m, lam, counts = basis.rank[i], basis.regularization[i], state.counts[i]
        R[:], b[:] = 0.0, 0.0
        # A = sum of N_a phi_a phi_a^T, and b = sum of phi_a times the rewards of arm a
        for a in range(len(counts)):
            if counts[a] > 0:
                total = state.sums[i, a] + state.lost[i, a]
                for k in range(m):
                    f[k] = phi[k, a]
                    b[k] += total * f[k]
                add_outer(R, float(counts[a]), f[:m])
        # Eq. (3)-(4) with R of A + lambda I = R^T R, and P = (R^T R)^{-1}
        cholesky(R, m, lam, 0.0, R)
        forward(R, FIRST, b[:m])
        left, mean, variance = basis.residual[i], state.mean[i], state.variance[i]
        posterior(R, None, b[:m], phi, lam, left, mean, variance, None)
        inverse(R, m, state.inverse[i])
        state.gain[i] = information_gain(R, m, lam)
        state.age[i] = 0


@compiled
def inverse_deviations(normals: Array, basis: Basis, inverse: Array, drawn: Array) -> None:
    """Draw weights around the posterior mean, of covariance lambda P, for every learner.

    Args:
        normals: Standard normal draws, `(B, m)`.
        basis: The learners' lambda and number of features.
        inverse: P, `(B, m, m)`.
        drawn: Where the draws go, `(B, m)`.
    """
    size = normals.shape[1]
    R = np.empty((size, size))
    for i in range(len(normals)):
        m = basis.rank[i]
        drawn[i, m:] = 0.0
        w = drawn[i, :m]
        # P = R^T R, so R^T z has covariance P.
        cholesky(inverse[i], m, 0.0, 0.0, R)
        transposed_product(R, normals[i, :m], w)
        for j in range(m):
            w[j] *= math.sqrt(basis.regularization[i])
