"""MASTER: IGP-UCB on many scales of time, restarted where a test says that f has changed."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from wgp_agents.algorithms.adaptive.multiscale import (
    Blocks,
    Playing,
    StationarityTests,
    interleaved_level,
    regret_rate,
)
from wgp_agents.base import Agent, locked
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.units import RewardBounds, bounds_by_norm
from wgp_agents.gp.acquisition import upper_bounds
from wgp_agents.gp.action_sets import ActionSet
from wgp_agents.gp.contexts import action_set_of
from wgp_agents.gp.gain_bounds import computed_gain
from wgp_agents.gp.source import feature_source
from wgp_agents.gp.surrogates.weighted import RestartSurrogate, Surrogate
from wgp_agents.gp.tuning import gain_order
from wgp_agents.gp.width import deng_width
from wgp_agents.parameters import noise_model, norm_bounds, not_drawn, per_learner
from wgp_gym.arrays import kept
from wgp_gym.features import FeatureMap
from wgp_gym.types import Array, Mask
from wgp_gym.validation import reject

__all__ = ["MASTER", "Fired"]

LARGEST_GAIN = 1e200  # of many dimensions; rho is a number then, and the tests are silent anyway


class Fired(NamedTuple):
    """How often a test has failed since `reset`: ints, or `(B,)`.

    Attributes:
        first: Steps at which Test 1 failed.
        second: Steps at which Test 2 failed.
        restarts: Steps at which either did.
    """

    first: Any
    second: Any
    restarts: Any


class MASTER(Agent):
    """MASTER over IGP-UCB (Wei and Luo 2021, Algorithm 3): it knows no variation budget.

    Blocks of 2^n steps, n = 0, 1, ..., hold instances of IGP-UCB of order m <= n, which live for
    2^m steps and begin at random: see `Blocks`. The shortest one plays and learns, the others
    wait. Long ones exploit; short ones, which know nothing yet, find out what the long ones no
    longer look at. After each step `StationarityTests` compare the rewards with the optimistic
    values g~; where a test fails, all is forgotten and n is 0 again.

    Theirs are rewards in [0, 1]. Here all is in units of reward: g~, the largest mean + beta std
    of the instance that plays, is cut off at -+B as f is, and rho(t) = c t^{-1/2} has B and R in
    it, as `regret_rate` derives it from Eq. (1) of the paper for IGP-UCB:
        rho-hat(t) = 6 (log2 T + 1) log(T / delta) rho(t)         (Lemma 3),
        c = 2 beta_T (2 gamma_T / log(1 + 1 / lambda))^{1/2} + R (2 log(1 / delta))^{1/2}.
    [Deng22] leave open whether a Gaussian-process learner meets Assumption 1 of the paper where f
    drifts, so the paper's bounds, of order (L T)^{1/2} for L - 1 changes and B_T^{1/3} T^{2/3},
    are not proved for it. (The paper's linear learner plays with twice beta to meet it.)

    At T in use rho-hat is far larger than any difference of rewards, and the tests are silent
    (Gerogiannis, Huang and Veeravalli 2024): what is left is a schedule of random fresh starts.
    `scale` makes the tests speak, without a guarantee, and `fired` counts what they say.

    Deviation: the proof of the paper's Theorem 2 caps rho at the range of rewards. Orders that are
    capped all begin as surely as that of order 0, which plays at random: on the abrupt task in
    every step of blocks up to 64, and in 6 of 10 of one of 256. So there is no cap here.
    Deviation: no block is longer than T; after T steps, blocks of the last order go on.

    On a box, points are found as `Box` describes, and g~ is the largest bound of its candidates.
    A play that was not asked for goes to the instance at hand; nothing begins by chance before it.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        scale: A factor >= 0 of the 9 rho-hat and 3 rho-hat that the tests allow. Default: the
            paper's 1.
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

    def __init__(
        self,
        env: Any,
        *,
        scale: Any = 1.0,
        information_gain: Any = "order",
        regularization: Any = None,
        delta: Any = 0.1,
        norm_bound: Any = None,
        noise_scale: Any = None,
        features: str | FeatureMap = "exact",
    ) -> None:
        super().__init__(env)
        if self.problem.contextual:
            kind = "arms that are drawn anew at each step"
            raise ValueError(f"MASTER plays arms that stay. The task has {kind}.")
        self.scale = self._numbers("scale", scale)
        norm_bounds("MASTER", norm_bound, self.problem, self.num_learners)
        self._given_norm_bound = kept(norm_bound)
        self.noise_scale, self.regularization = noise_model(
            "MASTER", self.problem, noise_scale, regularization, self.num_learners
        )
        self.takes_units = norm_bound is None or noise_scale is None
        self.delta = self._numbers("delta", delta, 1.0, closed="neither")
        source = feature_source(features, self.problem, "MASTER")
        space = action_set_of(self.problem)
        self.action_set: ActionSet = space(source, self.problem.domain, self.regularization)
        self._gain = self._planned_gain(information_gain)
        batch = self.num_learners
        self.norm_bound, self._level = np.zeros((2, batch))
        self._blocks = Blocks(batch, self.problem.horizon)
        self._tests = StationarityTests(self._blocks)
        self._instances: list[RestartSurrogate] = []  # of order 0, 1, ..., as far as needed
        self._scheduled = np.zeros(batch, bool)  # whose next step is drawn, and who plays it
        self._playing: Playing
        self._fired = np.zeros((3, batch), np.int64)

    def _numbers(
        self, name: str, value: Any, high: float = math.inf, closed: str = "left"
    ) -> Array:
        return per_learner("MASTER", name, value, self.num_learners, 0.0, high, closed)

    def _planned_gain(self, given: Any) -> Array:
        """Return gamma_T, `(B,)`."""
        horizon, dim = self.problem.horizon, self.problem.domain.shape[1]
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
        """How often the tests have failed since `reset`."""
        if self.batched:
            return Fired(*self._fired.copy())
        return Fired(*self._fired[:, 0].tolist())

    def _restart(self, mask: Mask) -> None:
        given = self._given_norm_bound
        bound = norm_bounds("MASTER", given, self.problem, self.num_learners)
        if bound is None:
            not_drawn("norm bound", "norm_bound")
        self.norm_bound[mask] = bound[mask]
        rate = regret_rate(
            self.norm_bound, self.noise_scale, self.regularization, self.delta, self._gain
        )
        self._level = self.scale * interleaved_level(rate, self.delta, self.problem.horizon)
        self._fired[:, mask] = 0
        self._scheduled[mask] = False
        self._blocks.restart(mask)

    def _reward_bounds(self) -> RewardBounds | None:
        longest = self.action_set.basis.prior.max()
        return bounds_by_norm(self.problem, self.norm_bound, self.noise_scale, longest)

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        draws = np.stack([uniform.draw() for _ in self._blocks.lengths], axis=1)
        self._schedule(~self._scheduled, draws)
        self._playing = playing = Playing(self._instances, self._blocks.playing())
        return self.action_set.choose(cast(Surrogate, playing), self._widths(playing), uniform)

    def _schedule(self, mask: Mask, draws: Array) -> None:
        """Let new instances begin for the learners in `mask`; those of the same order end."""
        new = self._blocks.schedule(mask, draws)
        self._tests.begin(mask, new)
        self._scheduled |= mask
        for m in np.flatnonzero(new.any(axis=0)).tolist():
            while len(self._instances) <= m:
                self._instances.append(RestartSurrogate(self.action_set))
            surrogate = self._instances[m]
            surrogate.restart(new[:, m], np.full(self.num_learners, surrogate.nothing_forgotten))

    def _widths(self, playing: Playing) -> Array:
        """Return beta of the instances that play, `(B,)`."""
        return deng_width(
            self.norm_bound, self.noise_scale, self.regularization, self.delta, playing.gain
        )

    def _learn(self, actions: NDArray[Any], rewards: Array, active: Mask) -> None:
        unasked = active & ~self._scheduled
        if unasked.any():
            self._schedule(unasked, np.ones(self._blocks.alive.shape))
            self._playing = Playing(self._instances, self._blocks.playing())
        playing = self._playing
        bounds = np.empty_like(playing.mean)
        upper_bounds(playing.mean, playing.bound_variance, self._widths(playing), bounds)
        optimistic = np.clip(bounds.max(axis=1), -self.norm_bound, self.norm_bound)
        playing.update(actions, rewards, active)
        first, second = self._tests.take(optimistic, rewards, active, self._level)
        failed = first | second
        self._fired += np.stack([first, second, failed])
        self._blocks.advance(active)
        self._blocks.restart(failed)
        self._scheduled &= ~active
