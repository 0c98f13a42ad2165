"""Tasks that only `adaptive-held-out.toml` plays: heavy tails, and changes at random times.

They are registered as "benchmarks.held_out:HeavyTails-v0" and "benchmarks.held_out:RandomTimes-v0":
with this repository's folder on Python's path, as in a checkout that is installed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wgp_gym import register_task
from wgp_gym.envs import SyntheticTask, Task
from wgp_gym.envs.episode import Episode
from wgp_gym.envs.noise import GaussianNoise, Noise
from wgp_gym.envs.optimum import grid
from wgp_gym.kernels import SquaredExponential
from wgp_gym.rkhs import DomainKernel, Functions
from wgp_gym.schedules import knot_per_step
from wgp_gym.types import Array
from wgp_gym.validation import check_float, check_int

__all__ = ["HeavyTails", "RandomTimes", "StudentNoise"]

DEGREES = 3  # of freedom: the fourth moment is infinite
TERMS = 100  # of a function, as those of [Deng22] Section 7


@dataclass(frozen=True)
class StudentNoise(Noise):
    """The reward is its expectation plus a number of Student's t with three degrees of freedom.

    Deviation: no such noise is sub-Gaussian. Learners are told its standard deviation as R.

    Args:
        scale: Its standard deviation, >= 0.
    """

    scale: float

    def draw(self, rng: np.random.Generator, horizon: int) -> Array:
        """Draw what is added at every step, `(T,)`; t has the variance nu / (nu - 2)."""
        unit = math.sqrt(DEGREES / (DEGREES - 2))
        drawn: Array = self.scale / unit * rng.standard_t(DEGREES, size=horizon)
        return drawn

    def rewards(self, expected: Array, drawn: Array) -> Array:
        """Return the sums, `(B,)`."""
        return expected + drawn


class HeavyTails(SyntheticTask):
    """The abrupt task of [Deng22] with `StudentNoise`.

    Args:
        horizon: The number of steps T.
        noise_std: The noise's standard deviation, in units of the reward.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(self, *, horizon: int = 500, noise_std: float = 1.0) -> None:
        super().__init__("abrupt", horizon=horizon, noise_std=noise_std)
        self.noise = StudentNoise(noise_std)


class RandomTimes(Task):
    """Functions as those of `SyntheticTask`, each replaced before any step with probability `rate`.

    Args:
        horizon: The number of steps T.
        rate: The probability of a change, in [0, 1].
        noise_std: The standard deviation of the Gaussian noise, in units of the reward.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(self, *, horizon: int = 1000, rate: float = 0.005, noise_std: float = 0.1) -> None:
        owner = "RandomTimes"
        super().__init__(
            kernel=SquaredExponential(0.2),
            domain=grid(100, 1),
            schedule=knot_per_step(check_int("horizon", horizon, owner, 1, 5000)),
            noise=GaussianNoise(check_float("noise_std", noise_std, owner, 0, 1e30)),
        )
        self.rate = check_float("rate", rate, owner, 0, 1)
        self._domain_kernel = DomainKernel(self.kernel, self.domain)

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw the times of the changes, and a function for each stretch between them."""
        changed = rng.random(self.horizon - 1) < self.rate
        stretch = np.concatenate([[0], np.cumsum(changed)])  # of every step, (T,)
        functions = Functions.draw(rng, self._domain_kernel, int(stretch[-1]) + 1, TERMS)
        return self.episode(functions[stretch])


register_task("HeavyTails-v0", "benchmarks.held_out:HeavyTails")
register_task("RandomTimes-v0", "benchmarks.held_out:RandomTimes")
