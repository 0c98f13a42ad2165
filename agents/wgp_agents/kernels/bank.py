"""A bank of models of a drifting function: what is done to all learners at once.

A step of one learner is `wgp_agents.kernels.bank_step`. See `ModelBank`.
"""

from __future__ import annotations

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
from wgp_agents.kernels.linalg import dot
from wgp_agents.kernels.packed import (
    elapse_block,
    pack_model,
    restart_model,
    unpack_covariance,
    unpack_weights,
)
from wgp_gym.types import Array, Indices, Mask

__all__ = [
    "add_left_out",
    "bank_elapse",
    "bank_hallucinate",
    "bank_posteriors",
    "bank_restart",
    "bank_update",
]


@compiled
def bank_restart(mask: Mask, models: BankModels, state: BankArrays) -> None:
    """Bring all models of the learners in `mask` back to the prior, where the rest is 0."""
    count = len(models.drift)
    for i in range(len(mask)):
        if not mask[i]:
            continue
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
) -> None:
    """Take in one observation of every active learner. See `ModelBank`.

    Args:
        features: Those of the plays, by table, `(B, tables, m)`.
        left: What they leave out of k(x, x), `(B, tables)`.
        rewards: `(B,)`.
        active: Who learns, `(B,)`.
        models: The models.
        rates: How fast to forget.
        state: What is kept.
    """
    room = make_room(models, state.evidence.shape[1])
    for i in range(len(rewards)):
        if active[i]:
            learner_step(i, features[i], left[i], rewards[i], models, rates, state, room)


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
    count = len(models.drift)
    for i in range(len(features)):
        if not active[i]:
            continue
        g, k = divmod(state.chosen[i], count)
        m, t = models.rank[g], models.table[g]
        f, cut = features[i, t, :m], features[i, t, m:]
        packed = block_covariance(i, g, models, state)
        P, u, w = np.empty((m, m)), np.empty(m), np.zeros(m)
        unpack_covariance(packed, k, count, P)
        # An innovation of 0, and no drift: only P <- P - u u^T / (s + noise) is left.
        s, _ = forecast(P, w, f, u)
        kalman_step(s, 0.0, models.noise[g] + left[i, t] + dot(cut, cut), 0.0, u, P, w)
        pack_model(P, k, count, packed)


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


@compiled
def bank_posteriors(
    tables: Array,
    which: Indices,
    residual: Array,
    whole: bool,
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
        whole: Whether variances have what a block leaves out of its table.
        models: The models.
        state: What is kept.
        mean: Where the means go, `(B, n)`.
        variance: Where the variances go, `(B, n)`.
    """
    count = len(models.drift)
    for i in range(len(which)):
        g, k = divmod(state.chosen[i], count)
        m, t = models.rank[g], which[i]
        P, w = np.empty((m, m)), np.empty(m)
        unpack_covariance(block_covariance(i, g, models, state), k, count, P)
        unpack_weights(block_weights(i, g, models, state), k, count, w)
        fill_posterior(P, w, tables[t], residual[t], mean[i], variance[i])
        if whole or state.seen[i] == 0:  # before the first play all arms are alike
            add_left_out(tables[t], m, variance[i])
