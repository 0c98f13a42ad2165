"""D-LinUCB: linear, with weights that favour recent data."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from numpy.typing import ArrayLike

from wgp_agents.algorithms.linear.defaults import TunedParameters, tuned_parameters
from wgp_agents.core.access import EnvLike
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate

__all__ = ["DLinUCB"]


class DLinUCB(GPAgent):
    """Discounted LinUCB (Russac, Vernade and Cappe 2019).

    Plays argmax x^T theta + beta |x| in the norm of V^{-1} V~ V^{-1}, where V and V~ are lambda I
    plus the sums of gamma^{t-s} x x^T and gamma^{2(t-s)} x x^T, theta = V^{-1} times the sum of
    gamma^{t-s} y x, and beta = sqrt(lambda) S + R sqrt(2 log(1 / delta) + d log(1 +
    (1 - gamma^{2t}) / (lambda d (1 - gamma^2)))): WGP-UCB with the linear kernel and
    `width="tight"`.

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
        surrogate = partial(DiscountSurrogate, tight=True)
        parameters = tuned_parameters("DLinUCB", "discount", discount, common)
        super().__init__(env, surrogate=surrogate, **parameters)
