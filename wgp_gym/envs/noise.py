"""What makes a reward of its expectation: noise, and rounding to single precision.

Noise is drawn at reset, one value per step, whichever arm is played.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from wgp_gym.types import Actions, Array, Mask
from wgp_gym.validation import check_choice, check_float, reject

__all__ = [
    "LARGEST",
    "REWARDS",
    "SMALLEST",
    "BernoulliNoise",
    "GaussianNoise",
    "Noise",
    "check_rounding",
    "make_noise",
]

LARGEST = 1e30  # rewards are rounded to single precision, which ends at 3e38
SMALLEST = 1e-100  # but for 0; norms are roots of sums of squares, and a square ends at 1e-308
REWARDS = ("gaussian", "bernoulli")
SHARE = 1e-3  # of the arms' differences, that rounding may take
ARM_SHARE = 0.1  # of what an arm varies by
DOUBLE = 1e-15  # differences over the size that are rounding themselves


class Noise(ABC):
    """How a reward is made of its expectation and of chance.

    Attributes:
        scale: The sub-Gaussian scale R, in units of the reward: E e^{z eps} <= e^{z^2 R^2 / 2} for
            all z. None where there is none.
    """

    scale: float | None

    @abstractmethod
    def draw(self, rng: np.random.Generator, horizon: int) -> Array:
        """Draw the chance of every step, `(T,)`."""

    def draw_batch(self, generators: Sequence[np.random.Generator], horizon: int) -> Array:
        """Draw the same from each of B generators, `(B, T)`."""
        return np.array([self.draw(rng, horizon) for rng in generators])

    def at_places(self, drawn: Array, places: Actions) -> Array:
        """Return what was drawn for a step, `(B,)`, as it is at places `(B, d)` of [0, 1]^d."""
        del places
        return drawn

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
        drawn: Array = self.draw_batch([rng], horizon)[0]
        return drawn

    def draw_batch(self, generators: Sequence[np.random.Generator], horizon: int) -> Array:
        """Draw the same from each of B generators, `(B, T)`."""
        drawn = np.empty((len(generators), horizon))
        for own, rng in zip(drawn, generators, strict=True):
            rng.standard_normal(out=own)
        drawn *= self.scale
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


def check_rounding(rewards: Array, owner: str, remedy: str) -> None:
    """Check that single precision tells the arms of every row apart, and an arm's times.

    Rounding may take a thousandth of the row's spread, its largest entry less its smallest. Of
    rows whose arms are nearly equal it may take a thousandth of the median row's spread: their
    differences are small beside those that matter. Arms that are equal lose nothing. It may take
    a tenth of what an arm varies by: behind an arm far from all others the rest may be lost
    without a row's spread telling so.

    Args:
        rewards: Expected rewards, `(T, n)`, at most 1e30 in size.
        owner: The task.
        remedy: What to do about it, for the error.

    Raises:
        ValueError: If rounding takes more. The message names the first such row or arm.
    """
    low, high = rewards.min(axis=1), rewards.max(axis=1)
    spread, error, differ = lost_of(low, high)
    if differ.any():
        allowed = SHARE * np.maximum(spread, np.median(spread[differ]))
        reject_lost(differ & (error > allowed), low, high, "row", f"{owner} must differ", remedy)
    low, high = rewards.min(axis=0), rewards.max(axis=0)
    spread, error, differ = lost_of(low, high)
    reject_lost(
        differ & (error > ARM_SHARE * spread), low, high, "arm", f"{owner} must vary", remedy
    )


def lost_of(low: Array, high: Array) -> tuple[Array, Array, Mask]:
    """Return the spread of numbers from `low` to `high`, their rounding, and if they differ."""
    size, spread = np.maximum(high, -low), high - low
    return spread, rounding(size), spread > DOUBLE * size


def rounding(size: Array) -> Array:
    """Return by how much single precision may round numbers of this size."""
    return np.spacing(size.astype(np.float32)).astype(float) / 2


def reject_lost(lost: Mask, low: Array, high: Array, kind: str, whose: str, remedy: str) -> None:
    """Raise ValueError for the first row or arm that is lost, if there is one."""
    if not lost.any():
        return
    i = lost.argmax()
    error = rounding(np.maximum(high, -low))[i]
    raise ValueError(
        f"The rewards of {whose} by more than rounding to single precision takes: {kind} {i + 1}, "
        f"from {float(low[i])!r} to {float(high[i])!r}, is rounded by up to {error:.2g}. {remedy}"
    )
