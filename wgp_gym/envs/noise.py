"""The noise of a reward, drawn at reset: one value per step, whichever arm is played."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from wgp_gym.types import Array
from wgp_gym.validation import check_choice, check_float, reject

__all__ = [
    "LARGEST",
    "REWARDS",
    "SMALLEST",
    "BernoulliNoise",
    "GaussianNoise",
    "Noise",
    "make_noise",
]

LARGEST = 1e30  # rewards are rounded to single precision, which ends at 3e38
SMALLEST = 1e-100  # but for 0; norms are roots of sums of squares, and a square ends at 1e-308
REWARDS = ("gaussian", "bernoulli")


class Noise(ABC):
    """How a reward is made of its expectation and of chance.

    Attributes:
        scale: The sub-Gaussian scale R, in units of the reward.
    """

    scale: float

    @abstractmethod
    def draw(self, rng: np.random.Generator, horizon: int) -> Array:
        """Draw the chance of every step, `(T,)`."""

    @abstractmethod
    def rewards(self, expected: Array, drawn: Array) -> Array:
        """Return the rewards `(B,)` of expectations `(B,)`, with what was drawn, `(B,)`."""


@dataclass(frozen=True)
class GaussianNoise(Noise):
    """The reward is its expectation plus a normal number of this standard deviation.

    Args:
        scale: The standard deviation, >= 0; also R.
    """

    scale: float

    def draw(self, rng: np.random.Generator, horizon: int) -> Array:
        """Draw what is added at every step, `(T,)`."""
        drawn: Array = self.scale * rng.standard_normal(horizon)
        return drawn

    def rewards(self, expected: Array, drawn: Array) -> Array:
        """Return the sums, `(B,)`."""
        return expected + drawn


@dataclass(frozen=True)
class BernoulliNoise(Noise):
    """The reward is 1 with the probability that is expected, in [0, 1], and 0 otherwise.

    A step has one uniform U, and pays 1 where U < p: so an arm with a larger p pays wherever one
    with a smaller p would have paid. R = 1/2, as Hoeffding's lemma has it for [0, 1].
    """

    scale: float = 0.5

    def draw(self, rng: np.random.Generator, horizon: int) -> Array:
        """Draw the uniform of every step, `(T,)`, in [0, 1)."""
        return rng.random(horizon)

    def rewards(self, expected: Array, drawn: Array) -> Array:
        """Return 0.0 or 1.0 for each, `(B,)`."""
        return (drawn < expected).astype(float)


def make_noise(
    reward: str, noise_std: float | None, owner: str, usual: float | None = None
) -> Noise:
    """Return the noise that a task's keywords name.

    Args:
        reward: "gaussian" or "bernoulli".
        noise_std: The standard deviation of "gaussian", in [0, 1e30], or None.
        owner: The task.
        usual: The one to take for None; without it None is refused.

    Raises:
        ValueError: If there is no such noise, the deviation is out of its range, or there is one
            for rewards of 0 or 1.
    """
    check_choice("reward", reward, owner, REWARDS)
    if reward == "gaussian":
        given = usual if noise_std is None else noise_std
        return GaussianNoise(check_float("noise_std", given, owner, 0, LARGEST))
    if noise_std is not None:
        reject("noise_std", owner, "None where rewards are 0 or 1", noise_std)
    return BernoulliNoise()
