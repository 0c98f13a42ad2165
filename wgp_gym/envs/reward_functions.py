"""What actions are expected to pay in B episodes: fixed arms, points of a box, changing arms.

Everything is done element by element, so that an episode's numbers do not depend on B.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from wgp_gym.envs.episode import NO_CENTRE, Episode, linear_rewards
from wgp_gym.envs.task import Task
from wgp_gym.types import Actions, Array, Indices

Knots = list[int] | list[Indices]
"""The knot of each position; or, at each, those of B episodes, `(B,)`."""

__all__ = ["RewardFunctions", "make_reward_functions"]


class RewardFunctions(ABC):
    """The functions of a batch of B episodes of one task. Steps t are counted from 0."""

    def __init__(self, task: Task, drawn: Episode) -> None:
        self._task = task
        self._batch = len(drawn.values)
        self._episodes = np.arange(self._batch)
        schedule = task.schedule
        # Python lists: picking a scalar from them costs a tenth of picking it from an array.
        self._position: list[int] = schedule.index.tolist()
        self._left: Knots = schedule.left.tolist()
        self._right: Knots = schedule.right.tolist()
        self._at_knot: list[bool] = (schedule.weight == 0).tolist()
        if drawn.knots is not None:  # change times of each episode's own; positions are steps
            alone = self._batch == 1
            knots = drawn.knots[0].tolist() if alone else list(np.ascontiguousarray(drawn.knots.T))
            self._left = self._right = knots
        # Arrays of one number each, which numpy multiplies by in half the time of a float.
        self._weight = schedule.weight[:, None]
        self._rest = 1 - self._weight

    def _mixed(self, knots: Actions, t: int) -> Array:
        """Return what stands at step t between the knots of `knots` `(B, K, ...)`."""
        u = self._position[t]
        w = float(self._weight[u, 0])
        left, right = self._left[u], self._right[u]
        value: Array = (1 - w) * self._stood(knots, left) + w * self._stood(knots, right)
        return value

    def _stood(self, knots: Actions, k: int | Indices) -> Actions:
        """Return what stands at knot k, or at each episode's own, `(B,)`."""
        picked: Actions = knots[:, k] if isinstance(k, int) else knots[self._episodes, k]
        return picked

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


def make_reward_functions(task: Task, drawn: Episode) -> RewardFunctions:
    """Return the reward functions of a batch of episodes of one task."""
    if task.contextual:
        return ChangingArmRewards(task, drawn)
    if not task.continuous:
        return FixedArmRewards(task, drawn)
    return BoxRewards(task, drawn) if drawn.parameters is None else FormulaRewards(task, drawn)


class FixedArmRewards(RewardFunctions):
    """Arms that stay where they are; their rewards at the knots are an array `(B, K, n)`."""

    def __init__(self, task: Task, drawn: Episode) -> None:
        super().__init__(task, drawn)
        self._values = drawn.values
        self._alone: Array | None = None  # the rewards that all episodes share, `(K, n)`
        if self._batch == 1 or self._values.strides[0] == 0:
            self._alone = self._values[0]
            return
        _, knots, self._n = self._values.shape
        self._all = self._values.reshape(-1)
        self._first = np.arange(self._batch) * (knots * self._n)  # where each episode's begin

    def _of_knot(self, k: int | Indices, actions: Actions) -> Array:
        """Return the arms' rewards at a knot, `(B,)`."""
        if self._alone is not None:
            shared: Array = self._alone[k][actions]
            return shared
        picked: Array = self._all[actions + (self._first + k * self._n)]
        return picked

    def rewards_of(self, t: int, actions: Actions) -> Array:
        """Pick the arms' rewards."""
        u = self._position[t]
        left = self._of_knot(self._left[u], actions)
        if self._at_knot[u]:
            return left
        # The same arithmetic as `Schedule.along`, so that the optimum's regret is exactly zero.
        value: Array = self._rest[u] * left
        value += self._weight[u] * self._of_knot(self._right[u], actions)
        return value

    def rewards(self, t: int) -> Array:
        """Return the rewards of all arms."""
        return self._mixed(self._values, t)

    def places(self, t: int, actions: Actions) -> Actions:
        """Return where the arms stand, at any t."""
        return self._task.domain.take(actions, 0)

    def arms(self, t: int) -> Actions:
        """Return the domain, at any t."""
        domain = self._task.domain
        return np.broadcast_to(domain, (self._batch, *domain.shape))


class BoxRewards(FixedArmRewards):
    """Any point of the box, by the functions' expansions; the grid's points are fixed arms."""

    def __init__(self, task: Task, drawn: Episode) -> None:
        super().__init__(task, drawn)
        self._coefficients = drawn.coefficients  # (B, K, M)
        known = drawn.centres != NO_CENTRE
        # (B, M, d), or (M, d) that all share
        self._centres = task.domain[np.where(known, drawn.centres, 0)]
        self._counts = None if known.all() else known.sum(axis=1)

    def rewards_of(self, t: int, actions: Actions) -> Array:
        """Evaluate the expansions at points `(B, d)`."""
        points = np.asarray(actions, float)[:, None]
        coefficients = self._mixed(self._coefficients, t)
        if self._counts is None:
            return self._expanded(points, self._centres, coefficients)
        total = np.empty(self._batch)
        for count in np.unique(self._counts):  # zeros at the end would change how sums are rounded
            rows = self._counts == count
            centres, own = self._centres[rows, :count], coefficients[rows, :count]
            total[rows] = self._expanded(points[rows], centres, own)
        return total

    def _expanded(self, points: Array, centres: Array, coefficients: Array) -> Array:
        """Return sum_j coefficients[b, j] k(points[b, 0], centres[b, j]), `(B,)`."""
        total: Array = np.sum(self._task.kernel(points, centres)[:, 0] * coefficients, axis=1)
        return total

    def places(self, t: int, actions: Actions) -> Actions:
        """Return the points themselves."""
        return actions


class FormulaRewards(FixedArmRewards):
    """Any point of the box, by the task's formula; the grid's points are fixed arms.

    Parameters stand still between changes: every position of the schedule is a knot.
    """

    def __init__(self, task: Task, drawn: Episode) -> None:
        super().__init__(task, drawn)
        assert drawn.parameters is not None
        self._parameters = drawn.parameters  # (B, K, P)

    def rewards_of(self, t: int, actions: Actions) -> Array:
        """Evaluate the formula at points `(B, d)`."""
        parameters = self._stood(self._parameters, self._left[self._position[t]])
        return self._task.formula(parameters, np.asarray(actions, float)[:, None])[:, 0]

    def places(self, t: int, actions: Actions) -> Actions:
        """Return the points themselves."""
        return actions


class ChangingArmRewards(RewardFunctions):
    """Arms drawn anew at each step, and functions theta^T phi, by theta at the knots."""

    def __init__(self, task: Task, drawn: Episode) -> None:
        super().__init__(task, drawn)
        features = task.kernel.feature_map()
        assert features is not None  # the task has refused any other
        self._features = features
        assert drawn.arms is not None
        self._theta = drawn.coefficients  # (B, K, d)
        self._arms = drawn.arms  # (B, T, n, d)

    def _evaluated(self, t: int, points: Actions) -> Array:
        """Evaluate the functions at points `(B, p, d)`, as `(B, p)`."""
        return linear_rewards(self._mixed(self._theta, t), self._features(points), self._task.link)

    def rewards_of(self, t: int, actions: Actions) -> Array:
        """Evaluate the functions at the arms."""
        return self._evaluated(t, self.places(t, actions)[:, None])[:, 0]

    def rewards(self, t: int) -> Array:
        """Evaluate the functions at all arms of the step."""
        return self._evaluated(t, self._arms[:, t])

    def places(self, t: int, actions: Actions) -> Actions:
        """Return where the arms of the step stand."""
        place: Actions = self._arms[self._episodes, t, actions]
        return place

    def arms(self, t: int) -> Actions:
        """Return the arms of the step."""
        shown: Actions = self._arms[:, t]
        return shown
