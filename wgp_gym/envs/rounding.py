"""Whether rewards that are rounded to single precision can still be told apart."""

from __future__ import annotations

import numpy as np

from wgp_gym.types import Array, Mask

__all__ = ["check_rounding"]

SHARE = 1e-3  # of the arms' differences, that rounding may take
ARM_SHARE = 0.1  # of what an arm varies by
DOUBLE = 1e-15  # differences over the size that are rounding themselves


def check_rounding(rewards: Array, owner: str, remedy: str) -> None:
    """Check that single precision tells the arms of every row apart, and an arm's times.

    Rounding may take a thousandth of the row's spread, its largest entry less its smallest. Of
    rows whose arms are nearly equal it may take a thousandth of the median row's spread: their
    differences are small beside those that matter. Arms that are equal lose nothing. It may take
    a tenth of what an arm varies by: behind an arm far from all others the rest may be lost
    without a row's spread telling so.

    Args:
        rewards: Expected rewards, `(T, n)`, at most 1e30 in size.
        owner: The task.
        remedy: What to do about it, for the error.

    Raises:
        ValueError: If rounding takes more. The message names the first such row or arm.
    """
    low, high = rewards.min(axis=1), rewards.max(axis=1)
    spread, error, differ = lost_of(low, high)
    if differ.any():
        allowed = SHARE * np.maximum(spread, np.median(spread[differ]))
        reject_lost(differ & (error > allowed), low, high, "row", f"{owner} must differ", remedy)
    low, high = rewards.min(axis=0), rewards.max(axis=0)
    spread, error, differ = lost_of(low, high)
    reject_lost(
        differ & (error > ARM_SHARE * spread), low, high, "arm", f"{owner} must vary", remedy
    )


def lost_of(low: Array, high: Array) -> tuple[Array, Array, Mask]:
    """Return the spread of numbers from `low` to `high`, their rounding, and if they differ."""
    size, spread = np.maximum(high, -low), high - low
    return spread, rounding(size), spread > DOUBLE * size


def rounding(size: Array) -> Array:
    """Return by how much single precision may round numbers of this size."""
    return np.spacing(size.astype(np.float32)).astype(float) / 2


def reject_lost(lost: Mask, low: Array, high: Array, kind: str, whose: str, remedy: str) -> None:
    """Raise ValueError for the first row or arm that is lost, if there is one."""
    if not lost.any():
        return
    i = lost.argmax()
    error = rounding(np.maximum(high, -low))[i]
    raise ValueError(
        f"The rewards of {whose} by more than rounding to single precision takes: {kind} {i + 1}, "
        f"from {float(low[i])!r} to {float(high[i])!r}, is rounded by up to {error:.2g}. {remedy}"
    )
