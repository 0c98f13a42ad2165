"""RandWGP-UCB: WGP-UCB with a random confidence width at each step."""

from __future__ import annotations

from functools import partial
from typing import Unpack

from numpy.typing import ArrayLike

from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.gp.acquisition import RandomWidth
from wgp_agents.gp.agent import GPAgent, TunedParameters, tuned
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate

__all__ = ["RandWGPUCB"]


class RandWGPUCB(GPAgent):
    """WGP-UCB of randomised width: D-RandLinUCB of Kim and Tewari 2020 with kernels.

    Plays argmax mean + scale |Z| beta sigma-acute with Z standard normal, one draw a step for all
    points; mean and sigma-acute are those of [Deng22] Eq. (3) and Theorem 2.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        scale: A factor > 0, a number or `(B,)`; 1 / 2.5 is that of D-RandLinUCB's experiments.
        discount: eta in (0, 1] of the weights. Default: as `WGPUCB`.
        **common: See `GPAgent`; `variation_budget` and `information_gain` of the default: see
            `Forgetting`.

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
        super().__init__(
            env,
            surrogate=partial(DiscountSurrogate, tight=True),
            acquisition=RandomWidth("RandWGPUCB", scale, problem_reader(env)().batch_size or 1),
            **tuned("discount", discount, common),
        )
