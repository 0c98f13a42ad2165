"""UI-GP-UCB: what was seen stays true, and grows uncertain step by step."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, Unpack

from wgp_agents.core.access import problem_reader
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.bayes_width import (
    BayesParameters,
    DriftingBoxWidth,
    bayes_parameters,
    bayes_width,
)
from wgp_agents.gp.surrogates.ageing import AgeingSurrogate
from wgp_agents.gp.surrogates.walk import WalkSurrogate
from wgp_agents.parameters import per_learner
from wgp_gym.validation import check_choice

__all__ = ["UIGPUCB"]

MODELS = ("walk", "noise")
WIDTH = math.sqrt(2.0)


class UIGPUCB(GPAgent):
    """GP-UCB with uncertainty injection: plays argmax mean + beta^{1/2} std, beta = 2.

    "walk" is the model of Brunzema et al.: the covariance k(x, x') (1 + sigma_w^2 min(t, t')),
    exactly: see `WalkSurrogate`. Where nothing was seen for long the mean stays, and the variance
    grows without bound. "noise" is the heteroscedastic regression that Mauduit et al. call by the
    same name: the function stands still, and an observation k steps old has the noise variance
    lambda + k sigma_w^2: see `AgeingSurrogate`. There the variance never exceeds the prior's.

    Deviation: the paper minimises a cost that it holds for convex, and tunes length scales as it
    plays. Here is its model of time alone. Mauduit et al. also ask for rewards of past points
    anew, which a bandit cannot.

    Source: Brunzema, von Rohr, Trimpe. On Controller Tuning with Time-Varying Bayesian
    Optimization. CDC 2022. Mauduit, Berthier, Simonetto. No-Regret Gaussian Process Optimization
    of Time-Varying Functions. 2025.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        injection: sigma_w^2 >= 0, the variance that a step adds, in units of the prior variance
            k(x, x) = 1. The default is that of its authors' code, for rewards scaled to unit
            variance. With 0 it is GP-UCB.
        model: "walk" or "noise", what the variance is added to.
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
        env: Any,
        *,
        injection: Any = 0.03,
        model: str = "walk",
        delta: Any = 0.1,
        confidence_width: Any = WIDTH,
        **common: Unpack[BayesParameters],
    ) -> None:
        parameters = bayes_parameters("UIGPUCB", common)
        problem = problem_reader(env)()
        batch, horizon = problem.batch_size or 1, problem.horizon
        added = per_learner("UIGPUCB", "injection", injection, batch, 0.0, math.inf, "left")
        walks = check_choice("model", model, "UIGPUCB", MODELS) == "walk"
        surrogate = (
            partial(WalkSurrogate, injection=added)
            if walks
            else partial(AgeingSurrogate, injection=added, horizon=horizon)
        )
        width = bayes_width("UIGPUCB", problem, confidence_width, delta, DriftingBoxWidth)
        super().__init__(
            env, surrogate=surrogate, delta=delta, confidence_width=width, **parameters
        )
