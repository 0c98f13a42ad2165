"""Which model of a bank is believed, and which begins anew: regime and strategy scores, evidence.

All are logarithms of predictive densities p_q of the rewards, added up over the steps:

| symbol | code | adds up | of |
|---|---|---|---|
| R | `regime` | since the model last restarted | a model |
| M | `strategy` | over all restarts, fading | a model |
| E | `evidence` | over all steps: log of the mixture of a class | an evidence class |
| F, L | `recent`, `lasting` | fading fast, and slowly | a model |
| D | `lead` | of F's choice less that of E's, fading | a way of choosing |

Within a class c a model has the weight w_q ~ exp(R_q + M_q + prior_q), and among all of them
~ exp(E_c + R_q + M_q + prior_q). That is one way of choosing a model, F_q + b L_q + prior_q
another; the one is followed that has foretold rewards better. See
`wgp_agents.gp.surrogates.bank.ModelBank`.
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
from wgp_agents.kernels.jit import subroutine
from wgp_agents.kernels.linalg import largest
from wgp_agents.kernels.packed import restart_model
from wgp_gym.types import Array, Indices

__all__ = [
    "TINY",
    "choose_model",
    "model_score",
    "restart_lagging_models",
    "student_loss",
    "update_scores",
]

TINY = float(np.finfo(float).tiny)  # below it numbers lose digits
NOTHING = -50.0  # nats: a weight that a sum of numbers does not see


@subroutine
def student_loss(z: float, total: float, a: float, b: float) -> float:
    """Return -log of the predictive density of a reward, but for what all models share.

    Student's, of 2 a degrees of freedom and scale (b / a) `total`, at z = nu^2 / `total`.
    """
    return 0.5 * math.log(b * total) + (a + 0.5) * math.log1p(z / (2.0 * b))


@subroutine
def model_score(i: int, q: int, models: BankModels, state: BankArrays) -> float:
    """Return the logarithm of a model's weight among all of learner i, but for a constant."""
    # E + R + M + prior
    own: float = state.regime[i, q] + state.strategy[i, q] + models.prior[q]
    evidence: float = state.evidence[i, models.evidence_class[q]]
    return evidence + own


@subroutine
def choose_model(i: int, models: BankModels, rates: BankRates, state: BankArrays) -> None:
    """Choose the model of the largest score, the first of equals, by the way that is ahead."""
    top, lately = -math.inf, -math.inf
    for q in range(len(models.prior)):
        score = model_score(i, q, models, state)
        if score > top:
            state.picked[i, 0], top = q, score
        # F + b L + prior
        score = state.recent[i, q] + rates.lasting_weight * state.lasting[i, q] + models.prior[q]
        if score > lately:
            state.picked[i, 1], lately = q, score
    state.chosen[i] = state.picked[i, 1] if state.lead[i] > 0.0 else state.picked[i, 0]


@subroutine
def update_scores(
    i: int,
    loss: Array,
    models: BankModels,
    rates: BankRates,
    state: BankArrays,
    own: Array,
    sums: Array,
) -> None:
    """Add one step to all scores of learner i.

    Args:
        i: The learner.
        loss: -log p_q, but for what all share, `(Q,)`.
        models: The models.
        rates: How scores fade.
        state: What is kept.
        own: Room, `(Q,)`.
        sums: Room, `(3, C)`.
    """
    least, most = math.inf, -math.inf
    for value in loss:
        least, most = min(least, value), max(most, value)
    if not math.isfinite(most - least):  # a first reward after nothing but zeros
        return
    regime, strategy, classes = state.regime[i], state.strategy[i], models.evidence_class
    # w ~ exp(R + M + prior), by what was known before this reward.
    for q in range(len(loss)):
        own[q] = regime[q] + strategy[q] + models.prior[q]
    add_evidence(own, loss, least, classes, state.evidence[i], sums)
    # D <- fade D + log p of the choice by the last steps - log p of that by evidence.
    by_evidence, by_recent = state.picked[i]
    state.lead[i] = rates.strategy * state.lead[i] + (loss[by_evidence] - loss[by_recent])
    # R <- R + log p, M <- fade M + log p, relative to the best of the class; F and L alike.
    recent, lasting = state.recent[i], state.lasting[i]
    for q in range(len(loss)):
        recent[q] = rates.recent * recent[q] + (least - loss[q])
        lasting[q] = rates.lasting * lasting[q] + (least - loss[q])
        regime[q] += least - loss[q]
        strategy[q] = rates.strategy * strategy[q] + (least - loss[q])
    count_from_best(regime, classes, sums[0])
    count_from_best(strategy, classes, sums[0])


@subroutine
def count_from_best(scores: Array, classes: Indices, best: Array) -> None:
    """Take from each score `(Q,)` the best of its class; `best` is room, `(C,)`."""
    best[:] = -math.inf
    for q in range(len(scores)):
        best[classes[q]] = max(best[classes[q]], scores[q])
    for q in range(len(scores)):
        scores[q] -= best[classes[q]]


@subroutine
def add_evidence(
    own: Array, loss: Array, least: float, classes: Indices, evidence: Array, sums: Array
) -> None:
    """Add the logarithm of each class's mixture density: E_c <- E_c + log sum of w_q p_q.

    Args:
        own: log w_q, but for a constant, `(Q,)`.
        loss: -log p_q, but for a constant, `(Q,)`.
        least: The smallest of these.
        classes: The class of each model, `(Q,)`.
        evidence: E, `(C,)`.
        sums: Room, `(3, C)`.
    """
    top, weight, mixture = sums[0], sums[1], sums[2]
    top[:] = -math.inf
    weight[:] = 0.0
    mixture[:] = 0.0
    for q in range(len(own)):
        top[classes[q]] = max(top[classes[q]], own[q])
    for q in range(len(own)):
        behind = own[q] - top[classes[q]]
        if behind > NOTHING:
            w = math.exp(behind)
            weight[classes[q]] += w
            mixture[classes[q]] += w * math.exp(least - loss[q])
    best = -math.inf
    for c in range(len(evidence)):
        evidence[c] += math.log(max(mixture[c] / weight[c], TINY))
        best = max(best, evidence[c])
    for c in range(len(evidence)):  # relative to the best class
        evidence[c] -= best


@subroutine
def upper_median(x: Array) -> float:
    """Return the upper median: the least number that more than half are not above."""
    median = math.inf
    for value in x:
        below = 0
        for other in x:
            below += other <= value
        if 2 * below > len(x) and value < median:
            median = value
    return median


@subroutine
def recenter(i: int, q: int, rates: BankRates, state: BankArrays) -> None:
    """Let a model count rewards from their median, if that is far from where it did."""
    median = upper_median(state.latest[i])
    apart = median - state.zero[i, q]
    if apart * apart * state.informed[i, q] > rates.recenter_at**2 * state.signal[i, q]:
        state.zero[i, q] = median


@subroutine
def restart_lagging_models(i: int, models: BankModels, rates: BankRates, state: BankArrays) -> None:
    """Let learner i's models that lag begin anew, a little behind the best of their class."""
    age, regime, count = state.age[i], state.regime[i], len(models.drift)
    recent, lasting = largest(state.recent[i]), largest(state.lasting[i])
    for q in range(len(age)):
        age[q] += 1
        if age[q] > rates.warmup and regime[q] < -rates.margin:
            # It knows nothing of the function any more ...
            g, k = divmod(q, count)
            P, w = block_covariance(i, g, models, state), block_weights(i, g, models, state)
            restart_model(P, w, k, count)
            age[q] = 0
            # ... and little of its scale,
            state.signal[i, q] *= rates.carry_over
            state.informed[i, q] *= rates.carry_over
            # and is given a chance; its strategy score stays.
            regime[q] = -rates.restart_penalty
            state.recent[i, q], state.lasting[i, q] = recent - rates.restart_penalty, lasting
            recenter(i, q, rates, state)
