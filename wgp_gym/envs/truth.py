"""What actions are expected to pay in B episodes: fixed arms, points of a box, or drawn arms.

Everything is done element by element, so that an episode's numbers do not depend on B.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from wgp_gym.envs.episode import Episode
from wgp_gym.envs.task import Task
from wgp_gym.kernels import FeatureKernel
from wgp_gym.paths import Path
from wgp_gym.types import Array

__all__ = ["Truth", "gather", "linear_rewards", "make_truth"]


class Truth(ABC):
    """The functions of B episodes at the positions of their path.

    A step is given by its number t, counted from 0, and the path's position u at it.
    """

    @abstractmethod
    def rewards_of(self, t: int, u: int, actions: NDArray[Any]) -> Array:
        """Return the expected rewards of one action in each episode, `(B,)`."""

    @abstractmethod
    def rewards(self, t: int, u: int) -> Array:
        """Return the expected rewards of all arms, or of a box's grid, `(B, n)`."""

    @abstractmethod
    def places(self, t: int, actions: NDArray[Any]) -> NDArray[Any]:
        """Return where actions stand in [0, 1]^d, `(B, d)`."""

    @abstractmethod
    def arms(self, t: int) -> NDArray[Any]:
        """Return where all arms stand, `(B, n, d)`."""


def make_truth(task: Task, episodes: Sequence[Episode]) -> Truth:
    """Return the truth of episodes of one task."""
    if task.contextual:
        return DrawnArms(task, episodes)
    return Box(task, episodes) if task.continuous else FixedArms(task, episodes)


def gather(episodes: Sequence[Episode], name: str) -> NDArray[Any]:
    """Stack a field of the episodes along axis 1; one that all share is not copied."""
    fields = [getattr(episode, name) for episode in episodes]
    if all(field is fields[0] for field in fields):
        shape = (fields[0].shape[0], len(fields), *fields[0].shape[1:])
        return np.broadcast_to(fields[0][:, None], shape)
    stacked = np.stack(fields, axis=1)
    stacked.setflags(write=False)  # views of it are handed out
    return stacked


def linear_rewards(theta: Array, features: Array, link: str) -> Array:
    """Return link(theta^T phi) for vectors `(..., d)` and features `(..., n, d)`, `(..., n)`.

    Args:
        theta: The vectors.
        features: The arms' features phi.
        link: "identity" or "logistic".
    """
    total: Array = np.zeros(np.broadcast_shapes((*theta.shape[:-1], 1), features.shape[:-1]))
    for axis in range(theta.shape[-1]):
        total += features[..., axis] * theta[..., axis, None]
    return np.asarray(expit(total)) if link == "logistic" else total


class Steps:
    """The positions of a path: the knots beside each, and how far it has gone between them."""

    def __init__(self, path: Path) -> None:
        # Python lists: picking a scalar from them costs a tenth of picking it from an array.
        self.left: list[int] = path.left.tolist()
        self.right: list[int] = path.right.tolist()
        self.weight: list[float] = path.weight.tolist()

    def mixed(self, knots: NDArray[Any], u: int) -> Array:
        """Return what stands at position u between the rows of `knots` `(K, ...)`."""
        w = self.weight[u]
        value: Array = (1 - w) * knots[self.left[u]] + w * knots[self.right[u]]
        return value


class FixedArms(Truth):
    """Arms that stay where they are; their rewards at the knots are a table `(K, B, n)`."""

    def __init__(self, task: Task, episodes: Sequence[Episode]) -> None:
        self._domain, self._steps = task.domain, Steps(task.path)
        self._values = gather(episodes, "values")
        self._episodes = np.arange(len(episodes))

    def rewards_of(self, t: int, u: int, actions: NDArray[Any]) -> Array:
        """Pick the arms' rewards, `(B,)`."""
        del t
        steps, w = self._steps, self._steps.weight[u]
        ends = self._values[steps.left[u] : steps.right[u] + 1, self._episodes, actions]
        # The same arithmetic as `Path.along`, so that the optimum's regret is exactly zero.
        expected: Array = ends[0] if w == 0 else (1 - w) * ends[0] + w * ends[-1]
        return expected

    def rewards(self, t: int, u: int) -> Array:
        """Return the rewards of all arms, `(B, n)`."""
        del t
        return self._steps.mixed(self._values, u)

    def places(self, t: int, actions: NDArray[Any]) -> NDArray[Any]:
        """Return where the arms stand, `(B, d)`."""
        del t
        place: NDArray[Any] = self._domain[actions]
        return place

    def arms(self, t: int) -> NDArray[Any]:
        """Return the domain, `(B, n, d)`, for every t."""
        del t
        return np.broadcast_to(self._domain, (len(self._episodes), *self._domain.shape))


class Box(Truth):
    """Any point of the box, by the functions' expansions; the grid's rewards are a table."""

    def __init__(self, task: Task, episodes: Sequence[Episode]) -> None:
        self._kernel, self._grid = task.kernel, FixedArms(task, episodes)
        self._steps = Steps(task.path)
        self._coefficients = gather(episodes, "coefficients")  # (K, B, M)
        self._centres = task.domain[gather(episodes, "centres").T]  # (B, M, d)

    def rewards_of(self, t: int, u: int, actions: NDArray[Any]) -> Array:
        """Evaluate the expansions at the points `(B, d)`, `(B,)`."""
        del t
        k = self._kernel(np.asarray(actions, float)[:, None], self._centres)[:, 0]
        total: Array = np.sum(k * self._steps.mixed(self._coefficients, u), axis=1)
        return total

    def rewards(self, t: int, u: int) -> Array:
        """Return the rewards on the grid, `(B, n)`."""
        return self._grid.rewards(t, u)

    def places(self, t: int, actions: NDArray[Any]) -> NDArray[Any]:
        """Return the points themselves."""
        del t
        return actions

    def arms(self, t: int) -> NDArray[Any]:
        """Return the grid, `(B, n, d)`."""
        return self._grid.arms(t)


class DrawnArms(Truth):
    """Arms drawn anew at each step, and linear functions, by their vectors at the knots."""

    def __init__(self, task: Task, episodes: Sequence[Episode]) -> None:
        assert isinstance(task.kernel, FeatureKernel)
        self._features, self._link = task.kernel.features, task.link
        self._steps = Steps(task.path)
        self._theta = gather(episodes, "coefficients")  # (K, B, d)
        self._arms = gather(episodes, "arms")  # (T, B, n, d)
        self._episodes = np.arange(len(episodes))

    def rewards_of(self, t: int, u: int, actions: NDArray[Any]) -> Array:
        """Evaluate the functions at the arms, `(B,)`."""
        phi = self._features(self.places(t, actions)[:, None])
        return linear_rewards(self._steps.mixed(self._theta, u), phi, self._link)[:, 0]

    def rewards(self, t: int, u: int) -> Array:
        """Evaluate the functions at all arms of the step, `(B, n)`."""
        phi = self._features(self._arms[t])
        return linear_rewards(self._steps.mixed(self._theta, u), phi, self._link)

    def places(self, t: int, actions: NDArray[Any]) -> NDArray[Any]:
        """Return where the arms of the step stand, `(B, d)`."""
        place: NDArray[Any] = self._arms[t, self._episodes, actions]
        return place

    def arms(self, t: int) -> NDArray[Any]:
        """Return the arms of the step, `(B, n, d)`."""
        shown: NDArray[Any] = self._arms[t]
        return shown
