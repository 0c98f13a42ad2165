"""The posterior, as every model of the project returns it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wgp_agents.core.argmax import not_finite
from wgp_gym.types import Array

__all__ = ["Interval", "Posterior", "posterior_of"]


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


def posterior_of(mean: Array, std: Array, batched: bool) -> Posterior:
    """Return the posteriors of B learners, `(B, n)`, or the only one, `(n,)`.

    Raises:
        ValueError: If one is not finite.
    """
    if not (np.isfinite(mean).all() and np.isfinite(std).all()):
        not_finite()
    return Posterior(mean, std) if batched else Posterior(mean[0], std[0])
