"""The choices: what B learners make of their posteriors.

References:
    [CG17] Chowdhury, Gopalan. On Kernelized Multi-armed Bandits. ICML 2017.
    [KT20] Kim, Tewari. Randomized Exploration for Non-Stationary Stochastic Linear Bandits.
        UAI 2020.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.core.access import problem_reader
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import normal_variates
from wgp_agents.kernels.jit import compiled
from wgp_agents.parameters import per_learner
from wgp_gym.types import Array

if TYPE_CHECKING:
    from wgp_agents.gp.action_sets import ActionSet
    from wgp_agents.gp.surrogates.weighted import Surrogate

__all__ = [
    "Choice",
    "optimistic",
    "random_width",
    "randomised",
    "sampled_scores",
    "thompson",
    "upper_bounds",
]

Choice = Callable[["ActionSet", "Surrogate", Array, UniformStreams], NDArray[Any]]
"""From the decision set, the posteriors, beta `(B,)` and the learners' draws: the plays."""


def optimistic(
    action_set: ActionSet, surrogate: Surrogate, width: Array, uniform: UniformStreams
) -> NDArray[Any]:
    """Maximise mean + beta std, [Deng22] Algorithm 1 line 3."""
    return action_set.choose(surrogate, width, uniform)


def randomised(
    action_set: ActionSet,
    surrogate: Surrogate,
    width: Array,
    uniform: UniformStreams,
    scale: float | Array = 1.0,
) -> NDArray[Any]:
    """Maximise mean + scale |Z| beta std, Z standard normal, one for all points: [KT20]."""
    factor = scale * np.abs(normal_variates(uniform, 1)[:, 0])
    return action_set.choose(surrogate, factor * width, uniform)


def random_width(owner: str, env: Any, scale: Any) -> Choice:
    """Return `randomised` with a scale.

    Args:
        owner: The agent's name, for errors.
        env: The environment to play, or the `BanditProblem` alone.
        scale: A factor > 0, a number or `(B,)`.

    Raises:
        ValueError: If the scale is out of its range.
    """
    batch = problem_reader(env)().batch_size or 1
    scales = per_learner(owner, "scale", scale, batch, 0.0, math.inf, "neither")
    return partial(randomised, scale=scales)


def thompson(
    action_set: ActionSet, surrogate: Surrogate, width: Array, uniform: UniformStreams
) -> NDArray[Any]:
    """Maximise a function drawn from the posterior, its deviation beta times as large: [CG17].

    On a box, what the features leave out of the kernel is left out of the draw.
    """
    normals = normal_variates(uniform, len(action_set.basis.phi))
    return action_set.choose(surrogate, width, uniform, surrogate.deviations(normals))


@compiled
def finite(score: float) -> float:
    """Return a score; NaN for an infinite one, so that `argmax` refuses it."""
    return score if abs(score) < math.inf else math.nan


@compiled
def sampled_scores(
    mean: Array,
    phi: Array,
    weights: Array,
    width: Array,
    scores: Array,
) -> None:
    """Compute mean + width * phi^T w of all points for every learner.

    Args:
        mean: Posterior means, `(B, n)`.
        phi: Features, `(m, n)`.
        weights: w, `(B, m)`.
        width: beta, `(B,)`.
        scores: Where they go, `(B, n)`.
    """
    batch, n = mean.shape
    for i in range(batch):
        row = scores[i]
        row[:] = 0.0
        for j in range(len(phi)):
            factor, feature = weights[i, j], phi[j]
            for a in range(n):
                row[a] += factor * feature[a]
        for a in range(n):
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
