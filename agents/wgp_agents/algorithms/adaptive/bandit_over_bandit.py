"""The bandit over a bandit: Exp3 draws the memory of each block of steps.

References:
    [CSZ19] Cheung, Simchi-Levi, Zhu. Learning to Optimize under Non-Stationarity. AISTATS 2019.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.arms.weights import ExponentialWeights, exploration_rate, sample_categorical
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.state import check_counts
from wgp_agents.gp.action_sets import Plays
from wgp_agents.gp.restart_rule import RestartRule
from wgp_agents.gp.surrogates.base import Surrogate, forget_all
from wgp_agents.parameters import checked_ends, per_learner, reward_ends
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Mask

__all__ = ["BanditOverBandit", "bandit_over", "block_rate"]


class BanditOverBandit(RestartRule):
    """A rule that restarts a surrogate in each block of L steps, its memory drawn by Exp3.

    After a block with the sum of rewards S, Exp3 gets (S - L low + Q) / (L (high - low) + 2 Q) for
    what was drawn, clipped to [0, 1], where expected rewards lie in [low, high] and
    Q = 2 R (L ln(T / L^{1/2}))^{1/2} bounds the block's noise with high probability. With [-1, 1]
    that is [CSZ19]'s 1/2 + S / (2 L + 4 R (L ln(T / L^{1/2}))^{1/2}).

    Args:
        horizon: T.
        block_length: L, in steps.
        values: The candidates of the surrogate's forgetting parameter, `(K,)`.
        gamma: Exp3's share of uniform exploration, `(B,)`.
        reward_range: low and high. None: the problem's; where it has none, -B and B; where no B
            is known either, [CSZ19]'s -1 and 1.

    Attributes:
        candidate: The index of each learner's value, `(B,)`.
    """

    def __init__(
        self,
        horizon: int,
        block_length: int,
        values: Array,
        gamma: Array,
        reward_range: tuple[float, float] | None = None,
    ) -> None:
        batch = len(gamma)
        self._length, self._values, self._given_range = block_length, values, reward_range
        logarithm = math.log(horizon / math.sqrt(block_length))
        self._deviations = 2 * math.sqrt(block_length * logarithm)  # Q / R
        self.weights = ExponentialWeights(len(values), gamma, np.zeros(batch))
        self.candidate = np.zeros(batch, np.int64)
        self._due = np.ones(batch, bool)  # whose next choice begins a block
        self._over = np.zeros(batch, bool)  # whose surrogate is still that of the block before
        self._played, self._total = np.zeros(batch, np.int64), np.zeros(batch)
        self._least, self._width = np.zeros(batch), np.ones(batch)

    def _check_state(self) -> None:
        check_counts(self, "candidate", self.candidate, len(self._values) - 1)

    def restart(
        self, mask: Mask, problem: BanditProblem, norm_bound: Array | None, noise_scale: Array
    ) -> None:
        """Make all candidates equally likely, and begin a block."""
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

    def before_act(self, surrogate: Surrogate, uniform: UniformStreams) -> Mask | None:
        """Draw a memory where a block begins."""
        chance = uniform.draw()  # at each step, or streams depended on others' blocks
        due = self._due
        if not due.any():
            return None
        self._leave(surrogate, due)
        self.candidate[due] = sample_categorical(self.weights.probabilities(), chance)[due]
        surrogate.retune(due, self._values[self.candidate])
        self._due = np.zeros_like(due)
        return due

    def _leave(self, surrogate: Surrogate, mask: Mask) -> None:
        """Empty the surrogates in `mask` that are still those of the block before."""
        left = self._over & mask
        if left.any():
            forget_all(surrogate, left)
            self._over[left] = False

    def before_update(
        self, surrogate: Surrogate, plays: Plays, rewards: Array, active: Mask
    ) -> None:
        """Add the reward to the block's sum, and update Exp3 at the block's end."""
        self._leave(surrogate, active)  # a block may observe plays before its first choice
        counted = active & ~self._due
        self._total[counted] += rewards[counted]
        self._played += counted
        over = self._played >= self._length
        if over.any():
            self.weights.learn(self.candidate, (self._total - self._least) / self._width, over)
            self._due, self._over = self._due | over, self._over | over
            self._played[over] = 0
            self._total[over] = 0.0


def bandit_over(
    owner: str,
    problem: BanditProblem,
    block_length: int,
    values: Array,
    gamma: ArrayLike | None,
    reward_range: Sequence[float] | None,
) -> BanditOverBandit:
    """Return the rule of an agent with these parameters: see `BOBWGPUCB`.

    Raises:
        ValueError: If `gamma` or `reward_range` is out of its range.
    """
    batch, horizon = problem.batch_size or 1, problem.known_horizon(owner)
    if gamma is None:
        gamma = block_rate(len(values), horizon, block_length, batch)
    rate = per_learner(owner, "gamma", gamma, batch, 0.0, 1.0, "right")
    ends = checked_ends(owner, reward_range)
    return BanditOverBandit(horizon, block_length, values, rate, ends)


def block_rate(num_values: int, horizon: int, block_length: int, batch: int) -> Array:
    """Return Exp3's gamma = min(1, (K ln K / ((e - 1) ceil(T / L)))^{1/2}), `(B,)`: [CSZ19]."""
    blocks = np.full(batch, math.ceil(horizon / block_length))
    return exploration_rate(num_values, np.full(batch, math.log(num_values)), blocks)
