"""NeuralUCB with a sliding window."""

from __future__ import annotations

from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.algorithms.learned.neural_bound import NeuralBound, NeuralParameters
from wgp_agents.core.access import EnvLike
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.types import Actions, Array, Mask

__all__ = ["NeuralUCB"]


class NeuralUCB(NeuralBound):
    """Plays the largest f(x; theta) + nu sigma(x) of a network that starts untrained.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        exploration: nu, at least 0: the paper's gamma_t is nu lambda^{1/2}.
        **common: See `NeuralBound`, which also says where it deviates from the paper.

    Raises:
        ValueError: If a parameter is out of its range, or arms are drawn anew at each step.

    Source: [Zhou20] Zhou, Li, Gu. Neural Contextual Bandits with UCB-based Exploration. ICML 2020,
    Algorithm 1.
    """

    def __init__(
        self, env: EnvLike, *, exploration: ArrayLike = 1.0, **common: Unpack[NeuralParameters]
    ) -> None:
        super().__init__(env, exploration=exploration, **common)

    def _scores(self, mean: Array, std: Array, uniform: UniformStreams) -> Array:
        return mean + std  # Algorithm 1, line 6

    def _hallucinate(self, actions: Actions, active: Mask) -> None:
        """Count plays in U alone: no reward is known of them, and the unit stays what it is."""
        rows = np.flatnonzero(active)
        self._square[rows] *= (self._plays[rows] + 1) / np.maximum(self._plays[rows], 1)
        self._remember(rows, actions, np.full(self.num_learners, np.nan))
