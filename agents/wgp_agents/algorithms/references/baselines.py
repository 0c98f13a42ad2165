"""The two ends of the scale: random play, and the true optimum."""

from __future__ import annotations

import numpy as np

from wgp_agents.base import Agent
from wgp_agents.core.access import EnvLike, truth_reader
from wgp_agents.core.argmax import anywhere
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.types import Actions, Array, Mask

__all__ = ["Oracle", "Random"]


class Random(Agent):
    """Plays uniformly at random.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
    """

    takes_units = False
    takes_allowed = True
    takes_elapsed = True
    learns_by_acting = False

    def _restart(self, mask: Mask) -> None:
        pass

    def _choose(self, uniform: UniformStreams) -> Actions:
        return anywhere(self.problem, uniform, self.allowed)

    def propensities(self) -> Array | None:
        """Return 1 over the number of arms that are there, `(n,)` or `(B, n)`; None on a box.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        if self.problem.continuous:
            return None
        shape = self.num_learners, len(self.problem.domain)
        there = np.ones(shape, bool) if self.allowed is None else self.allowed
        found: Array = there / there.sum(axis=1, keepdims=True)
        return found if self.batched else found[0]

    def _learn(self, actions: Actions, rewards: Array, active: Mask) -> None:
        pass

    def _learn_elapsed(
        self, actions: Actions, rewards: Array, active: Mask, elapsed: Array
    ) -> None:
        pass

    def _elapse(self, steps: Array, active: Mask) -> None:
        pass


class Oracle(Agent):
    """Plays the true optimum of f_t: the reference of regret, no competitor.

    Args:
        env: The environment to play; it reads the truth there.

    Raises:
        TypeError: If given only a `BanditProblem`.
    """

    takes_units = False
    learns_by_acting = False

    def __init__(self, env: EnvLike) -> None:
        super().__init__(env)
        self._bind_truth(env)

    def _bind_truth(self, env: EnvLike) -> None:
        self._read_optimum = truth_reader(env, "optimal_action")

    def _restart(self, mask: Mask) -> None:
        pass

    def _choose(self, uniform: UniformStreams) -> Actions:
        best = np.asarray(self._read_optimum())
        dtype = np.float32 if self.problem.continuous else np.int64
        return (best if self.batched else best[None]).astype(dtype)

    def _learn(self, actions: Actions, rewards: Array, active: Mask) -> None:
        pass
