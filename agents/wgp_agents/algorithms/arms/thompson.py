"""Thompson sampling: plays an arm as often as it is likely to be the best."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.posterior import ArmPosterior
from wgp_agents.arms.statistics import AllPlays
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.types import Array, Mask

__all__ = ["ThompsonSampling"]


class ThompsonSampling(IndexAgent):
    """Thompson sampling: draws every arm's mean from its posterior, and plays the largest.

    Rewards are in units of their range. With the prior "beta" a reward in [0, 1] is put to a
    trial that succeeds with that probability, and an arm with S successes and F failures has the
    posterior Beta(1 + S, 1 + F) ([AG12] Algorithm 2); rewards beyond are clipped. With "gaussian"
    n plays with the sum s give N(s / (n + sigma^2), sigma^2 / (n + sigma^2)), with sigma the
    noise scale in units of the range.
    Deviation: [AG13] has sigma = 1 there.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        prior: "beta" or "gaussian".
        reward_range: See `ArmsAgent`.

    Raises:
        ValueError: If there is no such prior; otherwise see `ArmsAgent`.

    Source: [AG12] Agrawal, Goyal. Analysis of Thompson Sampling for the Multi-armed Bandit
    Problem. COLT 2012. [AG13] The same. Further Optimal Regret Bounds for Thompson Sampling.
    AISTATS 2013.
    """

    def __init__(self, env: Any, *, prior: str = "beta", reward_range: Any = None) -> None:
        super().__init__(env, reward_range=reward_range)
        self._posterior = ArmPosterior(type(self).__name__, prior, self.num_learners)
        self.statistics = AllPlays(self.num_learners, self.num_arms)

    def _clear(self, mask: Mask) -> None:
        self.statistics.clear(mask)
        self._posterior.clear(mask)

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        return self._posterior.draw(self.statistics, self.noise, uniform)

    def _take(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        self.statistics.add(arms, self._posterior.outcomes(rewards, active), active)
