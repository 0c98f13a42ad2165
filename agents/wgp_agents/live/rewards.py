"""The unit of rewards: from the user's numbers to those that an agent learns from, and back.

An agent learns from z = +-g(y), g increasing, and minus where less is better:

| `reward` | g(y) | rewards |
|---|---|---|
| "real" | (y - c) / s | any numbers |
| "clicks" | y | in [0, 1] |
| "counts" | (2 (y + 3/8)^{1/2} - c) / s | at least 0; g(y) has the same variance at any mean |
| "heavy-tailed" | asinh((y - c) / s) | any numbers; beyond s it is a logarithm |

c and s are the unit. An agent that learns the unit by itself gets c = 0 and s = 1 for "real" and
"counts". For the others, and for "heavy-tailed", they are the median and the spread of the first
ten rewards (fifty, where most are equal): see `Unit.of`. They are then fixed.

A transform that is no straight line changes what is best: the largest mean of g(y) is that of a
typical reward. Of two arms of one shape it is the same arm.

References:
    [Ans48] Anscombe. The Transformation of Poisson, Binomial and Negative-Binomial Data.
        Biometrika 35, 1948.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import ArrayLike

from wgp_gym.types import Array
from wgp_gym.validation import check_choice, is_number, reject

__all__ = ["BAND", "RewardKind", "Rewards", "Unit", "differ", "suffice"]

RewardKind = Literal["real", "clicks", "counts", "heavy-tailed"]
KINDS: tuple[RewardKind, ...] = get_args(RewardKind)
FIRST = 10  # rewards from which a unit is learned
MANY = 50  # where most of them are equal, as many a shop's are 0
MAD = 1.4826  # of a normal distribution, its standard deviation over the median deviation
ROUNDING = 1e-9  # of the largest reward: what lies closer together is equal
BAND = 1.96  # standard deviations either side, 95 per cent of a normal distribution
LARGEST = 1e140  # a reward counts as this much at most


class Unit(NamedTuple):
    """Where an agent counts rewards from, and in what steps.

    Attributes:
        centre: c.
        scale: s > 0.
    """

    centre: float = 0.0
    scale: float = 1.0

    @staticmethod
    def of(values: Array) -> Unit:
        """Return the unit of the first rewards: their median, and their spread.

        The spread is 1.4826 times the median distance from the median; where that is 0, the
        standard deviation; where all are equal, up to rounding, 1.
        """
        centre = float(np.median(values))
        if not differ(values):
            return Unit(centre, 1.0)
        spread = MAD * float(np.median(np.abs(values - centre)))
        if not spread > ROUNDING * float(np.abs(values).max()):
            spread = float(np.std(values))
        return Unit(centre, spread)


@dataclass(frozen=True)
class Rewards:
    """How rewards are read.

    Args:
        kind: See the module.
        minimize: Whether less is better.

    Raises:
        ValueError: If there is no such kind.
    """

    kind: RewardKind = "real"
    minimize: bool = False

    def __post_init__(self) -> None:
        check_choice("reward", self.kind, "LiveBandit", KINDS)

    def check(self, reward: object, owner: str = "tell") -> float:
        """Return a reward as a float; `owner` is who was given it, for messages.

        Raises:
            ValueError: If it is no number, or none of this kind.
        """
        rules = {"clicks": "a number in [0, 1]", "counts": "a number in [0, inf)"}
        rule = rules.get(self.kind, "a finite number; None if it will never come")
        if not is_number(reward, int, float, np.integer, np.floating, bool, np.bool_):
            reject("reward", owner, rule, reward)
        if isinstance(reward, int) and reward.bit_length() > 1000:  # more than a float holds
            reject("reward", owner, rule, reward)
        value = float(reward)  # type: ignore[arg-type]  # one of the kinds above
        low, high = self.limits
        if not math.isfinite(value) or not low <= value <= high:
            reject("reward", owner, rule, reward)
        return float(np.clip(value, -LARGEST, LARGEST))

    @property
    def limits(self) -> tuple[float, float]:
        """Between what rewards of this kind are, in the user's unit."""
        low = -math.inf if self.kind in ("real", "heavy-tailed") else 0.0
        return low, 1.0 if self.kind == "clicks" else math.inf

    @property
    def is_straight(self) -> bool:
        """Whether an agent learns rewards themselves, up to their unit: a line, and no curve."""
        return self.kind in ("real", "clicks")

    def straightened(self, values: ArrayLike) -> Array:
        """Return rewards before the unit is taken off: of counts, their stable form."""
        y = np.asarray(values, float)
        return 2.0 * np.sqrt(y + 0.375) if self.kind == "counts" else y

    def read(self, values: ArrayLike, unit: Unit) -> Array:
        """Return what an agent learns of rewards of any shape."""
        z = np.asarray((self.straightened(values) - unit.centre) / unit.scale)
        if self.kind == "heavy-tailed":
            z = np.arcsinh(z)
        return -z if self.minimize else z

    def written(self, values: ArrayLike, unit: Unit) -> Array:
        """Return what an agent believes of rewards, of any shape, in the user's unit."""
        z = np.asarray(values, float)
        z = -z if self.minimize else z
        if self.kind == "heavy-tailed":
            z = np.sinh(np.clip(z, -700.0, 700.0))
        y = unit.centre + unit.scale * z
        if self.kind == "counts":
            y = np.maximum(np.maximum(y, 0.0) ** 2 / 4.0 - 0.375, 0.0)
        return np.asarray(y)

    def spread(self, mean: ArrayLike, std: ArrayLike, unit: Unit) -> Array:
        """Return standard deviations in the user's unit: half the band of one either side."""
        low = self.written(np.asarray(mean) - np.asarray(std), unit)
        high = self.written(np.asarray(mean) + np.asarray(std), unit)
        return np.abs(high - low) / 2.0

    def possible(self, values: ArrayLike) -> Array:
        """Return the nearest that rewards of this kind can be, in the user's unit."""
        return np.clip(values, *self.limits)

    def band(self, mean: ArrayLike, std: ArrayLike, unit: Unit) -> tuple[Array, Array]:
        """Return the ends of the band that holds 95 % in the user's unit, the lower one first.

        They are those of the band in the agent's unit, read back: a transform that rises keeps what
        lies between. `mean` and `std` are in the agent's unit, of any shape.
        """
        centre, half = np.asarray(mean, float), BAND * np.asarray(std, float)
        ends = [self.possible(self.written(centre + side, unit)) for side in (-half, half)]
        return (ends[1], ends[0]) if self.minimize else (ends[0], ends[1])

    def needs_unit(self, takes_units: bool) -> bool:
        """Tell whether a unit is to be learned, for an agent that is told one, or is not."""
        return self.kind != "clicks" and (takes_units or self.kind == "heavy-tailed")


def differ(values: ArrayLike) -> bool:
    """Tell whether rewards are not all equal, up to rounding."""
    y = np.asarray(values, float)
    return bool(y.size and np.ptp(y) > ROUNDING * np.abs(y).max())


def suffice(values: ArrayLike) -> bool:
    """Tell whether first rewards are enough for a unit: ten, or fifty if most of them are equal."""
    y = np.asarray(values, float)
    varied = y.size >= FIRST and differ(np.sort(np.abs(y - np.median(y)))[: y.size // 2 + 1])
    return varied or (y.size >= MANY and differ(y))
