"""Posteriors of the arms' mean rewards, for Thompson sampling.

References:
    [AG12] Agrawal, Goyal. Analysis of Thompson Sampling for the Multi-armed Bandit Problem.
    COLT 2012.
    [AG13] Agrawal, Goyal. Further Optimal Regret Bounds for Thompson Sampling. AISTATS 2013.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from wgp_agents.arms.statistics import ArmStatistics
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import beta_variates, normal_variates
from wgp_agents.kernels.arm_statistics import toss
from wgp_gym.types import Array, Indices, Mask
from wgp_gym.validation import check_choice

__all__ = ["ArmPosterior", "Prior"]

Prior = Literal["beta", "gaussian"]
SMALLEST_NOISE = 1e-3  # as elsewhere here: a noise variance of at least 1e-6


class ArmPosterior:
    """Draws from what the plays say of every arm's mean reward, in units of the range.

    With the prior "beta", Beta(1, 1), a reward r, clipped to [0, 1], is put to a trial that
    succeeds with probability r ([AG12] Algorithm 2): S successes and F failures give
    Beta(1 + S, 1 + F). With "gaussian", N(0, 1), and noise of standard deviation sigma, n plays
    with the sum s give N(s / (n + sigma^2), sigma^2 / (n + sigma^2)): that of [AG13] where
    sigma = 1.

    Args:
        owner: The agent whose parameter the prior is.
        prior: "beta" or "gaussian".
        plays: Counts, and sums of rewards or of successes.

    Raises:
        ValueError: If there is no such prior.
    """

    def __init__(self, owner: str, prior: Prior, plays: ArmStatistics) -> None:
        self.prior = check_choice("prior", prior, owner, ("beta", "gaussian"))
        self.plays = plays
        self._coin = np.zeros(len(plays.steps))

    def clear(self, mask: Mask) -> None:
        """Make the learners in `mask` `(B,)` start anew."""
        self.plays.clear(mask)
        self._coin[mask] = 0.0

    def draw(self, noise: Array, uniform: UniformStreams) -> Array:
        """Return a draw of every arm's mean reward, `(B, K)`.

        Args:
            noise: sigma, `(B,)`.
            uniform: The learners' streams.
        """
        counts, sums = self.plays.counts, self.plays.sums
        if self.prior == "beta":
            self._coin = uniform.draw()
            return beta_variates(uniform, sums, counts)
        variance = np.maximum(noise, SMALLEST_NOISE)[:, None] ** 2
        weight = counts + variance
        normal = normal_variates(uniform, counts.shape[1])
        value: Array = sums / weight + np.sqrt(variance / weight) * normal
        return value

    def elapse(self, steps: Array, active: Mask) -> None:
        """Let `steps` `(B,)` go by for the learners in `active` `(B,)`."""
        self.plays.elapse(steps, active)

    def hallucinate(self, arms: Indices, active: Mask) -> None:
        """Do nothing: draws differ anyway."""

    def add(
        self, arms: Indices, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Take in one play of every learner in `active`.

        The coin of a trial is drawn with the choice before it. For further plays without a choice
        between them it moves on by the golden ratio, modulo 1: it is as uniform, and never draws
        while others do not.
        """
        if self.prior == "beta":
            successes = np.empty(len(rewards))
            toss(rewards, active, self._coin, successes)
            rewards = successes
        self.plays.add(arms, rewards, active, elapsed)
