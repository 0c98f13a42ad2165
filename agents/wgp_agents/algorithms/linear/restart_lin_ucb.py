"""Restarting LinUCB: restarts every H steps."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from wgp_agents.algorithms.linear.defaults import TunedParameters, tuned_parameters
from wgp_agents.core.access import EnvLike
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates.weighted import RestartSurrogate

__all__ = ["RestartLinUCB"]


class RestartLinUCB(GPAgent):
    """RestartUCB (Zhao, Zhang, Jiang and Zhou 2020): OFUL, restarted every H steps.

    beta = sqrt(lambda) S + R sqrt(2 log(1 / delta) + d log(1 + t / (lambda d))), with t the plays
    since the last restart.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        restart_period: H >= 1, in steps, or infinity. Default: as `tuning` names with 1 + B_T in
            the place of B_T, rounded up: so it restarts even where nothing changes.
        **common: See `TunedParameters`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self,
        env: EnvLike,
        *,
        restart_period: ArrayLike | None = None,
        **common: Unpack[TunedParameters],
    ) -> None:
        parameters = tuned_parameters(
            "RestartLinUCB", "restart_period", restart_period, common, offset=1.0
        )
        super().__init__(env, surrogate=RestartSurrogate, **parameters)
