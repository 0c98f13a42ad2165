"""W-DBO: a Gaussian process in space and time, which drops stale observations."""

from __future__ import annotations

import math
from functools import partial
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.core.argmax import argmax
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.action_sets import Plays, check_arms_stay
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.bayes_width import bayes_parameters
from wgp_agents.gp.confidence import GivenWidth
from wgp_agents.gp.model import ModelParameters
from wgp_agents.gp.restart_rule import RestartRule
from wgp_agents.gp.surrogates.base import Surrogate
from wgp_agents.gp.surrogates.spatiotemporal import SpatiotemporalSurrogate
from wgp_agents.kernels.wdbo import FEWEST
from wgp_agents.parameters import LARGEST_COUNT, per_learner
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Actions, Array, Indices, Mask
from wgp_gym.validation import check_int, reject

__all__ = ["WDBO"]

MOST = 10_000  # observations held: their covariances are a square of so many


class WDBO(GPAgent):
    """Wasserstein-distance-based dynamic Bayesian optimisation, in discrete time.

    Plays argmax mean + beta^{1/2} std of a Gaussian process in space and time, with
    beta = 0.2 d log(2 n) and n the observations held. After each observation it removes those that
    change the posterior of the future least, as far as a removal budget reaches: see
    `SpatiotemporalSurrogate`. It needs no variation budget.

    Deviation: the paper optimises in continuous time, and its own response time is part of the
    problem; here a step is a unit of time. It fits all hyperparameters at each step; here the
    kernel is the problem's, the noise variance is lambda and the mean is 0. So the 15 random plays
    with which its experiments begin, to fit, are not needed.
    Deviation: the authors' code takes the standard deviation of the next reward, noise included,
    which changes no choice but through beta; this is that of the function.

    Source: Bardou, Thiran, Ranieri. This Too Shall Pass: Removing Stale Observations in Dynamic
    Bayesian Optimization. NeurIPS 2024. The width and alpha are those of the authors' code.

    Args:
        env: The environment to play, or the `BanditProblem` alone. Its arms must stay.
        time_lengthscale: l_T of the Matern-3/2 kernel in time, in steps, in [1e-30, 1e30].
            "fit": the likeliest of 5, 10, 20, ..., 5,120.
        signal_variance: v > 0, the prior variance where k(x, x) = 1.
        alpha: alpha >= 0: the removal budget grows by the factor 1 + alpha in each l_T.
        initial_plays: Random plays before the first choice and removal, at least 0. The first
            fit follows them, or the 25th play where there are none.
        max_observations: The largest number of observations held, in [2, 10000]; it bounds the cost
            of a step.
        confidence_width: "paper": beta^{1/2}, as above; a number; or a function of the number of
            observations so far.
        **common: `regularization`, `noise_scale` and `features`, as in `GPUCB`.

    Raises:
        ValueError: If a parameter is out of its range, or arms are drawn anew at each step.
    """

    def __init__(
        self,
        env: EnvLike,
        *,
        time_lengthscale: ArrayLike = "fit",
        signal_variance: ArrayLike = 1.0,
        alpha: ArrayLike = 0.25,
        initial_plays: int = 0,
        max_observations: int = 100,
        confidence_width: GivenWidth = "paper",
        **common: Unpack[ModelParameters],
    ) -> None:
        owner, problem = "WDBO", problem_reader(env)()
        check_arms_stay(owner, problem)
        batch, (n, dim) = problem.batch_size or 1, problem.domain.shape
        initial = check_int("initial_plays", initial_plays, owner, 0, LARGEST_COUNT)
        surrogate = partial(
            SpatiotemporalSurrogate,
            lengthscale=lengthscales(time_lengthscale, batch),
            signal=per_learner(
                owner, "signal_variance", signal_variance, batch, 0.0, math.inf, "neither"
            ),
            alpha=per_learner(owner, "alpha", alpha, batch, 0.0, math.inf, "left"),
            initial=initial,
            capacity=check_int("max_observations", max_observations, owner, FEWEST, MOST),
        )
        width = confidence_width
        if isinstance(width, str):
            if width != "paper":
                reject("confidence_width", owner, "'paper', a number or a function", width)
            width = self._paper_width
        parameters = bayes_parameters(owner, common, width)
        first = RandomFirst(initial, batch, n, dim if problem.continuous else None)
        super().__init__(env, surrogate=surrogate, restart_rule=first, **parameters)

    def _paper_width(self, counts: Indices) -> Array:
        """Return (0.2 d log(2 n))^{1/2}, with n at least 1."""
        held, dim = np.maximum(self.surrogate.held, 1), self.problem.domain.shape[1]
        width: Array = np.sqrt(0.2 * dim * np.log(2.0 * held))
        return width


class RandomFirst(RestartRule):
    """A rule that plays at random until `plays` observations are in; `dim` is d of a box."""

    takes_elapsed = True
    learns_by_acting = False

    def __init__(self, plays: int, batch: int, num_arms: int, dim: int | None) -> None:
        self._plays, self._num_arms, self._dim = plays, num_arms, dim
        self._seen = np.zeros(batch, np.int64)

    def restart(
        self, mask: Mask, problem: BanditProblem, norm_bound: Array | None, noise_scale: Array
    ) -> None:
        """Begin with random plays."""
        self._seen[mask] = 0

    def override_action(
        self, actions: Actions, allowed: Mask | None, uniform: UniformStreams
    ) -> Actions:
        """Replace the first actions by random ones."""
        draws = np.stack([uniform.draw() for _ in range(self._dim or 1)], axis=-1)
        first = self._seen < self._plays
        if self._dim is not None:
            return np.where(first[:, None], draws.astype(actions.dtype), actions)
        equal = np.zeros((len(first), self._num_arms))
        return np.where(first, argmax(equal, draws[:, 0], allowed), actions)

    def before_update(
        self, surrogate: Surrogate, plays: Plays, rewards: Array, active: Mask
    ) -> None:
        """Count the observations."""
        self._seen += active


def lengthscales(given: ArrayLike, batch: int) -> Array:
    """Return l_T of every learner, `(B,)`, NaN for "fit"."""
    if not isinstance(given, str):
        return per_learner("WDBO", "time_lengthscale", given, batch, 0.0, math.inf, "neither")
    if given != "fit":
        rule = "'fit' or a float in [1e-30, 1e+30], or one for each learner"
        reject("time_lengthscale", "WDBO", rule, given)
    return np.full(batch, math.nan)
