"""The features of the arms, as each of B learners uses them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wgp_gym.features import Features
from wgp_gym.types import Array, Indices

__all__ = ["Basis", "make_basis"]

BLOCK = 4_096  # points whose features are squared together


class Basis(NamedTuple):
    """The feature table turned, and what belongs to each learner.

    A learner uses as many features as its own lambda asks for, so that its numbers do not
    depend on the others' lambda.

    Attributes:
        phi: Column a is phi(x_a), `(m, n)`.
        regularization: lambda of every learner, `(B,)`.
        rank: How many features each learner uses, `(B,)`.
        residual: k(x, x) less the squares of these, `(B, n)`: what the features leave out. The
            variances have it added, so that equal arms stay exactly equal.
        prior: k(x, x), `(n,)`.
    """

    phi: Array
    regularization: Array
    rank: Indices
    residual: Array
    prior: Array


def make_basis(features: Features, regularization: Array, tolerances: Array) -> Basis:
    """Return the features of n points as B learners use them.

    Args:
        features: The features of the points.
        regularization: lambda of every learner, `(B,)`.
        tolerances: How much of k(x, x) each may leave out, `(B,)`.
    """
    rank = np.array([features.rank(tolerance) for tolerance in tolerances])
    captured = np.empty((len(rank), len(features.table)))
    for start in range(0, len(features.table), BLOCK):  # nothing more of the table's size is stored
        rows = slice(start, start + BLOCK)
        captured[:, rows] = np.cumsum(features.table[rows] ** 2, axis=1)[:, rank - 1].T
    residual = np.maximum(features.prior - captured, 0.0)
    phi = np.ascontiguousarray(features.table.T)
    return Basis(phi, regularization, rank, residual, features.prior)
