"""Epsilon-greedy on a network that starts untrained in each episode."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.algorithms.learned.neural import NeuralAgent
from wgp_agents.core.access import EnvLike
from wgp_agents.core.argmax import TIE, anywhere, not_finite
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.parameters import LARGEST_COUNT, per_learner
from wgp_gym.types import Actions
from wgp_gym.validation import check_int

__all__ = ["NeuralGreedy"]


class NeuralGreedy(NeuralAgent):
    """DQN for a bandit: epsilon-greedy on a small network that is fitted to the last plays.

    A play leads to no state of its own, so Q(x) is the expected reward alone (gamma = 0): the
    network that starts untrained in each episode (`NeuralAgent`). On a box it plays the grid of
    the problem's domain, and explores anywhere.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        epsilon: The probability of a uniformly random action, in [0, 1], after the first plays.
        warmup: Steps over which epsilon falls from 1 to that in a straight line, at least 0.
        memory: Plays in the replay memory, in [1, 100000]: the oldest makes way for the newest.
        updates: Steps of Adam after each play, in [1, 100000].
        learning_rate: Of Adam, in (0, 1].
        hidden: Units in each of the two hidden layers, in [1, 4096].

    Raises:
        ValueError: If a parameter is out of its range, or arms are drawn anew at each step.

    Source: [Mnih15] Mnih and others. Human-level control through deep reinforcement learning.
    Nature 518, 2015, Algorithm 1.
    Deviation: gamma = 0, so no target network; steps on the whole memory, which is small, in the
    place of minibatches; one output for the arm that is the input, so that arms share what is
    learnt.
    """

    def __init__(
        self,
        env: EnvLike,
        *,
        epsilon: ArrayLike = 0.05,
        warmup: int = 20,
        memory: int = 50,
        updates: int = 4,
        learning_rate: ArrayLike = 0.01,
        hidden: int = 32,
    ) -> None:
        super().__init__(
            env, memory=memory, updates=updates, learning_rate=learning_rate, hidden=hidden
        )
        owner = type(self).__name__
        self.epsilon = per_learner(owner, "epsilon", epsilon, self.num_learners, 0, 1)
        self.warmup = check_int("warmup", warmup, owner, 0, LARGEST_COUNT)

    def _choose(self, uniform: UniformStreams) -> Actions:
        self._begin_networks(uniform.draw())  # as many draws whoever restarts
        values = self.network.values(self.inputs)
        if not np.isfinite(values).all():
            not_finite()
        if self.allowed is not None:
            values = np.where(self.allowed, values, -np.inf)
        tied = values >= values.max(axis=1, keepdims=True) - TIE
        rank = (uniform.draw() * tied.sum(axis=1)).astype(np.int64)
        best: Actions = (tied.cumsum(axis=1) > rank[:, None]).argmax(axis=1)
        left = np.clip(1 - self._plays / max(self.warmup, 1), 0, 1) * (self.warmup > 0)
        explores = uniform.draw() < self.epsilon + (1 - self.epsilon) * left
        if self.problem.continuous:
            best, explores = self.problem.domain[best].astype(np.float32), explores[:, None]
        actions: Actions = np.where(explores, anywhere(self.problem, uniform, self.allowed), best)
        return actions
