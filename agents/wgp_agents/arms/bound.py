"""Upper confidence bounds of the arms' mean rewards."""

from __future__ import annotations

import numpy as np

from wgp_agents.arms.statistics import ArmStatistics
from wgp_gym.types import Array

__all__ = ["upper_bound"]


def upper_bound(statistics: ArmStatistics, factor: Array, total: Array) -> Array:
    """Return mean + factor (log(total) / N)^{1/2} of every arm, `(B, K)`; infinity where N = 0.

    Args:
        statistics: Means and counts N of the arms.
        factor: `(B,)`, at least 0.
        total: What stands for time, `(B,)`; below 1, where the root is none, counts as 1.
    """
    logarithm = np.log(np.maximum(total, 1.0))[:, None]
    played = statistics.played()
    padding = np.sqrt(logarithm / np.where(played, statistics.counts, 1.0))
    return np.where(played, statistics.mean() + factor[:, None] * padding, np.inf)
