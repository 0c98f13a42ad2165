"""IGP-UCB: the stationary agent with a norm bound."""

from __future__ import annotations

from typing import Literal, Unpack

from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.gp.agent import GPAgent, GPParameters
from wgp_agents.gp.surrogates.weighted import RestartSurrogate
from wgp_agents.gp.width import chowdhury_width, deng_width
from wgp_gym.validation import check_choice

__all__ = ["IGPUCB"]

WIDTH_FORMS = {"deng": deng_width, "chowdhury": chowdhury_width}


class IGPUCB(GPAgent):
    """Improved GP-UCB (Chowdhury and Gopalan 2017): all data, equally weighted.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        width_form: "deng": beta as for the other agents, with all weights one (Deviation from
            its own paper, so that the agents differ in their surrogate alone). "chowdhury":
            beta = B + R sqrt(2 (gain + 1 + log(1 / delta))), and lambda = 1 + 2 / T unless
            given, as in its own paper. [Deng22] Remark 2 says that lambda = 1 and w = 1 recover
            that form; they do up to the + 1 under the root.
        **common: See `GPAgent`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self,
        env: EnvLike,
        *,
        width_form: Literal["deng", "chowdhury"] = "deng",
        **common: Unpack[GPParameters],
    ) -> None:
        form = WIDTH_FORMS[check_choice("width_form", width_form, "IGPUCB", WIDTH_FORMS)]
        if width_form == "chowdhury" and common.get("regularization") is None:
            horizon = problem_reader(env)().known_horizon("IGPUCB", "regularization")
            common["regularization"] = 1 + 2 / horizon
        super().__init__(env, surrogate=RestartSurrogate, width_form=form, **common)
