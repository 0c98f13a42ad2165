"""Means of the terms that a log of decisions gives for an agent, and their standard errors.

References: see `wgp_agents.live.evaluation`.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.live.decisions import Decisions
from wgp_gym.types import Array, Indices

__all__ = ["doubly_robust_terms", "ratio_terms", "standard_error"]

STRENGTH = 1.0  # rewards that the prior mean of the model of rewards counts for


def standard_error(terms: Array, lags: int | None) -> float:
    """Return the standard error of the mean of dependent terms `(n,)`.

    Its square is 1/n^2 sum_{|k| <= L} (1 - |k| / (L + 1)) sum_t x_t x_{t+|k|}, x the terms less
    their mean [Newey87], L at most n - 1.
    """
    n = len(terms)
    x = terms - terms.mean()
    last = min(math.isqrt(n) if lags is None else lags, n - 1)
    total = float(x @ x)
    for k in range(1, last + 1):
        total += 2.0 * (1.0 - k / (last + 1)) * float(x[k:] @ x[:-k])
    return math.sqrt(max(total, 0.0)) / n


def ratio_terms(rewards: Array, weights: Array) -> Array:
    """Return V + w (r - V) / mean w, the linear part of V = sum w r / sum w (the delta method).

    Their mean is V itself [Swaminathan15].
    """
    value = float(weights @ rewards / weights.sum())
    terms: Array = value + weights * (rewards - value) / weights.mean()
    return terms


def doubly_robust_terms(
    rows: Decisions, choices: Indices, weights: Array, discount: float
) -> Array:
    """Return m_t(c_t) + w_t (r_t - m_t(a_t)) of all rows but the first [Dudik11].

    The model m_t knows the rows before t alone.
    """
    if len(rows) < 2:
        raise ValueError("The first row only begins the model: there must be two at least.")
    model, corrections = fading_means(rows, choices, discount)
    return (model + weights * corrections)[1:]


def fading_means(rows: Decisions, choices: Indices, discount: float) -> tuple[Array, Array]:
    """Return m_t(c_t), and r_t - m_t(a_t), both `(n,)`, of each arm's fading mean m_t before row t.

    m_t(a) = (S_a + S / N) / (N_a + 1), with fading sums S_a and counts N_a of an arm, S and N of
    all: an arm not played for long is taken for an average one.
    """
    sums, counts = np.zeros(rows.num_arms), np.zeros(rows.num_arms)
    model, corrections = np.zeros(len(rows)), np.zeros(len(rows))
    for row, (arm, choice, reward) in enumerate(zip(rows.arms, choices, rows.rewards, strict=True)):
        if row:
            prior = sums.sum() / counts.sum()
            means = (sums + STRENGTH * prior) / (counts + STRENGTH)
            model[row], corrections[row] = means[choice], reward - means[arm]
        sums *= discount
        counts *= discount
        sums[arm] += reward
        counts[arm] += 1.0
    return model, corrections
