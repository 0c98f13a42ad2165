"""Exp3.S: exponential weights that follow a best arm that changes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from numpy.typing import ArrayLike

from wgp_agents.arms.weights import ExponentialAgent, ExponentialWeights, exploration_rate
from wgp_agents.core.access import EnvLike

__all__ = ["Exp3S"]


class Exp3S(ExponentialAgent):
    """Exp3.S: as Exp3, and each arm is given a share of all weights at every step.

    p_i = (1 - gamma) w_i / sum_j w_j + gamma / K; a reward x of arm i multiplies w_i by
    exp(gamma x / (p_i K)), and then every weight gains e alpha / K of the sum before. For
    deviations see `ExponentialAgent`.

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

    _needs_noise = False

    def __init__(
        self,
        env: EnvLike,
        *,
        gamma: ArrayLike | None = None,
        alpha: ArrayLike | None = None,
        num_changes: ArrayLike = 1,
        reward_range: Sequence[float] | None = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        arms, changes = self.num_arms, self._num_changes(num_changes)
        if gamma is None:
            horizon = self._horizon("gamma", "alpha")
            complexity = (changes + 1) * math.log(arms * horizon) + math.e
            gamma = exploration_rate(arms, complexity, horizon)
        self.gamma = self._parameter("gamma", gamma, 0, 1, "right")
        alpha = 1 / self._horizon("gamma", "alpha") if alpha is None else alpha
        self.alpha = self._parameter("alpha", alpha, 0, closed="left")
        self.weights = ExponentialWeights(arms, self.gamma, self.alpha)
