"""D-UCB: upper confidence bounds from plays that fade."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.bound import upper_bound
from wgp_agents.arms.statistics import DiscountedPlays
from wgp_agents.arms.tuning import discount_of
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.parameters import per_learner
from wgp_gym.types import Array, Mask

__all__ = ["DUCB"]


class DUCB(IndexAgent):
    """Discounted UCB: plays the arm of the largest mean + 2 (xi log n / N)^{1/2}.

    A play that is s steps old counts gamma^s in the mean, in N, the arm's plays, and in n, all
    plays. An arm without plays, or with N below 1e-100, is played. Rewards are in units of their
    range, so that the bound B of the paper is 1.
    Deviation: the root is multiplied by `scale`, which is 1 for rewards in [0, 1] (see
    `ArmsAgent`). Ties are broken, and the first plays ordered, uniformly at random.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        discount: gamma in [0, 1], scalar or `(B,)`. Default: 1 - (Upsilon_T / T)^{1/2} / 4.
        num_changes: Upsilon_T of the default, whole numbers in [0, T], scalar or `(B,)`.
        xi: >= 0, scalar or `(B,)`. The paper's bounds ask for more than 1/2.
        reward_range: See `ArmsAgent`.

    Raises:
        ValueError: If a parameter is out of its range.

    Source: [GM11] Garivier, Moulines. On Upper-Confidence Bound Policies for Switching Bandit
    Problems. ALT 2011, policy D-UCB.
    """

    def __init__(
        self,
        env: Any,
        *,
        discount: Any = None,
        num_changes: Any = 1,
        xi: Any = 0.5,
        reward_range: Any = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        owner, batch = type(self).__name__, self.num_learners
        self.discount = discount_of(owner, discount, num_changes, self.problem.horizon, batch)
        self.xi = per_learner(owner, "xi", xi, batch, 0, math.inf, "left")
        self.statistics = DiscountedPlays(batch, self.num_arms, self.discount)

    def _clear(self, mask: Mask) -> None:
        self.statistics.clear(mask)

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        total = self.statistics.counts.sum(axis=1)
        return upper_bound(self.statistics, 2 * self.scale * np.sqrt(self.xi), total)

    def _take(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        self.statistics.add(arms, rewards, active)
