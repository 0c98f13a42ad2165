"""A bank of models of a drifting function: a Kalman step of each, its score, and restarts.

Notation as in `wgp_agents.kernels.drift`, in the unit of each model's scale s^2: its rewards have
variance s^2 (phi^T P phi + lambda), and s^2 is unknown. See `ModelBank`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wgp_agents.kernels.bank_arrays import (
    BankArrays,
    BankModels,
    BankRates,
    block_covariance,
    block_weights,
)
from wgp_agents.kernels.drift import fill_posterior, forecast, kalman_step
from wgp_agents.kernels.evidence import (
    TINY,
    best_model,
    restart_lagging_models,
    student_loss,
    update_scores,
)
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import dot
from wgp_agents.kernels.packed import (
    elapse_block,
    forecast_block,
    pack_model,
    repeat,
    restart_model,
    step_block,
    unpack_covariance,
    unpack_weights,
)
from wgp_gym.types import Array, Indices, Mask

__all__ = [
    "Room",
    "add_left_out",
    "bank_elapse",
    "bank_hallucinate",
    "bank_posteriors",
    "bank_restart",
    "bank_update",
    "learner_step",
    "make_room",
]


class Room(NamedTuple):
    """Where a step of one learner works: vectors for a block, and the losses of all models."""

    u: Array
    along: Array
    keep: Array
    fade: Array
    variance: Array
    mean: Array
    nu: Array
    shift: Array
    gain: Array
    loss: Array
    own: Array
    sums: Array


@subroutine
def make_room(models: BankModels, classes: int) -> Room:
    """Return room for a step with the models."""
    count, most = len(models.drift), 0
    for m in models.rank:
        most = max(most, m)
    return Room(
        np.empty(most * count),
        np.empty(most * count),
        np.empty(most * count),
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.empty(count),
        np.zeros(len(models.prior)),
        np.empty(len(models.prior)),
        np.empty((3, classes)),
    )


@subroutine
def score_block(
    nu: Array,
    noise: float,
    warm: bool,
    shape: float,
    square: Array,
    rates: BankRates,
    variance: Array,
    loss: Array,
) -> None:
    """Cut the innovations of a block's models, and compute the losses of their forecasts.

    Args:
        nu: The innovations, `(K,)`.
        noise: lambda and what the features leave out.
        warm: Whether the warm-up is over.
        shape: As in `BankArrays`.
        square: As in `BankArrays`, `(K,)`.
        rates: What is cut.
        variance: s, of the mean of the play, `(K,)`.
        loss: Where the losses go, `(K,)`.
    """
    for k in range(len(nu)):
        total = variance[k] + noise  # of an innovation, in the unit s^2
        # After the warm-up it counts for `clip_at` standard deviations at most.
        if warm:
            limit = rates.clip_at * math.sqrt(square[k] / shape * total)
            nu[k] = math.copysign(min(abs(nu[k]), limit), nu[k])
        loss[k] = student_loss(nu[k] * (nu[k] / total), total, shape, square[k])


@subroutine
def learn_scales(
    nu: Array,
    noise: float,
    left: float,
    prior: float,
    rates: BankRates,
    variance: Array,
    square: Array,
    signal: Array,
    informed: Array,
) -> None:
    """Learn each model's scale, and the function's own, from squared standardised innovations.

    Args:
        nu: The innovations, `(K,)`.
        noise: lambda and what the features leave out.
        left: What they leave out.
        prior: k(x, x) of the play.
        rates: How fast to forget.
        variance: s, of the mean of the play, `(K,)`.
        square: As in `BankArrays`, `(K,)`, and so are the last two.
        signal: `(K,)`.
        informed: `(K,)`.
    """
    for k in range(len(nu)):
        z = nu[k] * (nu[k] / (variance[k] + noise))
        # The scale of all: every innovation counts alike.
        total = rates.scale * square[k] + 0.5 * z
        square[k] = total if total > TINY else 0.0  # the least never fades
        # The function's: by the share of the variance at the play that was still unknown.
        share = (variance[k] + left) / prior if prior > 0.0 else 0.0
        keep = 1.0 - (1.0 - rates.signal) * share
        informed[k] = keep * informed[k] + share
        signal[k] = keep * signal[k] + share * z


@subroutine
def block_step(
    i: int,
    g: int,
    features: Array,
    left: float,
    reward: float,
    scored: bool,
    models: BankModels,
    rates: BankRates,
    state: BankArrays,
    room: Room,
) -> None:
    """Take a reward into the models of block g of learner i, with all features of their table."""
    m, count = models.rank[g], len(models.drift)
    f, cut, u, nu = features[:m], features[m:], room.u[: m * count], room.nu
    # What the block's features leave out of k(x, x) counts as noise of this play.
    left += dot(cut, cut)
    noise = models.noise[g] + left
    P, w = block_covariance(i, g, models, state), block_weights(i, g, models, state)
    forecast_block(P, w, f, u, room.variance, room.mean)
    first, end = g * count, (g + 1) * count
    zero, square = state.zero[i, first:end], state.square[i, first:end]
    for k in range(count):
        if room.variance[k] <= 0.0:  # a play known to the last bit: its rounding would grow
            room.variance[k] = 0.0
            for j in range(m):
                u[j * count + k] = 0.0
        nu[k] = reward - zero[k] - room.mean[k]
    if scored:
        warm, loss = state.seen[i] >= rates.warmup, room.loss[first:end]
        score_block(nu, noise, warm, state.shape[i], square, rates, room.variance, loss)
    if state.seen[i] > 0:  # the first reward tells nothing: models count from it
        signal, informed = state.signal[i, first:end], state.informed[i, first:end]
        prior = dot(f, f) + left
        learn_scales(nu, noise, left, prior, rates, room.variance, square, signal, informed)
    for k in range(count):
        total = room.variance[k] + noise
        room.shift[k], room.gain[k] = nu[k] / total, room.fade[k] / math.sqrt(total)
    step_block(P, w, u, room.shift, room.gain, room.fade, models.drift, room.keep, room.along)


@subroutine
def smallest(x: Array) -> float:
    """Return the smallest number."""
    best: float = x[0]
    for value in x:
        best = min(best, value)
    return best


@subroutine
def learner_step(
    i: int,
    features: Array,
    left: Array,
    reward: float,
    models: BankModels,
    rates: BankRates,
    state: BankArrays,
    room: Room,
) -> None:
    """Take in one observation of learner i, with features `(tables, m)`."""
    # Rewards are counted from the first, at first.
    if state.seen[i] == 0:
        state.zero[i] = reward
    state.latest[i, state.seen[i] % rates.warmup] = reward
    # Nothing is scored before every model has a scale.
    scored = smallest(state.square[i]) > 0.0
    for k in range(len(models.drift)):
        room.keep[k] = 1.0 - models.drift[k]
        room.fade[k] = math.sqrt(room.keep[k])
    repeat(room.keep, len(models.drift))
    for g in range(len(models.noise)):
        t = models.table[g]
        block_step(i, g, features[t], left[t], reward, scored, models, rates, state, room)
    if state.seen[i] > 0:
        state.shape[i] = rates.scale * state.shape[i] + 0.5
    if scored:
        update_scores(i, room.loss, models, rates, state, room.own, room.sums)
    restart_lagging_models(i, models, rates, state)
    state.chosen[i] = best_model(i, models, rates, state)
    state.seen[i] += 1


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
        if whole:
            add_left_out(tables[t], m, variance[i])
