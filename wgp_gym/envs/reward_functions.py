"""What actions are expected to pay in B episodes: fixed arms, points of a box, changing arms.

Everything is done element by element, so that an episode's numbers do not depend on B.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from wgp_gym.envs.episode import Episode, linear_rewards
from wgp_gym.envs.task import Task
from wgp_gym.types import Actions, Array

__all__ = ["RewardFunctions", "gather", "make_reward_functions"]


class RewardFunctions(ABC):
    """The functions of B episodes of one task. Steps t are counted from 0."""

    def __init__(self, task: Task, episodes: Sequence[Episode]) -> None:
        self._task = task
        self._episodes = np.arange(len(episodes))
        schedule = task.schedule
        # Python lists: picking a scalar from them costs a tenth of picking it from an array.
        self._position: list[int] = schedule.index.tolist()
        self._left: list[int] = schedule.left.tolist()
        self._right: list[int] = schedule.right.tolist()
        self._weight: list[float] = schedule.weight.tolist()

    def _mixed(self, knots: Actions, t: int) -> Array:
        """Return what stands at step t between the rows of `knots` `(K, ...)`."""
        u = self._position[t]
        w = self._weight[u]
        value: Array = (1 - w) * knots[self._left[u]] + w * knots[self._right[u]]
        return value

    @abstractmethod
    def rewards_of(self, t: int, actions: Actions) -> Array:
        """Return the expected rewards of one action in each episode, `(B,)`."""

    @abstractmethod
    def rewards(self, t: int) -> Array:
        """Return the expected rewards of all arms, or of a box's grid, `(B, n)`."""

    @abstractmethod
    def places(self, t: int, actions: Actions) -> Actions:
        """Return where actions stand in [0, 1]^d, `(B, d)`."""

    @abstractmethod
    def arms(self, t: int) -> Actions:
        """Return where all arms stand, or a box's grid, `(B, n, d)`."""


def make_reward_functions(task: Task, episodes: Sequence[Episode]) -> RewardFunctions:
    """Return the reward functions of episodes of one task."""
    if task.contextual:
        return ChangingArmRewards(task, episodes)
    return BoxRewards(task, episodes) if task.continuous else FixedArmRewards(task, episodes)


def gather(episodes: Sequence[Episode], name: str) -> Actions:
    """Stack a field of the episodes along axis 1; one that all share is not copied."""
    fields = [getattr(episode, name) for episode in episodes]
    if all(field is fields[0] for field in fields):
        shape = (fields[0].shape[0], len(fields), *fields[0].shape[1:])
        return np.broadcast_to(fields[0][:, None], shape)
    stacked = np.stack(fields, axis=1)
    stacked.setflags(write=False)  # views of it are handed out
    return stacked


class FixedArmRewards(RewardFunctions):
    """Arms that stay where they are; their rewards at the knots are an array `(K, B, n)`."""

    def __init__(self, task: Task, episodes: Sequence[Episode]) -> None:
        super().__init__(task, episodes)
        self._values = gather(episodes, "values")

    def rewards_of(self, t: int, actions: Actions) -> Array:
        """Pick the arms' rewards."""
        u = self._position[t]
        w = self._weight[u]
        ends = self._values[self._left[u] : self._right[u] + 1, self._episodes, actions]
        # The same arithmetic as `Schedule.along`, so that the optimum's regret is exactly zero.
        expected: Array = ends[0] if w == 0 else (1 - w) * ends[0] + w * ends[-1]
        return expected

    def rewards(self, t: int) -> Array:
        """Return the rewards of all arms."""
        return self._mixed(self._values, t)

    def places(self, t: int, actions: Actions) -> Actions:
        """Return where the arms stand, at any t."""
        place: Actions = self._task.domain[actions]
        return place

    def arms(self, t: int) -> Actions:
        """Return the domain, at any t."""
        domain = self._task.domain
        return np.broadcast_to(domain, (len(self._episodes), *domain.shape))


class BoxRewards(FixedArmRewards):
    """Any point of the box, by the functions' expansions; the grid's points are fixed arms."""

    def __init__(self, task: Task, episodes: Sequence[Episode]) -> None:
        super().__init__(task, episodes)
        self._coefficients = gather(episodes, "coefficients")  # (K, B, M)
        self._centres = task.domain[gather(episodes, "centres").T]  # (B, M, d)

    def rewards_of(self, t: int, actions: Actions) -> Array:
        """Evaluate the expansions at points `(B, d)`."""
        k = self._task.kernel(np.asarray(actions, float)[:, None], self._centres)[:, 0]
        total: Array = np.sum(k * self._mixed(self._coefficients, t), axis=1)
        return total

    def places(self, t: int, actions: Actions) -> Actions:
        """Return the points themselves."""
        return actions


class ChangingArmRewards(RewardFunctions):
    """Arms drawn anew at each step, and functions theta^T phi, by theta at the knots."""

    def __init__(self, task: Task, episodes: Sequence[Episode]) -> None:
        super().__init__(task, episodes)
        features = task.kernel.feature_map()
        assert features is not None  # the task has refused any other
        self._features = features
        self._theta = gather(episodes, "coefficients")  # (K, B, d)
        self._arms = gather(episodes, "arms")  # (T, B, n, d)

    def _evaluated(self, t: int, points: Actions) -> Array:
        """Evaluate the functions at points `(B, p, d)`, as `(B, p)`."""
        return linear_rewards(self._mixed(self._theta, t), self._features(points), self._task.link)

    def rewards_of(self, t: int, actions: Actions) -> Array:
        """Evaluate the functions at the arms."""
        return self._evaluated(t, self.places(t, actions)[:, None])[:, 0]

    def rewards(self, t: int) -> Array:
        """Evaluate the functions at all arms of the step."""
        return self._evaluated(t, self._arms[t])

    def places(self, t: int, actions: Actions) -> Actions:
        """Return where the arms of the step stand."""
        place: Actions = self._arms[t, self._episodes, actions]
        return place

    def arms(self, t: int) -> Actions:
        """Return the arms of the step."""
        shown: Actions = self._arms[t]
        return shown
