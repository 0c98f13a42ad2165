"""Memory lengths from theory: [Deng22] Corollary 5, and Remark 1 of [Zhou21].

References:
    [Zhou21] Zhou, Shroff. No-Regret Algorithms for Time-Varying Bayesian Optimization. 2021.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from wgp_agents.parameters import per_learner
from wgp_gym.kernels import Array
from wgp_gym.problem import BanditProblem
from wgp_gym.validation import check_choice

__all__ = [
    "MAX_RATE",
    "TheoryTuning",
    "forgetting_rate",
    "gain_order",
    "memory_length",
    "optional_length",
]

MAX_RATE = 0.5  # theory may ask for more than can be: 1 - eta > 1


def gain_order(horizon: int, dim: int) -> float:
    """Return (log T)^(d+1), the order of gamma_T for the SE kernel ([Deng22] Remark 4).

    Args:
        horizon: T; below e, counted as e.
        dim: d.
    """
    return math.log(max(horizon, math.e)) ** (dim + 1)


def forgetting_rate(horizon: int, gain: Array, variation_budget: Array) -> Array:
    """Return 1 - eta = gamma^{-1/4} (B_T / T)^{1/2}, [Deng22] Corollary 5, within [0, 1/2].

    With B_T = 1 this is the corollary's choice for an unknown budget.

    Args:
        horizon: T.
        gain: gamma_T, the information gain.
        variation_budget: B_T >= 0.
    """
    rate = gain**-0.25 * np.sqrt(variation_budget / horizon)
    return np.minimum(rate, MAX_RATE)


def memory_length(rate: Array, horizon: int) -> Array:
    """Return H = SW = ceil(1 / (1 - eta)); one that spans the horizon counts as infinite.

    Args:
        rate: 1 - eta in [0, 1/2].
        horizon: T.
    """
    length = np.ceil(1 / np.maximum(rate, 0.5 / horizon))
    return np.where(length >= horizon, math.inf, length)


@dataclass(frozen=True)
class TheoryTuning:
    """How an agent's forgetting follows from what it is told of the drift.

    Args:
        variation_budget: "known": B_T as the problem states it; "unknown": theory's choice
            without it; or B_T >= 0 as a number, scalar or `(B,)`.
        information_gain: gamma_T > 0, scalar or `(B,)`. Default (log T)^(d+1).

    Raises:
        ValueError: If a parameter is none of these.
    """

    variation_budget: Any = "unknown"
    information_gain: Any = None

    def __post_init__(self) -> None:
        if isinstance(self.variation_budget, str):
            options = ("known", "unknown")
            check_choice("variation_budget", self.variation_budget, "the agent", options)
        else:
            per_learner("variation_budget", self.variation_budget, None, 0.0, math.inf, "left")
        if self.information_gain is not None:
            per_learner("information_gain", self.information_gain, None, 0.0, math.inf, "neither")

    def rate(self, problem: BanditProblem, batch: int) -> Array:
        """Return the forgetting rate 1 - eta of every learner, `(B,)`."""
        budget = self.variation_budget
        if isinstance(budget, str):
            budget = problem.variation_budget if budget == "known" else 1.0
        if budget is None:
            raise RuntimeError(
                "The variation budget is drawn with the episode: reset the environment before "
                "the agent, or give the agent a 'variation_budget'."
            )
        gain = self.information_gain
        if gain is None:
            gain = gain_order(problem.horizon, problem.domain.shape[1])
        budget, gain = np.broadcast_to(budget, batch), np.broadcast_to(gain, batch)
        return forgetting_rate(problem.horizon, gain.astype(float), budget.astype(float))

    def length(self, problem: BanditProblem, batch: int) -> Array:
        """Return the restart period or window of every learner, `(B,)`."""
        return memory_length(self.rate(problem, batch), problem.horizon)


def optional_length(name: str, value: Any, batch: int) -> Array | None:
    """Return a given restart period or window for every learner `(B,)`; None stays None.

    Raises:
        ValueError: If it is not a whole number of at least 1, or infinity.
    """
    return None if value is None else per_learner(name, value, batch, 1, math.inf, whole=True)
