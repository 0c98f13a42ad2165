"""MASTER: IGP-UCB on many time scales, restarted where a test finds a change."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.algorithms.adaptive.multiscale import (
    ActiveInstances,
    Blocks,
    StationarityTests,
    interleaved_level,
    regret_rate,
)
from wgp_agents.base import Agent, locked
from wgp_agents.core.access import EnvLike
from wgp_agents.core.made_for import MadeFor
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.units import RewardBounds
from wgp_agents.gp.acquisition import UpperBound, scorer
from wgp_agents.gp.action_sets import check_arms_stay
from wgp_agents.gp.confidence import NormBound
from wgp_agents.gp.gain_bounds import computed_gain
from wgp_agents.gp.model import gp_model
from wgp_agents.gp.source import FeatureChoice
from wgp_agents.gp.surrogates.base import forget_all
from wgp_agents.gp.surrogates.weighted import RestartSurrogate
from wgp_agents.gp.tuning import GammaChoice, gain_order
from wgp_agents.gp.width import deng_width
from wgp_agents.parameters import per_learner
from wgp_gym.types import Actions, Array, Mask, PerLearner
from wgp_gym.validation import reject

__all__ = ["MASTER", "Fired"]

LARGEST_GAIN = 1e200  # keeps rho finite in many dimensions, where the tests never fail anyway


class Fired(NamedTuple):
    """The number of times that each test has failed since `reset`: ints, or `(B,)`.

    Attributes:
        first: Steps at which Test 1 failed.
        second: Steps at which Test 2 failed.
        restarts: Steps at which either did.
    """

    first: PerLearner
    second: PerLearner
    restarts: PerLearner


class MASTER(Agent):
    """MASTER over IGP-UCB (Wei and Luo 2021, Algorithm 3): it needs no variation budget.

    Blocks of 2^n steps, n = 0, 1, ..., hold instances of IGP-UCB of order m <= n, which live for
    2^m steps and begin at random: see `Blocks`. The shortest one plays and learns, the others wait:
    long ones exploit, short ones explore. After each step `StationarityTests` compare the rewards
    with the optimistic values g~; where a test fails, all is forgotten and n is 0 again.

    The paper has rewards in [0, 1]. Here all is in the unit of rewards: g~, the largest mean + beta
    std of the instance that plays, is clipped to +-B as f is, and rho(t) = c t^{-1/2} contains B
    and R, as `regret_rate` derives it from Eq. (1) of the paper for IGP-UCB:
        rho-hat(t) = 6 (log2 T + 1) log(T / delta) rho(t)         (Lemma 3),
        c = 2 beta_T (2 gamma_T / log(1 + 1 / lambda))^{1/2} + R (2 log(1 / delta))^{1/2}.
    [Deng22] leave open whether a Gaussian-process learner meets Assumption 1 of the paper where f
    drifts, so the paper's bounds, of order (L T)^{1/2} for L - 1 changes and B_T^{1/3} T^{2/3}, are
    not proved for it. (The paper's linear learner plays with twice beta to meet it.)

    At usual T rho-hat is far larger than any difference of rewards, so the tests never fail
    (Gerogiannis, Huang and Veeravalli 2024), and only random restarts are left. A smaller `scale`
    makes the tests sensitive, without a guarantee; `fired` counts their failures.

    Deviation: the proof of the paper's Theorem 2 caps rho at the range of rewards. Orders that are
    capped all begin as surely as that of order 0, which plays at random: on the abrupt task in
    every step of blocks up to 64, and in 6 of 10 of one of 256. So there is no cap here.
    Deviation: no block is longer than T; after T steps, blocks of the last order go on.

    On a box, points are found as `Box` describes, and g~ is the largest bound of its candidates. A
    play that was not chosen by `act` goes to the current instance; before it no instance begins at
    random.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        scale: A factor >= 0 of the thresholds 9 rho-hat and 3 rho-hat. Default: the paper's 1.
        information_gain: gamma_T > 0 in rho; "order": (log T)^(d+1); "computed": the gain of T
            greedy plays.
        regularization: lambda in [1e-9, 1e60]. Default max(R^2, 1e-6).
        delta: The probability in (0, 1) with which a confidence bound may fail; that of the tests.
        norm_bound: B in [0, 1e30]. Default: the problem's, read at each restart.
        noise_scale: R in [0, 1e30]. Default: the problem's.
        features: "exact", "quadrature", "random", "linear" or a feature map: see `feature_source`.

    Numbers may be scalars or `(B,)`.

    Raises:
        ValueError: If a parameter is out of its range, or arms are drawn anew at each step: U_t
            compares optima of the same arms.

    Source: Wei, Luo. Non-stationary Reinforcement Learning without Prior Knowledge: An Optimal
    Black-box Approach. COLT 2021. Gerogiannis, Huang, Veeravalli. Is Prior-Free Black-Box
    Non-Stationary Reinforcement Learning Feasible? 2024.
    """

    takes_allowed = True

    def __init__(
        self,
        env: EnvLike,
        *,
        scale: ArrayLike = 1.0,
        information_gain: GammaChoice = "order",
        regularization: ArrayLike | None = None,
        delta: ArrayLike = 0.1,
        norm_bound: ArrayLike | None = None,
        noise_scale: ArrayLike | None = None,
        features: FeatureChoice = "exact",
    ) -> None:
        super().__init__(env)
        check_arms_stay("MASTER", self.problem)
        horizon = self._horizon()
        self.scale = self._numbers("scale", scale)
        problem = self.problem
        self.model = model = gp_model("MASTER", problem, regularization, noise_scale, features)
        self.norm_bound = NormBound("MASTER", norm_bound, self.problem)
        self.takes_units = norm_bound is None or noise_scale is None
        self._made_for = MadeFor("MASTER", problem, noise_scale is None)
        self.delta = self._numbers("delta", delta, 1.0, closed="neither")
        self.action_set = model.action_set
        self._gain = self._gain_of(information_gain)
        batch = self.num_learners
        self._level = np.zeros(batch)
        self._blocks = Blocks(batch, horizon)
        self._tests = StationarityTests(self._blocks)
        self._instances: list[RestartSurrogate] = []  # by order, made when needed
        self._scheduled = np.zeros(batch, bool)  # whose instances of the next step are drawn
        self._active = ActiveInstances(self.action_set, self._instances)
        self._fired = np.zeros((3, batch), np.int64)

    def _make_part(self, name: str) -> object:
        """Return another instance, or what every agent may need."""
        if name == "_instances":
            return RestartSurrogate(self.action_set)
        return super()._make_part(name)

    def _numbers(
        self, name: str, value: ArrayLike, high: float = math.inf, closed: str = "left"
    ) -> Array:
        return per_learner("MASTER", name, value, self.num_learners, 0.0, high, closed)

    def _horizon(self) -> int:
        return self.problem.known_horizon("MASTER")

    def _gain_of(self, given: ArrayLike) -> Array:
        """Return gamma_T, `(B,)`."""
        horizon, dim = self._horizon(), self.problem.domain.shape[1]
        if not isinstance(given, str):
            return self._numbers("information_gain", given, closed="neither")
        if given == "computed":
            return computed_gain(self.action_set.basis, horizon)
        if given != "order":
            rule = "'order', 'computed' or a number in [1e-30, 1e+30]"
            reject("information_gain", "MASTER", rule, given)
        return np.full(self.num_learners, min(gain_order(horizon, dim), LARGEST_GAIN))

    @property
    @locked
    def fired(self) -> Fired:
        """The failures of the tests since `reset`."""
        if self.batched:
            return Fired(*self._fired.copy())
        return Fired(*self._fired[:, 0].tolist())

    def _restart(self, mask: Mask) -> None:
        self.norm_bound.read(self.problem, mask)
        model, bound = self.model, self.norm_bound.values
        rate = regret_rate(bound, model.noise_scale, model.regularization, self.delta, self._gain)
        self._level = self.scale * interleaved_level(rate, self.delta, self._horizon())
        self._fired[:, mask] = 0
        self._scheduled[mask] = False
        self._blocks.restart(mask)

    def _reward_bounds(self) -> RewardBounds | None:
        return self.model.reward_bounds(self.problem, self.norm_bound.values)

    def _choose(self, uniform: UniformStreams) -> Actions:
        draws = np.stack([uniform.draw() for _ in self._blocks.lengths], axis=1)
        self._schedule(~self._scheduled, draws)
        self._active.follow(self._blocks.playing())
        self.action_set.show(None, self.allowed)
        score = scorer(UpperBound(), self._active, self._widths())
        return self.action_set.maximise(score, uniform)

    def _schedule(self, mask: Mask, draws: Array) -> None:
        """Begin new instances for the learners in `mask`, in place of those of the same order."""
        new = self._blocks.schedule(mask, draws)
        self._tests.begin(mask, new)
        self._scheduled |= mask
        for m in np.flatnonzero(new.any(axis=0)).tolist():
            while len(self._instances) <= m:
                self._instances.append(RestartSurrogate(self.action_set))
            forget_all(self._instances[m], new[:, m])

    def _widths(self) -> Array:
        """Return beta of the instances that play, `(B,)`."""
        model, bound = self.model, self.norm_bound.values
        gain = self._active.gain
        return deng_width(bound, model.noise_scale, model.regularization, self.delta, gain)

    def _learn(self, actions: Actions, rewards: Array, active: Mask) -> None:
        unasked = active & ~self._scheduled
        if unasked.any():
            self._schedule(unasked, np.ones(self._blocks.alive.shape))
            self._active.follow(self._blocks.playing())
        score = scorer(UpperBound(), self._active, self._widths())
        bounds = score(self.action_set.candidates, None)
        if self.allowed is not None:
            bounds = np.where(self.allowed, bounds, -np.inf)
        optimistic = np.clip(bounds.max(axis=1), -self.norm_bound.values, self.norm_bound.values)
        self._active.update(self.action_set.embed(actions), rewards, active)
        first, second = self._tests.take(optimistic, rewards, active, self._level)
        failed = first | second
        self._fired += np.stack([first, second, failed])
        self._blocks.advance(active)
        self._blocks.restart(failed)
        self._scheduled &= ~active

    def _hallucinate(self, actions: Actions, active: Mask) -> None:
        self._active.hallucinate(self.action_set.embed(actions), active & self._scheduled)
