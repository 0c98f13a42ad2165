"""What the rounding of rewards to single precision takes must be small beside their differences."""

from __future__ import annotations

import numpy as np

from wgp_gym.kernels import Array

__all__ = ["check_rounding"]

SHARE = 1e-3  # of the arms' differences, that rounding may take
DOUBLE = 1e-15  # differences over the size that are rounding themselves


def check_rounding(rewards: Array, owner: str, remedy: str) -> None:
    """Check that single precision tells the arms of every row apart.

    Rounding may take a thousandth of the row's spread, its largest entry less its smallest. Of
    rows whose arms are nearly equal it may take a thousandth of the median row's spread: their
    differences are small beside those that matter. Arms that are equal lose nothing.

    Args:
        rewards: Expected rewards, `(T, n)`, at most 1e30 in size.
        owner: The task.
        remedy: What to do about it, for the error.

    Raises:
        ValueError: If rounding takes more. The message names the first such row.
    """
    low, high = rewards.min(axis=1), rewards.max(axis=1)
    size, spread = np.maximum(high, -low), high - low
    differ = spread > DOUBLE * size
    if not differ.any():
        return
    error = np.spacing(size.astype(np.float32)).astype(float) / 2
    lost = differ & (error > SHARE * np.maximum(spread, np.median(spread[differ])))
    if lost.any():
        row = lost.argmax()
        raise ValueError(
            f"The rewards of {owner} must differ by more than rounding to single precision takes: "
            f"row {row + 1}, from {float(low[row])!r} to {float(high[row])!r}, is rounded by up "
            f"to {error[row]:.2g}. {remedy}"
        )
