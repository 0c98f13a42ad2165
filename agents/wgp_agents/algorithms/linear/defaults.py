"""What the linear agents share: features phi(x) = x, and forgetting parameters from theory.

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
from typing import Literal, TypedDict, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.gp.agent import GPParameters, TunedParts
from wgp_agents.gp.confidence import GivenWidth
from wgp_agents.gp.gain_bounds import GainChoice
from wgp_agents.gp.tuning import MAX_RATE, NEEDS_GIVEN, BudgetChoice, Forgetting
from wgp_agents.gp.width import Confidence
from wgp_gym.kernels import Linear
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array
from wgp_gym.validation import check_choice, check_names

__all__ = [
    "LinearParameters",
    "TunedParameters",
    "Tuning",
    "linear_dim",
    "linear_parameters",
    "tuned_parameters",
]

Tuning = Literal["original", "corrected"]
"""See `TunedParameters`."""
TUNINGS: tuple[Tuning, ...] = get_args(Tuning)


class LinearParameters(TypedDict, total=False):
    """The parameters that all linear agents share. See `GPAgent`.

    Unless given, `regularization` is 1 and `gain` is that of determinant and trace, with which
    sqrt(lambda) times the beta of [Deng22] is that of the papers.
    """

    regularization: ArrayLike | None
    delta: ArrayLike
    norm_bound: ArrayLike | None
    noise_scale: ArrayLike | None
    confidence_width: GivenWidth
    confidence: Confidence
    gain: GainChoice


class TunedParameters(LinearParameters, total=False):
    """`LinearParameters`, and what theory tunes a forgetting parameter by where it is not given.

    `tuning`: "original", (d T / B_T)^{2/3} steps, as in [RVC19] and [CSZ19]; or "corrected", the
    default, d^{1/4} (T / B_T)^{1/2} steps, after the flaw in their proofs that [TV20] and [ZZ21]
    found: the rate of regret is T^{3/4}, not T^{2/3}. A discount is 1 less 1 over the steps.
    `variation_budget`: B_T, the sum of |theta_{t+1} - theta_t|, "known", "unknown" or a number: see
    `Forgetting`.
    """

    tuning: Tuning
    variation_budget: BudgetChoice


def linear_parameters(
    owner: str, common: LinearParameters, gain: GainChoice = "determinant"
) -> GPParameters:
    """Return the arguments of `GPAgent` for a linear agent, with `gain` unless another was given.

    Raises:
        ValueError: If there is a parameter that linear agents do not have.
    """
    check_names(common, owner, LinearParameters.__annotations__)
    given = {name: value for name, value in common.items() if value is not None}
    found = {"regularization": 1.0, "gain": gain, **given, "features": "linear"}
    return cast(GPParameters, found)


def tuned_parameters(
    owner: str,
    parameter: str,
    given: ArrayLike | None,
    common: TunedParameters,
    offset: float = 0.0,
) -> TunedParts:
    """Return the arguments of `GPAgent` for a linear agent with this forgetting parameter.

    `parameter` is "discount", "window" or "restart_period"; `given` its value, None for theory's;
    `offset` is added to B_T.

    Raises:
        ValueError: If there is a parameter that these agents do not have, or no such tuning.
    """
    tuning = check_choice("tuning", common.get("tuning", "corrected"), owner, TUNINGS)
    rate = partial(linear_rate, corrected=tuning == "corrected", offset=offset)
    budget = common.get("variation_budget", "unknown")
    forgetting = Forgetting(parameter, given, budget, rate_form=rate)
    own = ("tuning", "variation_budget")
    rest = {name: value for name, value in common.items() if name not in own}
    shared = linear_parameters(owner, cast(LinearParameters, rest))
    return cast(TunedParts, {"forgetting": forgetting, **shared})


def linear_dim(problem: BanditProblem) -> int:
    """Return the d of the features: that of the points, but where the kernel has others."""
    features = problem.kernel.feature_map() or Linear().features
    return int(features(problem.domain[:1]).shape[1])


def linear_rate(
    problem: BanditProblem, gain: Array, variation_budget: Array, *, corrected: bool, offset: float
) -> Array:
    """Return 1 - eta, `(B,)`, at most 1/2: see `TunedParameters`."""
    dim, horizon = linear_dim(problem), problem.known_horizon(*NEEDS_GIVEN)
    budget = variation_budget + offset
    rate: Array = (budget / (dim * horizon)) ** (2 / 3)
    if corrected:
        rate = dim**-0.25 * np.sqrt(budget / horizon)
    return np.minimum(rate, MAX_RATE)
