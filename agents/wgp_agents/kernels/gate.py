"""A gate over the models of a bank: which of them count, by how much, and how far each is believed.

Of each learner's Q models the K of the largest score F + b L + prior are its shortlist (see
`wgp_agents.kernels.evidence`). A small network that all models share looks at each, and at the mean
and the maximum of what it makes of all, and corrects its score and its deviation:

    h_k = relu(A x_k + a),  g_k = relu(B [h_k, mean of h, max of h] + b),  (c_k, d_k) = C g_k + c
    pi = softmax(score + c),  mean = sum of pi_k mu_k,
    variance = sum of pi_k (e^{2 d_k} (1 + 1 / n_k) s_k^2 v_k + mu_k^2) - mean^2

with s_k the scale of the function by model k, learned from n_k plays. The inputs x_k, in the order
of `fill_inputs`, have neither the unit nor the zero of the rewards.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wgp_agents.kernels.bank_arrays import BankArrays, BankModels, BankRates
from wgp_agents.kernels.evidence import TINY, model_score
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import largest
from wgp_gym.types import Array, Indices

__all__ = ["INPUTS", "GateInputs", "GateWeights", "gate_look", "gate_weigh"]

INPUTS = 22
LEAST = 1e-6  # of the weights: a model below it is left out
FARTHEST = 1e100  # of a mean, and of a squared scale, in the chosen model's unit
CORRECTION, STRETCH = 20.0, 2.0  # the most that the network adds to a score, and to a log deviation
LEAST_TOLD = 0.05  # plays


class GateWeights(NamedTuple):
    """The weights of the network, with H hidden units.

    Attributes:
        first: A, `(INPUTS, H)`.
        first_offset: a, `(H,)`.
        second: B, of a model's own h, their mean and their maximum, `(3 H, H)`.
        second_offset: b, `(H,)`.
        last: C, `(H, 2)`.
        last_offset: c, `(2,)`.
    """

    first: Array
    first_offset: Array
    second: Array
    second_offset: Array
    last: Array
    last_offset: Array


class GateInputs(NamedTuple):
    """What a gate is shown of k learners, each with K models on its shortlist.

    Attributes:
        models: The shortlist, the best first, `(k, K)`.
        score: F + b L + prior, relative to the best, `(k, K)`.
        deviation: log (1 + 1 / n)^{1/2}, `(k, K)`.
        inputs: x, `(k, K, INPUTS)`.
    """

    models: Indices
    score: Array
    deviation: Array
    inputs: Array


@subroutine
def lately_score(i: int, q: int, models: BankModels, rates: BankRates, state: BankArrays) -> float:
    """Return the score of a model by the last steps, F + b L + prior."""
    lasting: float = rates.lasting_weight * state.lasting[i, q]
    score: float = state.recent[i, q] + lasting + models.prior[q]
    return score


@subroutine
def fill_shortlist(scores: Array, found: Indices, score: Array) -> None:
    """Find the models of the largest scores `(Q,)`, the first of equals first; scores are lost."""
    for k in range(len(found)):
        best = 0
        for q in range(len(scores)):
            if scores[q] > scores[best]:
                best = q
        found[k], score[k] = best, scores[best]
        scores[best] = -math.inf
    for k in range(len(found)):
        score[len(found) - 1 - k] -= score[0]


@subroutine
def log_ratio(x: float, y: float) -> float:
    """Return log(x / y), cut at +-6."""
    return min(max(math.log(max(x, TINY)) - math.log(max(y, TINY)), -6.0), 6.0)


@subroutine
def behind(score: float, best: float) -> float:
    """Return how far a score lags, in tens of nats, cut at 3."""
    return max((score - best) / 10.0, -3.0)


@subroutine
def scale_of(i: int, q: int, state: BankArrays) -> float:
    """Return s_q, the function's scale by a model; 0 where nothing is known."""
    told = state.informed[i, q]
    return math.sqrt(state.signal[i, q] / told) if told > 0.0 else 0.0


@subroutine
def spread_of(i: int, state: BankArrays) -> float:
    """Return the range of learner i's last rewards."""
    low, high = math.inf, -math.inf
    for t in range(min(state.seen[i], state.latest.shape[1])):
        low, high = min(low, state.latest[i, t]), max(high, state.latest[i, t])
    return max(high - low, 0.0)


@subroutine
def fill_inputs(
    i: int,
    q: int,
    tops: Array,
    last: float,
    lately: float,
    models: BankModels,
    rates: BankRates,
    state: BankArrays,
    x: Array,
) -> None:
    """Fill in what the network sees of a model: how it scores, what it has learned, what it is.

    Args:
        i: The learner.
        q: The model.
        tops: The best F, L, F + b L + prior and E + R + M + prior of all models, `(4,)`.
        last: z^2 of the last reward by this model: its squared standardised innovation.
        lately: Their mean over some last steps.
        models: The models.
        rates: How scores fade.
        state: What is kept.
        x: Where they go, `(INPUTS,)`.
    """
    g, k = divmod(q, len(models.drift))
    eps, scale, told = models.drift[k], scale_of(i, q, state), state.informed[i, q]
    first = scale_of(i, state.chosen[i], state)
    whole = math.sqrt(state.square[i, q] / state.shape[i]) if state.shape[i] > 0.0 else 0.0
    # how it scores
    x[0] = behind(state.recent[i, q], tops[0])
    x[1] = behind(rates.lasting_weight * (state.lasting[i, q] - tops[1]), 0.0)
    x[2] = behind(state.regime[i, q], 0.0)
    x[3] = behind(state.strategy[i, q], 0.0)
    x[4] = behind(state.evidence[i, models.evidence_class[q]], 0.0)
    x[5] = behind(lately_score(i, q, models, rates, state), tops[2])
    x[6] = behind(model_score(i, q, models, state), tops[3])
    x[7] = 1.0 if q == state.chosen[i] else 0.0
    # how well it has foretold the last rewards
    x[8] = math.log1p(min(last, 1e3)) / 2.0
    x[9] = math.log1p(min(lately, 1e3)) / 2.0
    # what it has learned
    x[10] = math.log1p(state.age[i, q]) / 3.0
    x[11] = math.log1p(told) / 2.0
    x[12] = log_ratio(scale, first) / 2.0
    x[13] = log_ratio(scale, whole) / 2.0
    x[14] = log_ratio(scale, spread_of(i, state)) / 2.0
    # what it is
    x[15] = 1.0 if eps == 0.0 else 0.0
    x[16] = 0.0 if eps == 0.0 else math.log(eps) / 3.0 + 1.5
    x[17] = math.log(models.noise[g]) / 3.0
    x[18] = 1.0 if models.table[g] == 0 else 0.0
    x[19] = 1.0 if models.evidence_class[q] == state.evidence.shape[1] - 1 else 0.0
    # what is common to all
    x[20] = math.log1p(state.seen[i]) / 3.0 - 1.0
    x[21] = math.tanh(state.lead[i] / 5.0)


@compiled
def gate_look(
    learners: Indices,
    last: Array,
    lately: Array,
    models: BankModels,
    rates: BankRates,
    state: BankArrays,
    found: GateInputs,
) -> None:
    """Fill in the shortlists of some learners, and what the network sees of them.

    Args:
        learners: Whose, `(k,)`.
        last: z^2 of each learner's last reward, by model, `(B, Q)`.
        lately: Their fading means, `(B, Q)`.
        models: The models.
        rates: How scores fade.
        state: What is kept.
        found: Where all goes.
    """
    size = len(models.prior)
    scores, tops = np.empty(size), np.empty(4)
    for r in range(len(learners)):
        i = learners[r]
        tops[0], tops[1], tops[3] = largest(state.recent[i]), largest(state.lasting[i]), -math.inf
        for q in range(size):
            scores[q] = lately_score(i, q, models, rates, state)
            tops[3] = max(tops[3], model_score(i, q, models, state))
        tops[2] = largest(scores)
        fill_shortlist(scores, found.models[r], found.score[r])
        for k in range(found.models.shape[1]):
            q = found.models[r, k]
            told = max(state.informed[i, q], LEAST_TOLD)
            found.deviation[r, k] = 0.5 * math.log1p(1.0 / told)
            x = found.inputs[r, k]
            fill_inputs(i, q, tops, last[i, q], lately[i, q], models, rates, state, x)


@subroutine
def add_layer(x: Array, weights: Array, out: Array) -> None:
    """Add x W to a vector `(H,)`, for weights `(len(x), H)`."""
    for j in range(len(x)):
        value = x[j]
        if value != 0.0:
            row = weights[j]
            for h in range(len(out)):
                out[h] += value * row[h]


@subroutine
def fill_corrections(x: Array, net: GateWeights, correction: Array, stretch: Array) -> None:
    """Compute c_k and d_k of the models of one learner, of inputs `(K, INPUTS)`, `(K,)` each."""
    count, size = len(x), len(net.first_offset)
    hidden, pooled, common = np.empty((count, size)), np.zeros(2 * size), net.second_offset.copy()
    second, out = np.empty(size), np.empty(2)
    for k in range(count):
        for h in range(size):
            hidden[k, h] = net.first_offset[h]
        add_layer(x[k], net.first, hidden[k])
        for h in range(size):
            hidden[k, h] = max(hidden[k, h], 0.0)
            pooled[h] += hidden[k, h] / count
            pooled[size + h] = max(pooled[size + h], hidden[k, h])
    add_layer(pooled, net.second[size:], common)
    for k in range(count):
        for h in range(size):
            second[h] = common[h]
        add_layer(hidden[k], net.second[:size], second)
        for h in range(size):
            second[h] = max(second[h], 0.0)
        out[0], out[1] = net.last_offset[0], net.last_offset[1]
        add_layer(second, net.last, out)
        correction[k] = CORRECTION * math.tanh(out[0] / CORRECTION)
        stretch[k] = STRETCH * math.tanh(out[1] / STRETCH)


@compiled
def gate_weigh(shown: GateInputs, net: GateWeights, weight: Array, factor: Array) -> None:
    """Compute the weights of the models on shortlists, and the factors of their variances.

    Args:
        shown: What the gate is shown.
        net: Its weights.
        weight: Where pi goes, `(k, K)`: it adds up to 1, and small ones are 0.
        factor: Where e^{2 d} (1 + 1 / n) goes, `(k, K)`.
    """
    count = weight.shape[1]
    for r in range(len(weight)):
        pi = weight[r]
        fill_corrections(shown.inputs[r], net, pi, factor[r])
        for k in range(count):
            pi[k] += shown.score[r, k]
            factor[r, k] = math.exp(2.0 * (factor[r, k] + shown.deviation[r, k]))
        top, total = largest(pi), 0.0
        for k in range(count):
            pi[k] = math.exp(pi[k] - top)
            pi[k] = pi[k] if pi[k] > LEAST else 0.0
            total += pi[k]
        for k in range(count):
            pi[k] /= total
