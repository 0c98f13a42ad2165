"""SW-LinUCB: linear, on the last w observations."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from wgp_agents.algorithms.linear.defaults import TunedParameters, linear_dim, tuned_parameters
from wgp_agents.core.access import EnvLike, problem_reader
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates.weighted import WindowSurrogate
from wgp_agents.gp.width import cheung_width

__all__ = ["SWLinUCB"]


class SWLinUCB(GPAgent):
    """Sliding-window LinUCB (Cheung, Simchi-Levi and Zhu 2019).

    Plays argmax x^T theta + beta |x|_{V^{-1}} on the last w plays, with beta = sqrt(lambda) S +
    R sqrt(d log(1 + w / (lambda d)) + d log(1 / delta)).
    Deviation: the paper has (1 + w / lambda) there, the same without the last use of the means'
    inequality; and w counts the plays that there are.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        window: w >= 1, in steps, or infinity. Default: as `tuning` names, rounded up.
        **common: See `TunedParameters`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self, env: EnvLike, *, window: ArrayLike | None = None, **common: Unpack[TunedParameters]
    ) -> None:
        form = cheung_width(linear_dim(problem_reader(env)()))
        parameters = tuned_parameters("SWLinUCB", "window", window, common)
        super().__init__(env, surrogate=WindowSurrogate, width_form=form, **parameters)
