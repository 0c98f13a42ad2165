"""Statistics over paired runs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wgp_gym.kernels import Array

__all__ = ["Estimate", "estimate", "paired_difference"]


class Estimate(NamedTuple):
    """A mean over independent runs.

    Attributes:
        mean: The mean, a float or along the first axis of what was given.
        standard_error: The sample standard deviation over the root of the number of runs; NaN
            for a single run, which tells nothing of the spread.
    """

    mean: Array
    standard_error: Array


def estimate(values: Array) -> Estimate:
    """Return mean and standard error over the first axis, `(runs, ...)`."""
    runs = len(values)
    spread = values.std(axis=0, ddof=1) if runs > 1 else np.full(values.shape[1:], np.nan)
    return Estimate(values.mean(axis=0), spread / np.sqrt(runs))


def paired_difference(values: Array, reference: Array) -> Estimate:
    """Return mean and standard error of values - reference, run by run, `(runs, ...)`.

    Both sides must have played the same episodes in the same order: then the episodes' own
    spread cancels.
    """
    return estimate(values - reference)
