"""UI-GP-UCB: the uncertainty of each observation grows step by step."""

from __future__ import annotations

import math
from functools import partial
from typing import Literal, Unpack

from numpy.typing import ArrayLike

from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.bayes_width import DriftingBoxWidth, bayes_parameters, bayes_width
from wgp_agents.gp.confidence import GivenWidth
from wgp_agents.gp.model import ModelParameters
from wgp_agents.gp.surrogates.ageing import LONGEST_AGE, AgeingSurrogate
from wgp_agents.gp.surrogates.drift import WalkSurrogate
from wgp_agents.parameters import per_learner
from wgp_gym.validation import check_choice

__all__ = ["UIGPUCB"]

MODELS = ("walk", "noise")
WIDTH = math.sqrt(2.0)


class UIGPUCB(GPAgent):
    """GP-UCB with uncertainty injection: plays argmax mean + beta^{1/2} std, beta = 2.

    "walk" is the model of Brunzema et al., with the covariance k(x, x') (1 + sigma_w^2 min(t, t'))
    with t from 0: see `WalkSurrogate`. Away from recent observations the mean stays, and the
    variance grows without bound. "noise" is the heteroscedastic regression that Mauduit et al. call
    by the same name: the function is fixed, and an observation k steps old has the noise variance
    lambda + k sigma_w^2: see `AgeingSurrogate`. There the variance never exceeds the prior's.

    Deviation: the first paper minimises a cost, assumed convex, and tunes lengthscales as it plays.
    Here is its model of time alone. Mauduit et al. also ask for rewards of past points anew, which
    a bandit cannot.

    Source: Brunzema, von Rohr, Trimpe. On Controller Tuning with Time-Varying Bayesian
    Optimization. CDC 2022. Mauduit, Berthier, Simonetto. No-Regret Gaussian Process Optimization of
    Time-Varying Functions. 2025.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        injection: sigma_w^2 >= 0, the variance that a step adds, in units of the prior variance
            k(x, x) = 1. The default is that of its authors' code, for rewards scaled to unit
            variance. With 0 it is GP-UCB.
        model: "walk" or "noise", what the variance is added to. "noise" takes elapsed time where T
            is unknown, and is then exact for plays of up to a million steps' age.
        confidence_width: beta^{1/2}, the factor of the standard deviation, as in `GPUCB`: a
            number; "theory"; "heuristic"; or a function of the number of observations so far. The
            default is 2^{1/2}, that of its authors' code. "theory" holds for "walk" on arms.
        delta: The probability in (0, 1) with which the bound of "theory" may fail.
        **common: `regularization`, `noise_scale` and `features`, as in `GPUCB`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self,
        env: EnvLike,
        *,
        injection: ArrayLike = 0.03,
        model: Literal["walk", "noise"] = "walk",
        delta: ArrayLike = 0.1,
        confidence_width: GivenWidth = WIDTH,
        **common: Unpack[ModelParameters],
    ) -> None:
        problem = problem_reader(env)()
        batch, horizon = problem.batch_size or 1, problem.horizon or LONGEST_AGE
        added = per_learner("UIGPUCB", "injection", injection, batch, 0.0, math.inf, "left")
        walks = check_choice("model", model, "UIGPUCB", MODELS) == "walk"
        surrogate = (
            partial(WalkSurrogate, injection=added)
            if walks
            else partial(AgeingSurrogate, injection=added, horizon=horizon)
        )
        width = bayes_width("UIGPUCB", problem, confidence_width, delta, DriftingBoxWidth)
        parameters = bayes_parameters("UIGPUCB", common, width, delta)
        super().__init__(env, surrogate=surrogate, **parameters)
