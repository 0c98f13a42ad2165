"""SW-UCB: upper confidence bounds from the last plays."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.index import upper_bound
from wgp_agents.arms.statistics import WindowPlays, tuned_window
from wgp_agents.core.access import EnvLike
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.types import Array

__all__ = ["SWUCB"]


class SWUCB(IndexAgent):
    """Sliding-window UCB: plays the arm of the largest mean + (xi log min(t, tau) / N)^{1/2}.

    The mean and N, the arm's plays, are of the last tau steps; t counts all plays so far. An arm
    without plays among them is played. Rewards are in units of their range, so that the bound B
    of the paper is 1.
    Deviation: the root is multiplied by `scale`: see `ArmsAgent`.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        window: tau >= 1, in steps, or infinite, scalar or `(B,)`. Default:
            2 (T log T / Upsilon_T)^{1/2}, rounded up, at least K + 1: see `tuned_window`.
        num_changes: Upsilon_T of the default, whole numbers in [0, T], scalar or `(B,)`.
        xi: >= 0, scalar or `(B,)`. The paper's bounds ask for more than 1/2.
        reward_range: See `ArmsAgent`.

    Raises:
        ValueError: If a parameter is out of its range.

    Source: [GM11] Garivier, Moulines. On Upper-Confidence Bound Policies for Switching Bandit
    Problems. ALT 2011, policy SW-UCB.
    """

    takes_elapsed = True
    learns_by_acting = False
    statistics: WindowPlays

    def __init__(
        self,
        env: EnvLike,
        *,
        window: ArrayLike | None = None,
        num_changes: ArrayLike = 1,
        xi: ArrayLike = 0.5,
        reward_range: Sequence[float] | None = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        changes = self._num_changes(num_changes)
        if window is None:
            window = tuned_window(changes, self._horizon("window"), self.num_arms)
        self.window = self._parameter("window", window, 1, whole=True)
        self.xi = self._parameter("xi", xi, 0, closed="left")
        self.statistics = WindowPlays(self.num_learners, self.num_arms, self.window)

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        del uniform
        total = self.statistics.counts.sum(axis=1)  # min(t, tau), with one step a play
        return upper_bound(self.statistics, self.scale * np.sqrt(self.xi), total)
