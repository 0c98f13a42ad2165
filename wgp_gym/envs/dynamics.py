"""The dynamics of every environment, once: B episodes of one task, in lockstep."""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial

import numpy as np
from gymnasium.error import ResetNeeded
from numpy.typing import NDArray

from wgp_gym.arrays import blocks
from wgp_gym.envs.episode import Episode
from wgp_gym.envs.reward_functions import make_reward_functions
from wgp_gym.envs.task import Task
from wgp_gym.problem import BanditProblem
from wgp_gym.streams import NOISE, child_generators, entropy_of
from wgp_gym.types import Actions, Array, Info, Mask

__all__ = ["REWARD_LIMIT", "Dynamics"]

REWARD_LIMIT = 1e12  # the observation's bound on the last reward
REST = -1  # the row that says that no function has changed


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
        history: The places `(B, d)` of the actions and the rewards of this episode, step by
            step, if recorded.
    """

    def __init__(self, task: Task, batch: int, *, record: bool = False) -> None:
        self.task = task
        self.batch = batch
        self.t = 0
        self.history: list[tuple[Actions, Array]] | None = [] if record else None
        self._episodes: Episode | None = None
        self._problem: BanditProblem | None = None  # once it was asked for
        n, self._dim = task.domain.shape
        self._observed = batch, 3 + self._dim + (n * self._dim if task.contextual else 0)
        played = np.arange(task.horizon + 1)
        self._clock = list(
            zip((played / task.horizon).tolist(), (played > 0).tolist(), strict=True)
        )
        # Python lists: picking a scalar from them costs a tenth of picking it from an array.
        position = task.schedule.index
        self._position: list[int] = position.tolist()
        moved = np.diff(position, prepend=position[0]) != 0
        self._change: list[int] = np.where(moved, position, REST).tolist()  # rows of `_changed`

    @property
    def over(self) -> bool:
        """Whether all T steps are played."""
        return self.t == self.task.horizon

    @property
    def problem(self) -> BanditProblem:
        """What a learner may know of the B episodes, in arrays `(B,)`."""
        if self._problem is None:
            drawn = self._episodes
            problem = self.task.problem() if drawn is None else self.task.problem_of(drawn)
            scale = problem.noise_scale
            if scale is None:
                self._problem = replace(problem, episodes=self.batch)
            else:
                scales = np.broadcast_to(scale, self.batch)
                self._problem = replace(problem, noise_scale=scales)
        return self._problem

    @property
    def single_problem(self) -> BanditProblem:
        """What a learner may know of the first episode; before the first reset, of the task."""
        if self._episodes is None:
            return self.task.problem()
        return self.task.problem_of(self._episodes.of_batch(0))

    @property
    def episodes(self) -> list[Episode]:
        """The episodes; none before the first reset."""
        drawn = self._episodes
        return [] if drawn is None else [drawn.of_batch(i) for i in range(self.batch)]

    @property
    def bounds(self) -> tuple[Array, Array]:
        """B and B_T of the episodes, `(B,)` each, whatever learners are told.

        Raises:
            ResetNeeded: If there was no reset yet.
        """
        self._require_reset()
        assert self._episodes is not None
        return np.array(self._episodes.norm_bound), np.array(self._episodes.variation_budget)

    def reset(self, generators: list[np.random.Generator]) -> None:
        """Draw the next B episodes, each from its own generator."""
        entropy = entropy_of(generators)
        drawn = self.task.draw_episodes(partial(child_generators, entropy))
        self._noise = self._drawn_noise(child_generators(entropy, NOISE))
        if drawn.noise_scale is not None:
            self._noise *= drawn.noise_scale
        self._functions = make_reward_functions(self.task, drawn)
        self._optimal_reward = drawn.optimal_reward.swapaxes(0, 1)  # (U, B)
        self._optimal_action = drawn.optimal_action.swapaxes(0, 1)  # (U, B) or (U, B, d)
        self._variation = drawn.variation.swapaxes(0, 1)
        self._sup_variation = drawn.sup_variation.swapaxes(0, 1)
        self._changed = np.zeros((len(self._variation) + 1, self.batch), bool)  # the last: at rest
        np.greater(self._variation[1:], self._variation[:-1], out=self._changed[1:REST])
        self._episodes, self._problem = drawn, None
        self.t = 0
        self.reward = self._expected = self._regret = self._cumulative = np.zeros(self.batch)
        self._places: Actions = np.zeros((self.batch, self.task.domain.shape[1]))
        if self.history is not None:
            self.history = []

    def fork(self) -> Dynamics:
        """Return the same episodes at the same step, without a copy; playing it moves nothing here.

        Raises:
            ResetNeeded: If there was no reset yet.
        """
        self._require_reset()
        other = copy.copy(self)
        other.history = None
        return other

    def _drawn_noise(self, generators: list[np.random.Generator]) -> Array:
        """Draw the noise of every step, `(T, B)`."""
        noise, horizon = self.task.noise, self.task.horizon
        drawn = np.empty((horizon, self.batch))
        for block in blocks(0, self.batch, horizon):
            drawn[:, block] = noise.draw_batch(generators[block], horizon).T
        return drawn

    def step(self, actions: Actions) -> None:
        """Play one action in every episode: arms `(B,)` or points of the box `(B, d)`.

        Raises:
            ResetNeeded: If there was no reset yet, or the episodes are over.
        """
        if self._episodes is None or self.over:
            raise ResetNeeded("The episode is over or was never begun: call reset() first.")
        t = self.t
        u = self._position[t]
        self._places = self._functions.places(t, actions)
        self._expected = self._functions.rewards_of(t, actions)
        noise = self.task.noise
        drawn = noise.at_places(self._noise[t], self._places)
        reward = noise.rewards(self._expected, drawn)
        self.reward = reward.astype(np.float32).astype(np.float64)
        self._regret = self._optimal_reward[u] - self._expected
        if self.task.continuous:  # the searched optimum is right to 1e-12 or so, not exactly
            self._regret = np.maximum(self._regret, 0.0)
        self._cumulative = self._cumulative + self._regret
        self.t = t + 1
        if self.history is not None:
            self.history.append((np.array(self._places), self.reward))

    def _require_reset(self) -> None:
        if self._episodes is None:
            raise ResetNeeded("No episode was drawn yet: call reset() first.")

    @property
    def next_step(self) -> int:
        """The step that the next action is, counted from 0; the last one after the end.

        Raises:
            ResetNeeded: If there was no reset yet.
        """
        self._require_reset()
        return min(self.t, self.task.horizon - 1)

    def expected_rewards(self) -> Array:
        """Return what the next actions meet, `(B, n)`, on the domain or of the arms shown."""
        t = self.next_step  # which asks for a reset
        return self._functions.rewards(t)

    def arms(self) -> Actions:
        """Return the arms that the next actions choose from, `(B, n, d)`, in [0, 1]^d."""
        t = self.next_step
        return self._functions.arms(t)

    def available(self) -> Mask:
        """Return which arms the next actions may choose, `(B, n)`: all, where none come and go.

        On a box they are the points of its grid. After the end they are those of step T.
        """
        t = self.next_step
        assert self._episodes is not None
        if self._episodes.available is None:
            return np.ones((self.batch, len(self.task.domain)), bool)
        return np.array(self._episodes.available[:, t])

    def function_changes(self) -> NDArray[np.bool_]:
        """Return whether the next action meets another function than the last, `(B,)`.

        False before the first step and after the end.
        """
        self._require_reset()
        return np.array(self._changed[REST if self.over else self._change[self.t]])

    def optimal_actions(self) -> Actions:
        """Return where these functions are largest: `(B,)` arms or `(B, d)` points."""
        u = self._position[self.next_step]
        return np.array(self._optimal_action[u])

    def optimal_reward(self, i: int) -> float:
        """Return how large episode i's function is there."""
        u = self._position[self.next_step]
        return float(self._optimal_reward[u, i])

    def observation(self) -> NDArray[np.float32]:
        """Return [t / T, has_last, last action in [0, 1]^d, last reward], `(B, 3 + d)`.

        Where arms are drawn anew at each step, those of the next one follow: `(B, 3 + d + n d)`.
        """
        d, paid = self._dim, self.reward
        if self.batch > 1 or not -REWARD_LIMIT <= paid.item() <= REWARD_LIMIT:
            paid = np.minimum(np.maximum(paid, -REWARD_LIMIT), REWARD_LIMIT)
        observation = np.empty(self._observed, np.float32)
        observation[:, 0], observation[:, 1] = self._clock[self.t]
        observation[:, 2 : 2 + d] = self._places
        observation[:, 2 + d] = paid
        if self.task.contextual:
            observation[:, 3 + d :] = self.arms().reshape(self.batch, -1)
        return observation

    def info(self) -> Info:
        """Return the scorer's view: arrays `(B,)`, a continuous optimum `(B, d)`, and t, an int.

        It speaks of the functions just played; after a reset, of the optimum of the first ones.
        The arrays are the core's own: whoever hands them on copies them. Where arms come and go,
        "action_mask" `(B, n)` says which are there for the next action.
        """
        last = max(self.t - 1, 0)
        u = self._position[last]
        mask = {"action_mask": self.available().astype(np.int8)} if self.task.masked else {}
        return {
            "t": self.t,
            "expected_reward": self._expected,
            "optimal_reward": self._optimal_reward[u],
            "optimal_action": self._optimal_action[u],
            "regret": self._regret,
            "cumulative_regret": self._cumulative,
            "variation": self._variation[u],
            "sup_variation": self._sup_variation[u],
            "changed": self._changed[self._change[last]],
            **mask,
        }
