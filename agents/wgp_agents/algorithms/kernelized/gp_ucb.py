"""GP-UCB: the stationary Bayesian agent."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.bayes_width import BoxWidth, bayes_parameters, bayes_width
from wgp_agents.gp.confidence import GivenWidth
from wgp_agents.gp.model import ModelParameters
from wgp_agents.gp.surrogates.weighted import RestartSurrogate

__all__ = ["GPUCB"]


class GPUCB(GPAgent):
    """GP-UCB: all data, equally weighted; plays argmax mean + beta_t^{1/2} std, Algorithm 1.

    It needs no norm bound, and beta_t does not depend on the data: on n arms 2 log(n pi^2 t^2 / (6
    delta)), Theorem 1; on a box `BoxWidth`, Theorem 2, with a = b = 1.

    Source: Srinivas, Krause, Kakade, Seeger. Gaussian Process Optimization in the Bandit Setting:
    No Regret and Experimental Design. ICML 2010.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        regularization: lambda in [1e-9, 1e60], the model's noise variance. Default max(R^2, 1e-6).
        delta: The probability in (0, 1) with which the confidence bound may fail.
        noise_scale: R in [0, 1e30]. Default: the problem's.
        confidence_width: beta_t^{1/2}, the factor of the standard deviation. "theory", as above;
            "heuristic": (0.8 log(4 t))^{1/2}; a number; or a function of the number of
            observations so far, as those of `wgp_agents.gp.bayes_width` with other constants.
        features: As in `GPAgent`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self,
        env: EnvLike,
        *,
        delta: ArrayLike = 0.1,
        confidence_width: GivenWidth = "theory",
        **common: Unpack[ModelParameters],
    ) -> None:
        width = bayes_width("GPUCB", problem_reader(env)(), confidence_width, delta, BoxWidth)
        parameters = bayes_parameters("GPUCB", common, width, delta)
        super().__init__(env, surrogate=RestartSurrogate, **parameters)
