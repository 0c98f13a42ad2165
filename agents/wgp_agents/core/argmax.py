"""How an arm is picked: argmax with ties broken at random, and uniformly."""

from __future__ import annotations

import math
from typing import NoReturn

import numpy as np

from wgp_agents.core.randomness import UniformStreams
from wgp_agents.kernels.scores import fill_argmax
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Actions, Array, Indices, Mask

__all__ = ["TIE", "anywhere", "argmax", "fill_argmax", "not_finite"]

TIE = 1e-9  # values this close to the best count as equal to it


def argmax(index: Array, uniform: Array, allowed: Mask | None = None) -> Indices:
    """Return the index of the largest number of every learner, `(B,)`, ties broken at random.

    Args:
        index: `(B, n)`; infinity for what must be chosen, minus infinity for what must not.
        uniform: One draw from [0, 1) for each learner, `(B,)`.
        allowed: What may be chosen, `(B, n)`, at least one of each row; None: everything.

    Raises:
        ValueError: If one is not a number.
    """
    if allowed is not None:
        kept = np.where(allowed, index, -math.inf)
        none = kept.max(axis=1, keepdims=True) == -math.inf  # then all allowed ones tie
        index = np.where(none & allowed, 0.0, kept)
    chosen = np.empty(len(index), np.int64)
    if not fill_argmax(index, uniform, TIE, chosen):
        not_finite()
    return chosen


def anywhere(
    problem: BanditProblem, uniform: UniformStreams, allowed: Mask | None = None
) -> Actions:
    """Return uniformly random actions: arms `(B,)`, of those allowed, or points `(B, d)`."""
    if problem.continuous:
        draws = [uniform.draw() for _ in range(problem.domain.shape[1])]
        return np.stack(draws, axis=1).astype(np.float32)
    if allowed is not None:
        return argmax(np.zeros(allowed.shape), uniform.draw(), allowed)
    return (uniform.draw() * len(problem.domain)).astype(np.int64)


def not_finite() -> NoReturn:
    """Raise the error of a posterior that is not finite.

    Raises:
        ValueError: Always.
    """
    raise ValueError(
        "The agent's posterior is not finite, so there is no best action. A larger "
        "'regularization', or smaller rewards, 'noise_scale' and 'norm_bound', may help."
    )
