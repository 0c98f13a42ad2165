"""What the generalised linear agents share: logistic regression on weighted counts of the arms.

References:
    [FRAC21] Faury, Russac, Abeille, Calauzenes. Regret Bounds for Generalized Linear Bandits under
        Parameter Drift. 2021.
    [RCG20] Russac, Cappe, Garivier. Algorithms for Non-Stationary Generalized Linear Bandits. 2020.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar, TypedDict

import numpy as np
import scipy
from numpy.typing import ArrayLike

from wgp_agents.algorithms.linear.defaults import TUNINGS, Tuning
from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.statistics import ArmStatistics
from wgp_agents.core.access import EnvLike
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.tuning import MAX_RATE, BudgetChoice, check_budget, stated_budget
from wgp_agents.gp.width import CONFIDENCE, Confidence, check_spending, step_delta
from wgp_agents.kernels.glm import GLMNumbers, GLMState, fit, indices
from wgp_agents.kernels.glm_projection import confine
from wgp_agents.parameters import model_noise, norm_bounds, not_drawn
from wgp_gym.arrays import kept
from wgp_gym.kernels import Linear
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Indices, Mask
from wgp_gym.validation import check_choice

__all__ = ["GLMUCB", "GLMParameters"]

STEEPEST = 0.25  # k_mu, the slope of mu(z) = 1 / (1 + e^{-z}) at 0
NOISE = 0.5  # the sub-Gaussian constant of rewards in [0, 1]
SMALLEST_SLOPE = 1e-6  # that of mu at 13.8; where it is less, the width drowns all else anyway


class GLMParameters(TypedDict, total=False):
    """The parameters that the generalised linear agents share. See `GLMUCB`."""

    tuning: Tuning
    variation_budget: BudgetChoice
    regularization: ArrayLike
    delta: ArrayLike
    norm_bound: ArrayLike | None
    confidence: Confidence
    reward_range: Sequence[float] | None


class GLMUCB(IndexAgent):
    """Generalised linear UCB on weighted plays ([RCG20]), with the logistic link.

    It plays argmax of mu(x^T theta) + rho_t ||x||_{V^{-1}}, where theta is the maximum-likelihood
    estimate with weights w_s and regularization lambda c_mu, projected into the ball of radius S,
        rho_t = 2 k_mu / c_mu (lambda^{1/2} c_mu S
                + (2 log(1 / delta) + d log(1 + L^2 w / (d lambda)))^{1/2} / 2),
    w the sum of all w_s^2, k_mu = 1/4 and c_mu the largest and the least slope of mu where |z| <=
    S L, and L the longest feature. In the notation of `wgp_agents.kernels.glm` the projection is
    argmin over ||theta|| <= S of ||g(theta) - g(estimate)||_{W^{-1}}.

    Features are those of a linear kernel, x / d^{1/2} where the task has another. The likelihood
    is kept as weighted counts and reward sums of the arms, so a step costs the same at any t.

    Rewards are those of [0, 1]: they are shifted and scaled to it from `reward_range`.
    Deviation: beyond they are cut off, so that the likelihood has a maximum, and noise the
    sub-Gaussian constant 1/2 of [0, 1], however large it is.
    Deviation: a task without the logistic link is played all the same, as the one whose curve has
    the same slope in the middle of the range: S = 4 B / (high - low), and B_T likewise.
    Deviation: c_mu is at least 1e-6.
    Deviation: the distance that the projection minimises is not convex; this is the minimum that
    descent steps reach from S estimate / ||estimate||.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        tuning: What the memory follows from where it is not given: "original": (d T / B_T)^{2/3}
            steps, with B_T in the place of the number of changes, as [FRAC21] allows for benign
            sets of arms. "corrected": (d^{1/2} T / B_T)^{2/5}, which their regret bound for any
            arms asks for; it remembers few plays (18 at T = 1,000, d = 2, B_T = 1), so it is not
            the default. Deviation: at least 2.
        variation_budget: "known": B_T as the problem states it; "unknown": 1 in its place; or
            B_T >= 0 as a number, in units of theta.
        regularization: lambda in [1e-9, 1e60].
        delta: The probability in (0, 1) with which the confidence bound may fail.
        norm_bound: S >= 0. Default: the problem's B.
        confidence: How delta is spent over time, "paper", "union" or "anytime": see `step_delta`.
        reward_range: The two numbers that expected rewards lie between. Default: (0, 1) with the
            logistic link; else the problem's, and where it has none, [-B, B].

    Attributes:
        state: What the learners keep; its class sets it.
        statistics: Their plays; its class sets them.

    Raises:
        ValueError: If a parameter is out of its range, or the task has no fixed arms.
    """

    _needs_noise = False
    _instead: ClassVar[tuple[str, ...]] = ()
    """The parameter that would do in the place of T."""
    takes_elapsed = True
    learns_by_acting = False
    state: GLMState
    statistics: ArmStatistics

    def __init__(
        self,
        env: EnvLike,
        *,
        tuning: Tuning = "original",
        variation_budget: BudgetChoice = "unknown",
        regularization: ArrayLike = 1.0,
        delta: ArrayLike = 0.1,
        norm_bound: ArrayLike | None = None,
        confidence: Confidence = "paper",
        reward_range: Sequence[float] | None = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        owner, batch = type(self).__name__, self.num_learners
        if reward_range is None and self.problem.link == "logistic":
            self._given_range = (0.0, 1.0)
        self._given_norm_bound = None
        if norm_bound is not None:
            self._given_norm_bound = norm_bounds(owner, norm_bound, self.problem, batch)
        check_budget(owner, variation_budget, batch)
        self._given_budget = kept(variation_budget)
        self.tuning = check_choice("tuning", tuning, owner, TUNINGS)
        self.regularization = model_noise(owner, regularization, batch)
        self.delta = self._parameter("delta", delta, 0, 1, "neither")
        self.confidence = check_choice("confidence", confidence, owner, CONFIDENCE)
        check_spending(owner, self.confidence, self.problem)
        self.features = arm_features(self.problem)
        self._longest = float(np.sqrt((self.features**2).sum(axis=1)).max())
        self.numbers = GLMNumbers(np.ones(batch), self.regularization, *np.ones((2, batch)))

    @abstractmethod
    def _remember(
        self, arms: Indices, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Take a play of every learner in `active` into `statistics` and `state`.

        The estimates follow from it. `elapsed` `(B,)` steps go by before; None: one for everybody.
        """

    @abstractmethod
    def _forget(self, steps: Array, active: Mask) -> None:
        """Let `steps` `(B,)` go by in `statistics` and `state` for the learners in `active`."""

    def _clear(self, mask: Mask) -> None:
        radius = self._radius()
        top = radius * self._longest
        slope = scipy.special.expit(top) * scipy.special.expit(-top)  # c_mu
        self.numbers.radius[mask] = radius[mask]
        self.numbers.slope[mask] = np.maximum(slope, SMALLEST_SLOPE)[mask]
        for part in self.state:
            part[mask] = 0.0
        super()._clear(mask)

    def _in_logits(self, norm: ArrayLike) -> Array:
        """Return a norm in units of theta, `(B,)`, of one in units of the task's function."""
        norms = np.broadcast_to(np.asarray(norm, float), self.num_learners)
        if self.problem.link == "logistic":
            return norms.copy()
        low, high = self._range()
        return norms / (STEEPEST * (high - low))

    def _radius(self) -> Array:
        """Return S of every learner, `(B,)`.

        Raises:
            RuntimeError: If it rests on a norm bound that is not drawn yet.
        """
        if self._given_norm_bound is not None:
            return self._given_norm_bound
        bound = norm_bounds(type(self).__name__, None, self.problem, self.num_learners)
        if bound is None:
            not_drawn("norm bound", "norm_bound")
        return self._in_logits(bound)

    def _rate(self) -> Array:
        """Return theory's forgetting rate of every learner, `(B,)`.

        Raises:
            RuntimeError: If it rests on a variation budget that is not drawn yet.
        """
        stated = stated_budget(self._given_budget, self.problem)
        if isinstance(self._given_budget, str) and stated is not None:
            stated = self._in_logits(stated)
        budget = np.broadcast_to(1.0 if stated is None else stated, self.num_learners)
        horizon = self._horizon(*self._instead)
        return forgetting_rate(self.tuning, horizon, self.features.shape[1], budget)

    def widths(self) -> Array:
        """Return rho_t of every learner, `(B,)`."""
        slope, regularization = self.numbers.slope, self.numbers.regularization
        steps, horizon, d = self.statistics.steps, self.problem.horizon, self.features.shape[1]
        delta = step_delta(self.confidence, self.delta, steps, horizon)
        gain = d * np.log1p(self._longest**2 * self.state.weight / (d * regularization))
        noise = NOISE * np.sqrt(gain - 2 * np.log(delta))
        width: Array = (
            2 * STEEPEST * (np.sqrt(regularization) * self.numbers.radius + noise / slope)
        )
        return width

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        del uniform
        index = np.empty((self.num_learners, self.num_arms))
        indices(self.features, self.numbers, self.state, self.widths(), index)
        return index

    def _take(self, arms: Indices, rewards: Array, active: Mask) -> None:
        self._remember(arms, np.clip(rewards, 0.0, 1.0), active)
        self._estimate(active)

    def _learn_elapsed(
        self, actions: Indices, rewards: Array, active: Mask, elapsed: Array
    ) -> None:
        cut = np.clip((rewards - self._low) / self._width, 0.0, 1.0)
        self._remember(actions, cut, active, elapsed)
        self._estimate(active)

    def _elapse(self, steps: Array, active: Mask) -> None:
        self._forget(steps, active)
        self._estimate(active)

    def _hallucinate(self, actions: Indices, active: Mask) -> None:
        # With its own mean as reward a play leaves the estimate where it is.
        mean = scipy.special.expit((self.features[actions] * self.state.estimate).sum(axis=1))
        self._remember(actions, mean, active, np.zeros(len(mean)))
        self.statistics.steps -= active  # it is not paid yet

    def _estimate(self, active: Mask) -> None:
        """Compute the estimates of the learners in `active`."""
        fit(self.features, self.numbers, self.state, active)
        norms = np.sqrt((self.state.estimate**2).sum(axis=1))
        outside = active & ~(norms < self.numbers.radius * (1.0 - 1e-9))  # `confine` looks again
        if outside.any():
            confine(self.features, self.numbers, self.state, outside)


def arm_features(problem: BanditProblem) -> Array:
    """Return the features of the arms, `(n, d)`: those of `Linear` where the kernel has none."""
    features = problem.kernel.feature_map() or Linear().features
    return np.ascontiguousarray(features(problem.domain))


def forgetting_rate(tuning: Tuning, horizon: int, dim: int, variation_budget: Array) -> Array:
    """Return 1 over the steps that are remembered, within [0, 1/2]: see `GLMUCB`.

    Args:
        tuning: "original" or "corrected".
        horizon: T.
        dim: d.
        variation_budget: B_T, in units of theta.
    """
    share = variation_budget / horizon
    rate = (share / dim) ** (2 / 3) if tuning == "original" else (share / math.sqrt(dim)) ** 0.4
    return np.minimum(rate, MAX_RATE)
