"""Thompson sampling: plays an arm as often as it is likely to be the best."""

from __future__ import annotations

from collections.abc import Sequence

from wgp_agents.arms.agent import IndexAgent
from wgp_agents.arms.posterior import ArmPosterior, Prior
from wgp_agents.arms.statistics import AllPlays
from wgp_agents.core.access import EnvLike
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.types import Array

__all__ = ["ThompsonSampling"]


class ThompsonSampling(IndexAgent):
    """Thompson sampling: draws every arm's mean from its posterior, and plays the largest.

    `ArmPosterior` has the two posteriors, of [AG12] Algorithm 2 and of [AG13].
    Deviation: [AG13] has sigma = 1; here it is the noise scale in units of the range.

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

    _needs_noise = False
    takes_elapsed = True
    statistics: ArmPosterior

    def __init__(
        self, env: EnvLike, *, prior: Prior = "beta", reward_range: Sequence[float] | None = None
    ) -> None:
        super().__init__(env, reward_range=reward_range)
        if prior == "gaussian":
            self.problem.known_noise(type(self).__name__)
        plays = AllPlays(self.num_learners, self.num_arms)
        self.statistics = ArmPosterior(type(self).__name__, prior, plays)

    def index(self, uniform: UniformStreams) -> Array:
        """Return the index of every arm, `(B, K)`."""
        return self.statistics.draw(self.noise, uniform)
