"""The two ends of the scale: chance, and the truth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.base import Agent
from wgp_agents.core.access import optimum_reader
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Mask

__all__ = ["Oracle", "Random", "anywhere"]


class Random(Agent):
    """Plays uniformly at random, whatever happens.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
    """

    takes_units = False

    def _restart(self, mask: Mask) -> None:
        del mask

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        return anywhere(self.problem, uniform)

    def _learn(self, actions: NDArray[Any], rewards: Array, active: Mask) -> None:
        del actions, rewards, active


def anywhere(problem: BanditProblem, uniform: UniformStreams) -> NDArray[Any]:
    """Return uniformly random actions, arms `(B,)` or points `(B, d)`."""
    if problem.continuous:
        draws = [uniform.draw() for _ in range(problem.domain.shape[1])]
        return np.stack(draws, axis=1).astype(np.float32)
    return (uniform.draw() * len(problem.domain)).astype(np.int64)


class Oracle(Agent):
    """Plays the true optimum of f_t: the reference that regret is measured from, no competitor.

    Args:
        env: The environment to play; it reads the truth there.

    Raises:
        TypeError: If given only a `BanditProblem`.
    """

    takes_units = False

    def __init__(self, env: Any) -> None:
        super().__init__(env)
        self._read_optimum = optimum_reader(env)

    def _restart(self, mask: Mask) -> None:
        del mask

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        del uniform
        best = np.asarray(self._read_optimum())
        dtype = np.float32 if self.problem.continuous else np.int64
        return (best if self.batched else best[None]).astype(dtype)

    def _learn(self, actions: NDArray[Any], rewards: Array, active: Mask) -> None:
        del actions, rewards, active
