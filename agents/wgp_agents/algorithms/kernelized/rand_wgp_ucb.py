"""RandWGP-UCB: a confidence width drawn anew at each step."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

from wgp_agents.gp.acquisition import random_width
from wgp_agents.gp.agent import GPAgent, GPParameters
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate
from wgp_agents.gp.tuning import Forgetting

__all__ = ["RandWGPUCB"]


class RandWGPUCB(GPAgent):
    """WGP-UCB of randomised width: D-RandLinUCB of Kim and Tewari 2020 with kernels.

    Plays argmax mean + scale |Z| beta sigma-acute with Z standard normal, one draw a step for all
    points; mean and sigma-acute are those of [Deng22] Eq. (3) and Theorem 2.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        scale: A factor > 0, a number or `(B,)`; 1 / 2.5 is that of D-RandLinUCB's experiments.
        discount: eta in (0, 1] of the weights. Default: as `WGPUCB`.
        variation_budget: "known", "unknown" or B_T: see `Forgetting`.
        information_gain: gamma_T of the default: see `Forgetting`.
        **common: See `GPAgent`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self,
        env: Any,
        *,
        scale: Any = 0.4,
        discount: Any = None,
        variation_budget: Any = "unknown",
        information_gain: Any = "order",
        **common: Unpack[GPParameters],
    ) -> None:
        forgetting = Forgetting("discount", discount, variation_budget, information_gain)
        surrogate = partial(DiscountSurrogate, tight=True)
        choice = random_width("RandWGPUCB", env, scale)
        super().__init__(env, surrogate=surrogate, forgetting=forgetting, choice=choice, **common)
