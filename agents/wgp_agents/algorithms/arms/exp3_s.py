"""Exp3.S: exponential weights that follow a best arm that changes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.arms.agent import ArmsAgent
from wgp_agents.arms.choice import sample_categorical
from wgp_agents.arms.tuning import num_changes_of
from wgp_agents.arms.weights import ExponentialWeights, exploration_rate
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.parameters import per_learner
from wgp_gym.types import Array, Mask

__all__ = ["Exp3S"]


class Exp3S(ArmsAgent):
    """Exp3.S: as Exp3, and each arm is given a share of all weights at every step.

    p_i = (1 - gamma) w_i / sum_j w_j + gamma / K; a reward x of arm i multiplies w_i by
    exp(gamma x / (p_i K)), and then every weight gains e alpha / K of the sum before.
    Deviation: rewards, in units of their range, are clipped to [0, 1], where the paper has them.
    The weights are kept as logarithms, and with the sum 1.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        gamma: In (0, 1], scalar or `(B,)`. Default: min(1, (K (S log(K T) + e) /
            ((e - 1) T))^{1/2}), [ACFS02] Corollary 8.3, where S = Upsilon_T + 1 is the number of
            stretches with one best arm each.
        alpha: >= 0, scalar or `(B,)`. Default: 1 / T, the same corollary.
        num_changes: Upsilon_T, whole numbers in [0, T], scalar or `(B,)`.
        reward_range: See `ArmsAgent`.

    Raises:
        ValueError: If a parameter is out of its range.

    Source: [ACFS02] Auer, Cesa-Bianchi, Freund, Schapire. The Nonstochastic Multiarmed Bandit
    Problem. SIAM Journal on Computing 32, 2002, algorithm Exp3.S.
    """

    def __init__(
        self,
        env: Any,
        *,
        gamma: Any = None,
        alpha: Any = None,
        num_changes: Any = 1,
        reward_range: Any = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        owner, batch = type(self).__name__, self.num_learners
        arms, horizon = self.num_arms, self.problem.horizon
        stretches = num_changes_of(owner, num_changes, horizon, batch) + 1
        if gamma is None:
            complexity = stretches * math.log(arms * horizon) + math.e
            self.gamma = exploration_rate(arms, complexity, np.full(batch, horizon))
        else:
            self.gamma = per_learner(owner, "gamma", gamma, batch, 0, 1, "right")
        share = 1 / horizon if alpha is None else alpha
        self.alpha = per_learner(owner, "alpha", share, batch, 0, math.inf, "left")
        self.weights = ExponentialWeights(arms, self.gamma, self.alpha)

    def _clear(self, mask: Mask) -> None:
        self.weights.clear(mask)

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        return sample_categorical(self.weights.probabilities(), uniform.draw())

    def _take(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        self.weights.learn(arms, rewards, active)
