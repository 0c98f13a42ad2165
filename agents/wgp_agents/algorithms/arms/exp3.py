"""Exp3: exponential weights, for rewards that an adversary sets."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.arms.weights import ExponentialAgent, ExponentialWeights, exploration_rate
from wgp_agents.core.access import EnvLike

__all__ = ["Exp3"]


class Exp3(ExponentialAgent):
    """Exp3: draws an arm by exponential weights, mixed with uniform exploration.

    p_i = (1 - gamma) w_i / sum_j w_j + gamma / K; a reward x of arm i multiplies w_i by
    exp(gamma x / (p_i K)). For deviations see `ExponentialAgent`.

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

    _needs_noise = False

    def __init__(
        self,
        env: EnvLike,
        *,
        gamma: ArrayLike | None = None,
        reward_range: Sequence[float] | None = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        arms = self.num_arms
        if gamma is None:
            gamma = exploration_rate(arms, math.log(arms), self._horizon("gamma"))
        self.gamma = self._parameter("gamma", gamma, 0, 1, "right")
        self.weights = ExponentialWeights(arms, self.gamma, np.zeros(self.num_learners))
