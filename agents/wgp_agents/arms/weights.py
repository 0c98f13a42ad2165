"""Exponential weights of arms: what Exp3 and its relatives have in common.

References:
    [ACFS02] Auer, Cesa-Bianchi, Freund, Schapire. The Nonstochastic Multiarmed Bandit Problem.
    SIAM Journal on Computing 32, 2002.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wgp_gym.types import Array, Mask

__all__ = ["ExponentialWeights", "exploration_rate"]


class ExponentialWeights:
    """Weights w_i of K arms for B learners, kept as logarithms, and with the sum 1.

    p_i = (1 - gamma) w_i + gamma / K is the probability of an arm. A reward x of arm i makes the
    weights w_j exp(gamma x / (p_i K) [i = j]) + e alpha / K, up to a common factor: Exp3.S of
    [ACFS02], and Exp3 where alpha = 0.

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

    def probabilities(self) -> Array:
        """Return p, `(B, K)`."""
        gamma = self.gamma[:, None]
        value: Array = (1 - gamma) * np.exp(self._logs) + gamma / self._logs.shape[1]
        return value

    def learn(self, arms: NDArray[np.int64], rewards: Array, active: Mask) -> None:
        """Take in one play of every learner in `active`.

        Args:
            arms: `(B,)`.
            rewards: x, `(B,)`; clipped to [0, 1].
            active: Who played.
        """
        rows = np.arange(len(arms))
        chance = self.probabilities()[rows, arms]
        logs = self._logs.copy()
        logs[rows, arms] += self.gamma * np.clip(rewards, 0.0, 1.0) / (chance * logs.shape[1])
        logs = np.logaddexp(logs, self._share)
        top = logs.max(axis=1, keepdims=True)
        logs -= top + np.log(np.exp(logs - top).sum(axis=1, keepdims=True))
        self._logs = np.where(active[:, None], logs, self._logs)


def exploration_rate(num_arms: int, complexity: Array, steps: Array) -> Array:
    """Return min(1, (K c / ((e - 1) t))^{1/2}), the gamma that theory gives Exp3 and its like.

    Args:
        num_arms: K.
        complexity: c, `(B,)`: log K for a best arm that stays, more for one that changes.
        steps: t, `(B,)`.
    """
    rate: Array = np.sqrt(num_arms * complexity / ((math.e - 1) * steps))
    return np.clip(rate, SMALLEST_RATE, 1.0)


SMALLEST_RATE = 1e-12  # of a single arm theory has no exploration, and a weight no step
