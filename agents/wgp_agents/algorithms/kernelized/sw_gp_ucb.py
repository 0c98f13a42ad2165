"""SW-GP-UCB: uses the last W observations."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from wgp_agents.core.access import EnvLike
from wgp_agents.gp.agent import GPAgent, TunedParameters, tuned
from wgp_agents.gp.surrogates.weighted import WindowSurrogate

__all__ = ["SWGPUCB"]


class SWGPUCB(GPAgent):
    """Sliding-window GP-UCB (Zhou and Shroff 2021).

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        window: W >= 1, in steps, or infinity. Default: ceil of gamma^{1/4}
            (T / B_T)^{1/2}, Remark 1 of its paper, at least 2; infinity where it spans T.
            Deviation: beta is [Deng22]'s with w = 1, not its paper's own.
        **common: See `GPAgent`; `variation_budget` and `information_gain` of the default: see
            `Forgetting`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self, env: EnvLike, *, window: ArrayLike | None = None, **common: Unpack[TunedParameters]
    ) -> None:
        super().__init__(env, surrogate=WindowSurrogate, **tuned("window", window, common))
