"""How far a mean may be from the function, by all models of a bank: the squares of bands.

With the weights w_q of a bank's models, their means M_q(x), scales s_q^2 and covariances P_q, the
expected squared error of a mean mu(x) is that of the mixture of their posteriors,
sum over q of w_q (s_q^2 phi^T P_q phi + (M_q(x) - mu(x))^2). See `wgp_agents.gp.bands`.

The weights are tempered: w_q ~ exp(`TEMPER` (E_c + R_q + M_q + prior_q)), as no model is true.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.kernels.bank import add_left_out, bank_restart
from wgp_agents.kernels.bank_arrays import (
    BankArrays,
    BankModels,
    BankRates,
    block_covariance,
    block_weights,
    with_drift,
)
from wgp_agents.kernels.bank_step import learner_step, make_room
from wgp_agents.kernels.evidence import model_score
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import FIRST, combine_rows, quadratic_forms
from wgp_agents.kernels.packed import unpack_weights
from wgp_gym.types import Array, Indices

__all__ = ["TEMPER", "bank_squares", "replayed_squares"]

TEMPER = 0.1  # of the scores in weights: no model is true, and R and M tell of the same rewards
LEAST = 1e-9  # of the weights: a model below it is left out
ONE = FIRST  # the only learner of a bank that replays


@subroutine
def fill_beliefs(
    i: int,
    factor: float,
    models: BankModels,
    state: BankArrays,
    weight: Array,
    scale: Array,
) -> bool:
    """Compute the weights w_q, which add up to 1, and s_q^2 times `factor`; False: no unit yet.

    s_q^2 is the function's own scale, as in `ModelBank`, with the scale of all innovations counted
    as one play of an arm never seen: what is left where a restart has dropped the rest.
    """
    a, top, total = state.shape[i], -math.inf, 0.0
    if a <= 0.0:
        return False
    for q in range(len(weight)):
        weight[q] = TEMPER * model_score(i, q, models, state)
        top = max(top, weight[q])
    for q in range(len(weight)):
        weight[q] = math.exp(weight[q] - top)
        weight[q] = weight[q] if weight[q] > LEAST else 0.0
        total += weight[q]
    known = False
    for q in range(len(weight)):
        weight[q] /= total
        square = state.square[i, q] / a + state.signal[i, q]
        scale[q] = factor * square / (1.0 + state.informed[i, q])
        known = known or weight[q] * scale[q] > 0.0
    return known


@subroutine
def add_squares(
    i: int,
    table: int,
    weight: Array,
    scale: Array,
    phi: Array,
    residual: Array,
    models: BankModels,
    state: BankArrays,
    mean: Array,
    square: Array,
) -> None:
    """Add the part that the models of a table have in the expected squared errors of learner i."""
    m, n, count = 0, len(mean), len(models.drift)
    for g in range(len(models.rank)):
        if models.table[g] == table:
            m = max(m, models.rank[g])
    P, row, share = np.zeros((m, m)), np.empty(n), 0.0
    for g in range(len(models.rank)):
        if models.table[g] == table:
            # Within: the sum of w s^2 P, one matrix for all models of a table.
            mine, unit = weight[g * count : (g + 1) * count], scale[g * count : (g + 1) * count]
            share += add_covariances(i, g, mine, unit, models, state, P)
            # Between: w (M - mu)^2.
            add_offsets(i, g, mine, phi, models, state, mean, row, square)
    if share > 0.0:
        quadratic_forms(P, m, phi, row)
        left = residual.copy()
        add_left_out(phi, m, left)
        for a in range(n):
            square[a] += max(row[a], 0.0) + share * left[a]


@subroutine
def add_covariances(
    i: int, g: int, weight: Array, scale: Array, models: BankModels, state: BankArrays, P: Array
) -> float:
    """Add w s^2 P_k of block g's models to the upper triangle of a matrix; return sum of w s^2.

    Features that the block leaves out have their prior: variance 1, independent.
    """
    count, m, start, share = len(weight), models.rank[g], 0, 0.0
    packed, part = block_covariance(i, g, models, state), weight * scale
    for k in range(count):
        share += part[k]
    if share == 0.0:
        return 0.0
    for j in range(m):
        for h in range(j + 1):
            for k in range(count):
                P[h, j] += part[k] * packed[start + k]
            start += count
    for j in range(m, len(P)):
        P[j, j] += share
    return share


@subroutine
def add_offsets(
    i: int,
    g: int,
    weight: Array,
    phi: Array,
    models: BankModels,
    state: BankArrays,
    mean: Array,
    row: Array,
    square: Array,
) -> None:
    """Add w_k (M_k - mu)^2 of block g's models; `row` is room, `(n,)`."""
    count, m = len(weight), models.rank[g]
    packed, w = block_weights(i, g, models, state), np.empty(m)
    for k in range(count):
        if weight[k] > 0.0:
            unpack_weights(packed, k, count, w)
            combine_rows(phi, w, row)
            for a in range(len(mean)):
                apart = row[a] + state.zero[i, g * count + k] - mean[a]
                square[a] += weight[k] * apart * apart


@compiled
def bank_squares(
    g: int,
    table: Array,
    which: Indices,
    residual: Array,
    factor: Array,
    models: BankModels,
    state: BankArrays,
    mean: Array,
    square: Array,
) -> None:
    """Add the part of the models of table g in the expected squared errors of means.

    Args:
        g: The table.
        table: Features of the points, `(S, m, n)`.
        which: The set of each learner, `(B,)`.
        residual: What they leave out of k(x, x), `(S, n)`.
        factor: By how much Student's tails widen a variance, `(B,)`.
        models: The models.
        state: What is kept of the learners.
        mean: The means, `(B, n)`.
        square: Where the squares are added, `(B, n)`; infinite where a learner knows no unit.
    """
    weight, scale = np.empty((2, len(models.prior)))
    for i in range(len(mean)):
        t = which[i]
        if fill_beliefs(i, factor[i], models, state, weight, scale):
            add_squares(
                i, g, weight, scale, table[t], residual[t], models, state, mean[i], square[i]
            )
        else:
            square[i] = math.inf


@subroutine
def fade_scores(plays: int, rates: BankRates, state: BankArrays) -> None:
    """Let the scores of the only learner of a bank fade by plays that are not kept."""
    fade = rates.strategy**plays
    for q in range(state.strategy.shape[1]):
        state.strategy[ONE, q] *= fade


@compiled
def replayed_squares(
    features: Array,
    left: Array,
    rewards: Array,
    times: Indices,
    clock: Array,
    table: Array,
    which: Indices,
    residual: Array,
    factor: Array,
    models: BankModels,
    rates: BankRates,
    state: BankArrays,
    mean: Array,
    square: Array,
) -> None:
    """Compute expected squared errors of means by a bank that learns from a few plays of each.

    Args:
        features: Those of the plays, oldest first, `(B, K, 1, m)`.
        left: What they leave out of k(x, x), `(B, K, 1)`.
        rewards: `(B, K)`.
        times: When they were played, `(B, K)`; -1: no play.
        clock: How many steps of the world had gone by then, and now, `(B, K + 1)`.
        table: Features of the points, `(S, m, n)`.
        which: The set of each learner, `(B,)`.
        residual: What they leave out of k(x, x), `(S, n)`.
        factor: By how much Student's tails widen a variance, `(B,)`.
        models: The models, of one table.
        rates: How the bank forgets.
        state: Room for one learner.
        mean: The means, `(B, n)`.
        square: Where the squares go, `(B, n)`; infinite where a learner knows no unit.
    """
    count, room = len(models.drift), make_room(models, state.evidence.shape[1])
    weight, scale = np.empty((2, len(models.prior)))
    drift = np.empty(count)
    moved, everyone = with_drift(models, drift), np.ones(1, np.bool_)
    for i in range(len(mean)):
        bank_restart(everyone, models, state)
        before = times[i, -1]
        for k in range(times.shape[1]):
            if times[i, k] < 0:
                continue
            if times[i, k] > before + 1:
                fade_scores(times[i, k] - before - 1, rates, state)
            before = times[i, k]
            # What drifts until the next play that is kept, or until now: 1 - (1 - eps)^steps.
            steps = clock[i, k + 1] - clock[i, k]
            for q in range(count):
                drift[q] = 1.0 - (1.0 - models.drift[q]) ** steps
            f, rest = features[i, k], left[i, k]
            learner_step(ONE, f, rest, rewards[i, k], moved, rates, state, room)
        t = which[i]
        if fill_beliefs(ONE, factor[i], models, state, weight, scale):
            square[i] = 0.0
            phi = table[t]
            add_squares(
                ONE, FIRST, weight, scale, phi, residual[t], models, state, mean[i], square[i]
            )
        else:
            square[i] = math.inf
