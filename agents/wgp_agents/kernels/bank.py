"""A bank of models of a drifting function: what is done to all learners at once.

A step of one learner is `wgp_agents.kernels.bank_step`. See `ModelBank`.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.kernels.bank_arrays import (
    BankArrays,
    BankModels,
    BankRates,
    block_covariance,
    block_weights,
)
from wgp_agents.kernels.bank_step import learner_step, make_room
from wgp_agents.kernels.drift import fill_posterior, forecast, kalman_step
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import combine_rows, copy, dot
from wgp_agents.kernels.packed import (
    elapse_block,
    pack_model,
    restart_model,
    unpack_covariance,
    unpack_weights,
)
from wgp_agents.kernels.scores import finite
from wgp_gym.types import Array, Indices, Mask

__all__ = [
    "add_left_out",
    "bank_bounds",
    "bank_elapse",
    "bank_hallucinate",
    "bank_means",
    "bank_posteriors",
    "bank_restart",
    "bank_update",
    "chosen_bounds",
    "chosen_means",
    "hallucinate_model",
]

LEAST_TOLD = 0.05  # plays: what a restart leaves of one


@compiled
def bank_restart(mask: Mask, models: BankModels, state: BankArrays) -> None:
    """Let the learners in `mask` forget all: models are back at the prior, and the rest is 0."""
    count = len(models.drift)
    for i in range(len(mask)):
        if not mask[i]:
            continue
        for row in (state.square, state.signal, state.informed, state.regime, state.strategy):
            row[i] = 0.0
        for row in (state.evidence, state.recent, state.lasting, state.zero, state.latest):
            row[i] = 0.0
        for counts in (state.picked, state.age):
            counts[i] = 0
        state.shape[i], state.lead[i], state.chosen[i], state.seen[i] = 0.0, 0.0, 0, 0
        for g in range(len(models.noise)):
            P, w = block_covariance(i, g, models, state), block_weights(i, g, models, state)
            for k in range(count):
                restart_model(P, w, k, count)


@compiled
def bank_update(
    features: Array,
    left: Array,
    rewards: Array,
    active: Mask,
    models: BankModels,
    rates: BankRates,
    state: BankArrays,
) -> bool:
    """Take in one observation of every active learner. See `ModelBank`.

    Args:
        features: Those of the plays, by table, `(B, tables, m)`.
        left: What they leave out of k(x, x), `(B, tables)`.
        rewards: `(B,)`.
        active: Who learns, `(B,)`.
        models: The models.
        rates: How fast to forget.
        state: What is kept.

    Returns:
        Whether one of them is within its warm-up.
    """
    room, early = make_room(models, state.evidence.shape[1]), False
    for i in range(len(rewards)):
        if active[i]:
            learner_step(i, features[i], left[i], rewards[i], models, rates, state, room)
            early |= state.seen[i] <= rates.warmup
    return early


@subroutine
def hallucinate_model(
    i: int, q: int, features: Array, left: Array, models: BankModels, state: BankArrays
) -> None:
    """Take a play without its reward into the covariance of learner i's model q."""
    count = len(models.drift)
    g, k = divmod(q, count)
    m, t = models.rank[g], models.table[g]
    f, cut = features[t, :m], features[t, m:]
    packed = block_covariance(i, g, models, state)
    P, u, w = np.empty((m, m)), np.empty(m), np.zeros(m)
    unpack_covariance(packed, k, count, P)
    # An innovation of 0, and no drift: only P <- P - u u^T / (s + noise) is left.
    s, _ = forecast(P, w, f, u)
    kalman_step(s, 0.0, models.noise[g] + left[t] + dot(cut, cut), 0.0, u, P, w)
    pack_model(P, k, count, packed)


@compiled
def bank_hallucinate(
    features: Array, left: Array, active: Mask, models: BankModels, state: BankArrays
) -> None:
    """Take a play without its reward into the covariance of each active learner's chosen model.

    Args:
        features: Those of the plays, by table, `(B, tables, m)`.
        left: What they leave out of k(x, x), `(B, tables)`.
        active: Whose plays they are, `(B,)`.
        models: The models.
        state: What is kept.
    """
    for i in range(len(features)):
        if active[i]:
            hallucinate_model(i, state.chosen[i], features[i], left[i], models, state)


@compiled
def bank_elapse(active: Mask, drift: Array, models: BankModels, state: BankArrays) -> None:
    """Let the models of the active learners drift, by `(B, K)`."""
    for i in range(len(active)):
        if not active[i]:
            continue
        for g in range(len(models.noise)):
            P, w = block_covariance(i, g, models, state), block_weights(i, g, models, state)
            elapse_block(P, w, drift[i])


@subroutine
def add_left_out(phi: Array, m: int, variance: Array) -> None:
    """Add the squares of the features that a block of m leaves out, of all arms `(m', n)`."""
    for j in range(m, len(phi)):
        row = phi[j]
        for a in range(len(variance)):
            variance[a] += row[a] * row[a]


@subroutine
def fill_chosen(
    i: int,
    phi: Array,
    residual: Array,
    models: BankModels,
    state: BankArrays,
    mean: Array,
    variance: Array,
) -> int:
    """Compute the posterior of points by learner i's chosen model, with variances of a bound.

    Returns:
        How many features the variances count.
    """
    count = len(models.drift)
    g, k = divmod(state.chosen[i], count)
    m: int = models.rank[g]
    P, w = np.empty((m, m)), np.empty(m)
    unpack_covariance(block_covariance(i, g, models, state), k, count, P)
    unpack_weights(block_weights(i, g, models, state), k, count, w)
    fill_posterior(P, w, phi, residual, mean, variance)
    if state.seen[i] > 0:
        return m
    add_left_out(phi, m, variance)  # before the first play all arms are alike
    return len(phi)


@compiled
def bank_posteriors(
    tables: Array,
    which: Indices,
    residual: Array,
    learners: Indices,
    models: BankModels,
    state: BankArrays,
    mean: Array,
    variance: Array,
    bound_variance: Array,
) -> None:
    """Compute the posteriors of points, of each learner's chosen model.

    Args:
        tables: Features of points, `(S, m, n)`.
        which: The table of each who looks, `(q,)`.
        residual: What each leaves out of k(x, x), `(S, n)`.
        learners: Who looks, `(q,)`.
        models: The models.
        state: What is kept.
        mean: Where the means go, `(q, n)`.
        variance: Where the variances go, `(q, n)`.
        bound_variance: Where those go that are without what a block leaves out, `(q, n)`.
    """
    for r in range(len(learners)):
        t = which[r]
        m = fill_chosen(
            learners[r], tables[t], residual[t], models, state, mean[r], bound_variance[r]
        )
        copy(bound_variance[r], variance[r])
        add_left_out(tables[t], m, variance[r])


@compiled
def bank_bounds(
    tables: Array,
    which: Indices,
    residual: Array,
    learners: Indices,
    width: Array,
    warmup: int,
    models: BankModels,
    state: BankArrays,
    bounds: Array,
) -> None:
    """Compute the upper bounds of points by each learner's chosen model. See `ModelBank.bounds`.

    Args:
        tables: Features of points, `(S, m, n)`.
        which: The table of each who looks, `(q,)`.
        residual: What each leaves out of k(x, x), `(S, n)`.
        learners: Who looks, `(q,)`.
        width: How many standard deviations a bound is wide, by model of a block, `(K,)`.
        warmup: Plays after which those who know no unit are not curious any more.
        models: The models.
        state: What is kept.
        bounds: Where they go, `(q, n)`.
    """
    variance = np.empty(bounds.shape[1])
    for r in range(len(learners)):
        i, t, row = learners[r], which[r], bounds[r]
        fill_chosen(i, tables[t], residual[t], models, state, row, variance)
        turn_to_bounds(i, width, warmup, models, state, row, variance)


@subroutine
def turn_to_bounds(
    i: int, width: Array, warmup: int, models: BankModels, state: BankArrays, row: Array, v: Array
) -> None:
    """Turn means of learner i's chosen model, of variances v, into upper bounds.

    See `ModelBank.bounds`.
    """
    q = state.chosen[i]
    told = state.informed[i, q]
    # In the function's own unit: in another one, ties depended on it.
    scale = math.sqrt(state.signal[i, q] / (told if told > 0.0 else 1.0))
    # (1 + 1 / n)^{1/2}: s is not known exactly, n plays told of it.
    wide = width[q % len(models.drift)] * math.sqrt(1.0 + 1.0 / max(told, LEAST_TOLD))
    if not scale > 0.0:
        # The first plays are spread by the variance; while all pay alike, any arm is as good.
        row[:] = 0.0
        if state.seen[i] > warmup:
            wide = 0.0
        scale = 1.0
    for a in range(len(row)):
        row[a] = finite(row[a] / scale + wide * math.sqrt(v[a]))


@compiled
def chosen_bounds(
    i: int, width: Array, warmup: int, models: BankModels, state: BankArrays, row: Array, v: Array
) -> None:
    """Do `turn_to_bounds` for any points, of means and variances `(q,)`."""
    turn_to_bounds(i, width, warmup, models, state, row, v)


@compiled
def chosen_means(
    i: int, phi: Array, models: BankModels, state: BankArrays, P: Array, mean: Array
) -> None:
    """Fill in the covariance P of learner i's chosen model, `(m, m)`, and the means of points."""
    g, k = divmod(state.chosen[i], len(models.drift))
    w = np.empty(len(P))
    unpack_covariance(block_covariance(i, g, models, state), k, len(models.drift), P)
    unpack_weights(block_weights(i, g, models, state), k, len(models.drift), w)
    combine_rows(phi, w, mean)


@compiled
def bank_means(
    tables: Array, which: Indices, models: BankModels, state: BankArrays, mean: Array
) -> None:
    """Compute the means of points alone, `(B, n)`, as `bank_posteriors` does for all learners."""
    count = len(models.drift)
    for i in range(len(which)):
        g, k = divmod(state.chosen[i], count)
        w = np.empty(models.rank[g])
        unpack_weights(block_weights(i, g, models, state), k, count, w)
        combine_rows(tables[which[i]], w, mean[i])
