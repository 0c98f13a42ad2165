"""D-LinTS: linear Thompson sampling with weights that favour recent data."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from wgp_agents.algorithms.linear.defaults import TunedParameters, tuned_parameters
from wgp_agents.core.access import EnvLike
from wgp_agents.gp.acquisition import ThompsonSampling
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate

__all__ = ["DLinTS"]


class DLinTS(GPAgent):
    """Discounted linear Thompson sampling (Kim and Tewari 2020).

    Plays argmax x^T theta~ with theta~ drawn around the weighted estimate, of covariance
    a^2 V^{-1} V~ V^{-1}: see `DLinUCB`. Here a = beta, the order that theory asks for; the
    authors' code has a = 1, which is `confidence_width=1` with lambda = 1.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        discount: gamma in (0, 1]. Default: as `tuning` names.
        **common: See `TunedParameters`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self, env: EnvLike, *, discount: ArrayLike | None = None, **common: Unpack[TunedParameters]
    ) -> None:
        parameters = tuned_parameters("DLinTS", "discount", discount, common)
        super().__init__(
            env, surrogate=DiscountSurrogate, acquisition=ThompsonSampling(), **parameters
        )
