"""What an in-context learner remembers of its plays, and shows its network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wgp_agents.kernels.smoothed_plays import (
    SmoothedArrays,
    add_plays,
    fill_features,
    fill_played,
)
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Floats32, Indices, Mask

__all__ = ["Shape", "SmoothedPlays", "surprises"]

LEAST = 1e-300  # of k(x, x)
SHARPEST = 1e-6  # a smaller kernel value is 0
CLIP = 5.0  # units, of numbers that a network is shown
SURE = 0.02  # units: how exactly a reward can be foretold at best
FIRST = 2  # rewards, after which they have a scale
STEP_SCALE = 6.0  # log of some 400 steps


@dataclass(frozen=True)
class Shape:
    """What an in-context network is shown.

    Attributes:
        rates: What is left of a play after a step, in each of R memories, in (0, 1].
        powers: The powers of the problem's kernel by which H memories share plays between arms:
            of a squared exponential kernel, power p is the lengthscale l / p^{1/2}.
        clock: Whether it is shown t / T; else the same steps play the same at any T.
    """

    rates: tuple[float, ...] = (0.6, 0.8, 0.9, 0.95, 0.975, 0.9875, 0.995, 1.0)
    powers: tuple[float, ...] = (1.0, 6.0, 36.0)
    clock: bool = False

    @property
    def of_arm(self) -> int:
        """How many features an arm has: 2 R H."""
        return 2 * len(self.rates) * len(self.powers)

    @property
    def of_play(self) -> int:
        """How many numbers the network is told of a play: 7 + 2 R."""
        return 7 + 2 * len(self.rates)


class SmoothedPlays:
    """Sums of the plays of B learners: kernel smoothing, at several rates of forgetting.

    An arm x has, for each rate rho and kernel K = max(k, 0)^p, k as a correlation, the count
    c = sum_s rho^{t-s} K(x, x_s) and the mean of the rewards weighted so. That is a
    Nadaraya-Watson estimate of f_t(x) for every rate at which the world may change and every
    smoothness that it may have; a network finds out which to believe. Rewards are counted from
    their mean, in units of the largest standard deviation that they had so far: neither their unit
    nor their zero matters.
    An arm is known by nothing but its kernel values: the order of arms does not matter, nor how
    many there are, nor d. Where all arms are fully correlated, as under a linear kernel in one
    dimension, it cannot tell them apart. Time is counted by rewards.

    Args:
        problem: The problem; on a box its grid is played.
        shape: Rates and kernels.
    """

    _constants = ("shape", "_kernels", "_rates")

    def __init__(self, problem: BanditProblem, shape: Shape) -> None:
        self.shape = shape
        batch, n = problem.batch_size or 1, len(problem.domain)
        covariance = problem.kernel(problem.domain, problem.domain)
        length = np.sqrt(np.maximum(covariance.diagonal(), LEAST))
        positive = np.clip(covariance / np.outer(length, length), 0.0, 1.0)
        np.fill_diagonal(positive, 1.0)  # an arm sees its own plays
        kernels = np.stack([positive**power for power in shape.powers], axis=-1)
        self._kernels = np.where(kernels < SHARPEST, 0.0, kernels).astype(np.float32)
        self._rates = np.array(shape.rates, np.float32)
        size = (batch, n, len(shape.rates), len(shape.powers))
        self.kept = SmoothedArrays(
            rewards=np.zeros(size),
            counts=np.zeros(size, np.float32),
            zero=np.zeros(batch),
            mean=np.zeros(batch),
            square=np.zeros(batch),
            scale=np.zeros(batch),
            seen=np.zeros(batch, np.int64),
        )

    def restart(self, mask: Mask) -> None:
        """Forget all plays of the learners in `mask` `(B,)`."""
        for array in self.kept:
            array[mask] = 0

    def add(self, arms: Indices, rewards: Array, active: Mask) -> None:
        """Take in a play of every active learner: arms and rewards `(B,)`."""
        add_plays(arms, rewards, active, self._rates, self._kernels, self.kept)

    def look(self) -> Floats32:
        """Return the features of all arms now, `(B, n, 2 R H)`."""
        features = np.empty((*self.kept.counts.shape[:2], self.shape.of_arm), np.float32)
        fill_features(self.kept, features)
        return features

    def look_at(self, arms: Indices) -> Floats32:
        """Return the features of one arm `(B,)` of each learner, `(B, 2 R H)`."""
        features = np.empty((len(arms), self.shape.of_arm), np.float32)
        fill_played(arms, self.kept, features)
        return features

    @property
    def scale(self) -> Array:
        """The unit of the rewards, `(B,)`: 1 while there is none."""
        return np.where(self.kept.scale > 0.0, self.kept.scale, 1.0)

    @property
    def zero(self) -> Array:
        """What rewards are counted from, `(B,)`: their mean."""
        return self.kept.zero + self.kept.mean

    def standardised(self, rewards: Array) -> Array:
        """Return rewards `(B,)` in units and from the zero; 0 while there is no unit."""
        known = self.kept.seen >= FIRST
        return np.where(known, (rewards - self.zero) / self.scale, 0.0)


def surprises(
    plays: SmoothedPlays,
    features: Floats32,
    rewards: Array,
    mean: Array,
    log_std: Array,
    horizon: int | None,
) -> Floats32:
    """Return what a network is told of plays that are not taken in yet, `(B, 7 + 2 R)`.

    That is how far each reward is off what the network foretold, in standard deviations, and
    off what each memory says: so it can tell that the world has changed.

    Args:
        plays: What was known before.
        features: Those of the arms that were played, `(B, 2 R H)`.
        rewards: What was paid, `(B,)`.
        mean: What the network foretold of those arms, in units, `(B,)`.
        log_std: The logarithm of the standard deviation, `(B,)`.
        horizon: T, for a network that is shown the clock.
    """
    shape = plays.shape
    R, H = len(shape.rates), len(shape.powers)
    seen = plays.kept.seen
    y = plays.standardised(rewards)
    z = np.where(seen >= FIRST, (y - mean) / np.hypot(np.exp(log_std), SURE), 0.0)
    clock = seen / horizon if shape.clock and horizon else np.zeros(len(rewards))
    own = features.reshape(-1, 2, R, H)[..., H // 2]  # of the middle kernel
    told = [
        np.tanh(z / 3.0),
        np.tanh(np.abs(z) / 3.0),
        log_std / 3.0,
        np.clip(y, -CLIP, CLIP),
        np.clip(mean, -CLIP, CLIP),
        clock,
        np.log1p(seen) / STEP_SCALE,
    ]
    off = np.tanh(2.0 * (y[:, None] - own[:, 0]))
    return np.column_stack([*told, off, own[:, 1]]).astype(np.float32)
