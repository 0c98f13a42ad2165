"""Relative weights of observations, w_s / w_t, and their sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wgp_gym.types import Array
from wgp_gym.validation import as_floats, check_float, check_int, reject

__all__ = ["double_weights", "single_weights", "total_weight", "weight_sums"]


def single_weights(discount: float, count: int) -> Array:
    """Return eta^0, eta^1, ..., eta^(count - 1), `(count,)`: newest first.

    Raises:
        ValueError: If eta is not in (0, 1] or the count is below 1.
    """
    check_float("discount", discount, "single_weights", 0, 1, closed="right")
    steps = np.arange(check_int("count", count, "single_weights", 1))
    weights: Array = np.power(np.full(len(steps), float(discount)), steps)
    return weights


def double_weights(discount: float, count: int) -> Array:
    """Return eta^0, eta^2, ..., eta^(2 count - 2), `(count,)`: newest first.

    Raises:
        ValueError: As `single_weights`.
    """
    return np.square(single_weights(discount, count))


def total_weight(discount: ArrayLike, count: ArrayLike = math.inf, power: int = 1) -> Any:
    """Return S = sum over s < count of eta^(power s), the sum in the proof of [Deng22] Theorem 7.

    Args:
        discount: eta in (0, 1], any shape.
        count: t >= 1; infinity gives the limit 1 / (1 - eta^power). Broadcasts with eta.
        power: 1 for the weights of gamma-tilde and gamma-breve, 2 for those of gamma-bar.

    Returns:
        A float, or an array of the broadcast shape.

    Raises:
        ValueError: If a parameter is out of its range.
    """
    eta = as_floats("discount", discount, "total_weight", "in (0, 1]")
    t = as_floats("count", count, "total_weight", "at least 1")
    if not ((eta > 0) & (eta <= 1)).all():
        reject("discount", "total_weight", "in (0, 1]", discount)
    if not (t >= 1).all():
        reject("count", "total_weight", "at least 1", count)
    log = check_int("power", power, "total_weight", 1) * np.log(eta)
    some = np.where(log < 0, log, -1.0)  # a stand-in where nothing is forgotten
    return np.where(log < 0, np.expm1(t * some) / np.expm1(some), t)[()]


def weight_sums(ratios: Array, horizon: int) -> Array:
    """Return the sum of (w_s / w_t)^2 over s after t = 1 ... T observations, `(B, T)`."""
    sums = np.ones((len(ratios), horizon))
    for t in range(1, horizon):
        sums[:, t] += ratios[:, min(t, ratios.shape[1] - 1)] ** 2 * sums[:, t - 1]
    return sums
