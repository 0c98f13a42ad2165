"""The compiled loops of the drifting model: one Kalman step of each filter of each learner.

Notation, for one filter, phi being the features of the play and lambda the noise variance:

| symbol | code | meaning |
|---|---|---|
| P, theta | `covariance`, `weights` | of the weights that the next play meets |
| u, s | `u`, `innovation_variance` | P phi, and phi^T P phi: the variance of the play's mean |
| nu | `surprise` | the innovation y - phi^T theta, of variance s + lambda |

Loops as in `wgp_agents.kernels.gram`. Each kernel is tested against plain numpy.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wgp_agents.kernels.arrays import BankArrays, BankModels, BankRates, DriftArrays
from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array

__all__ = ["bank_posteriors", "bank_update", "context_drift", "drift_deviations", "drift_update"]

ARM_BLOCK = 128  # arms tabulated together: with few features they fit the first-level cache
REFRESH = 64  # steps after which the means and variances of all arms are computed anew
TINY = float(np.finfo(float).tiny)  # below it numbers lose digits, and the least never fade
LOST_PIVOT = 1e-14  # a pivot below so much of its variance is rounding: the direction is known


@compiled
def times(P: Array, f: Array, u: Array) -> None:
    """Compute u = P f of a symmetric P, row by row."""
    m = len(f)
    u[:] = 0.0
    for i in range(0, m - 1, 2):
        row, below = P[i], P[i + 1]
        factor, factor_below = f[i], f[i + 1]
        for j in range(m):
            u[j] += factor * row[j] + factor_below * below[j]
    if m % 2 == 1:
        row, factor = P[m - 1], f[m - 1]
        for j in range(m):
            u[j] += factor * row[j]


@compiled
def kalman_step(
    f: Array,
    innovation_variance: float,
    surprise: float,
    noise: float,
    eps: float,
    u: Array,
    P: Array,
    w: Array,
) -> None:
    """Take in an innovation, and let the weights drift to the next step.

    P <- (1 - eps) (P - u u^T / (s + lambda)) + eps I. The products of the second term commute, so
    that P stays symmetric to the last bit.
    """
    m, keep, total = len(f), 1.0 - eps, innovation_variance + noise
    fade, shift, root = math.sqrt(keep), surprise / total, math.sqrt(keep / total)
    for i in range(m):
        w[i] = fade * (w[i] + shift * u[i])
        u[i] *= root
    for i in range(m):
        row, factor = P[i], u[i]
        for j in range(m):
            row[j] = keep * row[j] - factor * u[j]
        row[i] += eps
    for i in range(m):
        u[i] /= root if root > 0.0 else 1.0


@compiled
def follow(
    innovation_variance: float,
    surprise: float,
    noise: float,
    eps: float,
    u: Array,
    phi: Array,
    prior: Array,
    mean: Array,
    variance: Array,
) -> None:
    """Take the same step with the means and variances of all arms: O(m n)."""
    m, n = phi.shape
    keep, total = 1.0 - eps, innovation_variance + noise
    fade, shift = math.sqrt(keep), surprise / total
    c = np.zeros(n)
    for i in range(0, m - 1, 2):
        row, below = phi[i], phi[i + 1]
        factor, factor_below = u[i], u[i + 1]
        for a in range(n):
            c[a] += factor * row[a] + factor_below * below[a]
    if m % 2 == 1:
        row, factor = phi[m - 1], u[m - 1]
        for a in range(n):
            c[a] += factor * row[a]
    for a in range(n):
        mean[a] = fade * (mean[a] + shift * c[a])
        left = max(variance[a] - c[a] * c[a] / total, 0.0)
        variance[a] = keep * left + eps * prior[a]


@compiled
def tabulate(P: Array, w: Array, phi: Array, residual: Array, mean: Array, variance: Array) -> None:
    """Compute the means phi^T theta and variances phi^T P phi of all arms: O(m^2 n / 2)."""
    m, n = phi.shape
    y = np.empty(ARM_BLOCK)
    for start in range(0, n, ARM_BLOCK):
        end = min(start + ARM_BLOCK, n)
        size = end - start
        centre, square, block = mean[start:end], variance[start:end], phi[:, start:end]
        centre[:] = 0.0
        square[:] = 0.0
        for i in range(m):
            row, own, weight = block[i], 0.5 * P[i, i], w[i]
            for a in range(size):
                y[a] = own * row[a]
                centre[a] += weight * row[a]
            for j in range(i + 1, m - 1, 2):
                first, second, p1, p2 = block[j], block[j + 1], P[i, j], P[i, j + 1]
                for a in range(size):
                    y[a] += p1 * first[a] + p2 * second[a]
            if (m - 1 - i) % 2 == 1:
                last, p1 = block[m - 1], P[i, m - 1]
                for a in range(size):
                    y[a] += p1 * last[a]
            for a in range(size):
                square[a] += row[a] * y[a]
        for a in range(size):
            square[a] = max(2.0 * square[a], 0.0) + residual[start + a]


@compiled
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
    active: NDArray[np.bool_],
    basis: Basis,
    state: DriftArrays,
) -> None:
    """Take in one observation of every active learner, of noise variances `(B,)`."""
    phi, _, rank, residual, prior = basis
    U = np.empty((state.eps.shape[1], phi.shape[0]))
    spreads, surprises = np.empty(len(U)), np.empty(len(U))
    for i in range(len(rewards)):
        if not active[i]:
            continue
        m, y, v = rank[i], rewards[i], noise[i]
        f = features[i, :m].copy()
        for j in range(state.filters[i]):
            P, w, u = state.covariance[i, j, :m, :m], state.weights[i, j, :m], U[j, :m]
            times(P, f, u)
            s, expected = 0.0, 0.0
            for k in range(m):
                s += f[k] * u[k]
                expected += f[k] * w[k]
            if s <= 0.0:  # a play known to the last bit: its rounding would grow without end
                s = 0.0
                u[:] = 0.0
            nu = y - expected
            spreads[j], surprises[j] = s, nu
            state.gains[i, j] += 0.5 * math.log1p(s / v)
            loss = 0.5 * (math.log(s + v) + nu * (nu / (s + v)))
            if math.isfinite(loss):  # a square too large for a number tells nothing apart
                state.score[i, j] -= loss
            kalman_step(f, s, nu, v, state.eps[i, j], u, P, w)
        before = state.chosen[i]
        now = best_filter(state.score[i], state.filters[i], state.start[i])
        mean, variance = state.mean[i], state.variance[i]
        if now == before and state.age[i] < REFRESH:
            s, nu, eps = spreads[now], surprises[now], state.eps[i, now]
            follow(s, nu, v, eps, U[now, :m], phi[:m], prior, mean, variance)
            state.age[i] += 1
        else:
            P, w = state.covariance[i, now, :m, :m], state.weights[i, now, :m]
            tabulate(P, w, phi[:m], residual[i], mean, variance)
            state.age[i] = 0
        state.chosen[i] = now
        state.gain[i] = state.gains[i, now]


@compiled
def drift_deviations(
    normals: Array, rank: NDArray[np.int64], state: DriftArrays, drawn: Array
) -> None:
    """Draw weights of covariance P around theta for every learner.

    Args:
        normals: Standard normal draws, `(B, m)`.
        rank: How many features each learner uses, `(B,)`.
        state: What the learners keep.
        drawn: Where the draws go, `(B, m)`.
    """
    for i in range(len(normals)):
        m, w = rank[i], drawn[i]
        w[:] = 0.0
        A = state.covariance[i, state.chosen[i], :m, :m].copy()
        size = np.diag(A).copy()
        for k in range(m):  # A = L L^T column by column, L z in w
            row = A[k]
            if row[k] <= LOST_PIVOT * size[k]:
                continue
            inverse = 1.0 / math.sqrt(row[k])
            for j in range(k, m):
                row[j] *= inverse
                w[j] += row[j] * normals[i, k]
            for below in range(k + 1, m):
                rest, factor = A[below], row[below]
                for j in range(below, m):
                    rest[j] -= factor * row[j]


@compiled
def context_drift(
    tables: Array, rank: NDArray[np.int64], state: DriftArrays, mean: Array, variance: Array
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
        P, w = state.covariance[i, j, :m, :m], state.weights[i, j, :m]
        tabulate(P, w, tables[i, :m], nothing, mean[i], variance[i])


@compiled
def score_models(loss: Array, rates: BankRates, recent: Array, lasting: Array) -> None:
    """Add one step to the scores, relative to the model that foretold the reward best."""
    least = loss.min()
    if not math.isfinite(loss.max() - least):  # a first reward after nothing but noughts
        return
    for q in range(len(loss)):
        recent[q] = rates.recent * recent[q] - (loss[q] - least)
        lasting[q] = rates.lasting * lasting[q] - (loss[q] - least)


@compiled
def restart_stragglers(i: int, rates: BankRates, state: BankArrays) -> None:
    """Let learner i's models that lag begin anew, a little behind the best."""
    recent, lasting = state.recent[i], state.lasting[i]
    top = recent.max()
    for q in range(len(recent)):
        state.age[i, q] += 1
        if state.age[i, q] > rates.youth and recent[q] < top - rates.margin:
            state.covariance[i, q] = np.eye(state.covariance.shape[2])
            state.weights[i, q] = 0.0
            state.age[i, q] = 0
            state.signal[i, q] *= rates.carried
            state.informed[i, q] *= rates.carried
            recent[q] = top - rates.handicap
            lasting[q] = lasting.max()
            median = np.sort(state.latest[i])[rates.youth // 2]
            apart = median - state.zero[i, q]
            if apart * apart * state.informed[i, q] > rates.far**2 * state.signal[i, q]:
                state.zero[i, q] = median


@compiled
def bank_update(
    features: Array,
    left: Array,
    rewards: Array,
    active: NDArray[np.bool_],
    models: BankModels,
    rates: BankRates,
    state: BankArrays,
) -> None:
    """Take in one observation of every active learner. See `ModelBank`.

    Args:
        features: Those of the plays, by table, `(B, G, m)`.
        left: What they leave out of k(x, x), `(B, G)`.
        rewards: `(B,)`.
        active: Who learns, `(B,)`.
        models: The models.
        rates: How fast to forget.
        state: What is kept.
    """
    models_in_all = len(models.drift)
    u, loss = np.empty(features.shape[2]), np.zeros(models_in_all)
    for i in range(len(rewards)):
        if not active[i]:
            continue
        seen = state.seen[i]
        if seen == 0:
            state.zero[i] = rewards[i]
        state.latest[i, seen % rates.youth] = rewards[i]
        tells, scored = seen > 0, state.square[i].min() > 0.0
        for q in range(models_in_all):
            g = models.table[q]
            m, rest = models.rank[g], left[i, g]
            f, P, w = features[i, g, :m], state.covariance[i, q, :m, :m], state.weights[i, q, :m]
            times(P, f, u[:m])
            s, expected, prior = 0.0, 0.0, rest
            for k in range(m):
                s += f[k] * u[k]
                expected += f[k] * w[k]
                prior += f[k] * f[k]
            if s <= 0.0:  # a play known to the last bit: its rounding would grow without end
                s = 0.0
                u[:m] = 0.0
            noise = models.noise[q] + rest
            nu, total = rewards[i] - state.zero[i, q] - expected, s + noise
            b, a = state.square[i, q], state.shape[i]
            if scored and seen >= rates.youth:
                most = rates.most * math.sqrt(b / a * total)
                if abs(nu) > most:
                    nu = math.copysign(most, nu)
            z = nu * (nu / total)
            if scored:
                loss[q] = 0.5 * math.log(b * total) + (a + 0.5) * math.log1p(z / (2.0 * b))
            if tells:
                square = rates.scale * b + 0.5 * z
                state.square[i, q] = square if square > TINY else 0.0
                share = (s + rest) / prior if prior > 0.0 else 0.0
                keep = 1.0 - (1.0 - rates.signal) * share
                state.informed[i, q] = keep * state.informed[i, q] + share
                state.signal[i, q] = keep * state.signal[i, q] + share * z
            kalman_step(f, s, nu, noise, models.drift[q], u[:m], P, w)
        if tells:
            state.shape[i] = rates.scale * state.shape[i] + 0.5
        if scored:
            score_models(loss, rates, state.recent[i], state.lasting[i])
        restart_stragglers(i, rates, state)
        state.chosen[i] = np.argmax(
            models.prior + state.recent[i] + rates.weight * state.lasting[i]
        )
        state.seen[i] += 1


@compiled
def bank_posteriors(
    tables: Array,
    which: NDArray[np.int64],
    residual: Array,
    models: BankModels,
    state: BankArrays,
    mean: Array,
    variance: Array,
) -> None:
    """Compute the posteriors of all arms, of each learner's chosen model.

    Args:
        tables: Features of arms, `(S, m, n)`.
        which: The table of each learner, `(B,)`.
        residual: What each leaves out of k(x, x), `(S, n)`.
        models: The models.
        state: What is kept.
        mean: Where the means go, `(B, n)`.
        variance: Where the variances go, `(B, n)`.
    """
    for i in range(len(which)):
        q, t = state.chosen[i], which[i]
        m = models.rank[models.table[q]]
        P, w = state.covariance[i, q, :m, :m], state.weights[i, q, :m]
        tabulate(P, w, tables[t, :m], residual[t], mean[i], variance[i])
