"""D-RandLinUCB: D-LinUCB with a confidence width drawn anew at each step."""

from __future__ import annotations

from functools import partial
from typing import Any, Unpack

from wgp_agents.algorithms.linear.defaults import TunedParameters, tuned_parameters
from wgp_agents.gp.acquisition import random_width
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate

__all__ = ["DRandLinUCB"]


class DRandLinUCB(GPAgent):
    """Discounted randomised LinUCB (Kim and Tewari 2020), coupled: one draw for all arms.

    Plays argmax x^T theta + alpha |Z| beta |x| with Z standard normal; the rest is `DLinUCB`'s.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        scale: alpha > 0, a number or `(B,)`; 1 / 2.5 is that of the paper's experiments.
        discount: gamma in (0, 1]. Default: 1 less one over the memory's length that `tuning`
            names.
        **common: See `TunedParameters`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self,
        env: Any,
        *,
        scale: Any = 0.4,
        discount: Any = None,
        **common: Unpack[TunedParameters],
    ) -> None:
        surrogate = partial(DiscountSurrogate, tight=True)
        choice = random_width("DRandLinUCB", env, scale)
        parameters = tuned_parameters("DRandLinUCB", "discount", discount, common)
        super().__init__(env, surrogate=surrogate, choice=choice, **parameters)
