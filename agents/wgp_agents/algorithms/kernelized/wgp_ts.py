"""WGP-TS: Thompson sampling with weights that favour recent data."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from wgp_agents.core.access import EnvLike
from wgp_agents.gp.acquisition import ThompsonSampling
from wgp_agents.gp.agent import GPAgent, TunedParameters, tuned
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate

__all__ = ["WGPTS"]


class WGPTS(GPAgent):
    """Weighted Gaussian-process Thompson sampling: D-LinTS of Kim and Tewari 2020 with kernels.

    Plays argmax f with f drawn around the weighted mean, Eq. (3) of [Deng22], its deviation beta
    times one of covariance lambda V^{-1} V~ V^{-1}, the square of sigma-acute in Theorem 2.
    Perturbing the noise with the weights of the data gives that covariance; lambda V^{-1} would
    not.
    Deviation: beta is [Deng22]'s; the paper of D-LinTS inflates its own further for its bound.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        discount: eta in (0, 1] of the weights. Default: as `WGPUCB`.
        **common: See `GPAgent`; `variation_budget` and `information_gain` of the default: see
            `Forgetting`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self, env: EnvLike, *, discount: ArrayLike | None = None, **common: Unpack[TunedParameters]
    ) -> None:
        parts = tuned("discount", discount, common)
        super().__init__(env, surrogate=DiscountSurrogate, acquisition=ThompsonSampling(), **parts)
