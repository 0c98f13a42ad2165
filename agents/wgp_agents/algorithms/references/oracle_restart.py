"""A reference: IGP-UCB that is told when the function changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from wgp_agents.core.access import changes_reader
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.action_sets import ActionSet
from wgp_agents.gp.agent import GPAgent, GPParameters
from wgp_agents.gp.restart_rule import RestartRule, forget_all
from wgp_agents.gp.surrogates.weighted import RestartSurrogate, Surrogate
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Mask

__all__ = ["OracleRestart", "RestartWhen"]


class OracleRestart(GPAgent):
    """IGP-UCB, restarted at the true change points: a reference, no competitor.

    It reads from the environment whether the next action meets a new function, and if so forgets
    all. That is of use where changes are rare: under a drift it forgets at every step.

    Args:
        env: The environment to play; it reads the truth there.
        **common: See `GPAgent`.

    Raises:
        TypeError: If given only a `BanditProblem`.
        ValueError: If a parameter is out of its range.
    """

    def __init__(self, env: Any, **common: Unpack[GPParameters]) -> None:
        told = RestartWhen(changes_reader(env))
        super().__init__(env, surrogate=RestartSurrogate, restart_rule=told, **common)


class RestartWhen(RestartRule):
    """Empties the memory before a choice wherever it is told to.

    Args:
        told: Returns whose memory is emptied, a bool or `(B,)`.
    """

    def __init__(self, told: Callable[[], Any]) -> None:
        self._told = told

    def restart(
        self, mask: Mask, problem: BanditProblem, norm_bound: Any, noise_scale: Array
    ) -> None:
        """Nothing is kept of an episode."""

    def before(self, surrogate: Surrogate, uniform: UniformStreams) -> None:
        """Empty the memory where it is told to."""
        del uniform
        now = np.broadcast_to(np.asarray(self._told(), bool), len(surrogate.held))
        if now.any():
            forget_all(surrogate, now)

    def chosen(self, plays: NDArray[Any]) -> NDArray[Any]:
        """Return the plays as they are."""
        return plays

    def observe(
        self,
        action_set: ActionSet,
        surrogate: Surrogate,
        plays: NDArray[Any],
        rewards: Array,
        active: Mask,
    ) -> None:
        """Nothing is made of rewards."""
