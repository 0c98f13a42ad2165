"""Neural Thompson sampling with a sliding window."""

from __future__ import annotations

from typing import Unpack

from numpy.typing import ArrayLike

from wgp_agents.algorithms.learned.neural_bound import NeuralBound, NeuralParameters
from wgp_agents.core.access import EnvLike
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import normal_variates
from wgp_gym.types import Array

__all__ = ["NeuralTS"]


class NeuralTS(NeuralBound):
    """Draws the reward of each arm from N(f(x; theta), nu^2 sigma^2(x)), and plays the largest.

    The arms' draws are independent, as the paper has them.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        exploration: nu, at least 0.
        **common: See `NeuralBound`, which also says where it deviates from the paper.

    Raises:
        ValueError: If a parameter is out of its range, or arms are drawn anew at each step.

    Source: [Zhang21] Zhang, Zhou, Li, Gu. Neural Thompson Sampling. ICLR 2021, Algorithm 1.
    """

    def __init__(
        self, env: EnvLike, *, exploration: ArrayLike = 0.5, **common: Unpack[NeuralParameters]
    ) -> None:
        super().__init__(env, exploration=exploration, **common)

    def _scores(self, mean: Array, std: Array, uniform: UniformStreams) -> Array:
        return mean + std * normal_variates(uniform, mean.shape[1])  # Algorithm 1, line 6
