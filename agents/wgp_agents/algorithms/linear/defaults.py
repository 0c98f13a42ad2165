"""What the linear agents share: features phi(x) = x, and memory lengths from theory.

References:
    [CSZ19] Cheung, Simchi-Levi, Zhu. Learning to Optimize under Non-Stationarity. AISTATS 2019.
    [RVC19] Russac, Vernade, Cappe. Weighted Linear Bandits for Non-Stationary Environments.
        NeurIPS 2019.
    [TV20] Touati, Vincent. Efficient Learning in Non-Stationary Linear Markov Decision Processes.
        2020.
    [ZZ21] Zhao, Zhang. Non-stationary Linear Bandits Revisited. 2021.
"""

from __future__ import annotations

from functools import partial
from typing import Any, TypedDict, cast

import numpy as np

from wgp_agents.gp.agent import GPParameters
from wgp_agents.gp.tuning import MAX_RATE, Forgetting
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array
from wgp_gym.validation import check_choice, check_names

__all__ = ["LinearParameters", "TunedParameters", "linear_parameters", "tuned_parameters"]

TUNINGS = ("original", "corrected")


class LinearParameters(TypedDict, total=False):
    """The parameters that all linear agents share. See `GPAgent`.

    Unless given, `regularization` is 1 and `gain` is that of determinant and trace, with which
    sqrt(lambda) times the beta of [Deng22] is that of the papers.
    """

    regularization: Any
    delta: Any
    norm_bound: Any
    noise_scale: Any
    confidence_width: Any
    confidence: str
    gain: str


class TunedParameters(LinearParameters, total=False):
    """These, and the parameters of a memory that theory tunes where it is not given.

    `tuning`: "original", a memory of (d T / B_T)^{2/3} steps, as [RVC19] and [CSZ19] had it; or
    "corrected", the default, of d^{1/4} (T / B_T)^{1/2}, after the flaw in their proofs that
    [TV20] and [ZZ21] found: the rate of regret is T^{3/4}, not T^{2/3}. `variation_budget`: B_T,
    the sum of |theta_{t+1} - theta_t|, "known", "unknown" or a number: see `Forgetting`.
    """

    tuning: str
    variation_budget: Any


def linear_parameters(
    owner: str, common: LinearParameters, gain: str = "determinant"
) -> GPParameters:
    """Return what a linear agent hands to `GPAgent`: features are x itself.

    Args:
        owner: The agent's name, for errors.
        common: What was given; None stands for the default.
        gain: The default of `gain`.

    Raises:
        ValueError: If there is a parameter that linear agents do not have.
    """
    check_names(common, owner, LinearParameters.__annotations__)
    given: Any = {name: value for name, value in common.items() if value is not None}
    found: Any = {"regularization": 1.0, "gain": gain, **given, "features": "linear"}
    return cast(GPParameters, found)


def tuned_parameters(
    owner: str, parameter: str, given: Any, common: TunedParameters, offset: float = 0.0
) -> dict[str, Any]:
    """Return what a linear agent that forgets hands to `GPAgent`, its forgetting among it.

    Args:
        owner: The agent's name, for errors.
        parameter: "discount", "window" or "restart_period".
        given: Its value; None leaves it to theory.
        common: The other parameters that were given.
        offset: What is added to B_T.

    Raises:
        ValueError: If there is a parameter that these agents do not have, or no such tuning.
    """
    rest: Any = dict(common)
    tuning, budget = rest.pop("tuning", "corrected"), rest.pop("variation_budget", "unknown")
    corrected = check_choice("tuning", tuning, owner, TUNINGS) == "corrected"
    rate = partial(linear_rate, corrected=corrected, offset=offset)
    forgetting = Forgetting(parameter, given, budget, rate_form=rate)
    return {"forgetting": forgetting, **linear_parameters(owner, rest)}


def linear_rate(
    problem: BanditProblem, gain: Array, variation_budget: Array, *, corrected: bool, offset: float
) -> Array:
    """Return 1 - eta, `(B,)`, at most 1/2: see `TunedParameters`; `gain` plays no part."""
    del gain
    dim, horizon = problem.domain.shape[1], problem.horizon
    budget = variation_budget + offset
    rate: Array = (budget / (dim * horizon)) ** (2 / 3)
    if corrected:
        rate = dim**-0.25 * np.sqrt(budget / horizon)
    return np.minimum(rate, MAX_RATE)
