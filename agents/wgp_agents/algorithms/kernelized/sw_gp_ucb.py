"""SW-GP-UCB: looks at the last W observations."""

from __future__ import annotations

from typing import Any, Unpack

from wgp_agents.gp.agent import GPAgent, GPParameters
from wgp_agents.gp.surrogates.weighted import WindowSurrogate
from wgp_agents.gp.tuning import Forgetting

__all__ = ["SWGPUCB"]


class SWGPUCB(GPAgent):
    """Sliding-window GP-UCB (Zhou and Shroff 2021).

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        window: W >= 1, in steps, or infinity. Default: ceil of gamma^{1/4}
            (T / B_T)^{1/2}, Remark 1 of its paper, at least 2; infinity where it spans T.
            Deviation: beta is [Deng22]'s with w = 1, not its paper's own.
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
        window: Any = None,
        variation_budget: Any = "unknown",
        information_gain: Any = "order",
        **common: Unpack[GPParameters],
    ) -> None:
        forgetting = Forgetting("window", window, variation_budget, information_gain)
        super().__init__(env, surrogate=WindowSurrogate, forgetting=forgetting, **common)
