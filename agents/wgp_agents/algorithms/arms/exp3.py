"""Exp3: exponential weights, for rewards that an adversary sets."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.arms.agent import ArmsAgent
from wgp_agents.arms.choice import sample_categorical
from wgp_agents.arms.weights import ExponentialWeights, exploration_rate
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.parameters import per_learner
from wgp_gym.types import Array, Mask

__all__ = ["Exp3"]


class Exp3(ArmsAgent):
    """Exp3: draws an arm by exponential weights, mixed with uniform exploration.

    p_i = (1 - gamma) w_i / sum_j w_j + gamma / K; a reward x of arm i multiplies w_i by
    exp(gamma x / (p_i K)).
    Deviation: rewards, in units of their range, are clipped to [0, 1], where the paper has them.
    The weights are kept as logarithms, or they would overflow.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        gamma: In (0, 1], scalar or `(B,)`. Default: min(1, (K log K / ((e - 1) T))^{1/2}),
            [ACFS02] Corollary 3.2, with T, which no sum of rewards exceeds.
        reward_range: See `ArmsAgent`.

    Raises:
        ValueError: If a parameter is out of its range.

    Source: [ACFS02] Auer, Cesa-Bianchi, Freund, Schapire. The Nonstochastic Multiarmed Bandit
    Problem. SIAM Journal on Computing 32, 2002, algorithm Exp3.
    """

    def __init__(self, env: Any, *, gamma: Any = None, reward_range: Any = None) -> None:
        super().__init__(env, reward_range=reward_range)
        batch, arms = self.num_learners, self.num_arms
        if gamma is None:
            complexity, steps = np.full(batch, math.log(arms)), np.full(batch, self.problem.horizon)
            self.gamma = exploration_rate(arms, complexity, steps)
        else:
            self.gamma = per_learner(type(self).__name__, "gamma", gamma, batch, 0, 1, "right")
        self.weights = ExponentialWeights(arms, self.gamma, np.zeros(batch))

    def _clear(self, mask: Mask) -> None:
        self.weights.clear(mask)

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        return sample_categorical(self.weights.probabilities(), uniform.draw())

    def _take(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        self.weights.learn(arms, rewards, active)
