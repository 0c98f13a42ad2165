"""The model of a Gaussian-process agent: its noise, features, action set and posterior."""

from __future__ import annotations

from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.core.argmax import not_finite
from wgp_agents.core.units import RewardBounds, bounds_by_norm
from wgp_agents.gp.action_sets import ActionSet, FeatureSource
from wgp_agents.gp.box import make_action_set
from wgp_agents.gp.source import FeatureChoice, feature_source
from wgp_agents.parameters import noise_model
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

__all__ = ["GPModel", "Interval", "ModelParameters", "Posterior", "gp_model", "posterior_of"]


class ModelParameters(TypedDict, total=False):
    """The parameters of the model that all Gaussian-process agents share. See `GPAgent`."""

    regularization: ArrayLike | None
    noise_scale: ArrayLike | None
    features: FeatureChoice


class GPModel(NamedTuple):
    """The model of B learners.

    Attributes:
        noise_scale: R, `(B,)`.
        regularization: lambda, the noise variance of the model, `(B,)`.
        source: The kernel, or the feature map in its place.
        action_set: What is chosen from, and its features.
    """

    noise_scale: Array
    regularization: Array
    source: FeatureSource
    action_set: ActionSet

    def reward_bounds(
        self, problem: BanditProblem, norm_bound: Array | None
    ) -> RewardBounds | None:
        """Return the range of rewards that the model assumes: see `bounds_by_norm`."""
        longest = self.action_set.basis.prior.max()
        return bounds_by_norm(problem, norm_bound, self.noise_scale, longest)


def gp_model(
    owner: str,
    problem: BanditProblem,
    regularization: ArrayLike | None = None,
    noise_scale: ArrayLike | None = None,
    features: FeatureChoice = "exact",
    *,
    grid: bool = False,
) -> GPModel:
    """Return the model for an agent's parameters; those without a word here are as in `GPAgent`.

    `grid` says whether only the problem's grid is played on a box.

    Raises:
        ValueError: If a parameter is out of its range.
    """
    batch = problem.batch_size or 1
    scale, lam = noise_model(owner, problem, noise_scale, regularization, batch)
    source = feature_source(features, problem, owner)
    nystrom = isinstance(features, str) and features == "nystrom"
    action_set = make_action_set(source, problem, lam, grid=grid, nystrom=nystrom)
    return GPModel(scale, lam, source, action_set)


class Posterior(NamedTuple):
    """A posterior at n points: `(n,)`, or `(B, n)` for a batch.

    Attributes:
        mean: [Deng22] Eq. (3).
        std: The square root of [Deng22] Eq. (4).
    """

    mean: Array
    std: Array


class Interval(NamedTuple):
    """Confidence intervals at n points: `(n,)`, or `(B, n)` for a batch.

    Attributes:
        lower: The mean minus beta times a standard deviation.
        upper: The mean plus it.
    """

    lower: Array
    upper: Array


def posterior_of(mean: Array, std: Array, batched: bool) -> Posterior:
    """Return the posteriors of B learners, `(B, n)`, or the only one, `(n,)`.

    Raises:
        ValueError: If one is not finite.
    """
    if not (np.isfinite(mean).all() and np.isfinite(std).all()):
        not_finite()
    return Posterior(mean, std) if batched else Posterior(mean[0], std[0])
