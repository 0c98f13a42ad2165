"""D-TS: Thompson sampling from plays that fade."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.posterior import ArmPosterior
from wgp_agents.arms.statistics import DiscountedPlays
from wgp_agents.arms.tuning import discount_of
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.types import Array, Mask

__all__ = ["DTS"]


class DTS(IndexAgent):
    """Discounted Thompson sampling: at each step all that is known of every arm fades by gamma.

    With the prior "beta" the successes and failures of the arm played become gamma S + r and
    gamma F + 1 - r, those of the others gamma S and gamma F, and an arm's mean is drawn from
    Beta(1 + S, 1 + F): an arm that is not played returns to the prior. A reward in [0, 1] is put
    to a trial first, as in `ThompsonSampling`. "gaussian" is the posterior there, with counts and
    sums that fade.
    Deviation: [RK17] leaves gamma open; the default is that of D-UCB. The Gaussian form is not
    in it; [QWZ23] has sigma = 1 and no prior, but bounds the variance of a draw.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        discount: gamma in [0, 1], scalar or `(B,)`. Default: 1 - (Upsilon_T / T)^{1/2} / 4.
        num_changes: Upsilon_T of the default, whole numbers in [0, T], scalar or `(B,)`.
        prior: "beta" or "gaussian".
        reward_range: See `ArmsAgent`.

    Raises:
        ValueError: If a parameter is out of its range.

    Source: [RK17] Raj, Kalyani. Taming Non-stationary Bandits: A Bayesian Approach. 2017.
    [QWZ23] Qi, Wang, Zhu. Discounted Thompson Sampling for Non-Stationary Bandit Problems. 2023.
    """

    def __init__(
        self,
        env: Any,
        *,
        discount: Any = None,
        num_changes: Any = 1,
        prior: str = "beta",
        reward_range: Any = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        owner, batch = type(self).__name__, self.num_learners
        self.discount = discount_of(owner, discount, num_changes, self.problem.horizon, batch)
        self._posterior = ArmPosterior(owner, prior, batch)
        self.statistics = DiscountedPlays(batch, self.num_arms, self.discount)

    def _clear(self, mask: Mask) -> None:
        self.statistics.clear(mask)
        self._posterior.clear(mask)

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        return self._posterior.draw(self.statistics, self.noise, uniform)

    def _take(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        self.statistics.add(arms, self._posterior.outcomes(rewards, active), active)
