"""WGP-TS: Thompson sampling with weights that favour recent data."""

from __future__ import annotations

from typing import Any, Unpack

from wgp_agents.gp.acquisition import thompson
from wgp_agents.gp.agent import GPAgent, GPParameters
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate
from wgp_agents.gp.tuning import Forgetting

__all__ = ["WGPTS"]


class WGPTS(GPAgent):
    """Weighted Gaussian-process Thompson sampling: D-LinTS of Kim and Tewari 2020 with kernels.

    Plays argmax f with f drawn around the weighted mean, Eq. (3) of [Deng22], its deviation beta
    times one of covariance lambda V^{-1} V~ V^{-1}, the square of sigma-acute in Theorem 2: that
    is what noise, perturbed anew with the weights of the data, would give; lambda V^{-1} is not.
    Deviation: beta is [Deng22]'s; the paper of D-LinTS inflates its own further for its bound.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
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
        discount: Any = None,
        variation_budget: Any = "unknown",
        information_gain: Any = "order",
        **common: Unpack[GPParameters],
    ) -> None:
        forgetting = Forgetting("discount", discount, variation_budget, information_gain)
        super().__init__(
            env, surrogate=DiscountSurrogate, forgetting=forgetting, choice=thompson, **common
        )
