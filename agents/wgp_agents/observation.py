"""What an observation shows, as agents read it."""

from __future__ import annotations

from typing import Any

import numpy as np

from wgp_gym.kernels import Array
from wgp_gym.problem import BanditProblem

__all__ = ["rows_of", "shown_arms"]


def rows_of(observation: Any, problem: BanditProblem, learners: int) -> Array:
    """Return one observation for each learner, `(B, size)`.

    Args:
        observation: `(size,)`, or `(B, size)`; size is 3 + d, and n d more where the arms are drawn
            anew at each step.
        problem: The problem at hand.
        learners: B.

    Raises:
        ValueError: If there are not so many, or they are not of this size.
    """
    rows = np.atleast_2d(np.asarray(observation, float))
    if len(rows) != learners:
        raise ValueError(f"There must be {learners} observations. Got {len(rows)} instead.")
    size = 3 + problem.domain.shape[1] + (problem.domain.size if problem.contextual else 0)
    if rows.shape[1:] != (size,):
        raise ValueError(f"An observation has {size} numbers. Got {rows.shape[1]} instead.")
    return rows


def shown_arms(rows: Array, problem: BanditProblem) -> Array:
    """Return the arms that observations `(B, size)` show, `(B, n, d)`.

    Args:
        rows: The observations.
        problem: The problem at hand, whose arms are drawn anew at each step.

    Raises:
        ValueError: If one is not in [0, 1]^d.
    """
    n, dim = problem.domain.shape
    arms = rows[:, 3 + dim :].reshape(-1, n, dim)
    if not (arms.min() >= 0 and arms.max() <= 1):
        raise ValueError(f"The arms shown must be in [0, 1]^{dim}. Got {arms!r} instead.")
    return arms
