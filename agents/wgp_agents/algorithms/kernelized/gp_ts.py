"""GP-TS: Gaussian-process Thompson sampling."""

from __future__ import annotations

from typing import Unpack

from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.gp.acquisition import ThompsonSampling
from wgp_agents.gp.agent import GPAgent, GPParameters
from wgp_agents.gp.surrogates.weighted import RestartSurrogate
from wgp_agents.gp.width import thompson_width

__all__ = ["GPTS"]


class GPTS(GPAgent):
    """Gaussian-process Thompson sampling, Algorithm 2 of Chowdhury and Gopalan 2017.

    Plays argmax f with f drawn from GP(mu_{t-1}, v_t^2 k_{t-1}), where v_t = B + R sqrt(2 (gain +
    1 + log(2 / delta))) is what `beta` returns, and lambda = 1 + 2 / T.
    Deviation: the realised gain in the place of the largest, and the whole domain in the place
    of their discretisations of a box.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        **common: See `GPAgent`; `regularization` is 1 + 2 / T unless given.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(self, env: EnvLike, **common: Unpack[GPParameters]) -> None:
        if common.get("regularization") is None:
            horizon = problem_reader(env)().known_horizon("GPTS", "regularization")
            common["regularization"] = 1 + 2 / horizon
        super().__init__(
            env,
            surrogate=RestartSurrogate,
            acquisition=ThompsonSampling(),
            width_form=thompson_width,
            **common,
        )
