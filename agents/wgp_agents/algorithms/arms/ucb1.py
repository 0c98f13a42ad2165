"""UCB1: optimism in the face of uncertainty, for arms that do not change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.bound import upper_bound
from wgp_agents.arms.statistics import AllPlays
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.types import Array, Mask

__all__ = ["UCB1"]


class UCB1(IndexAgent):
    """UCB1: plays the arm of the largest mean + (2 log t / N)^{1/2}.

    N counts the arm's plays, t all plays so far; each arm is played once first. Rewards are in
    units of their range.
    Deviation: the root is multiplied by `scale`, which is 1 for rewards in [0, 1] (see
    `ArmsAgent`). Ties are broken, and the first plays ordered, uniformly at random.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        reward_range: See `ArmsAgent`.

    Raises:
        ValueError: See `ArmsAgent`.

    Source: [ACF02] Auer, Cesa-Bianchi, Fischer. Finite-time Analysis of the Multiarmed Bandit
    Problem. Machine Learning 47, 2002, policy UCB1.
    """

    def __init__(self, env: Any, *, reward_range: Any = None) -> None:
        super().__init__(env, reward_range=reward_range)
        self.statistics = AllPlays(self.num_learners, self.num_arms)

    def _clear(self, mask: Mask) -> None:
        self.statistics.clear(mask)

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        total = self.statistics.steps.astype(float)
        return upper_bound(self.statistics, self.scale * np.sqrt(2.0), total)

    def _take(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        self.statistics.add(arms, rewards, active)
