"""The posterior of a function that drifts: a Kalman step of each filter of each learner.

Notation, for one filter, phi being the features of the play and lambda the noise variance:

| symbol | code | meaning |
|---|---|---|
| P, theta | `covariance`, `weights` | of the weights that the next play meets |
| u, s | `u`, `s` | P phi, and phi^T P phi: the variance of the play's mean |
| nu | `nu` | the innovation y - phi^T theta, of variance s + lambda |

The filter is that of f_{t+1} = (1 - eps)^{1/2} f_t + eps^{1/2} g in weights: the update and the
prediction of [Sar13] Section 4.3, with the transition (1 - eps)^{1/2} I and process noise eps I.

References:
    [Sar13] Sarkka. Bayesian Filtering and Smoothing. 2013.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.cholesky import semidefinite_factor
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import (
    combine_rows,
    dot,
    quadratic_forms,
    transposed_product,
)
from wgp_gym.types import Array, Indices, Mask

__all__ = [
    "DriftArrays",
    "context_drift",
    "drift_deviations",
    "drift_hallucinate",
    "drift_update",
    "fill_posterior",
    "forecast",
    "kalman_step",
]

REFRESH = 64  # steps after which the means and variances of all arms are computed anew
LARGE = 2**17  # features times arms from which on those of a few are, at each step: no step is long
PARTS = 256  # after so many steps all were
LOST_PIVOT = 1e-14  # a pivot below so much of its variance is rounding: the direction is known


class DriftArrays(NamedTuple):
    """What is kept of B learners, each with up to J filters.

    Attributes:
        covariance: P, `(B, J, m, m)`, symmetric bit for bit.
        weights: theta, `(B, J, m)`.
        eps: The drift of each filter, `(B, J)`.
        score: The innovations' log-likelihood up to a constant that is the same for all filters,
            `(B, J)`.
        gains: The information gain of each filter, `(B, J)`.
        filters: How many filters each learner has, `(B,)`.
        start: The filter that speaks while all score alike, `(B,)`.
        chosen: The filter that speaks, `(B,)`.
        age: Steps since the table of all arms was last computed anew, `(B,)`; with many arms and
            features, those that tell which part of it is the next one.
        mean: Posterior means, `(B, n)`.
        variance: Posterior variances, `(B, n)`.
        gain: The information gain of the filter that speaks, `(B,)`.
    """

    covariance: Array
    weights: Array
    eps: Array
    score: Array
    gains: Array
    filters: Indices
    start: Indices
    chosen: Indices
    age: Indices
    mean: Array
    variance: Array
    gain: Array


@subroutine
def forecast(P: Array, w: Array, f: Array, u: Array) -> tuple[float, float]:
    """Compute u = P phi; return s = phi^T u and the mean phi^T theta of a play."""
    combine_rows(P, f, u)
    s = dot(f, u)
    if s <= 0.0:  # a play known to the last bit: its rounding would grow without end
        s = 0.0
        u[:] = 0.0
    return s, dot(f, w)


@subroutine
def kalman_step(
    s: float, nu: float, noise: float, eps: float, u: Array, P: Array, w: Array
) -> None:
    """Take in an innovation, and let the weights drift to the next step.

    The products u_i u_j commute, so that P stays symmetric to the last bit. u is lost.
    """
    m, keep, total = len(u), 1.0 - eps, s + noise
    fade, shift, root = math.sqrt(keep), nu / total, math.sqrt(keep / total)
    # Mean: theta <- (1 - eps)^{1/2} (theta + u nu / (s + lambda)), [Sar13] Section 4.3
    for i in range(m):
        w[i] = fade * (w[i] + shift * u[i])
        u[i] *= root
    # Covariance: P <- (1 - eps) (P - u u^T / (s + lambda)) + eps I
    for i in range(m):
        row, factor = P[i, :m], u[i]
        for j in range(m):
            row[j] = keep * row[j] - factor * u[j]
        row[i] += eps


@subroutine
def follow(
    s: float,
    nu: float,
    noise: float,
    eps: float,
    u: Array,
    basis: Basis,
    mean: Array,
    variance: Array,
) -> None:
    """Take the same step with the means and variances of all arms: O(m n)."""
    n = len(mean)
    keep, total = 1.0 - eps, s + noise
    fade, shift = math.sqrt(keep), nu / total
    along = np.empty(n)  # phi_a^T u
    combine_rows(basis.phi, u, along)
    for a in range(n):
        mean[a] = fade * (mean[a] + shift * along[a])
        left = max(variance[a] - along[a] * along[a] / total, 0.0)
        variance[a] = keep * left + eps * basis.prior[a]


@subroutine
def fill_posterior(
    P: Array, w: Array, phi: Array, residual: Array, mean: Array, variance: Array
) -> None:
    """Compute the means phi^T theta and variances phi^T P phi of all arms: O(m^2 n / 2)."""
    combine_rows(phi, w, mean)
    quadratic_forms(P, len(w), phi, variance)
    for a in range(len(variance)):
        variance[a] = max(variance[a], 0.0) + residual[a]


@subroutine
def fill_part(
    part: int, P: Array, w: Array, phi: Array, residual: Array, mean: Array, variance: Array
) -> None:
    """Do `fill_posterior` for one of `PARTS` parts of the arms."""
    n = len(mean)
    start, end = part * n // PARTS, (part + 1) * n // PARTS
    block = phi[:, start:end].copy()
    fill_posterior(P, w, block, residual[start:end], mean[start:end], variance[start:end])


@subroutine
def best_filter(score: Array, filters: int, start: int) -> int:
    """Return the filter of the largest score, the first of equals; `start` where all are equal."""
    best, alike = 0, True
    for j in range(1, filters):
        alike = alike and score[j] == score[0]
        if score[j] > score[best]:
            best = j
    return start if alike else best


@compiled
def drift_update(
    features: Array,
    rewards: Array,
    noise: Array,
    active: Mask,
    basis: Basis,
    state: DriftArrays,
) -> None:
    """Take in one observation of every active learner, of noise variances `(B,)`."""
    filters, size = state.eps.shape[1], len(basis.phi)
    u, kept, variances, innovations = (
        np.empty(size),
        np.empty((filters, size)),
        np.empty(filters),
        np.empty(filters),
    )
    for i in range(len(rewards)):
        if not active[i]:
            continue
        m, lam = basis.rank[i], noise[i]
        f = features[i, :m]
        for j in range(state.filters[i]):
            # The innovation of each filter, and what it says of the filter.
            P, w = state.covariance[i, j], state.weights[i, j, :m]
            s, expected = forecast(P, w, f, u[:m])
            nu = rewards[i] - expected
            variances[j], innovations[j] = s, nu
            for k in range(m):
                kept[j, k] = u[k]
            state.gains[i, j] += 0.5 * math.log1p(s / lam)
            loss = 0.5 * (math.log(s + lam) + nu * (nu / (s + lam)))
            if math.isfinite(loss):  # a square too large for a number tells nothing apart
                state.score[i, j] -= loss
            kalman_step(s, nu, lam, state.eps[i, j], u[:m], P, w)
        # The posterior of the likeliest filter: by the same step, or anew if it is another one.
        before = state.chosen[i]
        now = best_filter(state.score[i], state.filters[i], state.start[i])
        mean, variance, residual = state.mean[i], state.variance[i], basis.residual[i]
        P, w, large = state.covariance[i, now], state.weights[i, now, :m], m * len(mean) >= LARGE
        if now == before and (large or state.age[i] < REFRESH):
            s, nu, eps = variances[now], innovations[now], state.eps[i, now]
            follow(s, nu, lam, eps, kept[now, :m], basis, mean, variance)
            if large:
                fill_part(state.age[i] % PARTS, P, w, basis.phi, residual, mean, variance)
            state.age[i] += 1
        else:
            fill_posterior(P, w, basis.phi, residual, mean, variance)
            state.age[i] = 0
        state.chosen[i] = now
        state.gain[i] = state.gains[i, now]


@compiled
def drift_hallucinate(
    features: Array, noise: Array, active: Mask, basis: Basis, state: DriftArrays
) -> None:
    """Take a play without its reward into the covariances and gains of the active learners."""
    size = len(basis.phi)
    u, kept = np.empty(size), np.empty(size)
    for i in range(len(features)):
        if not active[i]:
            continue
        m, lam = basis.rank[i], noise[i]
        f = features[i, :m]
        for j in range(state.filters[i]):
            # An innovation of 0, and no drift: only P <- P - u u^T / (s + lambda) is left.
            P, w = state.covariance[i, j], state.weights[i, j, :m]
            s, _ = forecast(P, w, f, u[:m])
            for k in range(m):
                kept[k] = u[k]
            state.gains[i, j] += 0.5 * math.log1p(s / lam)
            kalman_step(s, 0.0, lam, 0.0, u[:m], P, w)
            if j == state.chosen[i]:
                mean, variance = state.mean[i], state.variance[i]
                follow(s, 0.0, lam, 0.0, kept[:m], basis, mean, variance)
        state.age[i] += 1
        state.gain[i] = state.gains[i, state.chosen[i]]


@compiled
def drift_deviations(normals: Array, rank: Indices, state: DriftArrays, drawn: Array) -> None:
    """Draw weights of covariance P around theta for every learner.

    Args:
        normals: Standard normal draws, `(B, m)`.
        rank: How many features each learner uses, `(B,)`.
        state: What the learners keep.
        drawn: Where the draws go, `(B, m)`.
    """
    size = normals.shape[1]
    R = np.empty((size, size))
    for i in range(len(normals)):
        m = rank[i]
        drawn[i, m:] = 0.0
        # P = R^T R, so R^T z has covariance P.
        semidefinite_factor(state.covariance[i, state.chosen[i]], m, LOST_PIVOT, R)
        transposed_product(R, normals[i, :m], drawn[i, :m])


@compiled
def context_drift(
    tables: Array, rank: Indices, state: DriftArrays, mean: Array, variance: Array
) -> None:
    """Compute the posteriors of arms that each learner has for itself.

    Args:
        tables: Their features, `(B, m, n)`.
        rank: How many features each learner uses, `(B,)`.
        state: What they keep.
        mean: Where the means go, `(B, n)`.
        variance: Where the variances go, `(B, n)`.
    """
    nothing = np.zeros(tables.shape[2])
    for i in range(len(tables)):
        m, j = rank[i], state.chosen[i]
        P, w = state.covariance[i, j], state.weights[i, j, :m]
        fill_posterior(P, w, tables[i], nothing, mean[i], variance[i])
