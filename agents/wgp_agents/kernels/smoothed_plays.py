"""Kernel-smoothed sums of plays at several rates of forgetting: what an in-context learner sees.

See `wgp_agents.algorithms.learned.in_context.memory.SmoothedPlays`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from wgp_agents.kernels.jit import compiled, subroutine
from wgp_gym.types import Array, Floats32, Indices, Mask

__all__ = ["SmoothedArrays", "add_plays", "fill_features", "fill_played"]

HALF_PLAY = 0.1  # of plays, by which a smoothed mean is drawn to the mean of all
FAINT = 0.02  # of plays, below which counts are alike
NOTHING = 1e-20  # units: what is smaller is 0, or it would become a denormal number
LOG_SCALE = 0.25


class SmoothedArrays(NamedTuple):
    """What is kept of the plays of B learners on n arms, for R rates and H kernels.

    Attributes:
        rewards: Sums of rewards less the first one, `(B, n, R, H)`; in double precision, since
            rewards may be of any size.
        counts: The same sums of ones.
        zero: The first reward, `(B,)`.
        mean: The mean of all rewards less the first, `(B,)`.
        square: Their summed squared deviations, `(B,)`.
        scale: The largest standard deviation that they had so far, `(B,)`; 0: none yet.
        seen: How many there were, `(B,)`.
    """

    rewards: Array
    counts: Floats32
    zero: Array
    mean: Array
    square: Array
    scale: Array
    seen: Indices


@subroutine
def faded(value: float, rate: float, unit: float) -> float:
    """Return a sum that has faded."""
    left = value * rate
    return left if abs(left) > NOTHING * unit else 0.0


@compiled
def add_plays(
    arms: Indices,
    paid: Array,
    active: Mask,
    rates: Floats32,
    kernels: Floats32,
    kept: SmoothedArrays,
) -> None:
    """Take in one play of every active learner.

    Args:
        arms: What was played, `(B,)`.
        paid: The rewards, `(B,)`.
        active: Who learns, `(B,)`.
        rates: What is left of a sum after a step, `(R,)`.
        kernels: By which arms share what is seen, `(n, n, H)`.
        kept: The sums.
    """
    n, _, H = kernels.shape
    for i in range(len(arms)):
        if not active[i]:
            continue
        if kept.seen[i] == 0:
            kept.zero[i] = paid[i]
        y = paid[i] - kept.zero[i]
        near, unit = kernels[arms[i]], kept.scale[i]
        for x in range(n):
            for r in range(len(rates)):
                for h in range(H):
                    k = near[x, h]
                    total, count = kept.rewards[i, x, r, h], kept.counts[i, x, r, h]
                    kept.rewards[i, x, r, h] = faded(total, rates[r], unit) + k * y
                    kept.counts[i, x, r, h] = faded(count, rates[r], 1.0) + k
        # Welford's sums; the scale never falls, so that features do not grow when play settles.
        kept.seen[i] += 1
        step = y - kept.mean[i]
        kept.mean[i] += step / kept.seen[i]
        kept.square[i] += step * (y - kept.mean[i])
        kept.scale[i] = max(kept.scale[i], math.sqrt(kept.square[i] / kept.seen[i]))


@subroutine
def fill_arm(i: int, x: int, kept: SmoothedArrays, row: Floats32) -> None:
    """Compute what a network sees of one arm, `(2 R H,)`."""
    R, H = kept.counts.shape[2:]
    scale = kept.scale[i] if kept.scale[i] > 0.0 else 1.0
    for r in range(R):
        for h in range(H):
            count = kept.counts[i, x, r, h]
            apart = kept.rewards[i, x, r, h] - kept.mean[i] * count
            row[r * H + h] = apart / (count + HALF_PLAY) / scale
            row[(R + r) * H + h] = LOG_SCALE * math.log(count + FAINT)


@compiled
def fill_features(kept: SmoothedArrays, features: Floats32) -> None:
    """Compute what a network sees of each arm, `(B, n, 2 R H)`: smoothed means, and log counts.

    The means are counted from the mean of all rewards, in units of their scale.
    """
    for i in range(len(features)):
        for x in range(features.shape[1]):
            fill_arm(i, x, kept, features[i, x])


@compiled
def fill_played(arms: Indices, kept: SmoothedArrays, features: Floats32) -> None:
    """Compute the same of the arm `(B,)` that each learner played, `(B, 2 R H)`."""
    for i in range(len(arms)):
        fill_arm(i, arms[i], kept, features[i])
