"""How many units are sold where a demand was expected: counts, and heavy tails."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy

from wgp_gym.envs.noise import Noise
from wgp_gym.types import Actions, Array

__all__ = ["LognormalOrders", "PoissonOrders", "poisson_quantile"]

LEAST_UNIFORM = 2.0**-54  # below all that a generator draws but 0


@dataclass(frozen=True)
class PoissonOrders(Noise):
    """The reward is the price times a Poisson number of orders, whose mean is the demand.

    A step has one uniform U, and sells the U-quantile of the orders at each price: so a price
    with more demand sells at least as much as one with less would have. A Poisson number is not
    sub-Gaussian (its upper tail falls like k^{-k}), so that there is no R.

    Args:
        low: The price at 0, of arms that stand at (price - low) / (high - low).
        high: The price at 1.
    """

    low: float
    high: float
    scale: None = None

    def draw(self, rng: np.random.Generator, horizon: int) -> Array:
        """Draw the uniform of every step, `(T,)`, in [0, 1)."""
        return rng.random(horizon)

    def at_places(self, drawn: Array, places: Actions) -> Array:
        """Return the uniforms and the prices of what is played, `(B, 2)`."""
        prices = self.low + (self.high - self.low) * np.asarray(places, float)[:, 0]
        return np.stack([drawn, prices], axis=1)

    def rewards(self, expected: Array, drawn: Array) -> Array:
        """Return the revenues `(B,)` of expected ones, with what `at_places` returned."""
        uniform, price = drawn.T
        demand = np.divide(expected, price, out=np.zeros_like(price), where=price > 0)
        return np.asarray(price * poisson_quantile(uniform, demand))


@dataclass(frozen=True)
class LognormalOrders(Noise):
    """The reward is its expectation times a lognormal factor of mean 1: heavy tails.

    The factor is exp(s Z - s^2 / 2), Z standard normal; all its moments are finite, but no
    exponential one is: there is no R.

    Args:
        spread: The standard deviation s of the factor's logarithm, >= 0.
    """

    spread: float
    scale: None = None

    def draw(self, rng: np.random.Generator, horizon: int) -> Array:
        """Draw the factor of every step, `(T,)`."""
        drawn: Array = np.exp(self.spread * rng.standard_normal(horizon) - self.spread**2 / 2)
        return drawn

    def rewards(self, expected: Array, drawn: Array) -> Array:
        """Return the products, `(B,)`."""
        return expected * drawn


def poisson_quantile(uniform: Array, mean: Array) -> Array:
    """Return the smallest k with P(N <= k) >= u, N a Poisson number.

    Args:
        uniform: u, `(B,)`, in [0, 1).
        mean: The means, `(B,)`, >= 0.
    """
    u = np.maximum(uniform, LEAST_UNIFORM)
    positive = mean > 0
    m = np.where(positive, mean, 1.0)
    # The inverse in k of P(N <= k) = Q(k + 1, m), a regularised incomplete gamma function.
    k = np.ceil(scipy.special.pdtrik(u, m))
    less = np.maximum(k - 1, 0.0)
    found = np.where(scipy.special.pdtr(less, m) >= u, less, k)  # where rounding was upwards
    return np.asarray(np.where(positive, np.maximum(found, 0.0), 0.0))
