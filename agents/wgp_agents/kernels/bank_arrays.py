"""What a bank of models is made of: its models, its rates, and what it keeps of its learners."""

from __future__ import annotations

from typing import NamedTuple

from wgp_agents.kernels.jit import subroutine
from wgp_gym.types import Array, Indices

__all__ = [
    "BankArrays",
    "BankModels",
    "BankRates",
    "block_covariance",
    "block_weights",
    "with_drift",
]


class BankModels(NamedTuple):
    """The models of a bank, the same for all learners: Q in G blocks of K each.

    The models of a block differ in drift and in whom they are judged among; the blocks in noise and
    features. Model q = g K + k is model k of block g.

    Attributes:
        drift: eps, `(K,)`.
        noise: lambda: the variance of the noise, that of the function being 1, `(G,)`.
        table: Which features a block has, `(G,)`.
        rank: How many of them, the leading ones; the rest counts as noise, `(G,)`.
        prior: What each is ahead by throughout, in nats, `(Q,)`.
        evidence_class: Whom each is judged among, and restarts beside, `(Q,)`.
        covariance_start: Where a block's covariances begin in a learner's, `(G + 1,)`.
        weights_start: Where its weights begin, `(G + 1,)`.
    """

    drift: Array
    noise: Array
    table: Indices
    rank: Indices
    prior: Array
    evidence_class: Indices
    covariance_start: Indices
    weights_start: Indices


class BankRates(NamedTuple):
    """How fast a bank forgets what it knows of its models, and what it does not believe.

    Attributes:
        strategy: What the strategy score fades by in a step.
        recent: What the score of the last steps fades by.
        lasting: What the score beside it fades by.
        lasting_weight: How much that counts beside the score of the last steps.
        scale: What the squared innovations fade by, from which a model's scale is learned.
        signal: What the function's own scale fades by, for a play of an arm never seen.
        margin: In nats: a model that lags by more in its regime score begins anew.
        restart_penalty: In nats: how far behind the best of its class it then begins.
        carry_over: The share of what it knew of the function's scale that it keeps.
        recenter_at: In units of the scale: how far the median reward is from where a model counts
            rewards from, when a restart moves that.
        clip_at: In standard deviations: the most that an innovation counts for.
        warmup: Steps. A younger model is not restarted; a younger learner cuts no innovation, but
            looks at its rewards again at the end. Also the span of the median.
    """

    strategy: float
    recent: float
    lasting: float
    lasting_weight: float
    scale: float
    signal: float
    margin: float
    restart_penalty: float
    carry_over: float
    recenter_at: float
    clip_at: float
    warmup: int


class BankArrays(NamedTuple):
    """What is kept of B learners, each with Q models in C evidence classes.

    Attributes:
        covariance: P of the weights, in the unit of the function's variance, all blocks of
            `wgp_agents.kernels.packed` one after the other, `(B, size)`.
        weights: theta, in the unit of rewards, likewise, `(B, size)`.
        square: Half the sum of squared standardised innovations, fading, `(B, Q)`.
        shape: Half their number, fading, `(B,)`.
        signal: The sum of those squares by how much each play could say of the function,
            `(B, Q)`.
        informed: What those shares add up to, `(B, Q)`.
        regime: R, the score since the last restart, relative to the class's best, `(B, Q)`.
        strategy: M, the score with all restarts, fading, relative to the class's best, `(B, Q)`.
        evidence: E of each class, relative to the best class, `(B, C)`.
        recent: F, the score of the last steps, relative to each step's best model, `(B, Q)`.
        lasting: L, the same of more steps, `(B, Q)`.
        picked: The models that the two ways of choosing pick: by evidence, and by the last steps,
            `(B, 2)`.
        lead: D, by how much the second has foretold rewards better, fading, `(B,)`.
        age: Steps since each model was last restarted, `(B, Q)`.
        chosen: The model that is played, g K + k, `(B,)`.
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
    regime: Array
    strategy: Array
    evidence: Array
    recent: Array
    lasting: Array
    picked: Indices
    lead: Array
    age: Indices
    chosen: Indices
    zero: Array
    latest: Array
    seen: Indices


@subroutine
def block_covariance(i: int, g: int, models: BankModels, state: BankArrays) -> Array:
    """Return the covariances of learner i's block g."""
    start, end = models.covariance_start[g], models.covariance_start[g + 1]
    packed: Array = state.covariance[i, start:end]
    return packed


@subroutine
def block_weights(i: int, g: int, models: BankModels, state: BankArrays) -> Array:
    """Return the weights of learner i's block g."""
    start, end = models.weights_start[g], models.weights_start[g + 1]
    packed: Array = state.weights[i, start:end]
    return packed


@subroutine
def with_drift(models: BankModels, drift: Array) -> BankModels:
    """Return the models with other drifts, `(K,)`."""
    return BankModels(
        drift,
        models.noise,
        models.table,
        models.rank,
        models.prior,
        models.evidence_class,
        models.covariance_start,
        models.weights_start,
    )
