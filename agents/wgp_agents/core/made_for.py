"""What an agent's model was made for, which no later episode may change unnoticed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wgp_gym.problem import BanditProblem
from wgp_gym.validation import reject

__all__ = ["MadeFor"]


@dataclass(frozen=True, eq=False)
class MadeFor:
    """The problem that an agent's model was made for: its kernel and, unless given, its noise.

    Attributes:
        owner: The agent's name.
        problem: The problem.
        with_noise: Whether the noise is the problem's.
    """

    owner: str
    problem: BanditProblem
    with_noise: bool = True

    def check(self, now: BanditProblem) -> None:
        """Check that an episode has the same.

        Raises:
            ValueError: If its kernel or its noise is another one.
        """
        remedy = f'as it was when {self.owner} was made: make it after the reset, or told="law"'
        if now.kernel != self.problem.kernel:
            reject("kernel", "the episode's problem", remedy, now.kernel)
        if self.with_noise and not same(self.problem.noise_scale, now.noise_scale):
            reject("noise_scale", "the episode's problem", remedy, now.noise_scale)


def same(one: object, other: object) -> bool:
    """Return whether two scales, numbers or arrays, are equal; None is None alone."""
    if one is None or other is None:
        return one is other
    return np.array_equal(np.asarray(one), np.asarray(other))
