"""BOB-WGP-UCB: learns the discount from the rewards of blocks, by a bandit over the bandit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.arms.weights import ExponentialWeights, exploration_rate, sample_categorical
from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.action_sets import Plays
from wgp_agents.gp.agent import GPAgent, GPParameters
from wgp_agents.gp.restart_rule import RestartRule
from wgp_agents.gp.surrogates.base import Surrogate, forget_all
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate
from wgp_agents.gp.tuning import MAX_RATE, gain_order
from wgp_agents.parameters import SMALLEST, checked_ends, checked_grid, per_learner, reward_ends
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Mask
from wgp_gym.validation import check_int

__all__ = ["BOBWGPUCB", "BanditOverBandit", "block_rate", "default_block", "default_discounts"]


class BOBWGPUCB(GPAgent):
    """Bandit over bandit: WGP-UCB, restarted every L steps with a discount drawn by Exp3.

    It needs no variation budget: the reward of Exp3 is the sum of a block's rewards, scaled to
    [0, 1]. See `BanditOverBandit`.

    Deviation: [CSZ19] has windows of linear UCB and blocks of d T^{1/2} steps; here gamma^{1/2}
    replaces d, and in d >= 2 a block is at most half of T. The scaled sum is clipped to [0, 1], its
    range with high probability only. Plays that are observed before a block's discount is drawn do
    not count for it. The clock of `confidence` goes on over the blocks.

    Source: [CSZ19] Cheung, Simchi-Levi, Zhu. Learning to Optimize under Non-Stationarity. AISTATS
    2019, algorithm BOB.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        block_length: L in [1, T], in steps. Default: ceil((gamma T)^{1/2}) with
            gamma = (log T)^(d+1), and in d >= 2 at most ceil(T / 2): see `default_block`.
        discounts: The candidates of Exp3, numbers in (0, 1]. Default: those with
            1 / (1 - eta) = L^{j / D}, j = 0 ... D, D = ceil(ln L), and at least 2.
        gamma: Exp3's share of uniform exploration, in (0, 1], scalar or `(B,)`. Default:
            min(1, (K ln K / ((e - 1) ceil(T / L)))^{1/2}) of K discounts.
        reward_range: The two numbers that expected rewards lie between. Default: the problem's;
            where it has none, -B and B; where no B is known either, -1 and 1.
        **common: See `GPAgent`.

    Attributes:
        discounts: The candidates, `(K,)`.
        candidate: The index of each learner's discount, `(B,)`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self,
        env: EnvLike,
        *,
        block_length: int | None = None,
        discounts: ArrayLike | None = None,
        gamma: ArrayLike | None = None,
        reward_range: Sequence[float] | None = None,
        **common: Unpack[GPParameters],
    ) -> None:
        owner, problem = "BOBWGPUCB", problem_reader(env)()
        horizon, batch = problem.horizon, problem.batch_size or 1
        if block_length is None:
            block_length = default_block(horizon, problem.domain.shape[1])
        self.block_length = check_int("block_length", block_length, owner, 1, horizon)
        if discounts is None:
            discounts = default_discounts(self.block_length)
        self.discounts = checked_grid("discounts", discounts, owner, SMALLEST, 1.0)
        if gamma is None:
            gamma = block_rate(len(self.discounts), horizon, self.block_length, batch)
        rate = per_learner(owner, "gamma", gamma, batch, 0.0, 1.0, "right")
        ends = checked_ends(owner, reward_range)
        over = BanditOverBandit(horizon, self.block_length, self.discounts, rate, ends)
        self.candidate = over.candidate
        super().__init__(env, surrogate=DiscountSurrogate, restart_rule=over, **common)


class BanditOverBandit(RestartRule):
    """A rule that restarts a surrogate in each block of L steps, with a discount drawn by Exp3.

    After a block with the sum of rewards S, Exp3 gets (S - L low + Q) / (L (high - low) + 2 Q) for
    the discount, clipped to [0, 1], where expected rewards lie in [low, high] and
    Q = 2 R (L ln(T / L^{1/2}))^{1/2} bounds the block's noise with high probability. With [-1, 1]
    that is [CSZ19]'s 1/2 + S / (2 L + 4 R (L ln(T / L^{1/2}))^{1/2}).

    Args:
        horizon: T.
        block_length: L, in steps.
        discounts: The candidates, `(K,)`.
        gamma: Exp3's share of uniform exploration, `(B,)`.
        reward_range: low and high. None: the problem's; where it has none, -B and B; where no B
            is known either, [CSZ19]'s -1 and 1.

    Attributes:
        candidate: The index of each learner's discount, `(B,)`.
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
        self._over = np.zeros(batch, bool)  # whose surrogate is still that of the block before
        self._played, self._total = np.zeros(batch, np.int64), np.zeros(batch)
        self._least, self._width = np.zeros(batch), np.ones(batch)

    def restart(
        self, mask: Mask, problem: BanditProblem, norm_bound: Array | None, noise_scale: Array
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

    def before_act(self, surrogate: Surrogate, uniform: UniformStreams) -> Mask | None:
        """Draw a discount where a block begins."""
        chance = uniform.draw()  # at each step, or streams depended on others' blocks
        due = self._due
        if not due.any():
            return None
        self._leave(surrogate, due)
        self.candidate[due] = sample_categorical(self.weights.probabilities(), chance)[due]
        surrogate.ratios[due, 0] = self._discounts[self.candidate[due]]
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


def default_block(horizon: int, dim: int) -> int:
    """Return L = ceil((gamma_T T)^{1/2}), gamma_T = (log T)^(d+1), in d >= 2 at most ceil(T / 2).

    Deviation: the cap. Without it L is above T / 2 in d = 2 up to T = 1,610 (294 at T = 400), and T
    itself in d = 3 up to T = 5,503: a discount drawn once for all. A smaller cap is no better: Exp3
    learns from more than some 6 blocks, and each of them begins with nothing (docs/fidelity.md).
    """
    length = math.sqrt(gain_order(horizon, dim)) * math.sqrt(horizon)
    most = horizon if dim < 2 else math.ceil(horizon / 2)
    return math.ceil(min(length, float(most)))


def default_discounts(block_length: int) -> Array:
    """Return the discounts with 1 / (1 - eta) = L^{j / D}, j = 0 ... D, D = ceil(ln L).

    [CSZ19] has these as windows. Deviation: 1 / (1 - eta) is at least 2, as where theory tunes a
    discount; at 1 the discount would be 0.
    """
    steps = max(math.ceil(math.log(block_length)), 1)
    rate = float(block_length) ** -(np.arange(steps + 1) / steps)
    return np.unique(1 - np.minimum(rate, MAX_RATE))


def block_rate(num_discounts: int, horizon: int, block_length: int, batch: int) -> Array:
    """Return Exp3's gamma = min(1, (K ln K / ((e - 1) ceil(T / L)))^{1/2}), `(B,)`: [CSZ19]."""
    blocks = np.full(batch, math.ceil(horizon / block_length))
    return exploration_rate(num_discounts, np.full(batch, math.log(num_discounts)), blocks)
