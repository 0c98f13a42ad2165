"""LinUCB: the stationary linear agent."""

from __future__ import annotations

from typing import Unpack

from wgp_agents.algorithms.linear.defaults import LinearParameters, linear_parameters
from wgp_agents.core.access import EnvLike
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates.weighted import RestartSurrogate

__all__ = ["LinUCB"]


class LinUCB(GPAgent):
    """OFUL (Abbasi-Yadkori, Pal and Szepesvari 2011): all data, equally weighted.

    Plays argmax x^T theta + beta |x|_{V^{-1}}, V = lambda I + sum of x x^T, theta = V^{-1} sum of
    y x, beta = R sqrt(2 log(det(V)^{1/2} / (delta lambda^{d/2}))) + sqrt(lambda) S, Theorem 2: the
    `realised` gain is half the log-determinant.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        **common: See `LinearParameters`; `gain` is "realised" unless given.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(self, env: EnvLike, **common: Unpack[LinearParameters]) -> None:
        parameters = linear_parameters("LinUCB", common, gain="realised")
        super().__init__(env, surrogate=RestartSurrogate, **parameters)
