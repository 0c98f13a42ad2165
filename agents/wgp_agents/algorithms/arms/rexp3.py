"""Rexp3: Exp3 that starts anew in every batch of steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.arms.agent import ArmsAgent
from wgp_agents.arms.choice import sample_categorical
from wgp_agents.arms.weights import ExponentialWeights, exploration_rate
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.tuning import check_budget, stated_budget
from wgp_agents.parameters import per_learner
from wgp_gym.arrays import kept
from wgp_gym.types import Array, Mask

__all__ = ["Rexp3"]


class Rexp3(ArmsAgent):
    """Rexp3: Exp3 with all weights made equal after every Delta_T steps.

    Deviation: rewards, in units of their range, are clipped to [0, 1], where the paper has them.
    The weights are kept as logarithms. Delta_T is at most T, also where V_T is smaller than the
    paper has it.

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

    def __init__(
        self,
        env: Any,
        *,
        batch_size: Any = None,
        gamma: Any = None,
        variation_budget: Any = "unknown",
        reward_range: Any = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        owner, batch = type(self).__name__, self.num_learners
        check_budget(owner, variation_budget, batch)
        if batch_size is not None:
            per_learner(owner, "batch_size", batch_size, batch, 1, math.inf, whole=True)
        if gamma is not None:
            per_learner(owner, "gamma", gamma, batch, 0, 1, "right")
        self._given = kept(batch_size), kept(gamma)
        self.variation_budget = kept(variation_budget)
        self.batch_size, self.gamma = np.full(batch, math.inf), np.ones(batch)
        self.weights = ExponentialWeights(self.num_arms, self.gamma, np.zeros(batch))
        self._steps = np.zeros(batch)

    def _clear(self, mask: Mask) -> None:
        size, gamma = self._given
        if size is None:
            size = batch_length(self.num_arms, self.problem.horizon, self._budget())
        size = np.broadcast_to(size, self.num_learners)
        if gamma is None:
            complexity = np.full(self.num_learners, math.log(self.num_arms))
            steps = np.minimum(size, self.problem.horizon)
            gamma = exploration_rate(self.num_arms, complexity, steps)
        self.batch_size[mask] = size[mask]
        self.gamma[mask] = np.broadcast_to(gamma, self.num_learners)[mask]
        self.weights.clear(mask)
        self._steps[mask] = 0.0

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

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        return sample_categorical(self.weights.probabilities(), uniform.draw())

    def _take(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        self.weights.learn(arms, rewards, active)
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
