"""The Gaussian-process agent: an action set, a surrogate, an acquisition and a confidence width."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.base import Agent, locked
from wgp_agents.core.access import EnvLike
from wgp_agents.core.made_for import MadeFor
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.units import RewardBounds
from wgp_agents.gp.acquisition import Acquisition, UpperBound, best_arms, scorer
from wgp_agents.gp.action_sets import ActionSet, FixedArms, Plays
from wgp_agents.gp.bands import PlayRecord
from wgp_agents.gp.confidence import ConfidenceWidth, GivenWidth
from wgp_agents.gp.gain_bounds import GAINS, GainBounds, GainChoice, check_gains, checked_forgetting
from wgp_agents.gp.model import Interval, ModelParameters, Posterior, gp_model, posterior_of
from wgp_agents.gp.restart_rule import RestartRule
from wgp_agents.gp.source import FeatureChoice
from wgp_agents.gp.surrogates.base import (
    FeatureSurrogate,
    Prediction,
    Surrogate,
    keeps_posterior,
)
from wgp_agents.gp.tuning import BudgetChoice, Forgetting, GammaChoice
from wgp_agents.gp.width import Confidence, WidthForm, deng_width
from wgp_gym.types import Actions, Array, Mask, PerLearner
from wgp_gym.validation import check_choice, reject

__all__ = ["GPAgent", "GPParameters", "Posterior", "TunedParameters", "TunedParts", "tuned"]


class GPParameters(ModelParameters, total=False):
    """The parameters that all Gaussian-process agents share. See `GPAgent`."""

    delta: ArrayLike
    norm_bound: ArrayLike | None
    confidence_width: GivenWidth
    confidence: Confidence
    gain: GainChoice


class TunedParameters(GPParameters, total=False):
    """`GPParameters`, and what theory tunes a forgetting parameter by. See `Forgetting`."""

    variation_budget: BudgetChoice
    information_gain: GammaChoice


class TunedParts(GPParameters):
    """The keyword arguments that an agent that forgets hands to `GPAgent`."""

    forgetting: Forgetting


def tuned(parameter: str, given: ArrayLike | None, common: TunedParameters) -> TunedParts:
    """Return the arguments of `GPAgent` for an agent with this forgetting parameter.

    `parameter` is "discount", "window" or "restart_period"; `given` its value, None for theory's.
    """
    budget, gain = (
        common.get("variation_budget", "unknown"),
        common.get("information_gain", "order"),
    )
    rest = {name: value for name, value in common.items() if name in GPParameters.__annotations__}
    return cast(TunedParts, {"forgetting": Forgetting(parameter, given, budget, gain), **rest})


class GPAgent(Agent):
    """A Gaussian-process agent: plays the maximum of an acquisition over the action set.

    On a finite domain it plays the arms; on a box (`continuous=True`) any point, found as `Box`
    describes. Numbers may be scalars or `(B,)`. Those without a stated limit are 0 or within
    [1e-30, 1e30], so that their squares and quotients are finite.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        surrogate: The surrogate's class.
        forgetting: The surrogate's forgetting parameter; None forgets nothing.
        acquisition: What it maximises. Default `UpperBound`, the upper confidence bound.
        width_form: The formula of beta where `confidence_width` is "theory".
        restart_rule: A rule that may restart the surrogate or force plays. The clock of the
            confidence bound goes on over its restarts.
        regularization: lambda in [1e-9, 1e60], the model's noise variance. Default max(R^2, 1e-6).
        delta: The probability in (0, 1) with which the confidence bound may fail.
        norm_bound: B in [0, 1e30]. Default: the problem's, read at each restart.
        noise_scale: R in [0, 1e30]. Default: the problem's.
        confidence_width: "theory"; a number beta >= 0; or a function of the number of
            observations so far, `(B,)`, that returns beta, a number or `(B,)`.
        confidence: How delta is spent over time, "paper", "union" or "anytime": see
            `step_delta`.
        gain: The information gain in beta. "realised": that of the plays; the inequality behind
            the bound holds for it. "greedy": that of the plays that a greedy search finds, a
            lower bound of the maximum in [Deng22], so without its guarantee. "bound": an upper
            bound of the maximum, [Deng22] Theorems 6 and 7; on a box, of its grid.
            "determinant": another upper bound, for few features: see `GainBounds`.
        features: "exact", or "nystrom" where arms are drawn anew; "quadrature" or "random", Fourier
            features of default size; "linear", phi(x) = x; or a feature map: see
            `feature_source`.

    Attributes:
        action_set: What can be chosen, and its features.
        surrogate: The posterior of the learners.
        acquisition, restart_rule: As given.
        model: Noise, features and action set.
        width: beta.
        gain_bounds: Gains known before any play; None where `gain` is "realised".

    Raises:
        ValueError: If a parameter is out of its range.
    """

    takes_allowed = True
    takes_elapsed = True
    learns_by_acting = False
    _constants = ("takes_elapsed", "learns_by_acting", "_plain")

    def __init__(
        self,
        env: EnvLike,
        *,
        surrogate: Callable[[ActionSet], Surrogate],
        forgetting: Forgetting | None = None,
        acquisition: Acquisition | None = None,
        width_form: WidthForm = deng_width,
        restart_rule: RestartRule | None = None,
        regularization: ArrayLike | None = None,
        delta: ArrayLike = 0.1,
        norm_bound: ArrayLike | None = None,
        noise_scale: ArrayLike | None = None,
        confidence_width: GivenWidth = "theory",
        confidence: Confidence = "paper",
        gain: GainChoice = "realised",
        features: FeatureChoice = "exact",
    ) -> None:
        super().__init__(env)
        owner, problem = type(self).__name__, self.problem
        check_choice("gain", gain, owner, GAINS)
        if problem.contextual:
            check_gains(owner, gain, forgetting)
        self.model = model = gp_model(owner, problem, regularization, noise_scale, features)
        self.width = ConfidenceWidth(
            owner,
            problem,
            model,
            confidence_width,
            form=width_form,
            norm_bound=norm_bound,
            delta=delta,
            confidence=confidence,
        )
        self.takes_units = noise_scale is None or not self.width.knows_bound
        self._made_for = MadeFor(owner, problem, noise_scale is None)
        # A user's map may give later arms features of any length.
        self._unknown_lengths = problem.contextual and callable(features)
        self.regularization, self.action_set = model.regularization, model.action_set
        self.acquisition, self.restart_rule = acquisition or UpperBound(), restart_rule
        for name, part, kind in (
            ("acquisition", self.acquisition, Acquisition),
            ("restart_rule", restart_rule or RestartRule(), RestartRule),
        ):
            if not isinstance(part, kind):
                reject(name, owner, f"an instance of {kind.__name__}", part)
        self.gain_bounds: GainBounds | None = None
        if gain != "realised":
            self.gain_bounds = GainBounds(gain, self.action_set.basis, model.source, problem)
        self.surrogate = surrogate(self.action_set)
        if not isinstance(self.surrogate, Surrogate):
            reject("surrogate", owner, "a class of Surrogate, or what makes one", surrogate)
        if gain == "realised" and self.width.by_theory and np.isnan(self.surrogate.gain).any():
            rule = f"a number or a function: {type(self.surrogate).__name__} computes no 'gain'"
            reject("confidence_width", owner, rule, confidence_width)
        if forgetting is not None:
            forgetting = checked_forgetting(owner, forgetting, self.action_set.basis, problem)
        self.forgetting = forgetting
        first = self.surrogate.time_comes_first
        self._record = PlayRecord(problem, time_comes_first=first)
        # Whether each step scores the same arms, whose posterior is at hand: see `_choose`.
        self._plain = keeps_posterior(self.surrogate) and type(self.action_set) is FixedArms
        self._uneven = np.zeros(self.num_learners, bool)  # whose plays were not one step apart
        self._even = True  # whether everybody's were
        self.takes_elapsed = self.surrogate.takes_elapsed
        if restart_rule is not None:
            self.takes_elapsed &= restart_rule.takes_elapsed
            self.learns_by_acting = restart_rule.learns_by_acting
        if isinstance(self.surrogate, FeatureSurrogate) and self.surrogate.lazy:
            self.learns_by_acting = True  # variances that a choice has computed are kept

    def _restart(self, mask: Mask) -> None:
        bound = self.width.restart(self.problem, mask)
        forgetting = np.full(self.num_learners, self.surrogate.nothing_forgotten)
        if self.forgetting is not None:
            forgetting = self.forgetting(self.problem, self.num_learners)
        self.surrogate.restart(mask, forgetting)
        self._uneven[mask] = False
        self._even = not self._uneven.any()
        self._record.clear(mask)
        if self.arms is None:
            self.action_set.show(None)
        if self.gain_bounds is not None:
            self.gain_bounds.restart(mask, self.surrogate.ratios)
        if self.restart_rule is not None:
            self.restart_rule.restart(mask, self.problem, bound, self.model.noise_scale)

    def _reward_bounds(self) -> RewardBounds | None:
        if self._unknown_lengths:
            return None
        width = self.width
        own = width.by_theory or width.norm_bound.given is not None
        return self.model.reward_bounds(self.problem, width.norm_bound.values if own else None)

    def _widths(self) -> Array:
        """Return beta of every learner, `(B,)`."""
        return self.width(self._record.seen, self.width_gain)

    def width_gain(self) -> Array:
        """Return the information gain that beta takes, `(B,)`.

        Where weights fade and time went by otherwise than by one step a play, gains that are known
        before any play do not hold: there it is that of the plays.
        """
        if self.gain_bounds is None:
            return self.surrogate.gain
        gains = self.gain_bounds.after(self.surrogate.held, self.surrogate.ratios)
        if self._even:
            return gains
        fades = (self.surrogate.ratios < 1.0).any(axis=1)
        return np.where(self._uneven & fades, self.surrogate.gain, gains)

    def _choose(self, uniform: UniformStreams) -> Actions:
        rule, surrogate, acquisition = self.restart_rule, self.surrogate, self.acquisition
        if rule is not None:
            retuned = rule.before_act(surrogate, uniform)
            if retuned is not None and self.gain_bounds is not None:
                self.gain_bounds.restart(retuned, surrogate.ratios)
        self.action_set.show(self.arms, self.allowed)
        if self._plain and self.allowed is None and self._usual():  # in one loop
            found = surrogate.predict(self.action_set.candidates)
            terms = self.width.terms(self._record.seen, self.width_gain)
            arms = best_arms(found, terms, uniform.draw())
            actions = self.action_set.actions_of(arms)
        else:
            draw = acquisition.draw(surrogate, self.action_set.candidates, uniform)
            score = scorer(acquisition, surrogate, self._widths(), draw, self.allowed)
            actions = self.action_set.maximise(score, uniform)
        return actions if rule is None else self._overridden(rule, actions, uniform)

    def _usual(self) -> bool:
        """Tell whether acquisition and width are ours: they may be replaced at any time."""
        ours = type(self.acquisition) is UpperBound and type(self.width) is ConfidenceWidth
        return ours and type(self)._widths is GPAgent._widths

    def _overridden(self, rule: RestartRule, actions: Actions, uniform: UniformStreams) -> Actions:
        """Return the actions that the rule leaves or forces; one that is not there is an error."""
        forced = rule.override_action(actions, self.allowed, uniform)
        if self.problem.continuous or forced is actions:
            return forced
        there = (forced >= 0) & (forced < len(self.problem.domain))
        if there.all() and self.allowed is not None:
            there = self.allowed[np.arange(len(forced)), forced]
        if not there.all():
            name = type(rule).__name__
            raise ValueError(
                f"{name}.override_action must return arms that are there. Got {forced}."
            )
        return forced

    def _learn(self, actions: Actions, rewards: Array, active: Mask) -> None:
        plays = self._met(actions, rewards, active)
        self.surrogate.update(plays, rewards, active)
        self._record.add(actions, rewards, active)

    def _learn_elapsed(
        self, actions: Actions, rewards: Array, active: Mask, elapsed: Array
    ) -> None:
        plays = self._met(actions, rewards, active)
        self.surrogate.update(plays, rewards, active, elapsed)
        self._record.add(actions, rewards, active, elapsed)
        self._uneven |= active & (elapsed != 1.0)
        self._even = not self._uneven.any()

    def _met(self, actions: Actions, rewards: Array, active: Mask) -> Plays:
        """Return plays with their features, after the restart rule has looked at them."""
        plays = self.action_set.embed(actions)
        if self.restart_rule is not None:
            self.restart_rule.before_update(self.surrogate, plays, rewards, active)
        return plays

    def _elapse(self, steps: Array, active: Mask) -> None:
        self.surrogate.elapse(steps, active)
        self._record.elapse(steps, active)
        self._uneven |= active & (steps != 0.0)
        self._even = not self._uneven.any()

    def _hallucinate(self, actions: Actions, active: Mask) -> None:
        if not self.acquisition.randomised:
            self.surrogate.hallucinate(self.action_set.embed(actions), active)

    def _predict_domain(self) -> Prediction:
        """Return the posterior on the domain, or on the arms last shown, `(B, n)`."""
        self._require_reset()
        parts = [self.surrogate.predict(*seen) for seen in self.action_set.on_domain()]
        return Prediction(*(np.concatenate(part) for part in zip(*parts, strict=True)))

    @locked
    def posterior(self) -> Posterior:
        """Return the posterior on the domain, `(n,)` each, or `(B, n)`.

        Raises:
            RuntimeError: If `reset` was not called before.
            ValueError: If it is not finite.
        """
        mean, variance, _ = self._predict_domain()
        return posterior_of(mean, np.sqrt(variance), self.batched)

    def bounds(self) -> Array | None:
        """Return the upper confidence bounds on the domain, `(n,)` or `(B, n)`.

        None of an agent with another acquisition.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        plain = type(self.acquisition) is UpperBound
        return self.confidence_interval().upper if plain else None

    @locked
    def bands(self) -> Posterior:
        """Return the posterior's mean on the domain, and a std that can be believed.

        mean -+ 1.96 std is meant to hold the function at 95 % of the arms, whether it is like the
        agent's model or not: see `wgp_agents.gp.bands`. The std of `posterior` is the model's own,
        on which the plays rest; where the function drifts, or is not of variance k(x, x), it may be
        far too small. The unit is that of the rewards. Before two rewards differ the std is
        infinite.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        mean, _, _ = self._predict_domain()
        return self._record.bands(mean, self.arms, self.batched)

    @locked
    def beta(self) -> PerLearner:
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
        mean, _, bound_variance = self._predict_domain()
        half = self._widths()[:, None] * np.sqrt(bound_variance)
        lower, upper = mean - half, mean + half
        return Interval(lower, upper) if self.batched else Interval(lower[0], upper[0])

    @locked
    def feature_error(self) -> PerLearner:
        """Return the largest |k(x, y) - phi(x)^T phi(y)| on the domain, a float or `(B,)`.

        A domain of more than 1,000 points is sampled evenly; Nystrom features of arms that are
        drawn anew are measured on stand-ins and between them. What the features leave out of
        k(x, x) is part of the variance.
        """
        places, table = self.action_set.measured(self.problem.domain)
        gram = self.problem.kernel(places, places)
        ranks = self.action_set.basis.rank
        found = {m: np.abs(gram - table[:, :m] @ table[:, :m].T).max() for m in set(ranks.tolist())}
        errors = np.array([found[m] for m in ranks.tolist()], float)
        return errors if self.batched else float(errors[0])

    @locked
    def information_gain(self) -> PerLearner:
        """Return the realised (double-weighted) information gain, a float or `(B,)`.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        return self.surrogate.gain.copy() if self.batched else float(self.surrogate.gain[0])
