"""The dynamics of every environment, once: B episodes of one task, in lockstep."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from wgp_gym.envs.episode import Episode
from wgp_gym.envs.task import Task
from wgp_gym.kernels import Array
from wgp_gym.problem import BanditProblem

__all__ = ["REWARD_LIMIT", "Dynamics"]

REWARD_LIMIT = 1e12  # the observation's bound on the last reward
FUNCTIONS, NOISE = 0, 2  # streams, kept apart so that none moves another; 1 is for change times


class Dynamics:
    """B episodes that are at the same step t.

    Everything is drawn, multiplied and maximised at `reset`, one episode after the other, so
    that an episode's numbers do not depend on B; a step only picks and interpolates.

    Args:
        task: What is played.
        batch: The number B of episodes.
        record: Whether to keep actions and rewards, for pictures.

    Attributes:
        t: Steps played so far.
        reward: The last rewards, `(B,)`, rounded to single precision: the observation shows the
            very numbers that a step returned.
        history: The actions and rewards of this episode, step by step, if recorded.
    """

    def __init__(self, task: Task, batch: int, *, record: bool = False) -> None:
        self.task = task
        self.batch = batch
        self.t = 0
        self.history: list[tuple[NDArray[Any], Array]] | None = [] if record else None
        self._episodes: list[Episode] = []
        self._rows = np.arange(batch)
        self._unmoved = np.zeros(batch, bool)
        path = task.path
        # Python lists: picking a scalar from them costs a tenth of picking it from an array.
        self._position: list[int] = path.index.tolist()
        self._left: list[int] = path.left.tolist()
        self._right: list[int] = path.right.tolist()
        self._weight: list[float] = path.weight.tolist()

    @property
    def over(self) -> bool:
        """Whether all T steps are played."""
        return self.t == self.task.horizon

    @property
    def problem(self) -> BanditProblem:
        """What a learner may know of the B episodes, in arrays `(B,)`."""
        noise_scale = np.full(self.batch, self.task.noise_std)
        if not self._episodes:
            return replace(self.task.problem(), noise_scale=noise_scale)
        return replace(
            self.task.problem(),
            noise_scale=noise_scale,
            norm_bound=np.array([episode.norm_bound for episode in self._episodes]),
            variation_budget=np.array([episode.variation_budget for episode in self._episodes]),
        )

    @property
    def single_problem(self) -> BanditProblem:
        """What a learner may know of the first episode; before the first reset, of the task."""
        if not self._episodes:
            return self.task.problem()
        first = self._episodes[0]
        bound, budget = first.norm_bound, first.variation_budget
        return replace(self.task.problem(), norm_bound=bound, variation_budget=budget)

    def reset(self, generators: list[np.random.Generator]) -> None:
        """Draw the next B episodes, each from its own generator."""
        drawn = [self._draw(generator) for generator in generators]
        self._episodes = [episode for episode, _ in drawn]
        self._noise = np.stack([noise for _, noise in drawn], axis=1)  # (T, B)
        self._values = self._gather("values")  # (K, B, n)
        self._optimal_reward = self._gather("optimal_reward")  # (U, B)
        self._optimal_action = self._gather("optimal_action")  # (U, B) or (U, B, d)
        self._variation = self._gather("variation")
        self._sup_variation = self._gather("sup_variation")
        self._changes = np.diff(self._variation, axis=0, prepend=self._variation[:1]) > 0
        if self.task.continuous:
            self._coefficients = self._gather("coefficients")  # (K, B, M)
            self._centres = self.task.domain[self._gather("centres").T]  # (B, M, d)
        self.t = 0
        self.reward = self._expected = self._regret = self._cumulative = np.zeros(self.batch)
        self._places = np.zeros((self.batch, self.task.domain.shape[1]))
        self._moved = False
        if self.history is not None:
            self.history = []

    def _draw(self, rng: np.random.Generator) -> tuple[Episode, Array]:
        entropy = rng.integers(2**63, size=2).tolist()
        functions, noise = (
            np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(stream,)))
            for stream in (FUNCTIONS, NOISE)
        )
        episode = self.task.draw(functions)
        draws = noise.standard_normal(self.task.horizon)
        return episode, self.task.noise_std * draws

    def _gather(self, name: str) -> NDArray[Any]:
        """Stack a field of the episodes along axis 1; one that all share is not copied."""
        fields = [getattr(episode, name) for episode in self._episodes]
        if all(field is fields[0] for field in fields):
            shape = (fields[0].shape[0], self.batch, *fields[0].shape[1:])
            return np.broadcast_to(fields[0][:, None], shape)
        return np.stack(fields, axis=1)

    def step(self, actions: NDArray[Any]) -> None:
        """Play one action in every episode: arms `(B,)` or points of the box `(B, d)`.

        Raises:
            ResetNeeded: If there was no reset yet, or the episodes are over.
        """
        if not self._episodes or self.over:
            raise ResetNeeded("The episode is over or was never begun: call reset() first.")
        t = self.t
        self._moved = t > 0 and self._position[t] != self._position[t - 1]
        self._places = actions if self.task.continuous else self.task.domain[actions]
        self._expected = self._expected_rewards_of(self._position[t], actions)
        self.reward = (self._expected + self._noise[t]).astype(np.float32).astype(np.float64)
        self._regret = self._optimal_reward[self._position[t]] - self._expected
        if self.task.continuous:  # the searched optimum is right to 1e-12 or so, not exactly
            self._regret = np.maximum(self._regret, 0.0)
        self._cumulative = self._cumulative + self._regret
        self.t = t + 1
        if self.history is not None:
            self.history.append((np.array(actions), self.reward))

    def _expected_rewards_of(self, u: int, actions: NDArray[Any]) -> Array:
        """Return f(x) at position u for one action in each episode, `(B,)`."""
        w, left, right = self._weight[u], self._left[u], self._right[u]
        if self.task.continuous:
            k = self.task.kernel(np.asarray(actions, float)[:, None], self._centres)[:, 0]
            mixed = (1 - w) * self._coefficients[left] + w * self._coefficients[right]
            total: Array = np.sum(k * mixed, axis=1)
            return total
        ends = self._values[left : right + 1, self._rows, actions]
        # The same arithmetic as `Path.along`, so that the optimum's regret is exactly zero.
        expected: Array = ends[0] if w == 0 else (1 - w) * ends[0] + w * ends[-1]
        return expected

    @property
    def next_position(self) -> int:
        """The path's position that the next action meets; the last one after the end.

        Raises:
            ResetNeeded: If there was no reset yet.
        """
        if not self._episodes:
            raise ResetNeeded("No episode was drawn yet: call reset() first.")
        return self._position[min(self.t, self.task.horizon - 1)]

    def expected_rewards(self) -> Array:
        """Return, on the domain, the functions that the next actions meet, `(B, n)`."""
        u = self.next_position
        w = self._weight[u]
        mixed: Array = (1 - w) * self._values[self._left[u]] + w * self._values[self._right[u]]
        return mixed

    def optimal_actions(self) -> NDArray[Any]:
        """Return where these functions are largest: `(B,)` arms or `(B, d)` points."""
        u = self.next_position
        return np.array(self._optimal_action[u])

    def optimal_reward(self, i: int) -> float:
        """Return how large episode i's function is there."""
        return float(self._optimal_reward[self.next_position, i])

    def observation(self) -> NDArray[np.float32]:
        """Return [t / T, has_last, last action in [0, 1]^d, last reward], `(B, 3 + d)`."""
        observation = np.empty((self.batch, 3 + self._places.shape[1]), np.float32)
        observation[:, 0] = self.t / self.task.horizon
        observation[:, 1] = self.t > 0
        observation[:, 2:-1] = self._places
        observation[:, -1] = np.minimum(np.maximum(self.reward, -REWARD_LIMIT), REWARD_LIMIT)
        return observation

    def info(self) -> dict[str, Any]:
        """Return the scorer's view: arrays `(B,)`, a continuous optimum `(B, d)`, and t, an int.

        It speaks of the functions just played; after a reset, of the optimum of the first ones.
        The arrays are the core's own: whoever hands them on copies them.
        """
        u = self._position[max(self.t - 1, 0)]
        return {
            "t": self.t,
            "expected_reward": self._expected,
            "optimal_reward": self._optimal_reward[u],
            "optimal_action": self._optimal_action[u],
            "regret": self._regret,
            "cumulative_regret": self._cumulative,
            "variation": self._variation[u],
            "sup_variation": self._sup_variation[u],
            "changed": self._changes[u] if self._moved else self._unmoved,
        }
