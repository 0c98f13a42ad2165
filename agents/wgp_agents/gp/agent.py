"""The Gaussian-process agent: features x memory x width x choice."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypedDict

import numpy as np
from numpy.typing import NDArray

from wgp_agents.base import Agent, locked
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.units import RewardBounds, bounds_by_norm
from wgp_agents.gp.acquisition import Choice, optimistic
from wgp_agents.gp.action_sets import ActionSet
from wgp_agents.gp.contexts import ChangingArms, action_set_of
from wgp_agents.gp.gain_bounds import GAINS, GainBounds, check_gains, computed_gain
from wgp_agents.gp.posterior import Interval, Posterior, posterior_of
from wgp_agents.gp.restart_rule import RestartRule
from wgp_agents.gp.source import feature_source
from wgp_agents.gp.surrogates.weighted import Surrogate
from wgp_agents.gp.tuning import Forgetting
from wgp_agents.gp.width import CONFIDENCE, WidthForm, deng_width, step_delta
from wgp_agents.parameters import noise_model, norm_bounds, not_drawn, per_learner
from wgp_gym.arrays import kept
from wgp_gym.features import FeatureMap
from wgp_gym.types import Array, Mask
from wgp_gym.validation import check_choice, reject

__all__ = ["GPAgent", "GPParameters", "Posterior"]

ERROR_POINTS = 1_000


class GPParameters(TypedDict, total=False):
    """The parameters that all Gaussian-process agents share. See `GPAgent`."""

    regularization: Any
    delta: Any
    norm_bound: Any
    noise_scale: Any
    confidence_width: Any
    confidence: str
    gain: str
    features: str | FeatureMap


class GPAgent(Agent):
    """Plays argmax of mean + beta * std of a posterior with a memory of choice.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        surrogate: The memory's class.
        forgetting: The memory's parameter; None forgets nothing.
        choice: What it makes of posterior and beta: `optimistic` (the upper confidence bound),
            `randomised` or `thompson`.
        width_form: The formula of beta where `confidence_width` is "theory".
        restart_rule: What stands above the surrogate, and may empty it or force plays. The clock of
            the confidence bound goes on.
        regularization: lambda in [1e-9, 1e60], the model's noise variance. Default max(R^2, 1e-6).
        delta: The probability in (0, 1) with which the confidence bound may fail.
        norm_bound: B in [0, 1e30]. Default: the problem's, read at each restart.
        noise_scale: R in [0, 1e30]. Default: the problem's.
        confidence_width: "theory"; a number beta >= 0; or a function of the number of
            observations so far, `(B,)`, that returns beta, a number or `(B,)`.
        confidence: How delta is spent over time, "paper", "union" or "anytime": see
            `step_delta`.
        gain: The information gain in beta. "realised": that of the plays; the inequality behind
            the bound holds for it. "greedy": that of the best plays that a greedy search finds,
            a lower bound of the maximum in [Deng22], hence without its guarantee. "bound": an
            upper bound of the maximum, [Deng22] Theorems 6 and 7; on a box, of its grid.
            "determinant": another, for few features: see `GainBounds`.
        features: "exact"; "quadrature" or "random", Fourier features of default size; "linear",
            phi(x) = x; or a feature map: see `feature_source`.

    Numbers may be scalars or `(B,)`. Where no limit is named, those that are not 0 lie between
    1e-30 and 1e30, so that their squares and quotients are numbers too. On a finite domain the
    agent plays its points; on a box (`continuous=True`) any point, found as `Box` describes.

    Attributes:
        action_set: What can be chosen, and its features.
        surrogate: The posterior.
        choice, restart_rule: As given.
        gain_bounds: The gains of planned plays; None where `gain` is "realised".

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self,
        env: Any,
        *,
        surrogate: Callable[[ActionSet], Surrogate],
        forgetting: Forgetting | None = None,
        choice: Choice = optimistic,
        width_form: WidthForm = deng_width,
        restart_rule: RestartRule | None = None,
        regularization: Any = None,
        delta: Any = 0.1,
        norm_bound: Any = None,
        noise_scale: Any = None,
        confidence_width: Any = "theory",
        confidence: str = "paper",
        gain: str = "realised",
        features: str | FeatureMap = "exact",
    ) -> None:
        super().__init__(env)
        batch, owner = self.num_learners, type(self).__name__
        self.width_form, self.choice, self.restart_rule = width_form, choice, restart_rule
        self._given_norm_bound = norm_bound = kept(norm_bound)
        norm_bounds(owner, norm_bound, self.problem, batch)  # at once, not only at the restart
        self.noise_scale, self.regularization = noise_model(
            owner, self.problem, noise_scale, regularization, batch
        )
        self.delta = per_learner(owner, "delta", delta, batch, 0.0, 1.0, "neither")
        self.confidence_width: Any = checked_width(owner, confidence_width, batch)
        bound_given = norm_bound is not None or not isinstance(self.confidence_width, str)
        self.takes_units = noise_scale is None or not bound_given
        self.norm_bound = np.zeros(batch)
        self._steps = np.zeros(batch, np.int64)
        self.confidence = check_choice("confidence", confidence, owner, CONFIDENCE)
        self.gain = check_choice("gain", gain, owner, GAINS)
        if self.problem.contextual:
            check_gains(owner, gain, forgetting)
        source = feature_source(features, self.problem, owner)
        space = action_set_of(self.problem)
        # Nobody knows how long the features of arms to come are, if somebody else makes them.
        self._unknown_lengths = self.problem.contextual and callable(features)
        self.action_set: ActionSet = space(source, self.problem.domain, self.regularization)
        self.gain_bounds: GainBounds | None = None
        if gain != "realised":
            self.gain_bounds = GainBounds(gain, self.action_set.basis, source, self.problem)
        self.surrogate = surrogate(self.action_set)
        self.forgetting = None if forgetting is None else self._checked_forgetting(forgetting)

    def _checked_forgetting(self, forgetting: Forgetting) -> Forgetting:
        """Return the memory's parameter, with a number in the place of "computed"."""
        forgetting.check(type(self).__name__, self.num_learners)
        if not forgetting.gain_is_computed:
            return forgetting
        gains = computed_gain(self.action_set.basis, self.problem.horizon)
        return replace(forgetting, information_gain=gains)

    def _restart(self, mask: Mask) -> None:
        owner, given = type(self).__name__, self._given_norm_bound
        bound = norm_bounds(owner, given, self.problem, self.num_learners)
        if bound is None and isinstance(self.confidence_width, str):
            not_drawn("norm bound", "norm_bound")
        forgetting = np.full(self.num_learners, self.surrogate.nothing_forgotten)
        if self.forgetting is not None:
            forgetting = self.forgetting(self.problem, self.num_learners)
        if bound is not None:
            self.norm_bound[mask] = bound[mask]
        self.surrogate.restart(mask, forgetting)
        self._steps[mask] = 0
        if isinstance(self.action_set, ChangingArms) and self.arms is None:
            self.action_set.show(None)
        if self.gain_bounds is not None:
            self.gain_bounds.restart(mask, self.surrogate.ratios)
        if self.restart_rule is not None:
            self.restart_rule.restart(mask, self.problem, bound, self.noise_scale)

    def _reward_bounds(self) -> RewardBounds | None:
        if self._unknown_lengths:
            return None
        own = isinstance(self.confidence_width, str) or self._given_norm_bound is not None
        bound = self.norm_bound if own else None
        longest = self.action_set.basis.prior.max()
        return bounds_by_norm(self.problem, bound, self.noise_scale, longest)

    def _widths(self) -> Array:
        """Return beta of every learner, `(B,)`."""
        if isinstance(self.confidence_width, str):
            horizon = self.problem.horizon
            delta = step_delta(self.confidence, self.delta, self._steps, horizon)
            bound, scale = self.norm_bound, self.noise_scale
            return self.width_form(bound, scale, self.regularization, delta, self.width_gain())
        if callable(self.confidence_width):
            owner, given = type(self).__name__, self.confidence_width(self._steps.copy())
            return per_learner(
                owner, "confidence_width", given, self.num_learners, 0.0, math.inf, "left"
            )
        widths: Array = self.confidence_width
        return widths

    def width_gain(self) -> Array:
        """Return the information gain that beta takes, `(B,)`."""
        if self.gain_bounds is None:
            return self.surrogate.gain
        return self.gain_bounds.after(self.surrogate.held)

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        if self.restart_rule is not None:
            retuned = self.restart_rule.before(self.surrogate, uniform)
            if retuned is not None and self.gain_bounds is not None:
                self.gain_bounds.restart(retuned, self.surrogate.ratios)
        if isinstance(self.action_set, ChangingArms):
            self.action_set.show(self.arms)
        plays = self.choice(self.action_set, self.surrogate, self._widths(), uniform)
        return plays if self.restart_rule is None else self.restart_rule.chosen(plays)

    def _learn(self, actions: NDArray[Any], rewards: Array, active: Mask) -> None:
        if self.restart_rule is not None:
            self.restart_rule.observe(self.action_set, self.surrogate, actions, rewards, active)
        self.surrogate.update(actions, rewards, active)
        self._steps += active

    @locked
    def posterior(self) -> Posterior:
        """Return the posterior on the domain, `(n,)` each, or `(B, n)`.

        Raises:
            RuntimeError: If `reset` was not called before.
            ValueError: If it is not finite.
        """
        self._require_reset()
        mean, variance, _ = self.action_set.posterior(self.surrogate, self.problem.domain)
        return posterior_of(mean, np.sqrt(variance), self.batched)

    @locked
    def beta(self) -> Any:
        """Return the confidence width of the next choice, a float or `(B,)`.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        widths = self._widths()
        return widths.copy() if self.batched else float(widths[0])

    @locked
    def confidence_interval(self) -> Interval:
        """Return mean -+ beta * std on the domain, with the std that the bound uses.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        mean, _, bound_variance = self.action_set.posterior(self.surrogate, self.problem.domain)
        half = self._widths()[:, None] * np.sqrt(bound_variance)
        lower, upper = mean - half, mean + half
        return Interval(lower, upper) if self.batched else Interval(lower[0], upper[0])

    @locked
    def feature_error(self) -> Any:
        """Return the largest |k(x, y) - phi(x)^T phi(y)| on the domain, a float or `(B,)`.

        Of a domain of more than 1,000 points, evenly chosen ones are looked at. What the features
        leave out of k(x, x) is added to the variance.
        """
        domain, size = self.problem.domain, min(len(self.problem.domain), ERROR_POINTS)
        rows = np.linspace(0, len(domain) - 1, size).astype(np.intp)
        table = self.action_set.table(domain, rows)
        gram = self.problem.kernel(domain[rows], domain[rows])
        ranks = self.action_set.basis.rank
        found = {m: np.abs(gram - table[:, :m] @ table[:, :m].T).max() for m in set(ranks.tolist())}
        errors = np.array([found[m] for m in ranks.tolist()], float)
        return errors if self.batched else float(errors[0])

    @locked
    def information_gain(self) -> Any:
        """Return the realised (double-weighted) information gain, a float or `(B,)`.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        return self.surrogate.gain.copy() if self.batched else float(self.surrogate.gain[0])


def checked_width(owner: str, value: Any, batch: int) -> Any:
    """Return `confidence_width` as "theory", a function, or an array `(B,)`.

    Raises:
        ValueError: If it is none of these.
    """
    if callable(value) or (isinstance(value, str) and value == "theory"):
        return value
    if isinstance(value, str):
        reject("confidence_width", owner, "'theory', a number or a function", value)
    return per_learner(owner, "confidence_width", value, batch, 0.0, math.inf, "left")
