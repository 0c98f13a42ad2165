"""D-TS: Thompson sampling from plays that fade."""

from __future__ import annotations

from collections.abc import Sequence

from numpy.typing import ArrayLike

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.posterior import ArmPosterior, Prior
from wgp_agents.arms.statistics import DiscountedPlays, tuned_discount
from wgp_agents.core.access import EnvLike
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.types import Array

__all__ = ["DTS"]


class DTS(IndexAgent):
    """Discounted Thompson sampling: at each step all that is known of every arm fades by gamma.

    With the prior "beta" the successes and failures of the arm played become gamma S + r and
    gamma F + 1 - r, those of the others gamma S and gamma F: an arm that is not played returns to
    the prior. "gaussian" has counts and sums that fade alike. See `ArmPosterior`.
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

    _needs_noise = False
    takes_elapsed = True
    statistics: ArmPosterior

    def __init__(
        self,
        env: EnvLike,
        *,
        discount: ArrayLike | None = None,
        num_changes: ArrayLike = 1,
        prior: Prior = "beta",
        reward_range: Sequence[float] | None = None,
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        if prior == "gaussian":
            self.problem.known_noise(type(self).__name__)
        changes = self._num_changes(num_changes)
        if discount is None:
            discount = tuned_discount(changes, self._horizon("discount"))
        self.discount = self._parameter("discount", discount, 0, 1)
        plays = DiscountedPlays(self.num_learners, self.num_arms, self.discount)
        self.statistics = ArmPosterior(type(self).__name__, prior, plays)

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        return self.statistics.draw(self.noise, uniform)
