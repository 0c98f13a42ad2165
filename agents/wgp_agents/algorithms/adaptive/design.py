"""Optimal designs: how often to play each arm, to learn much at little cost.

Notation, for one learner: phi_a `(m,)` are the features of arm a, p a distribution of plays,
S(p) = sum_a p_a phi_a phi_a^T + sigma I = R^T R, v_a = phi_a^T S(p)^{-1} phi_a.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wgp_agents.kernels.design import fill_designs, fill_factors
from wgp_gym.types import Array, Indices

__all__ = ["Designs", "design_factors", "optimal_designs"]


class Designs(NamedTuple):
    """Designs of B learners.

    Attributes:
        probabilities: p, `(B, n)`.
        gaps: By how much each may miss the minimum at most, `(B,)`.
    """

    probabilities: Array
    gaps: Array


def optimal_designs(phi: Array, rank: Indices, regularization: Array, costs: Array) -> Designs:
    """Return, for every learner, the p that minimises F(p) = sum_a p_a c_a - log det S(p).

    With c_a = beta Delta_a / 2 it is OP(Delta, beta) of Hong, Li and Tewari (2023); with c = 0 the
    regularised D-optimal design, that of the largest information gain.

    F is convex with the gradient c - v, so that no p is better by more than the gap
        max_a (v_a - c_a) - sum_a p_a (v_a - c_a):
    the search stops where that is at most 1e-9 max(1, sum_a p_a v_a). By turns it moves weight
    from the arm of the smallest v - c that has some to that of the largest, by the best amount
    and until that one has some (pairwise Frank-Wolfe steps), and takes Newton steps on the arms
    that have weight. Neither increases F, -log det being self-concordant.
    Deviation: the authors' code follows the central path of a barrier on all arms; the minimum
    is the same.

    Args:
        phi: Column a is phi_a, `(m, n)`.
        rank: How many of the features each learner uses, `(B,)`.
        regularization: sigma > 0, `(B,)`.
        costs: c, `(B, n)`; infinity for an arm that must not be played. One at least is finite.
    """
    probabilities, gaps = np.zeros(costs.shape), np.zeros(len(costs))
    fill_designs(phi, rank, regularization, costs, probabilities, gaps)
    return Designs(probabilities, gaps)


def design_factors(phi: Array, rank: Indices, regularization: Array, probabilities: Array) -> Array:
    """Return R, upper with S(p) = R^T R in its leading rank x rank part, `(B, m, m)`.

    Arguments as in `optimal_designs`.
    """
    factors = np.zeros((len(rank), len(phi), len(phi)))
    fill_factors(phi, rank, regularization, probabilities, factors)
    return factors
