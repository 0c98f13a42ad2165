"""What agents share whose network starts untrained in each episode and learns from its plays."""

from __future__ import annotations

from abc import ABC

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.algorithms.learned.network import Network, Pull
from wgp_agents.base import Agent
from wgp_agents.core.access import EnvLike
from wgp_agents.gp.action_sets import check_arms_stay
from wgp_agents.parameters import per_learner
from wgp_gym.kernels import Empirical
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Actions, Array, Floats32, Indices, Mask
from wgp_gym.validation import check_int

__all__ = ["NeuralAgent"]

FREQUENCIES = 4
MOST, MOST_UNITS = 100_000, 4_096  # plays, or updates a step; units in a layer


class NeuralAgent(Agent, ABC):
    """A small network in the place of the expected reward, fitted to the last plays.

    Each learner's network starts from random weights when its episode does: what it knows, it has
    learnt from the plays of that episode. It is fitted to the rewards in a memory by steps of
    Adam on the mean squared error; rewards are standardised by those seen so far. On a box its
    candidates are the grid of the problem's domain.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        memory: Plays in the memory: the oldest makes way for the newest.
        updates: Steps of Adam after each play, in [1, 100000].
        learning_rate: Of Adam, in (0, 1].
        hidden: Units in each of the two hidden layers, in [1, 4096].
        most: The largest memory.

    Attributes:
        inputs: What the network sees of the arms, `(n, p)`.
        seen: What it sees of the plays in the memory, `(B, M, p)`.
        rewards: Their rewards, `(B, M)`; NaN of one that is still to come.

    Raises:
        ValueError: If a parameter is out of its range, or arms are drawn anew at each step.
    """

    takes_units = False
    takes_allowed = True
    learns_by_acting = False

    def __init__(
        self,
        env: EnvLike,
        *,
        memory: int,
        updates: int,
        learning_rate: ArrayLike,
        hidden: int,
        most: int = MOST,
    ) -> None:
        super().__init__(env)
        owner, batch = type(self).__name__, self.num_learners
        check_arms_stay(owner, self.problem)
        self.memory = check_int("memory", memory, owner, 1, most)
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
        self._draw_networks(self._untrained, uniform)
        for i in np.flatnonzero(self._untrained & (self._plays > 0)):
            self._fit(np.array([i]), self.updates * int(min(self._plays[i], self.memory)))
        self._untrained[:] = False

    def _draw_networks(self, mask: Mask, uniform: Array) -> None:
        """Give the learners in `mask` `(B,)` new weights that follow from `uniform` `(B,)`."""
        self.network.draw(mask, uniform)

    def _learn(self, actions: Actions, rewards: Array, active: Mask) -> None:
        rows = np.flatnonzero(active)
        self._remember(rows, actions, rewards)
        step = rewards[rows] - self._mean[rows]  # Welford's sums
        self._mean[rows] += step / self._plays[rows]
        self._square[rows] += step * (rewards[rows] - self._mean[rows])
        self._fit(rows[~self._untrained[rows]], self.updates)

    def _remember(self, rows: Indices, actions: Actions, rewards: Array) -> None:
        """Put a play of each learner in `rows` in its memory."""
        seen = inputs(self.problem, actions) if self.problem.continuous else self.inputs[actions]
        place = self._plays[rows] % self.memory
        self.seen[rows, place], self.rewards[rows, place] = seen[rows], rewards[rows]
        self._plays[rows] += 1

    def _fit(self, rows: Indices, steps: int) -> None:
        self.network.fit(rows, self.seen[rows], *self.targets(rows), steps, self._pull(rows))

    def _pull(self, rows: Indices) -> Pull | None:
        """Return what draws the weights of learners back; None: nothing."""
        return None

    def targets(self, rows: Indices) -> tuple[Floats32, Floats32]:
        """Return the standardised rewards in the memory, and weights that sum to 1, `(b, M)`.

        A play whose reward is not known, NaN, has no weight.
        """
        plays = self._plays[rows, None]
        std = np.sqrt(self._square[rows, None] / plays)
        targets = (self.rewards[rows] - self._mean[rows, None]) / np.where(std > 0, std, 1.0)
        kept = (np.arange(self.memory) < plays) & ~np.isnan(self.rewards[rows])
        weights = kept / np.maximum(kept.sum(axis=1, keepdims=True), 1)
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
