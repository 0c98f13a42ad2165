"""Confidence widths of agents that hold the function for a draw from the Gaussian process.

They know no norm bound: beta_t depends on t alone, and mean + beta_t^{1/2} std bounds the
function at all points and all t at once with probability 1 - delta. Each width is a function of
the observations so far, t - 1, and returns beta_t^{1/2}, the factor of the standard deviation,
for every learner.

References:
    [SKKS10] Srinivas, Krause, Kakade, Seeger. Gaussian Process Optimization in the Bandit
        Setting: No Regret and Experimental Design. ICML 2010.
    [BSC16] Bogunovic, Scarlett, Cevher. Time-Varying Gaussian Process Bandit Optimization.
        AISTATS 2016.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np

from wgp_agents.parameters import per_learner
from wgp_gym.features import FeatureMap
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Indices
from wgp_gym.validation import as_floats, check_float, check_int, check_names, reject

__all__ = [
    "BayesParameters",
    "BoxWidth",
    "DriftingBoxWidth",
    "FiniteWidth",
    "HeuristicWidth",
    "Indices",
    "bayes_parameters",
    "bayes_width",
    "root",
]


class BayesParameters(TypedDict, total=False):
    """The parameters of agents of Bayesian width beside the width. See `GPUCB`."""

    regularization: Any
    noise_scale: Any
    features: str | FeatureMap


def bayes_parameters(owner: str, common: BayesParameters) -> BayesParameters:
    """Return the parameters that were given.

    Raises:
        ValueError: If one is not of these: there is no norm bound in a Bayesian width.
    """
    check_names(common, owner, BayesParameters.__annotations__)
    return common


@dataclass(frozen=True, eq=False)
class FiniteWidth:
    """beta_t = 2 log(n pi^2 t^2 / (6 delta)): [SKKS10] Theorem 1, and [BSC16] on n arms.

    Args:
        delta: The probability in (0, 1) with which the bound may fail, scalar or `(B,)`.
        arms: n >= 1.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    delta: Any
    arms: int

    def __post_init__(self) -> None:
        check_delta("FiniteWidth", self.delta)
        check_int("arms", self.arms, "FiniteWidth", 1)

    def __call__(self, counts: Indices) -> Array:
        """Return beta_t^{1/2} after so many observations, `(B,)`."""
        rounds = math.pi**2 * (counts + 1.0) ** 2 / (6 * np.asarray(self.delta))
        return root(2 * np.log(self.arms * rounds))


@dataclass(frozen=True, eq=False)
class BoxWidth:
    """beta_t = 2 log(2 pi^2 t^2 / (3 delta)) + 2 d log(d b t^2 log(4 d a / delta)^{1/2}).

    [SKKS10] Theorem 2 on [0, 1]^d: its r is 1. The last logarithm is that of the points to a
    side of a grid, so at least 0.

    Args:
        delta: The probability in (0, 1) with which the bound may fail, scalar or `(B,)`.
        dim: d >= 1.
        a: a > 0, where each partial derivative of the function exceeds L somewhere with
            probability at most a exp(-L^2 / b^2).
        b: b > 0 of the same.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    delta: Any
    dim: int
    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        check_box("BoxWidth", self.delta, self.dim, self.a, self.b)

    def __call__(self, counts: Indices) -> Array:
        """Return beta_t^{1/2} after so many observations, `(B,)`."""
        squares, delta = (counts + 1.0) ** 2, np.asarray(self.delta)
        slope = self.b * root(np.log(4 * self.dim * self.a / delta))
        points = np.maximum(self.dim * slope * squares, 1.0)
        return root(
            2 * np.log(2 * math.pi**2 * squares / (3 * delta)) + 2 * self.dim * np.log(points)
        )


@dataclass(frozen=True, eq=False)
class DriftingBoxWidth:
    """beta_t = 2 log(pi^2 t^2 / (2 delta)) + 2 d log(d b t^2 log(pi^2 t^2 d a / (2 delta))^{1/2}).

    [BSC16] on [0, 1]^d: the slope of each f_t must be bounded anew, where `BoxWidth` bounds that
    of one function. Its failures share delta three ways: the function on the grid, its slope, and
    the noise in the regret.

    Args:
        delta: The probability in (0, 1) with which the bound may fail, scalar or `(B,)`.
        dim: d >= 1.
        a: a > 0, as in `BoxWidth`, of every f_t.
        b: b > 0 of the same.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    delta: Any
    dim: int
    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        check_box("DriftingBoxWidth", self.delta, self.dim, self.a, self.b)

    def __call__(self, counts: Indices) -> Array:
        """Return beta_t^{1/2} after so many observations, `(B,)`."""
        squares = (counts + 1.0) ** 2
        rounds = math.pi**2 * squares / (2 * np.asarray(self.delta))
        slope = self.b * root(np.log(self.dim * self.a * rounds))
        points = np.maximum(self.dim * slope * squares, 1.0)
        return root(2 * np.log(rounds) + 2 * self.dim * np.log(points))


@dataclass(frozen=True)
class HeuristicWidth:
    """beta_t = c log(r t), never negative: with 0.8 and 4 as in the experiments of [BSC16].

    Args:
        scale: c >= 0.
        rate: r > 0.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    scale: float = 0.8
    rate: float = 4.0

    def __post_init__(self) -> None:
        check_float("scale", self.scale, "HeuristicWidth", 0.0)
        check_float("rate", self.rate, "HeuristicWidth", 0.0, closed="neither")

    def __call__(self, counts: Indices) -> Array:
        """Return beta_t^{1/2} after so many observations, `(B,)`."""
        return root(self.scale * np.log(self.rate * (counts + 1.0)))


def root(squares: Array) -> Array:
    """Return the root of what is positive, and 0 of the rest."""
    found: Array = np.sqrt(np.maximum(squares, 0.0))
    return found


def check_delta(owner: str, delta: Any) -> None:
    """Check a probability, scalar or `(B,)`.

    Raises:
        ValueError: If it is not in (0, 1).
    """
    rule = "a float in (0, 1), or one for each learner"
    array = as_floats("delta", delta, owner, rule)
    if array.ndim > 1 or not ((array > 0) & (array < 1)).all():
        reject("delta", owner, rule, delta)


def check_box(owner: str, delta: Any, dim: int, a: float, b: float) -> None:
    """Check the parameters of a width on a box.

    Raises:
        ValueError: If one is out of its range.
    """
    check_delta(owner, delta)
    check_int("dim", dim, owner, 1)
    check_float("a", a, owner, 0.0, closed="neither")
    check_float("b", b, owner, 0.0, closed="neither")


def bayes_width(
    owner: str,
    problem: BanditProblem,
    given: Any,
    delta: Any,
    on_box: Callable[[Any, int], Callable[[Indices], Array]],
    **named: Callable[[Indices], Array],
) -> Any:
    """Return `confidence_width` as `GPAgent` takes it where there is no norm bound.

    Args:
        owner: The agent.
        problem: The problem at hand.
        given: "theory", "heuristic", another name, a number, or a function of the observations so
            far.
        delta: The probability with which the bound may fail, scalar or `(B,)`.
        on_box: The width of "theory" on a box, from delta and d; on arms it is `FiniteWidth`.
        **named: The agent's own widths, by name.

    Raises:
        ValueError: If `given` is another text, or delta is out of its range.
    """
    delta = per_learner(owner, "delta", delta, problem.batch_size or 1, 0.0, 1.0, "neither")
    n, dim = problem.domain.shape
    if not isinstance(given, str):
        return given
    if given == "theory":
        return on_box(delta, dim) if problem.continuous else FiniteWidth(delta, n)
    known = {"heuristic": HeuristicWidth(), **named}
    if given in known:
        return known[given]
    texts = ", ".join(f"{text!r}" for text in ("theory", *known))
    reject("confidence_width", owner, f"{texts}, a number or a function", given)
