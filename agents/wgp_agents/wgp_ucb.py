"""WGP-UCB: weights that favour recent data."""

from __future__ import annotations

from typing import Any, Unpack

from wgp_agents.gp.agent import GPAgent, GPParameters
from wgp_agents.gp.memory import DiscountMemory
from wgp_agents.gp.tuning import Forgetting

__all__ = ["WGPUCB"]


class WGPUCB(GPAgent):
    """Weighted Gaussian Process UCB, [Deng22] Algorithm 1 with weights w_t = eta^{-t}.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        discount: eta in (0, 1]. Default: 1 - eta = gamma^{-1/4} (B_T / T)^{1/2}, Corollary 5.
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
        discount: Any = None,
        variation_budget: Any = "unknown",
        information_gain: Any = None,
        **common: Unpack[GPParameters],
    ) -> None:
        forgetting = Forgetting("discount", discount, variation_budget, information_gain)
        super().__init__(env, memory=DiscountMemory, forgetting=forgetting, **common)
