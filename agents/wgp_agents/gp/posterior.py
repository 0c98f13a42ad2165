"""The posterior, as every model of the project returns it."""

from __future__ import annotations

from typing import NamedTuple

from wgp_gym.kernels import Array

__all__ = ["Interval", "Posterior"]


class Posterior(NamedTuple):
    """A posterior at n points: `(n,)`, or `(B, n)` for a batch.

    Attributes:
        mean: [Deng22] Eq. (3).
        std: The square root of [Deng22] Eq. (4).
    """

    mean: Array
    std: Array


class Interval(NamedTuple):
    """Confidence intervals at n points: `(n,)`, or `(B, n)` for a batch.

    Attributes:
        lower: Mean less the half width, beta times a standard deviation.
        upper: Mean plus it.
    """

    lower: Array
    upper: Array
