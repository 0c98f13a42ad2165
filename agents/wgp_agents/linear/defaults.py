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
from wgp_gym.kernels import Array
from wgp_gym.problem import BanditProblem
from wgp_gym.validation import check_choice, check_names

__all__ = ["TUNINGS", "LinearParameters", "linear_forgetting", "linear_parameters"]

TUNINGS = ("original", "corrected")


class LinearParameters(TypedDict, total=False):
    """The parameters that all linear agents share. See `GPAgent`."""

    regularization: Any
    delta: Any
    norm_bound: Any
    noise_scale: Any
    confidence_width: Any
    confidence: str
    gain: str


def linear_parameters(
    owner: str, common: LinearParameters, gain: str = "determinant"
) -> GPParameters:
    """Return the parameters of a linear agent: those given, and otherwise those of the field.

    Features are x itself, lambda is 1, and the gain in beta is bounded by determinant and trace:
    beta / sqrt(lambda) of the papers is the beta of [Deng22] with that gain.

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


def linear_forgetting(
    owner: str,
    parameter: str,
    given: Any,
    tuning: str,
    variation_budget: Any,
    offset: float = 0.0,
) -> Forgetting:
    """Return the memory's parameter, as given or as theory for linear bandits tunes it.

    Args:
        owner: The agent's name, for errors.
        parameter: "discount", "window" or "restart_period".
        given: Its value; None leaves it to theory.
        tuning: "original": a memory of (d T / B_T)^{2/3} steps, as [RVC19] and [CSZ19] had it;
            "corrected": of d^{1/4} (T / B_T)^{1/2}, after the flaw in their proofs that [TV20]
            and [ZZ21] found: the rate of regret is T^{3/4}, not T^{2/3}.
        variation_budget: B_T, the sum of |theta_{t+1} - theta_t|: see `Forgetting`.
        offset: What is added to B_T.

    Raises:
        ValueError: If there is no such tuning.
    """
    corrected = check_choice("tuning", tuning, owner, TUNINGS) == "corrected"
    rate = partial(linear_rate, corrected=corrected, offset=offset)
    return Forgetting(parameter, given, variation_budget, rate_form=rate)


def linear_rate(
    problem: BanditProblem, gain: Array, variation_budget: Array, *, corrected: bool, offset: float
) -> Array:
    """Return 1 - eta, `(B,)`, at most 1/2: see `linear_forgetting`; `gain` plays no part."""
    del gain
    dim, horizon = problem.domain.shape[1], problem.horizon
    budget = variation_budget + offset
    rate: Array = (budget / (dim * horizon)) ** (2 / 3)
    if corrected:
        rate = dim**-0.25 * np.sqrt(budget / horizon)
    return np.minimum(rate, MAX_RATE)
