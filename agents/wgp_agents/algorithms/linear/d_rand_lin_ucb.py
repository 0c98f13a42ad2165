"""D-RandLinUCB: D-LinUCB with a random confidence width at each step."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from numpy.typing import ArrayLike

from wgp_agents.algorithms.linear.defaults import TunedParameters, tuned_parameters
from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.gp.acquisition import RandomWidth
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate

__all__ = ["DRandLinUCB"]


class DRandLinUCB(GPAgent):
    """Discounted randomised LinUCB (Kim and Tewari 2020), coupled: one draw for all arms.

    Plays argmax x^T theta + alpha |Z| beta |x| with Z standard normal; the rest is `DLinUCB`'s.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        scale: alpha > 0, a number or `(B,)`; 1 / 2.5 is that of the paper's experiments.
        discount: gamma in (0, 1]. Default: as `tuning` names.
        **common: See `TunedParameters`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self,
        env: EnvLike,
        *,
        scale: ArrayLike = 0.4,
        discount: ArrayLike | None = None,
        **common: Unpack[TunedParameters],
    ) -> None:
        surrogate = partial(DiscountSurrogate, tight=True)
        acquisition = RandomWidth("DRandLinUCB", scale, problem_reader(env)().batch_size or 1)
        parameters = tuned_parameters("DRandLinUCB", "discount", discount, common)
        super().__init__(env, surrogate=surrogate, acquisition=acquisition, **parameters)
