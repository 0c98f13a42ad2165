"""Rexp3: Exp3 that starts anew in every batch of steps."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.arms.weights import ExponentialAgent, ExponentialWeights, exploration_rate
from wgp_agents.core.access import EnvLike
from wgp_agents.gp.tuning import BudgetChoice, check_budget, stated_budget
from wgp_gym.arrays import kept
from wgp_gym.types import Array, Indices, Mask

__all__ = ["Rexp3"]


class Rexp3(ExponentialAgent):
    """Rexp3: Exp3 with all weights made equal after every Delta_T steps.

    Deviation: Delta_T is at most T, also where V_T is smaller than the paper has it. For others
    see `ExponentialAgent`.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        batch_size: Delta_T >= 1, in steps, or infinite, scalar or `(B,)`. Default: the ceiling of
            (K log K)^{1/3} (T / V_T)^{2/3}, [BGZ14] Theorem 2.
        gamma: In (0, 1], scalar or `(B,)`. Default: min(1, (K log K / ((e - 1)
            Delta_T))^{1/2}), the same theorem.
        variation_budget: V_T bounds the sum over steps of the largest change of an arm's expected
            reward (the sup norm). "known": B_T as the problem states it, in the norm of the RKHS,
            which is never smaller, since k(x, x) <= 1; "unknown": 1 in units of the range; or
            V_T >= 0 in units of the reward, scalar or `(B,)`.
        reward_range: See `ArmsAgent`.

    Raises:
        ValueError: If a parameter is out of its range.

    Source: [BGZ14] Besbes, Gur, Zeevi. Stochastic Multi-Armed-Bandit Problem with Non-stationary
    Rewards. NIPS 2014, algorithm Rexp3.
    """

    _needs_noise = False

    def __init__(
        self,
        env: EnvLike,
        *,
        batch_size: ArrayLike | None = None,
        gamma: ArrayLike | None = None,
        variation_budget: BudgetChoice = "unknown",
        reward_range: Sequence[float] | None = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        batch = self.num_learners
        check_budget(type(self).__name__, variation_budget, batch)
        self.variation_budget = kept(variation_budget)
        self._tunes_size, self._tunes_gamma = batch_size is None, gamma is None
        if self._tunes_size or self._tunes_gamma:
            self._horizon("batch_size", "gamma")
        size = math.inf if batch_size is None else batch_size
        self.batch_size = self._parameter("batch_size", size, 1, whole=True)
        self.gamma = self._parameter("gamma", 1.0 if gamma is None else gamma, 0, 1, "right")
        self.weights = ExponentialWeights(self.num_arms, self.gamma, np.zeros(batch))
        self._steps = np.zeros(batch)

    def _clear(self, mask: Mask) -> None:
        instead = "batch_size", "gamma"
        if self._tunes_size:
            size = batch_length(self.num_arms, self._horizon(*instead), self._budget())
            self.batch_size[mask] = size[mask]
        if self._tunes_gamma:
            steps = np.minimum(self.batch_size, self._horizon(*instead))
            rate = exploration_rate(self.num_arms, math.log(self.num_arms), steps)
            self.gamma[mask] = rate[mask]
        self._steps[mask] = 0.0
        super()._clear(mask)

    def _budget(self) -> Array:
        """Return V_T in units of the range, `(B,)`.

        Raises:
            RuntimeError: If the known budget is asked for before an episode is drawn.
        """
        budget = stated_budget(self.variation_budget, self.problem)
        if budget is None:
            return np.ones(self.num_learners)
        value: Array = budget / self._width
        return value

    def _take(self, arms: Indices, rewards: Array, active: Mask) -> None:
        super()._take(arms, rewards, active)
        self._steps[active] += 1.0
        full = active & (self._steps >= self.batch_size)
        self.weights.clear(full)
        self._steps[full] = 0.0


def batch_length(num_arms: int, horizon: int, variation_budget: Array) -> Array:
    """Return Delta_T = ceil((K log K)^{1/3} (T / V_T)^{2/3}), [BGZ14] Theorem 2, in [1, T].

    Args:
        num_arms: K.
        horizon: T.
        variation_budget: V_T >= 0 in units of the range, `(B,)`.
    """
    # Below 1 / T the length exceeds T already, whatever K: 0 is no exception.
    ratio = horizon / np.maximum(variation_budget, 1 / horizon)
    length: Array = np.ceil((num_arms * math.log(num_arms)) ** (1 / 3) * ratio ** (2 / 3))
    return np.clip(length, 1.0, float(horizon))
