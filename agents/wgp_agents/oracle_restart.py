"""A reference: IGP-UCB that is told when the function changes."""

from __future__ import annotations

from typing import Any, Unpack

from wgp_agents.access import changes_reader
from wgp_agents.gp.agent import GPAgent, GPParameters
from wgp_agents.gp.memory import RestartMemory

__all__ = ["OracleRestart"]


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
        changes = changes_reader(env)
        super().__init__(env, memory=RestartMemory, restart_when=changes, **common)
