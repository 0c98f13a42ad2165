"""Scores of all points from their posteriors: what an acquisition maximises."""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import combine_rows
from wgp_gym.types import Array, Indices

__all__ = [
    "best_upper_bounds",
    "fill_argmax",
    "fill_known",
    "fill_widths",
    "finite",
    "sampled_scores",
    "upper_bounds",
]


@subroutine
def finite(score: float) -> float:
    """Return a score; NaN for an infinite one, so that `argmax` refuses it."""
    return score if abs(score) < math.inf else math.nan


@subroutine
def is_tied(value: float, least: float) -> bool:
    """Return whether an index is one of the largest; all are where all are minus infinity."""
    return value >= least or least == -math.inf


@subroutine
def pick(index: Array, uniform: float, tie: float) -> int:
    """Return the place of the largest number, ties broken by a draw; -1 if one is not a number."""
    best, count, numbers = -math.inf, 0, True
    for value in index:
        numbers &= value == value
        if value > best:
            best = value
    if not numbers:
        return -1
    for value in index:
        count += is_tied(value, best - tie)
    rank = min(int(uniform * count), count - 1)  # which of the tied ones is chosen
    for k in range(len(index)):
        if is_tied(index[k], best - tie):
            if rank == 0:
                return k
            rank -= 1
    return -1


@compiled
def fill_argmax(index: Array, uniform: Array, tie: float, chosen: Indices) -> bool:
    """Fill in the index of the largest number of every learner; return whether all are numbers."""
    numbers = True
    for i in range(len(index)):
        chosen[i] = pick(index[i], uniform[i], tie)
        numbers &= chosen[i] >= 0
    return numbers


@compiled
def sampled_scores(mean: Array, phi: Array, weights: Array, width: Array, scores: Array) -> None:
    """Compute mean + width * phi^T w of all points for every learner.

    Args:
        mean: Posterior means, `(B, n)`.
        phi: Features, `(m, n)`.
        weights: w, `(B, m)`.
        width: beta, `(B,)`.
        scores: Where they go, `(B, n)`.
    """
    for i in range(len(mean)):
        row = scores[i]
        combine_rows(phi, weights[i], row)
        for a in range(len(row)):
            row[a] = finite(mean[i, a] + width[i] * row[a])


@compiled
def upper_bounds(mean: Array, variance: Array, width: Array, bounds: Array) -> None:
    """Compute mean + width * std of all points for every learner.

    Args:
        mean: Posterior means, `(B, n)`.
        variance: Posterior variances, `(B, n)`.
        width: Confidence widths beta, `(B,)`.
        bounds: Where they go, `(B, n)`.
    """
    batch, n = mean.shape
    for i in range(batch):
        for a in range(n):
            bounds[i, a] = finite(mean[i, a] + width[i] * math.sqrt(variance[i, a]))


@subroutine
def width_of(
    gain: float,
    norm_bound: float,
    noise_scale: float,
    regularization: float,
    delta: float,
    offset: float,
    factor: float,
) -> float:
    """Return beta: see `wgp_agents.gp.width.self_normalised`."""
    square = (2.0 * gain + offset - factor * math.log(delta)) / regularization
    return norm_bound + noise_scale * math.sqrt(square)


@compiled
def best_upper_bounds(
    mean: Array,
    variance: Array,
    gain: Array,
    norm_bound: Array,
    noise_scale: Array,
    regularization: Array,
    delta: Array,
    offset: float,
    factor: float,
    uniform: Array,
    tie: float,
    chosen: Indices,
) -> bool:
    """Fill in the arm of the largest of the `upper_bounds` of every learner, as `fill_argmax`.

    Their widths are those of `fill_widths`.
    """
    row, numbers = np.empty(mean.shape[1]), True
    for i in range(len(mean)):
        of_learner = gain[i], norm_bound[i], noise_scale[i], regularization[i], delta[i]
        width = width_of(*of_learner, offset, factor)
        for a in range(len(row)):
            row[a] = finite(mean[i, a] + width * math.sqrt(variance[i, a]))
        chosen[i] = pick(row, uniform[i], tie)
        numbers &= chosen[i] >= 0
    return numbers


@compiled
def fill_widths(
    gain: Array,
    norm_bound: Array,
    noise_scale: Array,
    regularization: Array,
    delta: Array,
    offset: float,
    factor: float,
    width: Array,
) -> None:
    """Compute the confidence widths of `wgp_agents.gp.width.self_normalised`, `(B,)` each."""
    for i in range(len(width)):
        of_learner = gain[i], norm_bound[i], noise_scale[i], regularization[i], delta[i]
        width[i] = width_of(*of_learner, offset, factor)


@compiled
def fill_known(held: Indices, known: Array, gains: Array) -> None:
    """Fill in the gain after `held` observations of every learner, at most the last one known.

    Args:
        held: `(B,)`.
        known: The gains after 0, 1, 2, ... observations, `(B, L)`.
        gains: Where they go, `(B,)`.
    """
    for i in range(len(held)):
        gains[i] = known[i, min(held[i], known.shape[1] - 1)]
