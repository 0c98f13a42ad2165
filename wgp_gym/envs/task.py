"""What every task has: a domain, a kernel, a path, noise, and a way to draw an episode."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from wgp_gym.arrays import ReadOnlyArrays, frozen
from wgp_gym.envs.episode import Episode
from wgp_gym.envs.noise import LARGEST, SMALLEST, Noise
from wgp_gym.kernels import Kernel
from wgp_gym.paths import Path
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array
from wgp_gym.validation import check_bool, check_float, reject

__all__ = ["Task", "refuse"]


class Task(ReadOnlyArrays, ABC):
    """A family of episodes; an environment plays one after the other.

    Args:
        kernel: The kernel k.
        domain: The decision set's points, `(n, d)`.
        path: How f_t moves with t.
        noise: How a reward is made of its expectation and of chance.
        norm_bound: B as asked for, or None.
        variation_budget: B_T as asked for, or None.
        continuous: Whether any point of the box may be played.
        arm_names: A name for each point of the domain, for pictures; None where they have none.
        reward_range: Bounds of every expected reward that a learner may know, or None.
        contextual: Whether the arms are drawn anew at each step; the domain then is a stand-in,
            every step of the path has a position of its own, and the kernel has features.
        link: What the expected reward is of the function in the RKHS. See `BanditProblem`.

    Raises:
        ValueError: If a number is out of its range.
    """

    def __init__(
        self,
        *,
        kernel: Kernel,
        domain: Array,
        path: Path,
        noise: Noise,
        norm_bound: float | None,
        variation_budget: float | None,
        continuous: bool = False,
        arm_names: list[str] | None = None,
        reward_range: tuple[float, float] | None = None,
        contextual: bool = False,
        link: str = "identity",
    ) -> None:
        owner = type(self).__name__
        self.kernel = kernel
        self.domain = frozen(domain)  # learners are handed this very array
        self.path = path
        self.noise = noise
        self.norm_bound = optional_bound("norm_bound", norm_bound, owner)
        self.variation_budget = optional_bound("variation_budget", variation_budget, owner)
        if self.variation_budget and len(path.left) == 1:
            rule = "None or 0 for a task that never changes"
            reject("variation_budget", owner, rule, self.variation_budget)
        self.continuous = check_bool("continuous", continuous, owner)
        self.arm_names = None if arm_names is None else list(arm_names)
        self.reward_range = reward_range
        self.contextual = check_bool("contextual", contextual, owner)
        self.link = link

    @property
    def horizon(self) -> int:
        """The number of steps T."""
        return len(self.path.index)

    @property
    def kept_numbers(self) -> int:
        """How many numbers an environment keeps of an episode, about."""
        n, d = self.domain.shape
        positions, steps = len(self.path.left), self.horizon
        drawn = steps * n * d if self.contextual else 0
        return int(steps + 4 * positions + 2 * self.path.num_knots * n + drawn)

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw one episode from the generator of its functions."""

    def problem(self) -> BanditProblem:
        """Return what a learner may know before an episode is drawn."""
        return BanditProblem(
            kernel=self.kernel,
            domain=self.domain,
            horizon=self.horizon,
            noise_scale=self.noise.scale,
            norm_bound=self.norm_bound,
            variation_budget=self.variation_budget,
            continuous=self.continuous,
            reward_range=self.reward_range,
            contextual=self.contextual,
            link=self.link,
        )


def optional_bound(name: str, value: float | None, owner: str) -> float | None:
    """Return a bound of at least 0 as a float; None stays None.

    Raises:
        ValueError: If it is no number in [0, 1e30], or one whose square is lost in rounding.
    """
    if value is None:
        return None
    bound = check_float(name, value, owner, 0, LARGEST)
    if 0 < bound < SMALLEST:
        reject(name, owner, f"0 or at least {SMALLEST:g}", value)
    return bound


def refuse(owner: str, where: str, parameters: dict[str, Any]) -> None:
    """Check that parameters that would do nothing were not given.

    Args:
        owner: The task.
        where: What makes them do nothing, as in "for the path 'jumps'".
        parameters: The parameters; None where one was not given.

    Raises:
        ValueError: If one was.
    """
    for name, value in parameters.items():
        if value is not None:
            reject(name, owner, f"None {where}", value)
