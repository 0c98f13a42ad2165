"""BOB-WGP-UCB: learns how fast to forget, from the rewards of whole blocks."""

from __future__ import annotations

from typing import Any, Unpack

from wgp_agents.algorithms.adaptive.over_bandit import (
    BanditOverBandit,
    block_rate,
    default_block,
    default_discounts,
)
from wgp_agents.core.access import problem_reader
from wgp_agents.gp.agent import GPAgent, GPParameters
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate
from wgp_agents.parameters import SMALLEST, checked_ends, per_learner
from wgp_gym.types import Array
from wgp_gym.validation import as_floats, check_int, reject

__all__ = ["BOBWGPUCB"]


class BOBWGPUCB(GPAgent):
    """Bandit over bandit: WGP-UCB, anew in each block of L steps, its discount drawn by Exp3.

    It needs no variation budget: Exp3 is paid the sum of a block's rewards, scaled to [0, 1], and
    finds the discount that pays most. See `BanditOverBandit`.

    Deviation: its paper has windows of linear UCB and blocks of d T^{1/2} steps; here gamma^{1/2}
    stands in the place of d. The scaled sum is clipped to [0, 1], which bounds it with high
    probability only. Plays that it is told of before the first choice of a block, when no
    discount is drawn yet, count for none. The clock of `confidence` goes on over the blocks.

    Source: Cheung, Simchi-Levi, Zhu. Learning to Optimize under Non-Stationarity. AISTATS 2019,
    algorithm BOB.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        block_length: L in [1, T], in steps. Default: ceil((gamma T)^{1/2}), at most T, with
            gamma = (log T)^(d+1).
        discounts: What Exp3 draws from, numbers in (0, 1]. Default: of memories 1 / (1 - eta) =
            L^{j / D}, j = 0 ... D, with D = ceil(ln L); at least 2 steps.
        gamma: Exp3's share of uniform exploration, in (0, 1], scalar or `(B,)`. Default:
            min(1, (K ln K / ((e - 1) ceil(T / L)))^{1/2}) of K discounts.
        reward_range: The two numbers that expected rewards lie between. Default: the problem's;
            where it has none, -B and B; where no B is known either, -1 and 1.
        **common: See `GPAgent`.

    Attributes:
        discounts: What Exp3 draws from, `(K,)`.
        candidate: Which of them each learner plays with, `(B,)`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self,
        env: Any,
        *,
        block_length: int | None = None,
        discounts: Any = None,
        gamma: Any = None,
        reward_range: Any = None,
        **common: Unpack[GPParameters],
    ) -> None:
        owner, problem = "BOBWGPUCB", problem_reader(env)()
        horizon, batch = problem.horizon, problem.batch_size or 1
        if block_length is None:
            block_length = default_block(horizon, problem.domain.shape[1])
        self.block_length = check_int("block_length", block_length, owner, 1, horizon)
        self.discounts = candidates(discounts, self.block_length)
        if gamma is None:
            gamma = block_rate(len(self.discounts), horizon, self.block_length, batch)
        rate = per_learner(owner, "gamma", gamma, batch, 0.0, 1.0, "right")
        ends = checked_ends(owner, reward_range)
        over = BanditOverBandit(horizon, self.block_length, self.discounts, rate, ends)
        self.candidate = over.candidate
        super().__init__(env, surrogate=DiscountSurrogate, restart_rule=over, **common)


def candidates(given: Any, block_length: int) -> Array:
    """Return the discounts to draw from, `(K,)`.

    Raises:
        ValueError: If they are no numbers in (0, 1].
    """
    if given is None:
        return default_discounts(block_length)
    rule = f"numbers in [{SMALLEST:g}, 1]"
    discounts = as_floats("discounts", given, "BOBWGPUCB", rule)
    inside = (discounts >= SMALLEST) & (discounts <= 1)
    if discounts.ndim != 1 or discounts.size == 0 or not inside.all():
        reject("discounts", "BOBWGPUCB", rule, given)
    return discounts.copy()
