"""What stands above a surrogate: it may empty it, force plays, and see rewards before it learns.

Agents that adapt by restarts are a stationary or weighted learner with a rule of when to start
anew. The rule is a supervisor; the learner does not know of it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.action_sets import ActionSet
from wgp_agents.gp.surrogates.weighted import Surrogate
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Mask

__all__ = ["RestartRule", "forget_all"]


class RestartRule(ABC):
    """Decides for B learners, each on its own, what happens to their memory from outside."""

    @abstractmethod
    def restart(
        self, mask: Mask, problem: BanditProblem, norm_bound: Any, noise_scale: Array
    ) -> None:
        """Start the learners in `mask` `(B,)` anew, on an episode of their own.

        Args:
            mask: Who starts again; their memory is empty already.
            problem: The problem at hand.
            norm_bound: B, a number or `(B,)`; None where nobody has said it.
            noise_scale: R, `(B,)`.
        """

    @abstractmethod
    def before(self, surrogate: Surrogate, uniform: UniformStreams) -> Mask | None:
        """Do what there is to do before the next choice.

        Args:
            surrogate: What the learners keep.
            uniform: Their randomness; all streams move together.

        Returns:
            Whose memory forgets at another rate now, `(B,)`; None: nobody's.
        """

    @abstractmethod
    def chosen(self, plays: NDArray[Any]) -> NDArray[Any]:
        """Return what is played where the learners chose `plays`: arms `(B,)`, points `(B, d)`."""

    @abstractmethod
    def observe(
        self,
        action_set: ActionSet,
        surrogate: Surrogate,
        plays: NDArray[Any],
        rewards: Array,
        active: Mask,
    ) -> None:
        """Look at a play of every learner in `active` `(B,)` before its memory learns from it.

        Args:
            action_set: The set that was chosen from.
            surrogate: What the learners keep.
            plays: Arms played, `(B,)`, or places `(B, d)`.
            rewards: Rewards paid, `(B,)`.
            active: Who learns.
        """


def forget_all(surrogate: Surrogate, mask: Mask) -> None:
    """Empty the memory of the learners in `mask` `(B,)`, which from then on keeps everything."""
    surrogate.restart(mask, np.full(len(mask), surrogate.nothing_forgotten))
