"""What an observation shows, as agents read it."""

from __future__ import annotations

import numpy as np

from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Observation
from wgp_gym.validation import as_floats, shown

__all__ = ["checked_rows", "observation_of", "rows_of", "shown_arms"]


def observation_of(arms: Array) -> Array:
    """Return what `act` is to be shown where arms are drawn anew and there is no environment.

    It is an observation of zeros, [t / T, has_last, place of the last action `(d,)`, its reward],
    followed by the arms, row by row: `observe` has told the agent the rest.

    Args:
        arms: Where they stand in [0, 1]^d, `(n, d)`, or `(B, n, d)` for B learners.

    Returns:
        `(3 + d + n d,)`, or `(B, 3 + d + n d)`.
    """
    places = np.asarray(arms, float)
    flat = places.reshape(*places.shape[:-2], -1)
    return np.concatenate([np.zeros((*flat.shape[:-1], 3 + places.shape[-1])), flat], axis=-1)


def rows_of(observation: Observation, problem: BanditProblem, learners: int) -> Array:
    """Return one observation for each learner, `(B, size)`; ValueError if there are not so many.

    Their size is 3 + d, and n d more where the arms are drawn anew at each step.
    """
    rows = np.atleast_2d(as_floats("observation", observation, "an agent", "an array of numbers"))
    if len(rows) != learners:
        raise ValueError(f"There must be {learners} observations. Got {len(rows)} instead.")
    n, dim = problem.domain.shape
    size = 3 + dim + (n * dim if problem.contextual else 0)
    if rows.shape[1:] != (size,):
        arms = f", {n} x {dim} of them the arms: see `observation_of`" if problem.contextual else ""
        found = " x ".join(map(str, rows.shape[1:]))
        raise ValueError(f"An observation has {size} numbers{arms}. Got {found} instead.")
    return rows


def shown_arms(rows: Array, problem: BanditProblem) -> Array:
    """Return the arms that observations `(B, size)` show, `(B, n, d)`, if in [0, 1]^d."""
    n, dim = problem.domain.shape
    arms = rows[:, 3 + dim :].reshape(-1, n, dim).copy()  # the caller may use its buffer again
    if not (arms.min() >= 0 and arms.max() <= 1):
        raise ValueError(f"The arms shown must be in [0, 1]^{dim}. Got {shown(arms)} instead.")
    return arms


def checked_rows(rows: Array, problem: BanditProblem) -> Array:
    """Return observations `(B, size)` as they are, if a task can show their numbers.

    A wrapper may have changed them. Rewards are not looked at, nor the arms: `shown_arms` does.
    """
    head = rows[:, : 2 + problem.domain.shape[1]]  # t / T, has_last, the place of the last action
    fits = (head >= 0) & (head <= 1)
    fits[:, 1] &= (head[:, 1] == 0) | (head[:, 1] == 1)
    if not fits.all():
        row, column = np.unravel_index(fits.argmin(), fits.shape)
        names = {0: "its time t / T, must be in [0, 1]", 1: "has_last, must be 0 or 1"}
        rule = names.get(int(column), "the place of the last action, must be in [0, 1]")
        found = f"{head[row, column]:g}"
        raise ValueError(f"Number {column} of an observation, {rule}. Got {found} instead.")
    return rows
