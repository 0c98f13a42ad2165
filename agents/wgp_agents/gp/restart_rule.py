"""Restart rules: they restart surrogates and force plays, from outside the agent."""

from __future__ import annotations

from typing import ClassVar

from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.action_sets import Plays
from wgp_agents.gp.surrogates.base import Surrogate
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Actions, Array, Mask

__all__ = ["RestartRule"]


class RestartRule:
    """A rule that may restart the surrogate of each of B learners, or override its actions.

    An agent that adapts by restarts is a learner with such a rule. Each method does nothing by
    default.
    """

    takes_elapsed: ClassVar[bool] = False
    """Whether it needs to know of no time but that of plays: then `observe` takes `elapsed`."""
    learns_by_acting: ClassVar[bool] = True
    """Whether a choice may change it or the surrogate: see `Agent`."""

    def restart(
        self, mask: Mask, problem: BanditProblem, norm_bound: Array | None, noise_scale: Array
    ) -> None:
        """Start the rule anew for the learners in `mask` `(B,)`.

        Args:
            mask: Whose episode begins; their surrogate is empty already.
            problem: The problem.
            norm_bound: B, `(B,)`; None where it is unknown.
            noise_scale: R, `(B,)`.
        """

    def before_act(self, surrogate: Surrogate, uniform: UniformStreams) -> Mask | None:
        """Act before the next action is chosen.

        Args:
            surrogate: The posterior of the learners.
            uniform: Their random streams, which all move together.

        Returns:
            Whose surrogate got another forgetting parameter, `(B,)`; None: nobody's.
        """

    def override_action(
        self, actions: Actions, allowed: Mask | None, uniform: UniformStreams
    ) -> Actions:
        """Return what is played in place of the chosen `actions`: arms `(B,)`, or points `(B, d)`.

        Args:
            actions: The actions that the learners chose.
            allowed: Which arms may be played, `(B, n)`; None: all.
            uniform: The learners' random streams, which all move together.
        """
        return actions

    def before_update(
        self, surrogate: Surrogate, plays: Plays, rewards: Array, active: Mask
    ) -> None:
        """Look at a play before the surrogate learns from it.

        Args:
            surrogate: The posterior of the learners.
            plays: The plays.
            rewards: Their rewards, `(B,)`.
            active: Who learns, `(B,)`.
        """
