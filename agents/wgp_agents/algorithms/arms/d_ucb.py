"""D-UCB: upper confidence bounds from plays that fade."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.index import upper_bound
from wgp_agents.arms.statistics import DiscountedPlays, tuned_discount
from wgp_agents.core.access import EnvLike
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.types import Array

__all__ = ["DUCB"]


class DUCB(IndexAgent):
    """Discounted UCB: plays the arm of the largest mean + 2 (xi log n / N)^{1/2}.

    A play that is s steps old counts gamma^s in the mean, in N, the arm's plays, and in n, all
    plays. An arm without plays, or with N below 1e-100, is played. Rewards are in units of their
    range, so that the bound B of the paper is 1.
    Deviation: the root is multiplied by `scale`: see `ArmsAgent`.

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

    takes_elapsed = True
    learns_by_acting = False
    statistics: DiscountedPlays

    def __init__(
        self,
        env: EnvLike,
        *,
        discount: ArrayLike | None = None,
        num_changes: ArrayLike = 1,
        xi: ArrayLike = 0.5,
        reward_range: Sequence[float] | None = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        changes = self._num_changes(num_changes)
        if discount is None:
            discount = tuned_discount(changes, self._horizon("discount"))
        self.discount = self._parameter("discount", discount, 0, 1)
        self.xi = self._parameter("xi", xi, 0, closed="left")
        self.statistics = DiscountedPlays(self.num_learners, self.num_arms, self.discount)

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        del uniform
        total = self.statistics.counts.sum(axis=1)
        return upper_bound(self.statistics, 2 * self.scale * np.sqrt(self.xi), total)
