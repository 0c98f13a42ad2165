"""SW-UCB: upper confidence bounds from the last plays."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.bound import upper_bound
from wgp_agents.arms.sliding import WindowPlays
from wgp_agents.arms.tuning import window_of
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.parameters import per_learner
from wgp_gym.types import Array, Mask

__all__ = ["SWUCB"]


class SWUCB(IndexAgent):
    """Sliding-window UCB: plays the arm of the largest mean + (xi log min(t, tau) / N)^{1/2}.

    The mean and N, the arm's plays, are of the last tau steps; t counts all plays so far. An arm
    without plays among them is played. Rewards are in units of their range, so that the bound B
    of the paper is 1.
    Deviation: the root is multiplied by `scale`, which is 1 for rewards in [0, 1] (see
    `ArmsAgent`). Ties are broken, and the first plays ordered, uniformly at random.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        window: tau >= 1, in steps, or infinite, scalar or `(B,)`. Default:
            2 (T log T / Upsilon_T)^{1/2}, rounded up, at least K + 1: see `window_of`.
        num_changes: Upsilon_T of the default, whole numbers in [0, T], scalar or `(B,)`.
        xi: >= 0, scalar or `(B,)`. The paper's bounds ask for more than 1/2.
        reward_range: See `ArmsAgent`.

    Raises:
        ValueError: If a parameter is out of its range.

    Source: [GM11] Garivier, Moulines. On Upper-Confidence Bound Policies for Switching Bandit
    Problems. ALT 2011, policy SW-UCB.
    """

    def __init__(
        self,
        env: Any,
        *,
        window: Any = None,
        num_changes: Any = 1,
        xi: Any = 0.5,
        reward_range: Any = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        owner, batch = type(self).__name__, self.num_learners
        horizon = self.problem.horizon
        self.window = window_of(owner, window, num_changes, horizon, batch, self.num_arms)
        self.xi = per_learner(owner, "xi", xi, batch, 0, math.inf, "left")
        self.statistics = WindowPlays(batch, self.num_arms, self.window)

    def _clear(self, mask: Mask) -> None:
        self.statistics.clear(mask)

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        total = np.minimum(self.statistics.steps, self.window)
        return upper_bound(self.statistics, self.scale * np.sqrt(self.xi), total)

    def _take(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        self.statistics.add(arms, rewards, active)
