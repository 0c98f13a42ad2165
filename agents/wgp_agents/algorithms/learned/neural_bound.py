"""What NeuralUCB and neural Thompson sampling share: a network, and how unsure it is.

References:
    [Zhou20] Zhou, Li, Gu. Neural Contextual Bandits with UCB-based Exploration. ICML 2020.
    [Zhang21] Zhang, Zhou, Li, Gu. Neural Thompson Sampling. ICLR 2021.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TypedDict

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.algorithms.learned.network import Pull
from wgp_agents.algorithms.learned.neural import NeuralAgent
from wgp_agents.algorithms.learned.tangent import tangent_deviations
from wgp_agents.core.access import EnvLike
from wgp_agents.core.argmax import argmax
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.parameters import per_learner
from wgp_gym.types import Actions, Array, Indices, Mask

__all__ = ["NeuralBound", "NeuralParameters"]

MOST_PLAYS = 2_000  # in the memory: a step solves a system of as many equations


class NeuralParameters(TypedDict, total=False):
    """The parameters that both take."""

    regularization: ArrayLike
    memory: int
    updates: int
    learning_rate: ArrayLike
    hidden: int


class NeuralBound(NeuralAgent):
    """A network, and the standard deviation of what it says by the gradients at the last plays.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        exploration: nu, the factor of the standard deviation, at least 0.
        regularization: lambda, the variance of the noise in the unit of the standardised rewards,
            in [1e-6, 1e6].
        memory: Plays in the sliding window, in [1, 2000].
        updates: Steps of Adam after each play, in [1, 100000].
        learning_rate: Of Adam, in (0, 1].
        hidden: m, the units in each of the two hidden layers, in [1, 4096].

    Attributes:
        start: theta_0, the weights that each learner's network began with, `(B, P)`.

    Raises:
        ValueError: If a parameter is out of its range, or arms are drawn anew at each step.

    Deviation: the papers' analysis has all plays, ours those in the window alone, as the world
    moves. The gradients of these are taken at the present weights, where the papers keep those
    of the step at which each was played (which in the limit of wide networks are the same): so
    U is the window's, and whole, where the authors' code keeps its diagonal. nu is constant.
    Training goes on from the last weights by a few steps of Adam, where the papers start at
    theta_0 anew; on their loss, sum of squared errors / 2 + m lambda |theta - theta_0|^2 / 2. The
    weights start as He and others have them, so the untrained network is a random function, not 0.
    """

    def __init__(
        self,
        env: EnvLike,
        *,
        exploration: ArrayLike,
        regularization: ArrayLike = 0.03,
        memory: int = 50,
        updates: int = 4,
        learning_rate: ArrayLike = 0.02,
        hidden: int = 32,
    ) -> None:
        super().__init__(
            env,
            memory=memory,
            updates=updates,
            learning_rate=learning_rate,
            hidden=hidden,
            most=MOST_PLAYS,
        )
        owner, batch = type(self).__name__, self.num_learners
        self.exploration = per_learner(
            owner, "exploration", exploration, batch, 0, math.inf, "left"
        )
        self.regularization = per_learner(owner, "regularization", regularization, batch, 1e-6, 1e6)
        self.start = np.zeros_like(self.network.weights)

    def _draw_networks(self, mask: Mask, uniform: Array) -> None:
        super()._draw_networks(mask, uniform)
        self.start[mask] = self.network.weights[mask]

    def _pull(self, rows: Indices) -> Pull:
        """Return the pull to theta_0 beside the mean of the squared errors: m lambda / plays."""
        plays = np.minimum(self._plays[rows], self.memory)
        strength = self.network.hidden * self.regularization[rows] / plays
        return Pull(self.start[rows], strength.astype(np.float32))

    def deviations(self) -> Array:
        """Return sigma, the standard deviations at the arms, `(B, n)`: `tangent_deviations`."""
        kept = np.arange(self.memory) < self._plays[:, None]
        return tangent_deviations(self.network, self.inputs, self.seen, kept, self.regularization)

    @abstractmethod
    def _scores(self, mean: Array, std: Array, uniform: UniformStreams) -> Array:
        """Return what is maximised over the arms, `(B, n)`, from mean and deviation, `(B, n)`."""

    def _choose(self, uniform: UniformStreams) -> Actions:
        self._begin_networks(uniform.draw())  # as many draws whoever restarts
        mean = self.network.values(self.inputs).astype(float)
        scores = self._scores(mean, self.exploration[:, None] * self.deviations(), uniform)
        best = argmax(scores, uniform.draw(), self.allowed)
        return self.problem.domain[best].astype(np.float32) if self.problem.continuous else best
