"""A bank of models of a drifting function: a Kalman step of each, its score, and restarts.

Notation as in `wgp_agents.kernels.drift`, in the unit of each model's scale s^2: its rewards have
variance s^2 (phi^T P phi + lambda), and s^2 is unknown. See `ModelBank`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from wgp_agents.kernels.drift import fill_posterior, forecast, kalman_step
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import dot
from wgp_gym.types import Array, Indices, Mask

__all__ = [
    "BankArrays",
    "BankModels",
    "BankRates",
    "bank_elapse",
    "bank_hallucinate",
    "bank_posteriors",
    "bank_update",
    "learner_step",
    "model_score",
]

TINY = float(np.finfo(float).tiny)  # below it numbers lose digits, and the least never fade


class BankModels(NamedTuple):
    """The models of a bank: Q of them, the same for all learners.

    Attributes:
        drift: eps of each, `(Q,)`.
        noise: lambda of each: the variance of the noise, that of the function being 1, `(Q,)`.
        table: Which features each has, `(Q,)`.
        rank: How many there are in each table, `(G,)`.
        prior: What each is ahead by throughout, `(Q,)`.
    """

    drift: Array
    noise: Array
    table: Indices
    rank: Indices
    prior: Array


class BankRates(NamedTuple):
    """How fast a bank forgets what it knows of its models, and what it does not believe.

    Attributes:
        recent: What the score of the last steps fades by in a step.
        lasting: What the score of all steps fades by.
        scale: What the squared innovations fade by, from which a model's scale is learned.
        signal: What the function's own scale fades by, for a play of an arm never seen.
        weight: How much the lasting score counts beside the recent one.
        margin: A model that lags by more in its recent score begins anew.
        restart_penalty: How far behind the best it then begins.
        carry_over: The share of what it knew of the function's scale that it keeps.
        recenter_at: In units of the scale: how far the median reward is from where a model counts
            rewards from, when a restart moves that.
        clip_at: In standard deviations: the most that an innovation counts for.
        warmup: Steps. A younger model is not restarted; a younger learner cuts no innovation, but
            looks at its rewards again at the end. Also the span of the median.
    """

    recent: float
    lasting: float
    scale: float
    signal: float
    weight: float
    margin: float
    restart_penalty: float
    carry_over: float
    recenter_at: float
    clip_at: float
    warmup: int


class BankArrays(NamedTuple):
    """What is kept of B learners, each with Q models.

    Attributes:
        covariance: P of the weights, in the unit of the function's variance, `(B, Q, m, m)`.
        weights: theta, in the unit of rewards, `(B, Q, m)`.
        square: Half the sum of squared standardised innovations, fading, `(B, Q)`.
        shape: Half their number, fading, `(B,)`.
        signal: The sum of those squares by how much each play could say of the function, `(B, Q)`.
        informed: What those shares add up to, `(B, Q)`.
        recent: The score of the last steps, `(B, Q)`.
        lasting: The score of all steps, `(B, Q)`.
        age: Steps since each model was last restarted, `(B, Q)`.
        chosen: The model that is played, `(B,)`.
        zero: Where each model counts rewards from, `(B, Q)`.
        latest: The last rewards, that of step t at t mod `warmup`, `(B, warmup)`.
        seen: Observations so far, `(B,)`.
    """

    covariance: Array
    weights: Array
    square: Array
    shape: Array
    signal: Array
    informed: Array
    recent: Array
    lasting: Array
    age: Indices
    chosen: Indices
    zero: Array
    latest: Array
    seen: Indices


@subroutine
def largest(x: Array) -> float:
    """Return the largest number."""
    best: float = x[0]
    for value in x:
        best = max(best, value)
    return best


@subroutine
def smallest(x: Array) -> float:
    """Return the smallest number."""
    best: float = x[0]
    for value in x:
        best = min(best, value)
    return best


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
def student_loss(z: float, total: float, a: float, b: float) -> float:
    """Return -log of the predictive density of a reward, but for what all models share.

    Student's, of 2 a degrees of freedom and scale (b / a) `total`, at z = nu^2 / `total`.
    """
    return 0.5 * math.log(b * total) + (a + 0.5) * math.log1p(z / (2.0 * b))


@subroutine
def learn_scales(
    i: int, q: int, z: float, share: float, rates: BankRates, state: BankArrays
) -> None:
    """Learn a model's scale, and the function's own, from a squared standardised innovation."""
    # The scale of all: every innovation counts alike.
    square = rates.scale * state.square[i, q] + 0.5 * z
    state.square[i, q] = square if square > TINY else 0.0
    # The function's: by the share of the variance at the play that was still unknown.
    keep = 1.0 - (1.0 - rates.signal) * share
    state.informed[i, q] = keep * state.informed[i, q] + share
    state.signal[i, q] = keep * state.signal[i, q] + share * z


@subroutine
def model_step(
    i: int,
    q: int,
    f: Array,
    left: float,
    reward: float,
    scored: bool,
    models: BankModels,
    rates: BankRates,
    state: BankArrays,
    u: Array,
) -> float:
    """Take a reward into model q of learner i; return the loss of its forecast, 0 if unscored."""
    P, w, seen = state.covariance[i, q], state.weights[i, q, : len(f)], state.seen[i]
    # The innovation nu and its variance, in the unit s^2: s + noise.
    s, expected = forecast(P, w, f, u)
    noise = models.noise[q] + left
    total, nu = s + noise, reward - state.zero[i, q] - expected
    # After the warm-up it counts for `clip_at` standard deviations at most.
    a, b = state.shape[i], state.square[i, q]
    if scored and seen >= rates.warmup:
        limit = rates.clip_at * math.sqrt(b / a * total)
        nu = math.copysign(min(abs(nu), limit), nu)
    z = nu * (nu / total)
    loss = student_loss(z, total, a, b) if scored else 0.0
    # The first reward tells nothing: models count from it.
    if seen > 0:
        prior = dot(f, f) + left
        learn_scales(i, q, z, (s + left) / prior if prior > 0.0 else 0.0, rates, state)
    kalman_step(s, nu, noise, models.drift[q], u, P, w)
    return loss


@subroutine
def score_models(loss: Array, rates: BankRates, recent: Array, lasting: Array) -> None:
    """Add one step to the scores, relative to the model that predicted the reward best."""
    least = smallest(loss)
    if not math.isfinite(largest(loss) - least):  # a first reward after nothing but zeros
        return
    for q in range(len(loss)):
        recent[q] = rates.recent * recent[q] - (loss[q] - least)
        lasting[q] = rates.lasting * lasting[q] - (loss[q] - least)


@subroutine
def recenter(i: int, q: int, rates: BankRates, state: BankArrays) -> None:
    """Let a model count rewards from their median, if that is far from where it did."""
    median = upper_median(state.latest[i])
    apart = median - state.zero[i, q]
    if apart * apart * state.informed[i, q] > rates.recenter_at**2 * state.signal[i, q]:
        state.zero[i, q] = median


@subroutine
def restart_lagging_models(i: int, rates: BankRates, state: BankArrays) -> None:
    """Let learner i's models that lag begin anew, a little behind the best."""
    recent, lasting = state.recent[i], state.lasting[i]
    best = largest(recent)
    for q in range(len(recent)):
        state.age[i, q] += 1
        if state.age[i, q] > rates.warmup and recent[q] < best - rates.margin:
            # It knows nothing of the function any more ...
            P = state.covariance[i, q]
            P[:] = 0.0
            for k in range(len(P)):
                P[k, k] = 1.0
            state.weights[i, q] = 0.0
            state.age[i, q] = 0
            # ... and little of its scale,
            state.signal[i, q] *= rates.carry_over
            state.informed[i, q] *= rates.carry_over
            # and is given a chance.
            recent[q] = best - rates.restart_penalty
            lasting[q] = largest(lasting)
            recenter(i, q, rates, state)


@subroutine
def learner_step(
    i: int,
    features: Array,
    left: Array,
    reward: float,
    models: BankModels,
    rates: BankRates,
    state: BankArrays,
    u: Array,
    loss: Array,
) -> None:
    """Take in one observation of learner i, with features `(G, m)`; u and loss are room to work."""
    # Rewards are counted from the first, at first.
    if state.seen[i] == 0:
        state.zero[i] = reward
    state.latest[i, state.seen[i] % rates.warmup] = reward
    # Nothing is scored before every model has a scale.
    scored = smallest(state.square[i]) > 0.0
    for q in range(len(loss)):
        g = models.table[q]
        f = features[g, : models.rank[g]]
        loss[q] = model_step(i, q, f, left[g], reward, scored, models, rates, state, u[: len(f)])
    if state.seen[i] > 0:
        state.shape[i] = rates.scale * state.shape[i] + 0.5
    if scored:
        score_models(loss, rates, state.recent[i], state.lasting[i])
    restart_lagging_models(i, rates, state)
    # Play the model of the largest score, the first of equals.
    top = -math.inf
    for q in range(len(loss)):
        score = model_score(i, q, models, rates, state)
        if score > top:
            top, state.chosen[i] = score, q
    state.seen[i] += 1


@subroutine
def model_score(i: int, q: int, models: BankModels, rates: BankRates, state: BankArrays) -> float:
    """Return the logarithm of a model's weight among those of learner i, but for a constant."""
    score: float = models.prior[q] + state.recent[i, q] + rates.weight * state.lasting[i, q]
    return score


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
        features: Those of the plays, by table, `(B, G, m)`.
        left: What they leave out of k(x, x), `(B, G)`.
        rewards: `(B,)`.
        active: Who learns, `(B,)`.
        models: The models.
        rates: How fast to forget.
        state: What is kept.
    """
    u, loss = np.empty(features.shape[2]), np.empty(len(models.drift))
    for i in range(len(rewards)):
        if active[i]:
            learner_step(i, features[i], left[i], rewards[i], models, rates, state, u, loss)


@compiled
def bank_hallucinate(
    features: Array, left: Array, active: Mask, models: BankModels, state: BankArrays
) -> None:
    """Take a play without its reward into the covariance of each active learner's chosen model.

    Args:
        features: Those of the plays, by table, `(B, G, m)`.
        left: What they leave out of k(x, x), `(B, G)`.
        active: Whose plays they are, `(B,)`.
        models: The models.
        state: What is kept.
    """
    u = np.empty(features.shape[2])
    for i in range(len(features)):
        if not active[i]:
            continue
        q = state.chosen[i]
        g = models.table[q]
        f = features[i, g, : models.rank[g]]
        P, w = state.covariance[i, q], state.weights[i, q, : len(f)]
        # An innovation of 0, and no drift: only P <- P - u u^T / (s + noise) is left.
        s, _ = forecast(P, w, f, u[: len(f)])
        kalman_step(s, 0.0, models.noise[q] + left[i, g], 0.0, u[: len(f)], P, w)


@compiled
def bank_elapse(active: Mask, drift: Array, models: BankModels, state: BankArrays) -> None:
    """Let the models of the active learners drift, by `(B, Q)`."""
    for i in range(len(active)):
        if not active[i]:
            continue
        for q in range(len(models.drift)):
            P, w = state.covariance[i, q], state.weights[i, q]
            keep, fade = 1.0 - drift[i, q], math.sqrt(1.0 - drift[i, q])
            # theta <- (1 - eps)^{1/2} theta, P <- (1 - eps) P + eps I
            for k in range(len(w)):
                w[k] *= fade
                for j in range(len(w)):
                    P[k, j] *= keep
                P[k, k] += drift[i, q]


@compiled
def bank_posteriors(
    tables: Array,
    which: Indices,
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
        P, w = state.covariance[i, q], state.weights[i, q, :m]
        fill_posterior(P, w, tables[t], residual[t], mean[i], variance[i])
