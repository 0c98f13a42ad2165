"""A step of one learner of a bank: a Kalman step of each model, its score, and restarts.

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
from wgp_agents.kernels.evidence import (
    TINY,
    choose_model,
    restart_lagging_models,
    student_loss,
    update_scores,
)
from wgp_agents.kernels.jit import subroutine
from wgp_agents.kernels.linalg import dot, smallest
from wgp_agents.kernels.packed import forecast_block, repeat, step_block
from wgp_gym.types import Array

__all__ = ["Room", "learner_step", "make_room"]


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
    told: bool,
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
    if told:
        signal, informed = state.signal[i, first:end], state.informed[i, first:end]
        prior = dot(f, f) + left
        learn_scales(nu, noise, left, prior, rates, room.variance, square, signal, informed)
    for k in range(count):
        total = room.variance[k] + noise
        room.shift[k], room.gain[k] = nu[k] / total, room.fade[k] / math.sqrt(total)
    step_block(P, w, u, room.shift, room.gain, room.fade, models.drift, room.keep, room.along)


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
    # The first reward tells nothing of scales, and no more do those that are equal to it.
    told = state.shape[i] > 0.0 or reward != state.zero[i, 0]
    for g in range(len(models.noise)):
        t = models.table[g]
        block_step(i, g, features[t], left[t], reward, scored, told, models, rates, state, room)
    if told:
        state.shape[i] = rates.scale * state.shape[i] + 0.5
    if scored:
        update_scores(i, room.loss, models, rates, state, room.own, room.sums)
    restart_lagging_models(i, models, rates, state)
    choose_model(i, models, rates, state)
    state.seen[i] += 1
