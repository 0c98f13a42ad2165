"""W-DBO: models the drift in time, and drops the observations that no longer matter."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import NDArray

from wgp_agents.core.access import problem_reader
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.acquisition import optimistic
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.bayes_width import BayesParameters, bayes_parameters
from wgp_agents.gp.surrogates.spatiotemporal import SpatiotemporalSurrogate
from wgp_agents.kernels.wdbo import FEWEST
from wgp_agents.parameters import LARGEST_COUNT, per_learner
from wgp_gym.types import Array
from wgp_gym.validation import check_int, reject

if TYPE_CHECKING:
    from wgp_agents.gp.action_sets import ActionSet
    from wgp_agents.gp.surrogates.weighted import Surrogate

__all__ = ["WDBO"]

MOST = 10_000  # observations held: their covariances are a square of so many


class WDBO(GPAgent):
    """Wasserstein-distance-based dynamic Bayesian optimisation, in discrete time.

    Plays argmax mean + beta^{1/2} std of a Gaussian process in space and time,
    beta = 0.2 d log(2 n), n the observations held. Each observation is followed by the removal of
    those whose absence changes the posterior of the future least, as far as a removal budget
    reaches: see `SpatiotemporalSurrogate`. It needs no variation budget.

    Deviation: its paper optimises in continuous time, and its own response time is part of the
    problem; here a step is a unit of time. It fits all hyperparameters at each step; here the
    kernel is the problem's, the noise variance is lambda and the mean is 0. So nothing calls for
    the 15 plays at random that its experiments begin with, to fit, and do not count.
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
        initial_plays: Plays at random before the first choice and removal, at least 0. The first
            fit follows them, or the 25th play where there are none.
        max_observations: The most observations held, in [2, 10000], so that a step costs the same
            at any t.
        confidence_width: "paper": beta^{1/2}, as above; a number; or a function of the number of
            observations so far.
        **common: `regularization`, `noise_scale` and `features`, as in `GPUCB`.

    Raises:
        ValueError: If a parameter is out of its range, or the arms are drawn anew at each step.
    """

    def __init__(
        self,
        env: Any,
        *,
        time_lengthscale: Any = "fit",
        signal_variance: Any = 1.0,
        alpha: Any = 0.25,
        initial_plays: int = 0,
        max_observations: int = 100,
        confidence_width: Any = "paper",
        **common: Unpack[BayesParameters],
    ) -> None:
        owner, parameters = "WDBO", bayes_parameters("WDBO", common)
        problem = problem_reader(env)()
        if problem.contextual:
            reject("env", owner, "a task whose arms stay", "one that draws them anew at each step")
        batch = problem.batch_size or 1
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
        super().__init__(
            env,
            surrogate=surrogate,
            choice=partial(random_first, plays=initial),
            confidence_width=width,
            **parameters,
        )

    def _paper_width(self, counts: NDArray[np.int64]) -> Array:
        """Return (0.2 d log(2 n))^{1/2}; where nothing is held as if it were one."""
        del counts
        held, dim = np.maximum(self.surrogate.held, 1), self.problem.domain.shape[1]
        width: Array = np.sqrt(0.2 * dim * np.log(2.0 * held))
        return width


def random_first(
    action_set: ActionSet, surrogate: Surrogate, width: Array, uniform: UniformStreams, plays: int
) -> NDArray[Any]:
    """Play at random before so many observations are in, then maximise mean + beta std."""
    assert isinstance(surrogate, SpatiotemporalSurrogate)
    chosen = optimistic(action_set, surrogate, width, uniform)
    draws = np.stack([uniform.draw() for _ in range(max(chosen[0].size, 1))], axis=-1)
    if chosen.ndim == 1:
        anywhere = (draws[:, 0] * surrogate.mean.shape[1]).astype(chosen.dtype)
    else:
        anywhere = draws.astype(chosen.dtype)
    first = surrogate.observed < plays
    return np.where(first.reshape(-1, *[1] * (chosen.ndim - 1)), anywhere, chosen)


def lengthscales(given: Any, batch: int) -> Array:
    """Return l_T of every learner, NaN where it is to be fitted, `(B,)`.

    Raises:
        ValueError: If it is neither "fit" nor in [1e-30, 1e30].
    """
    if not isinstance(given, str):
        return per_learner("WDBO", "time_lengthscale", given, batch, 0.0, math.inf, "neither")
    if given != "fit":
        rule = "'fit' or a float in [1e-30, 1e+30], or one for each learner"
        reject("time_lengthscale", "WDBO", rule, given)
    return np.full(batch, math.nan)
