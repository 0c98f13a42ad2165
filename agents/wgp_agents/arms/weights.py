"""Exponential weights of arms: what Exp3 and its relatives have in common.

References:
    [ACFS02] Auer, Cesa-Bianchi, Freund, Schapire. The Nonstochastic Multiarmed Bandit Problem.
    SIAM Journal on Computing 32, 2002.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.arms.agent import ArmsAgent
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.stateful import locked
from wgp_gym.types import Array, Indices, Mask

__all__ = ["ExponentialAgent", "ExponentialWeights", "exploration_rate", "sample_categorical"]

SMALLEST_RATE = 1e-12  # of a single arm theory has no exploration, and a weight no step


class ExponentialWeights:
    """Weights w_i of K arms for B learners, kept as logarithms, and with the sum 1.

    p_i = (1 - gamma) w_i + gamma / K is the probability of an arm. A reward x of arm i makes the
    weights w_j exp(gamma x / (p_i K) [i = j]) + e alpha / K, up to a common factor: Exp3.S of
    [ACFS02], and Exp3 where alpha = 0.

    Deviation: where not all arms are there, p is restricted to those that are and divided by its
    sum. With this p_i, x / p_i is still an unbiased estimate of the reward of an arm that is
    there; those of the others count as 0.

    Args:
        num_arms: K.
        gamma: The share of uniform exploration, in (0, 1], `(B,)`.
        alpha: >= 0, `(B,)`.
    """

    def __init__(self, num_arms: int, gamma: Array, alpha: Array) -> None:
        self.gamma = gamma
        share = math.e * alpha[:, None] / num_arms
        self._share = np.log(share, out=np.full_like(share, -math.inf), where=share > 0)
        self._even = -math.log(num_arms)
        self._logs = np.full((len(gamma), num_arms), self._even)

    def clear(self, mask: Mask) -> None:
        """Make the weights of the learners in `mask` `(B,)` equal."""
        self._logs[mask] = self._even

    def probabilities(self, allowed: Mask | None = None) -> Array:
        """Return p, `(B, K)`.

        Args:
            allowed: Which arms are there, `(B, K)`, at least one of each row; None: all.
        """
        gamma = self.gamma[:, None]
        value: Array = (1 - gamma) * np.exp(self._logs) + gamma / self._logs.shape[1]
        if allowed is None:
            return value
        left = np.where(allowed, value, 0.0)
        total = np.where(allowed.all(axis=1), 1.0, left.sum(axis=1))  # 1: no rounding
        return left / total[:, None]

    def learn(
        self, arms: Indices, rewards: Array, active: Mask, allowed: Mask | None = None
    ) -> None:
        """Take in one play of every learner in `active`.

        Args:
            arms: `(B,)`.
            rewards: x, `(B,)`; clipped to [0, 1].
            active: Who played.
            allowed: Which arms were there, `(B, K)`; the arm that was played counts as one. None:
                all.
        """
        rows = np.arange(len(arms))
        if allowed is not None:
            allowed = allowed.copy()
            allowed[rows, arms] = True
        chance = self.probabilities(allowed)[rows, arms]
        logs = self._logs.copy()
        logs[rows, arms] += self.gamma * np.clip(rewards, 0.0, 1.0) / (chance * logs.shape[1])
        logs = np.logaddexp(logs, self._share)
        top = logs.max(axis=1, keepdims=True)
        logs -= top + np.log(np.exp(logs - top).sum(axis=1, keepdims=True))
        self._logs = np.where(active[:, None], logs, self._logs)


class ExponentialAgent(ArmsAgent):
    """Draws its arm by exponential weights, mixed with uniform exploration.

    Deviation: rewards, in units of their range, are clipped to [0, 1], where the papers have them.
    See also `ExponentialWeights`.

    Attributes:
        weights: Of the arms; its class sets them.
    """

    learns_by_acting = False
    weights: ExponentialWeights

    def _clear(self, mask: Mask) -> None:
        self.weights.clear(mask)
        if self.allowed is not None:  # a learner that starts anew has seen no mask yet
            self.allowed = self.allowed | mask[:, None]

    def _choose(self, uniform: UniformStreams) -> Indices:
        return sample_categorical(self.weights.probabilities(self.allowed), uniform.draw())

    @locked
    def propensities(self) -> Array:
        """Return the probabilities with which the last `act` chose, `(K,)` or `(B, K)`.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        found = self.weights.probabilities(self.allowed)
        return found if self.batched else found[0]

    def _take(self, arms: Indices, rewards: Array, active: Mask) -> None:
        self.weights.learn(arms, rewards, active, self.allowed)


def sample_categorical(probabilities: Array, uniform: Array) -> Indices:
    """Return an arm of every learner, drawn with its probabilities, `(B,)`.

    Args:
        probabilities: `(B, K)`, up to a factor of each row.
        uniform: One draw from [0, 1) for each learner, `(B,)`.
    """
    reached = probabilities.cumsum(axis=1)
    chosen: Indices = (reached <= (uniform * reached[:, -1])[:, None]).sum(axis=1)
    return np.minimum(chosen, np.int64(probabilities.shape[1] - 1))


def exploration_rate(num_arms: int, complexity: Array | float, steps: Array | float) -> Array:
    """Return min(1, (K c / ((e - 1) t))^{1/2}), the gamma that theory gives Exp3 and its like.

    Args:
        num_arms: K.
        complexity: c: log K for a best arm that stays, more for one that changes.
        steps: t.
    """
    rate: Array = np.sqrt(num_arms * complexity / ((math.e - 1) * steps))
    return np.clip(rate, SMALLEST_RATE, 1.0)
