"""A network that starts untrained in each episode and learns from its plays."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.algorithms.learned.network import Network
from wgp_agents.base import Agent
from wgp_agents.core.access import EnvLike
from wgp_agents.core.argmax import TIE, anywhere, not_finite
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.action_sets import check_arms_stay
from wgp_agents.parameters import LARGEST_COUNT, per_learner
from wgp_gym.kernels import Empirical
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Actions, Array, Floats32, Indices, Mask
from wgp_gym.validation import check_int

__all__ = ["NeuralGreedy"]

FREQUENCIES = 4
MOST, MOST_UNITS = 100_000, 4_096  # plays, or updates a step; units in a layer


class NeuralGreedy(Agent):
    """DQN for a bandit: epsilon-greedy on a small network that is fitted to the last plays.

    A play leads to no state of its own, so Q(x) is the expected reward alone (gamma = 0), and the
    network, which takes the place of the arm, is fitted to the rewards in the replay memory by
    steps of Adam on its mean squared error; rewards are standardised by those seen so far. Each
    learner's network starts from random weights when its episode does: what it knows, it has
    learnt from the plays of that episode. On a box it plays the grid of the problem's domain, and
    explores anywhere.

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

    takes_units = False
    takes_allowed = True
    learns_by_acting = False

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
        super().__init__(env)
        check_arms_stay("NeuralGreedy", self.problem)
        owner, batch = type(self).__name__, self.num_learners
        self.epsilon = per_learner(owner, "epsilon", epsilon, batch, 0, 1)
        self.warmup = check_int("warmup", warmup, owner, 0, LARGEST_COUNT)
        self.memory = check_int("memory", memory, owner, 1, MOST)
        self.updates = check_int("updates", updates, owner, 1, MOST)
        rate = per_learner(owner, "learning_rate", learning_rate, batch, 0, 1, "right")
        self.inputs = inputs(self.problem, self.problem.domain)
        sizes = self.inputs.shape[1], check_int("hidden", hidden, owner, 1, MOST_UNITS)
        self.network = Network(batch, *sizes, rate)
        self.seen = np.zeros((batch, self.memory, sizes[0]), np.float32)
        self.rewards = np.zeros((batch, self.memory))
        self._plays = np.zeros(batch, np.int64)
        self._mean, self._square = np.zeros((2, batch))
        self._untrained = np.ones(batch, bool)

    def _restart(self, mask: Mask) -> None:
        self._plays[mask] = 0
        self._mean[mask] = self._square[mask] = 0.0
        self._untrained[mask] = True

    def _begin_networks(self, uniform: Array) -> None:
        """Draw the weights of new networks, and fit them to plays that came before."""
        self.network.draw(self._untrained, uniform)
        for i in np.flatnonzero(self._untrained & (self._plays > 0)):
            self._fit(np.array([i]), self.updates * int(min(self._plays[i], self.memory)))
        self._untrained[:] = False

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

    def _learn(self, actions: Actions, rewards: Array, active: Mask) -> None:
        rows = np.flatnonzero(active)
        seen = inputs(self.problem, actions) if self.problem.continuous else self.inputs[actions]
        place = self._plays[rows] % self.memory
        self.seen[rows, place], self.rewards[rows, place] = seen[rows], rewards[rows]
        self._plays[rows] += 1
        step = rewards[rows] - self._mean[rows]  # Welford's sums
        self._mean[rows] += step / self._plays[rows]
        self._square[rows] += step * (rewards[rows] - self._mean[rows])
        self._fit(rows[~self._untrained[rows]], self.updates)

    def _fit(self, rows: Indices, steps: int) -> None:
        self.network.fit(rows, self.seen[rows], *self.targets(rows), steps)

    def targets(self, rows: Indices) -> tuple[Floats32, Floats32]:
        """Return the standardised rewards in the memory, and weights that sum to 1, `(b, M)`."""
        plays = self._plays[rows, None]
        std = np.sqrt(self._square[rows, None] / plays)
        targets = (self.rewards[rows] - self._mean[rows, None]) / np.where(std > 0, std, 1.0)
        kept = np.arange(self.memory) < plays
        weights = kept / np.minimum(plays, self.memory)
        return np.where(kept, targets, 0.0).astype(np.float32), weights.astype(np.float32)


def inputs(problem: BanditProblem, places: Array) -> Floats32:
    """Return what the network sees of places `(n, d)`, `(n, p)`: cosines of each coordinate.

    Arms without coordinates have an input each.
    """
    if isinstance(problem.kernel, Empirical):
        return np.eye(len(problem.domain), dtype=np.float32)
    waves = np.cos(np.pi * places[:, :, None] * np.arange(1, FREQUENCIES + 1))
    flat: Floats32 = waves.reshape(len(places), -1).astype(np.float32)
    return flat
