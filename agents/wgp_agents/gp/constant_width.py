"""The width of a function that drifts at a known rate: one for all t."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from wgp_agents.gp.bayes_width import root
from wgp_gym.types import Array, Indices
from wgp_gym.validation import check_float, check_int

__all__ = ["ConstantWidth"]


@dataclass(frozen=True, eq=False)
class ConstantWidth:
    """beta = 2 log 6 + alpha (1 + d) log(1 / eps), constant in t: Mandl and Kekkonen (2026).

    A function that drifts by eps is as good as new after about 1 / eps steps, so the bound need
    not hold for longer. Deviation: a drift of less than 1 / T, where it would hold for longer than
    the T steps that there are, counts as 1 / T. That also gives a rule for eps = 0.

    Args:
        drift: Returns eps in [0, 1] as it is held for now, a number or `(B,)`.
        dim: d >= 1.
        horizon: T >= 1.
        alpha: The weight of the logarithm, at least 0.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    drift: Callable[[], Any]
    dim: int
    horizon: int
    alpha: float = 1.0

    def __post_init__(self) -> None:
        check_int("dim", self.dim, "ConstantWidth", 1)
        check_int("horizon", self.horizon, "ConstantWidth", 1)
        check_float("alpha", self.alpha, "ConstantWidth", 0.0)

    def __call__(self, counts: Indices) -> Array:
        """Return beta^{1/2}, `(B,)`, however many observations there are."""
        eps = np.broadcast_to(self.drift(), counts.shape)
        lasting = -np.log(np.maximum(eps, 1.0 / self.horizon))
        return root(2 * math.log(6.0) + self.alpha * (1 + self.dim) * lasting)
