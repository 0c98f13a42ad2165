"""A reference: IGP-UCB that is told when the function changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.core.access import EnvLike, truth_reader
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.agent import GPAgent, GPParameters
from wgp_agents.gp.restart_rule import RestartRule
from wgp_agents.gp.surrogates.base import Surrogate, forget_all
from wgp_agents.gp.surrogates.weighted import RestartSurrogate

__all__ = ["OracleRestart", "RestartWhen"]


class OracleRestart(GPAgent):
    """IGP-UCB, restarted at the true change points: a reference, no competitor.

    It reads from the environment whether the next action meets a new function, and if so forgets
    all. That is of use where changes are rare: a drift restarts it at every step.

    Args:
        env: The environment to play; it reads the truth there.
        **common: See `GPAgent`.

    Raises:
        TypeError: If given only a `BanditProblem`.
        ValueError: If a parameter is out of its range.
    """

    takes_elapsed = False
    learns_by_acting = True

    def __init__(self, env: EnvLike, **common: Unpack[GPParameters]) -> None:
        told = RestartWhen(truth_reader(env, "function_changes"))
        super().__init__(env, surrogate=RestartSurrogate, restart_rule=told, **common)

    def _bind_truth(self, env: EnvLike) -> None:
        assert isinstance(self.restart_rule, RestartWhen)
        self.restart_rule.told = truth_reader(env, "function_changes")


class RestartWhen(RestartRule):
    """A rule that restarts a surrogate wherever it is told to.

    Args:
        told: Returns who restarts, a bool or `(B,)`.
    """

    def __init__(self, told: Callable[[], ArrayLike]) -> None:
        self.told = told

    def before_act(self, surrogate: Surrogate, uniform: UniformStreams) -> None:
        """Restart the surrogate where it is told to."""
        now = np.broadcast_to(np.asarray(self.told(), bool), len(surrogate.held))
        if now.any():
            forget_all(surrogate, now)
