"""The mixture of a gate's models: their moments at points, in one unit, and their weighted sum.

Notation as in `wgp_agents.kernels.gate`, which finds the weights.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.kernels.bank import hallucinate_model
from wgp_agents.kernels.bank_arrays import (
    BankArrays,
    BankModels,
    block_covariance,
    block_weights,
)
from wgp_agents.kernels.drift import fill_posterior
from wgp_agents.kernels.gate import FARTHEST, scale_of
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.packed import unpack_covariance, unpack_weights
from wgp_gym.types import Array, Indices, Mask

__all__ = ["gate_hallucinate", "gate_mixture", "gate_moments"]


@subroutine
def put_in_unit(i: int, q: int, state: BankArrays, mean: Array, variance: Array) -> None:
    """Count means and variances of model q from the chosen model's zero, in its unit s."""
    chosen = state.chosen[i]
    unit, scale = scale_of(i, chosen, state), scale_of(i, q, state)
    apart, ratio = state.zero[i, q] - state.zero[i, chosen], min(scale / unit, math.sqrt(FARTHEST))
    for a in range(len(mean)):
        mean[a] = min(max((mean[a] + apart) / unit, -FARTHEST), FARTHEST)
        variance[a] *= ratio * ratio


@compiled
def gate_moments(
    g: int,
    tables: Array,
    which: Indices,
    residual: Array,
    learners: Indices,
    shortlist: Indices,
    weight: Array,
    models: BankModels,
    state: BankArrays,
    mean: Array,
    variance: Array,
) -> None:
    """Compute mu and s^2 v of points by the models of table g, in the chosen model's unit.

    Args:
        g: The table.
        tables: Features of the points, `(S, m, n)`.
        which: The set of each who looks, `(k,)`.
        residual: What they leave out of k(x, x), `(S, n)`.
        learners: Who looks, `(k,)`; each has a unit.
        shortlist: Their models, `(k, K)`.
        weight: Theirs; models of weight 0 are left out, `(k, K)`.
        models: The models.
        state: What is kept.
        mean: Where mu goes, from the chosen model's zero, `(k, K, n)`.
        variance: Where s^2 v goes, without what features leave out of k(x, x), `(k, K, n)`.
    """
    count = len(models.drift)
    for r in range(len(learners)):
        i, t = learners[r], which[r]
        for k in range(shortlist.shape[1]):
            q = shortlist[r, k]
            block, place = divmod(q, count)
            if models.table[block] != g or weight[r, k] <= 0.0:
                continue
            m: int = models.rank[block]
            P, w = np.empty((m, m)), np.empty(m)
            unpack_covariance(block_covariance(i, block, models, state), place, count, P)
            unpack_weights(block_weights(i, block, models, state), place, count, w)
            fill_posterior(P, w, tables[t], residual[t], mean[r, k], variance[r, k])
            put_in_unit(i, q, state, mean[r, k], variance[r, k])


@compiled
def gate_mixture(
    means: Array, variances: Array, weight: Array, factor: Array, mean: Array, variance: Array
) -> None:
    """Mix means and variances `(k, K, n)` of models with weights and factors `(k, K)`.

    Args:
        means: mu.
        variances: s^2 v.
        weight: pi.
        factor: e^{2 d} (1 + 1 / n).
        mean: Where the mixture's means go, `(k, n)`.
        variance: Where its variances go, `(k, n)`.
    """
    for r in range(len(mean)):
        mean[r] = 0.0
        variance[r] = 0.0
        for k in range(weight.shape[1]):
            pi = weight[r, k]
            if pi > 0.0:
                for a in range(mean.shape[1]):
                    mean[r, a] += pi * means[r, k, a]
        # sum of pi (v + mu^2) - mean^2, as a sum of numbers that are not negative
        for k in range(weight.shape[1]):
            pi, wide = weight[r, k], factor[r, k]
            if pi > 0.0:
                for a in range(mean.shape[1]):
                    apart = means[r, k, a] - mean[r, a]
                    variance[r, a] += pi * (wide * variances[r, k, a] + apart * apart)


@compiled
def gate_hallucinate(
    features: Array,
    left: Array,
    active: Mask,
    shortlist: Indices,
    models: BankModels,
    state: BankArrays,
) -> None:
    """Take a play without its reward into the covariances of the models on shortlists.

    Args:
        features: Those of the plays, by table, `(B, tables, m)`.
        left: What they leave out of k(x, x), `(B, tables)`.
        active: Whose plays they are, `(B,)`.
        shortlist: The models, `(B, K)`; the chosen one counts as one of them.
        models: The models.
        state: What is kept.
    """
    for i in range(len(active)):
        if active[i]:
            there = False
            for q in shortlist[i]:
                there |= q == state.chosen[i]
                hallucinate_model(i, q, features[i], left[i], models, state)
            if not there:
                hallucinate_model(i, state.chosen[i], features[i], left[i], models, state)
