"""BOB-WGP-UCB: learns the discount from the rewards of blocks, by a bandit over the bandit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.algorithms.adaptive.bandit_over_bandit import bandit_over
from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.gp.agent import GPAgent, GPParameters
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate
from wgp_agents.gp.tuning import MAX_RATE, gain_order
from wgp_agents.parameters import SMALLEST, checked_grid
from wgp_gym.types import Array
from wgp_gym.validation import check_int

__all__ = ["BOBWGPUCB", "default_block", "default_discounts"]


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

    takes_elapsed = False
    learns_by_acting = True

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
        horizon = problem.known_horizon(owner)
        if block_length is None:
            block_length = default_block(horizon, problem.domain.shape[1])
        self.block_length = check_int("block_length", block_length, owner, 1, horizon)
        if discounts is None:
            discounts = default_discounts(self.block_length)
        self.discounts = checked_grid("discounts", discounts, owner, SMALLEST, 1.0)
        over = bandit_over(owner, problem, self.block_length, self.discounts, gamma, reward_range)
        self.candidate = over.candidate
        super().__init__(env, surrogate=DiscountSurrogate, restart_rule=over, **common)


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
