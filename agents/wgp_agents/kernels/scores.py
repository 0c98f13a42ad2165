"""Scores of all points from their posteriors: what an acquisition maximises."""

from __future__ import annotations

import math

from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import combine_rows
from wgp_gym.types import Array

__all__ = ["finite", "sampled_scores", "upper_bounds"]


@subroutine
def finite(score: float) -> float:
    """Return a score; NaN for an infinite one, so that `argmax` refuses it."""
    return score if abs(score) < math.inf else math.nan


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
