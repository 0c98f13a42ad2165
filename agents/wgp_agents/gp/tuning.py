"""Forgetting parameters tuned by theory: [Deng22] Corollary 5, and Remark 1 of [Zhou21].

References:
    [Zhou21] Zhou, Shroff. No-Regret Algorithms for Time-Varying Bayesian Optimization. 2021.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.parameters import not_drawn, per_learner
from wgp_gym.arrays import kept
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Numbers
from wgp_gym.validation import reject

__all__ = [
    "MAX_RATE",
    "NEEDS_GIVEN",
    "USUAL_HORIZON",
    "BudgetChoice",
    "Forgetting",
    "GammaChoice",
    "check_budget",
    "forgetting_rate",
    "gain_order",
    "memory_length",
    "stated_budget",
]

BudgetChoice = Literal["known", "unknown"] | Numbers
"""B_T as an agent takes it: see `Forgetting`."""
GammaChoice = Literal["order", "computed"] | Numbers
"""gamma_T, likewise."""

RateForm = Callable[[BanditProblem, Array, Array], Array]

# Deviation: theory's rate may exceed 1, which is no discount; it is at most 1/2.
MAX_RATE = 0.5
USUAL_HORIZON = 10_000  # stands for an unknown T where little depends on it
NEEDS_GIVEN = ("Forgetting", "given")  # where it is to follow from an unknown T


def gain_order(horizon: int, dim: int) -> float:
    """Return (log T)^(d+1), with T at least e: the order of gamma_T for the SE kernel.

    It is that of [Deng22] Remark 4.
    """
    logarithm = math.log(max(horizon, math.e))
    try:
        return logarithm ** (dim + 1)
    except OverflowError:
        return sys.float_info.max


def forgetting_rate(horizon: int, gain: Array, variation_budget: Array) -> Array:
    """Return 1 - eta = gamma^{-1/4} (B_T / T)^{1/2}, [Deng22] Corollary 5, within [0, 1/2].

    B_T = 1 gives the corollary's choice for an unknown budget.
    """
    rate = gain**-0.25 * np.sqrt(variation_budget / horizon)
    return np.minimum(rate, MAX_RATE)


def corollary_rate(problem: BanditProblem, gain: Array, variation_budget: Array) -> Array:
    """Return the rate of [Deng22] Corollary 5 on a problem: see `forgetting_rate`."""
    return forgetting_rate(problem.known_horizon(*NEEDS_GIVEN), gain, variation_budget)


def memory_length(rate: Array, horizon: int) -> Array:
    """Return H = SW = ceil(1 / (1 - eta)), infinity where it reaches the horizon T.

    Deviation: [Zhou21] leaves the constant open. This one makes discount, window and restart period
    equally long.
    """
    length = np.ceil(1 / np.maximum(rate, 0.5 / horizon))
    return np.where(length >= horizon, math.inf, length)


def check_budget(owner: str, given: BudgetChoice, batch: int) -> None:
    """Check an agent's `variation_budget`: "known", "unknown" or numbers of at least 0."""
    if not isinstance(given, str):
        per_learner(owner, "variation_budget", given, batch, 0.0, math.inf, "left")
    elif given not in ("known", "unknown"):
        rule = "'known', 'unknown' or a number in [0, 1e+30]"
        reject("variation_budget", owner, rule, given)


def stated_budget(given: BudgetChoice, problem: BanditProblem) -> Array | None:
    """Return B_T as given or as the problem states it; None where it is unknown.

    Raises:
        RuntimeError: If the known budget is asked for before an episode is drawn.
    """
    if not isinstance(given, str):
        return np.asarray(given, float)
    if given == "known" and problem.variation_budget is None:
        not_drawn("variation budget", "variation_budget")
    return np.asarray(problem.variation_budget, float) if given == "known" else None


@dataclass(frozen=True)
class Forgetting:
    """The forgetting parameter of every learner's surrogate: as given, or as theory tunes it.

    Args:
        parameter: "discount", "window" or "restart_period".
        given: Its value, scalar or `(B,)`; None leaves it to theory.
        variation_budget: "known": B_T as the problem states it; "unknown": theory's choice
            without it; or B_T >= 0 as a number, scalar or `(B,)`.
        information_gain: gamma_T > 0, scalar or `(B,)`; "order": (log T)^(d+1); "computed":
            the unweighted gain of T greedy plays.
        rate_form: The formula of the rate 1 - eta, from the problem, gamma_T and B_T, `(B,)`.
    """

    parameter: str
    given: ArrayLike | None = None
    variation_budget: BudgetChoice = "unknown"
    information_gain: GammaChoice = "order"
    rate_form: RateForm = corollary_rate

    def __post_init__(self) -> None:
        for name in ("given", "variation_budget", "information_gain"):
            object.__setattr__(self, name, kept(getattr(self, name)))  # frozen

    @property
    def gain_is_computed(self) -> bool:
        """Whether the agent must replace `information_gain` by the greedy gain."""
        return isinstance(self.information_gain, str) and self.information_gain == "computed"

    def check(self, owner: str, batch: int) -> None:
        """Check every parameter for a batch of B learners.

        Raises:
            ValueError: If one is out of its range, or there is not one for each learner.
        """
        given = self.given
        if given is not None and self.parameter == "discount":
            per_learner(owner, "discount", given, batch, 0.0, 1.0, "right")
        elif given is not None:
            per_learner(owner, self.parameter, given, batch, 1, math.inf, whole=True)
        check_budget(owner, self.variation_budget, batch)
        gain = self.information_gain
        if isinstance(gain, str) and gain not in ("order", "computed"):
            rule = "'order', 'computed' or a number in [1e-30, 1e+30]"
            reject("information_gain", owner, rule, gain)
        if not isinstance(gain, str):
            per_learner(owner, "information_gain", gain, batch, 0.0, math.inf, "neither")

    def __call__(self, problem: BanditProblem, batch: int) -> Array:
        """Return the parameter on the problem at hand, `(B,)`. Call `check` first.

        Raises:
            RuntimeError: If the known budget is asked for before an episode is drawn.
        """
        if self.given is not None:
            return np.broadcast_to(np.asarray(self.given, float), batch)
        rate = self.rate(problem, batch)
        if self.parameter == "discount":
            return 1 - rate
        return memory_length(rate, problem.known_horizon(*NEEDS_GIVEN))

    def rate(self, problem: BanditProblem, batch: int) -> Array:
        """Return theory's forgetting rate 1 - eta, `(B,)`."""
        stated = stated_budget(self.variation_budget, problem)
        budget = 1.0 if stated is None else stated
        gain = self.information_gain
        if isinstance(gain, str):  # "order": agents replace "computed" by a number
            gain = gain_order(problem.known_horizon(*NEEDS_GIVEN), problem.domain.shape[1])
        budget, gain = np.broadcast_to(budget, batch), np.broadcast_to(gain, batch)
        return self.rate_form(problem, gain.astype(float), budget.astype(float))
