"""What makes a reward of its expectation: noise of several laws.

Noise is drawn at reset, one value per step, whichever arm is played. All laws but "bernoulli" make
theirs of the same normal numbers, those of "gaussian": with the same seed they differ in the size
of a step's noise, not in its sign.

References:
    [AM74] Andrews, Mallows. Scale mixtures of normal distributions. JRSS B 1974.
    [Tuk60] Tukey. A survey of sampling from contaminated distributions. 1960.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict, Unpack, get_args

import numpy as np

from wgp_gym.types import Actions, Array
from wgp_gym.validation import check_choice, check_float, check_unused

__all__ = [
    "LARGEST",
    "REWARDS",
    "SMALLEST",
    "BernoulliNoise",
    "GaussianNoise",
    "HeteroscedasticNoise",
    "LaplaceNoise",
    "Noise",
    "NoiseLaw",
    "NoiseParameters",
    "OutlierNoise",
    "StudentNoise",
    "make_noise",
]

LARGEST = 1e30  # rewards are rounded to single precision, which ends at 3e38
SMALLEST = 1e-100  # but for 0; norms are roots of sums of squares, and a square ends at 1e-308
REWARDS = ("gaussian", "bernoulli")
MOST_DEGREES, MOST_OUTLYING = 1e6, 1e6
USUAL_DEGREES, USUAL_SHARE, USUAL_SIZE = 3.0, 0.05, 10.0

NoiseLaw = Literal["gaussian", "student-t", "laplace", "heteroscedastic", "outliers"]
NOISES: tuple[NoiseLaw, ...] = get_args(NoiseLaw)


class NoiseParameters(TypedDict, total=False):
    """The parameters of noise that tasks with rewards of any size share. See `make_noise`."""

    noise: NoiseLaw | None
    degrees_of_freedom: float | None
    outlier_share: float | None
    outlier_size: float | None


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


class AdditiveNoise(Noise):
    """The reward is its expectation plus what was drawn."""

    def rewards(self, expected: Array, drawn: Array) -> Array:
        """Return the sums, `(B,)`."""
        return expected + drawn


@dataclass(frozen=True)
class GaussianNoise(AdditiveNoise):
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


class ScaleMixture(AdditiveNoise):
    """A normal number times a positive one that is drawn beside it, times a deviation [AM74].

    Args:
        std: What multiplies both, >= 0.
        scale: R, or None.
    """

    def __init__(self, std: float, scale: float | None) -> None:
        self.std, self.scale = std, scale

    @abstractmethod
    def multipliers(self, rng: np.random.Generator, horizon: int) -> Array:
        """Draw what the normal number of every step is multiplied by, `(T,)`."""

    def draw(self, rng: np.random.Generator, horizon: int) -> Array:
        """Draw what is added at every step, `(T,)`."""
        drawn: Array = rng.standard_normal(horizon)
        drawn *= self.multipliers(rng.spawn(1)[0], horizon)  # a stream that no horizon moves
        drawn *= self.std
        return drawn


class StudentNoise(ScaleMixture):
    """Student's t with nu degrees of freedom, of this standard deviation; there is no R.

    t = z (nu / chi^2_nu)^{1/2} has the variance nu / (nu - 2), which it is divided by.

    Args:
        std: The standard deviation, >= 0.
        degrees_of_freedom: nu > 2.
    """

    def __init__(self, std: float, degrees_of_freedom: float) -> None:
        super().__init__(std, None)
        self.degrees_of_freedom = degrees_of_freedom

    def multipliers(self, rng: np.random.Generator, horizon: int) -> Array:
        """Draw ((nu - 2) / chi^2_nu)^{1/2}, `(T,)`."""
        nu = self.degrees_of_freedom
        return np.sqrt((nu - 2) / rng.chisquare(nu, horizon))


class LaplaceNoise(ScaleMixture):
    """Laplace's law, of this standard deviation: sub-exponential, so that there is no R.

    A normal number times the root of an exponential one of mean 1 has Laplace's law with scale
    2^{-1/2}, variance 1 [AM74].

    Args:
        std: The standard deviation, >= 0.
    """

    def __init__(self, std: float) -> None:
        super().__init__(std, None)

    def multipliers(self, rng: np.random.Generator, horizon: int) -> Array:
        """Draw the roots of exponential numbers, `(T,)`."""
        return np.sqrt(rng.standard_exponential(horizon))


class OutlierNoise(ScaleMixture):
    """Gaussian noise, multiplied at a share of the steps: the contaminated normal law of [Tuk60].

    The variance is std^2 (1 - p + p k^2) with the share p and the size k. R = k std where p > 0:
    the mixture's moment function (1 - p) e^{z^2 std^2 / 2} + p e^{z^2 k^2 std^2 / 2} is below
    e^{z^2 R^2 / 2} then, and above it for every smaller R where z is large.

    Args:
        std: The standard deviation of the other steps, >= 0.
        share: p in [0, 1].
        size: k >= 1.
    """

    def __init__(self, std: float, share: float, size: float) -> None:
        super().__init__(std, std * (size if share > 0 else 1.0))
        self.share, self.size = share, size

    def multipliers(self, rng: np.random.Generator, horizon: int) -> Array:
        """Draw k with the probability p, else 1, `(T,)`."""
        return np.where(rng.random(horizon) < self.share, self.size, 1.0)


class HeteroscedasticNoise(AdditiveNoise):
    """Gaussian noise whose deviation grows with the place of the play: std (1/2 + x_1).

    x_1 in [0, 1] is the place's first coordinate: the deviation is half of `std` at one end of the
    decision set, `std` in the middle, and 3/2 `std` at the other end, which is R.

    Args:
        std: The standard deviation in the middle, >= 0.
    """

    def __init__(self, std: float) -> None:
        self.std, self.scale = std, 1.5 * std

    def draw(self, rng: np.random.Generator, horizon: int) -> Array:
        """Draw the noise of every step in the middle, `(T,)`."""
        return self.std * rng.standard_normal(horizon)

    def at_places(self, drawn: Array, places: Actions) -> Array:
        """Return the noise at places `(B, d)`, `(B,)`."""
        return drawn * (0.5 + places[:, 0])


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
    reward: str,
    noise_std: float | None,
    owner: str,
    usual: float | None = None,
    **law: Unpack[NoiseParameters],
) -> Noise:
    """Return the noise that a task's keywords name.

    | `noise` | law | R |
    |---|---|---|
    | "gaussian" | normal, the default | `noise_std` |
    | "student-t" | Student's, with `degrees_of_freedom`, in (2, 1e6], default 3 | none |
    | "laplace" | Laplace's | none |
    | "heteroscedastic" | normal, of the deviation `noise_std` (1/2 + x_1) | 1.5 `noise_std` |
    | "outliers" | normal, multiplied by `outlier_size` (in [1, 1e6], default 10) with the
      probability `outlier_share` (default 0.05) | `outlier_size` `noise_std` |

    `noise_std` is the standard deviation; of "heteroscedastic" that in the middle of the decision
    set, where the first coordinate x_1 is 1/2; of "outliers" that of the steps that are none.
    Where there is no R, the problem tells no `noise_scale`: an agent that cannot do without says
    so, and is given `noise_scale` or `regularization` of its own.

    Args:
        reward: "gaussian", with noise of any of these laws, or "bernoulli".
        noise_std: The standard deviation, such that R is in [0, 1e30], or None.
        owner: The task.
        usual: The one to take for None; without it None is refused.
        **law: `noise` and the parameters of its law.

    Raises:
        ValueError: If there is no such noise, a parameter is out of its range or belongs to
            another law, or there is one for rewards of 0 or 1.
    """
    check_choice("reward", reward, owner, REWARDS)
    for name in law.keys() - NoiseParameters.__annotations__.keys():
        raise TypeError(f"{owner}() got an unexpected keyword argument {name!r}")
    if reward == "bernoulli":
        check_unused(owner, "where rewards are 0 or 1", {"noise_std": noise_std, **law})
        return BernoulliNoise()
    return additive_noise(usual if noise_std is None else noise_std, owner, **law)


def additive_noise(
    noise_std: float | None,
    owner: str,
    *,
    noise: NoiseLaw | None = None,
    degrees_of_freedom: float | None = None,
    outlier_share: float | None = None,
    outlier_size: float | None = None,
) -> Noise:
    """Return noise that is added to rewards. See `make_noise`."""
    law = "gaussian" if noise is None else check_choice("noise", noise, owner, NOISES)
    own = {
        "student-t": {"degrees_of_freedom": degrees_of_freedom},
        "outliers": {"outlier_share": outlier_share, "outlier_size": outlier_size},
    }
    for of, parameters in own.items():
        if of != law:
            check_unused(owner, f"for the noise {law!r}", parameters)
    size = USUAL_SIZE if outlier_size is None else outlier_size
    size = check_float("outlier_size", size, owner, 1, MOST_OUTLYING)
    largest = LARGEST / {"heteroscedastic": 1.5, "outliers": size}.get(law, 1.0)
    std = check_float("noise_std", noise_std, owner, 0, largest)
    if law == "student-t":
        nu = USUAL_DEGREES if degrees_of_freedom is None else degrees_of_freedom
        name = "degrees_of_freedom"
        return StudentNoise(std, check_float(name, nu, owner, 2, MOST_DEGREES, closed="right"))
    if law == "outliers":
        share = USUAL_SHARE if outlier_share is None else outlier_share
        return OutlierNoise(std, check_float("outlier_share", share, owner, 0, 1), size)
    plain = {"laplace": LaplaceNoise, "heteroscedastic": HeteroscedasticNoise}
    return plain.get(law, GaussianNoise)(std)
