"""A bandit over a bandit: each block of steps tries one memory length, drawn by Exp3.

References:
    [CSZ19] Cheung, Simchi-Levi, Zhu. Learning to Optimize under Non-Stationarity. AISTATS 2019.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.arms.choice import sample_categorical
from wgp_agents.arms.weights import ExponentialWeights, exploration_rate
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.action_sets import ActionSet
from wgp_agents.gp.restart_rule import RestartRule, forget_all
from wgp_agents.gp.surrogates.weighted import Surrogate
from wgp_agents.gp.tuning import MAX_RATE, gain_order
from wgp_agents.parameters import reward_ends
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Mask

__all__ = ["BanditOverBandit", "block_rate", "default_block", "default_discounts"]


class BanditOverBandit(RestartRule):
    """Starts a memory anew in each block of L steps, with a discount that Exp3 draws for it.

    After a block whose rewards add up to S, Exp3 is paid (S - L low + Q) / (L (high - low) + 2 Q)
    for the discount, cut off at 0 and 1, where expected rewards lie in [low, high] and
    Q = 2 R (L ln(T / L^{1/2}))^{1/2} bounds the block's noise with high probability: with [-1, 1]
    that is [CSZ19]'s 1/2 + S / (2 L + 4 R (L ln(T / L^{1/2}))^{1/2}).

    Args:
        horizon: T.
        block_length: L, in steps.
        discounts: What Exp3 draws from, `(K,)`.
        gamma: Exp3's share of uniform exploration, `(B,)`.
        reward_range: low and high. None: the problem's; where it has none, -B and B; where no B
            is known either, [CSZ19]'s -1 and 1.

    Attributes:
        candidate: Which of the discounts each learner plays with, `(B,)`.
    """

    def __init__(
        self,
        horizon: int,
        block_length: int,
        discounts: Array,
        gamma: Array,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        batch = len(gamma)
        self._length, self._discounts, self._given_range = block_length, discounts, reward_range
        logarithm = math.log(horizon / math.sqrt(block_length))
        self._deviations = 2 * math.sqrt(block_length * logarithm)  # Q / R
        self.weights = ExponentialWeights(len(discounts), gamma, np.zeros(batch))
        self.candidate = np.zeros(batch, np.int64)
        self._due = np.ones(batch, bool)  # whose next choice begins a block
        self._over = np.zeros(batch, bool)  # whose memory is still that of the block before
        self._played, self._total = np.zeros(batch, np.int64), np.zeros(batch)
        self._least, self._width = np.zeros(batch), np.ones(batch)

    def restart(
        self, mask: Mask, problem: BanditProblem, norm_bound: Any, noise_scale: Array
    ) -> None:
        """Make all discounts equally likely, and begin a block."""
        bound = 1.0 if norm_bound is None else norm_bound
        low, high = reward_ends(self._given_range, problem, bound, len(mask))
        noise = self._deviations * noise_scale
        least, most = self._length * low - noise, self._length * high + noise
        self._least[mask], self._width[mask] = least[mask], (most - least)[mask]
        self.weights.clear(mask)
        self._due[mask] = True
        self._over[mask] = False
        self._played[mask] = 0
        self._total[mask] = 0.0

    def before(self, surrogate: Surrogate, uniform: UniformStreams) -> Mask | None:
        """Draw a discount where a block begins."""
        chance = uniform.draw()  # at each step: no learner's stream depends on the others' blocks
        due = self._due
        if not due.any():
            return None
        self._leave(surrogate, due)
        self.candidate[due] = sample_categorical(self.weights.probabilities(), chance)[due]
        surrogate.ratios[due, 0] = self._discounts[self.candidate[due]]
        self._due = np.zeros_like(due)
        return due

    def _leave(self, surrogate: Surrogate, mask: Mask) -> None:
        """Empty the memories in `mask` that are still those of the block before."""
        left = self._over & mask
        if left.any():
            forget_all(surrogate, left)
            self._over[left] = False

    def chosen(self, plays: NDArray[Any]) -> NDArray[Any]:
        """Return the plays as they are."""
        return plays

    def observe(
        self,
        action_set: ActionSet,
        surrogate: Surrogate,
        plays: NDArray[Any],
        rewards: Array,
        active: Mask,
    ) -> None:
        """Add the reward to its block's, and tell Exp3 where that is over."""
        del action_set, plays
        self._leave(surrogate, active)  # before its first choice a block may be told of plays
        counted = active & ~self._due
        self._total[counted] += rewards[counted]
        self._played += counted
        over = self._played >= self._length
        if over.any():
            self.weights.learn(self.candidate, (self._total - self._least) / self._width, over)
            self._due, self._over = self._due | over, self._over | over
            self._played[over] = 0
            self._total[over] = 0.0


def default_block(horizon: int, dim: int) -> int:
    """Return L = ceil((gamma_T T)^{1/2}), at most T, with gamma_T = (log T)^(d+1).

    Args:
        horizon: T.
        dim: d.
    """
    length = math.sqrt(gain_order(horizon, dim)) * math.sqrt(horizon)
    return math.ceil(min(length, float(horizon)))


def default_discounts(block_length: int) -> Array:
    """Return the discounts of memories 1 / (1 - eta) = L^{j / D}, j = 0 ... D, D = ceil(ln L).

    [CSZ19] has these as windows. Deviation: a memory of less than 2 steps is one of 2, as where
    theory tunes a discount; a discount of 0 is none.

    Args:
        block_length: L.
    """
    steps = max(math.ceil(math.log(block_length)), 1)
    rate = float(block_length) ** -(np.arange(steps + 1) / steps)
    return np.unique(1 - np.minimum(rate, MAX_RATE))


def block_rate(num_discounts: int, horizon: int, block_length: int, batch: int) -> Array:
    """Return Exp3's gamma = min(1, (K ln K / ((e - 1) ceil(T / L)))^{1/2}), `(B,)`: [CSZ19].

    Args:
        num_discounts: K.
        horizon: T.
        block_length: L.
        batch: B.
    """
    blocks = np.full(batch, math.ceil(horizon / block_length))
    return exploration_rate(num_discounts, np.full(batch, math.log(num_discounts)), blocks)
