"""UCB1: optimism in the face of uncertainty, for arms that do not change."""

from __future__ import annotations

import math

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.index import upper_bound
from wgp_agents.arms.statistics import AllPlays
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.types import Array

__all__ = ["UCB1"]


class UCB1(IndexAgent):
    """UCB1: plays the arm of the largest mean + (2 log t / N)^{1/2}.

    N counts the arm's plays, t all plays so far; each arm is played once first.
    Deviation: the root is multiplied by `scale`: see `ArmsAgent`.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        reward_range: See `ArmsAgent`.

    Raises:
        ValueError: See `ArmsAgent`.

    Source: [ACF02] Auer, Cesa-Bianchi, Fischer. Finite-time Analysis of the Multiarmed Bandit
    Problem. Machine Learning 47, 2002, policy UCB1.
    """

    takes_elapsed = True
    learns_by_acting = False
    statistics: AllPlays

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        del uniform
        return upper_bound(self.statistics, self.scale * math.sqrt(2.0), self.statistics.steps)
