"""Batches of plays that are planned ahead: the compiled loops of phased elimination.

Notation, for one learner: Z = V^{-1/2} Phi `(m, n)` up to a rotation, so that the variance of
point a is lambda |z_a|^2. c plays of point p replace V by V + c phi_p phi_p^T, which makes Z into
(I - h z_p z_p^T) Z with h = (1 - (1 + c s)^{-1/2}) / s and s = |z_p|^2. A square root only ever
shrinks, so no variance can come out negative.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import column_squares, combine_rows, dot
from wgp_gym.types import Array, Indices, Mask

__all__ = ["batch_lengths", "batch_posteriors", "batches_within", "draw_planned", "plan_batches"]


def batch_lengths(previous: Indices, used: Indices, period: Array) -> Indices:
    """Return N_i = ceil((H N_{i-1})^{1/2}), cut at what is left of the period, elementwise.

    Args:
        previous: N_{i-1}; N_0 = 1.
        used: Plays of the period so far.
        period: H >= 1.
    """
    lengths: Array = np.minimum(np.ceil(np.sqrt(period * previous)), period - used)
    return lengths.astype(np.int64)


def batches_within(period: Array, horizon: int) -> Array:
    """Return Q, how many batches all the periods have that begin within T steps, `(B,)`."""
    used: Indices = np.zeros(len(period), np.int64)
    each, lengths = used, used + 1  # N_0
    while (used < period).any():
        each = each + (used < period)
        lengths = batch_lengths(lengths, used, period)
        used = used + lengths
    batches: Array = each.astype(float) * np.ceil(horizon / period)
    return batches


@subroutine
def absorb(Z: Array, p: int, plays: float, along: Array) -> float:
    """Take in so many plays of point p; return c / (1 + c s), and z_p^T Z before it in `along`."""
    m, n = Z.shape
    z = np.empty(m)
    for i in range(m):
        z[i] = Z[i, p]
    s = dot(z, z)
    combine_rows(Z, z, along)
    # Z <- (I - h z z^T) Z, h = (1 - (1 + c s)^{-1/2}) / s
    if s > 0.0:
        shrink = (1.0 - 1.0 / math.sqrt(1.0 + plays * s)) / s
        for i in range(m):
            row, factor = Z[i], shrink * z[i]
            for a in range(n):
                row[a] -= factor * along[a]
    return plays / (1.0 + plays * s)


@subroutine
def squares(Z: Array, regularization: float, residual: Array, variance: Array) -> None:
    """Compute lambda |z_a|^2 of every point, and what the features leave out of it."""
    column_squares(Z, len(Z), variance)
    for a in range(len(variance)):
        variance[a] = regularization * variance[a] + residual[a]


@subroutine
def widest(variance: Array, alive: Mask, tie: float, uniform: float) -> int:
    """Return the point of largest variance among those alive; a uniform draw breaks ties."""
    best, count = -math.inf, 0
    # The largest variance, and how many are as large
    for a in range(len(variance)):
        if alive[a] and variance[a] > best:
            best = variance[a]
    for a in range(len(variance)):
        if alive[a] and variance[a] >= best - tie:
            count += 1
    # One of these, by its number
    rank = min(int(uniform * count), count - 1)
    for a in range(len(variance)):
        if alive[a] and variance[a] >= best - tie:
            if rank == 0:
                return a
            rank -= 1
    return 0


@compiled
def plan_batches(
    learners: Indices,
    lengths: Indices,
    draws: Array,
    tie: float,
    basis: Basis,
    surviving: Mask,
    planned: Indices,
) -> None:
    """Choose each learner's batch by maximum variance reduction over its surviving points.

    x_j = argmax of the variance given x_1, ..., x_{j-1}, which asks for no rewards.

    Args:
        learners: Who begins a batch, `(k,)`.
        lengths: Of its batch, `(k,)`.
        draws: Uniform draws that break ties, `(k, L)`, L the longest of these.
        tie: Variances that are this close to the largest count as equal to it.
        basis: The features.
        surviving: The points that are left, `(B, n)`.
        planned: Where it goes how often each point is played, `(B, n)`.
    """
    phi, regularization, rank, residual, _ = basis
    variance, along = np.empty(phi.shape[1]), np.empty(phi.shape[1])
    for k in range(len(learners)):
        i = learners[k]
        Z = phi[: rank[i]] / math.sqrt(regularization[i])  # V = lambda I
        planned[i] = 0
        # x_j = argmax of the variance, which the play then lowers
        for j in range(lengths[k]):
            squares(Z, regularization[i], residual[i], variance)
            p = widest(variance, surviving[i], tie, draws[k, j])
            planned[i, p] += 1
            absorb(Z, p, 1.0, along)


@compiled
def batch_posteriors(
    learners: Indices,
    basis: Basis,
    counts: Indices,
    sums: Array,
    mean: Array,
    variance: Array,
) -> None:
    """Compute the posteriors of some learners from the plays of a batch alone.

    Args:
        learners: Whose, `(k,)`.
        basis: The features.
        counts: The plays of each point, `(B, n)`.
        sums: Their rewards, added up, `(B, n)`.
        mean: Where the means go, `(k, n)`.
        variance: Where the variances go, `(k, n)`.
    """
    phi, regularization, rank, residual, _ = basis
    along = np.empty(phi.shape[1])
    for k in range(len(learners)):
        i = learners[k]
        Z = phi[: rank[i]] / math.sqrt(regularization[i])  # V = lambda I
        # mu <- mu + c / (1 + c s) (mean of the point's rewards - mu_p) z_p^T Z, point by point
        centre = mean[k]
        centre[:] = 0.0
        for p in range(len(centre)):
            if counts[i, p] > 0:
                surprise = sums[i, p] / counts[i, p] - centre[p]
                shift = absorb(Z, p, float(counts[i, p]), along) * surprise
                for a in range(len(centre)):
                    centre[a] += shift * along[a]
        squares(Z, regularization[i], residual[i], variance[k])


@compiled
def draw_planned(planned: Indices, uniform: Array, picked: Indices) -> None:
    """Draw one of the planned plays of every learner, all alike: a batch in random order.

    Args:
        planned: How often each point is still to be played, `(B, n)`.
        uniform: A draw from [0, 1) for each learner, `(B,)`.
        picked: Where the points go, `(B,)`.
    """
    for i in range(len(planned)):
        left = 0
        for count in planned[i]:
            left += count
        rank = min(int(uniform[i] * left), left - 1)
        for a in range(planned.shape[1]):
            rank -= planned[i, a]
            if rank < 0:
                picked[i] = a
                break
