"""Posteriors of the arms' mean rewards, for Thompson sampling.

References:
    [AG12] Agrawal, Goyal. Analysis of Thompson Sampling for the Multi-armed Bandit Problem.
    COLT 2012.
    [AG13] Agrawal, Goyal. Further Optimal Regret Bounds for Thompson Sampling. AISTATS 2013.
"""

from __future__ import annotations

import numpy as np

from wgp_agents.arms.statistics import ArmStatistics
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import beta_variates, normal_variates
from wgp_gym.types import Array, Mask
from wgp_gym.validation import check_choice

__all__ = ["PRIORS", "ArmPosterior"]

PRIORS = ("beta", "gaussian")
SMALLEST_NOISE = 1e-3  # as elsewhere here: a noise variance of at least 1e-6
GOLDEN = (5**0.5 - 1) / 2


class ArmPosterior:
    """Draws from what the plays say of every arm's mean reward, in units of the range.

    With the prior "beta", Beta(1, 1), a reward r, clipped to [0, 1], is put to a trial that
    succeeds with probability r, as in [AG12]: S successes and F failures give Beta(1 + S, 1 + F).
    With "gaussian", N(0, 1), and noise of standard deviation sigma, n plays with the sum s give
    N(s / (n + sigma^2), sigma^2 / (n + sigma^2)): that of [AG13] where sigma = 1.

    Args:
        owner: The agent whose parameter the prior is.
        prior: "beta" or "gaussian".
        batch: B.

    Raises:
        ValueError: If there is no such prior.
    """

    def __init__(self, owner: str, prior: str, batch: int) -> None:
        self.prior = check_choice("prior", prior, owner, PRIORS)
        self._coin = np.zeros(batch)

    def clear(self, mask: Mask) -> None:
        """Make the learners in `mask` `(B,)` start anew."""
        self._coin[mask] = 0.0

    def draw(self, statistics: ArmStatistics, noise: Array, uniform: UniformStreams) -> Array:
        """Return a draw of every arm's mean reward, `(B, K)`.

        Args:
            statistics: Counts, and sums of what `outcomes` returned.
            noise: sigma, `(B,)`.
            uniform: The learners' streams.
        """
        if self.prior == "beta":
            self._coin = uniform.draw()
            failures = np.maximum(statistics.counts - statistics.sums, 0.0)  # rounding may go below
            return beta_variates(uniform, 1 + statistics.sums, 1 + failures)
        variance = np.maximum(noise, SMALLEST_NOISE)[:, None] ** 2
        weight = statistics.counts + variance
        normal = normal_variates(uniform, statistics.counts.shape[1])
        value: Array = statistics.sums / weight + np.sqrt(variance / weight) * normal
        return value

    def outcomes(self, rewards: Array, active: Mask) -> Array:
        """Return what a memory is to add for the rewards of the learners in `active`, `(B,)`.

        The coin of a trial is drawn with the choice before it. For further plays without a choice
        between them it moves on by the golden ratio, modulo 1: it is as uniform, and never draws
        while others do not.

        Args:
            rewards: In units of the range, `(B,)`.
            active: Who played.
        """
        if self.prior == "gaussian":
            return rewards
        trial: Array = (self._coin < rewards).astype(float)  # clips to [0, 1]: 0 <= coin < 1
        self._coin = np.where(active, (self._coin + GOLDEN) % 1.0, self._coin)
        return trial
