"""Confidence widths of Bayesian agents, which take the function for a draw from the prior.

They need no norm bound: beta_t depends on t alone, and mean + beta_t^{1/2} std bounds the function
at all points and all t at once with probability 1 - delta. Each width is a function of the number
of observations so far, t - 1, `(B,)`, and returns beta_t^{1/2}, `(B,)`.

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

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.gp.confidence import GivenWidth
from wgp_agents.gp.model import ModelParameters
from wgp_agents.parameters import per_learner
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Indices
from wgp_gym.validation import as_floats, check_float, check_int, check_names, reject

__all__ = [
    "BoxWidth",
    "ConstantWidth",
    "DriftingBoxWidth",
    "FiniteWidth",
    "HeuristicWidth",
    "bayes_parameters",
    "bayes_width",
    "root",
]


class BayesParameters(ModelParameters, total=False):
    """The arguments of `GPAgent` for a Bayesian agent, which has no norm bound."""

    delta: ArrayLike
    confidence_width: GivenWidth


def bayes_parameters(
    owner: str, common: ModelParameters, width: GivenWidth, delta: ArrayLike = 0.1
) -> BayesParameters:
    """Return the arguments of `GPAgent`; refuse parameters that Bayesian agents do not have."""
    check_names(common, owner, ModelParameters.__annotations__)
    return {"delta": delta, "confidence_width": width, **common}


@dataclass(frozen=True, eq=False)
class FiniteWidth:
    """The width on n arms, beta_t = 2 log(n pi^2 t^2 / (6 delta)): [SKKS10] Theorem 1, and [BSC16].

    Args:
        delta: The probability in (0, 1) with which the bound may fail, scalar or `(B,)`.
        arms: n >= 1.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    delta: ArrayLike
    arms: int

    def __post_init__(self) -> None:
        check_delta("FiniteWidth", self.delta)
        check_int("arms", self.arms, "FiniteWidth", 1)

    def __call__(self, counts: Indices) -> Array:
        """Return beta_t^{1/2} after so many observations, `(B,)`."""
        rounds = math.pi**2 * (counts + 1.0) ** 2 / (6 * np.asarray(self.delta))
        return root(2 * np.log(self.arms * rounds))


@dataclass(frozen=True, eq=False)
class AnyBoxWidth:
    """The parameters of a width on a box."""

    delta: ArrayLike
    dim: int
    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        owner = type(self).__name__
        check_delta(owner, self.delta)
        check_int("dim", self.dim, owner, 1)
        check_float("a", self.a, owner, 0.0, closed="neither")
        check_float("b", self.b, owner, 0.0, closed="neither")


@dataclass(frozen=True, eq=False)
class BoxWidth(AnyBoxWidth):
    """The width of a fixed function on the box [0, 1]^d: [SKKS10] Theorem 2 with r = 1.

    beta_t = 2 log(2 pi^2 t^2 / (3 delta)) + 2 d log(d b t^2 log(4 d a / delta)^{1/2}). The last
    logarithm is that of a grid's points along one side, so it is at least 0.

    Args:
        delta: The probability in (0, 1) with which the bound may fail, scalar or `(B,)`.
        dim: d >= 1.
        a, b: Positive numbers: each partial derivative of the function exceeds L somewhere with
            probability at most a exp(-L^2 / b^2).

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __call__(self, counts: Indices) -> Array:
        """Return beta_t^{1/2} after so many observations, `(B,)`."""
        squares, delta = (counts + 1.0) ** 2, np.asarray(self.delta)
        slope = self.b * root(np.log(4 * self.dim * self.a / delta))
        points = np.maximum(self.dim * slope * squares, 1.0)
        return root(
            2 * np.log(2 * math.pi**2 * squares / (3 * delta)) + 2 * self.dim * np.log(points)
        )


@dataclass(frozen=True, eq=False)
class DriftingBoxWidth(AnyBoxWidth):
    """The width of a drifting function on the box [0, 1]^d: [BSC16].

    beta_t = 2 log(pi^2 t^2 / (2 delta)) + 2 d log(d b t^2 log(pi^2 t^2 d a / (2 delta))^{1/2}). It
    bounds the slope of each f_t anew, where `BoxWidth` bounds that of one function. delta is shared
    among three failures: of the function on the grid, of its slope, and of the noise in the regret.
    Parameters as in `BoxWidth`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __call__(self, counts: Indices) -> Array:
        """Return beta_t^{1/2} after so many observations, `(B,)`."""
        squares = (counts + 1.0) ** 2
        rounds = math.pi**2 * squares / (2 * np.asarray(self.delta))
        slope = self.b * root(np.log(self.dim * self.a * rounds))
        points = np.maximum(self.dim * slope * squares, 1.0)
        return root(2 * np.log(rounds) + 2 * self.dim * np.log(points))


@dataclass(frozen=True)
class HeuristicWidth:
    """The width beta_t = max(c log(r t), 0); c = 0.8 and r = 4 are those of [BSC16]'s experiments.

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


@dataclass(frozen=True, eq=False)
class ConstantWidth:
    """The width of a function of known drift, constant in t: Mandl and Kekkonen (2026).

    beta = 2 log 6 + alpha (1 + d) log(1 / eps). After about 1 / eps steps a drifting function is as
    good as new, so the bound need not hold for longer. Deviation: eps below 1 / T counts as 1 / T,
    since there are only T steps; this covers eps = 0 too.

    Args:
        drift: Returns the current eps in [0, 1], a number or `(B,)`.
        dim: d >= 1.
        horizon: T >= 1.
        alpha: The weight of the logarithm, at least 0.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    drift: Callable[[], ArrayLike]
    dim: int
    horizon: int
    alpha: float = 1.0

    def __post_init__(self) -> None:
        check_int("dim", self.dim, "ConstantWidth", 1)
        check_int("horizon", self.horizon, "ConstantWidth", 1)
        check_float("alpha", self.alpha, "ConstantWidth", 0.0)

    def __call__(self, counts: Indices) -> Array:
        """Return beta^{1/2}, `(B,)`, however many observations there are."""
        eps = np.broadcast_to(self.drift(), counts.shape)
        lasting = -np.log(np.maximum(eps, 1.0 / self.horizon))
        return root(2 * math.log(6.0) + self.alpha * (1 + self.dim) * lasting)


def root(squares: Array) -> Array:
    """Return the square root, and 0 where the argument is negative."""
    found: Array = np.sqrt(np.maximum(squares, 0.0))
    return found


def check_delta(owner: str, delta: ArrayLike) -> None:
    """Check a probability in (0, 1), scalar or `(B,)`."""
    rule = "a float in (0, 1), or one for each learner"
    array = as_floats("delta", delta, owner, rule)
    if array.ndim > 1 or not ((array > 0) & (array < 1)).all():
        reject("delta", owner, rule, delta)


def bayes_width(
    owner: str,
    problem: BanditProblem,
    given: GivenWidth,
    delta: ArrayLike,
    on_box: Callable[[ArrayLike, int], Callable[[Indices], Array]],
    **named: Callable[[Indices], Array],
) -> GivenWidth:
    """Return `confidence_width` as `GPAgent` takes it, for an agent without a norm bound.

    Args:
        owner: The agent's name, for errors.
        problem: The problem.
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
    known: dict[str, GivenWidth] = {"heuristic": HeuristicWidth(), **named}
    if given in known:
        return known[given]
    texts = ", ".join(f"{text!r}" for text in ("theory", *known))
    reject("confidence_width", owner, f"{texts}, a number or a function", given)
