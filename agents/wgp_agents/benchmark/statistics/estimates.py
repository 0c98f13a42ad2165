"""Statistics over independent runs, with bootstrap intervals. Lower regret is better."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wgp_agents.benchmark.statistics.bootstrap import (
    BLOCK,
    LEVEL,
    RESAMPLES,
    Interval,
    block_sizes,
    bootstrap_generator,
    checked_runs,
    checked_tasks,
    percentile_interval,
    resample_counts,
)
from wgp_gym.types import Array
from wgp_gym.validation import as_floats, reject

__all__ = [
    "Estimate",
    "estimate",
    "loglog_slope",
    "mean_interval",
    "median_interval",
    "paired_difference",
    "share_of",
]

JACKKNIFE = 2_000  # BCa costs the square of the runs; past this its correction is negligible


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
    values = np.asarray(values)
    runs = len(values)
    spread = values.std(axis=0, ddof=1) if runs > 1 else np.full(values.shape[1:], np.nan)
    return Estimate(values.mean(axis=0), spread / np.sqrt(runs))


def paired_difference(values: Array, reference: Array) -> Estimate:
    """Return mean and standard error of values - reference, run by run, `(runs, ...)`.

    Both sides must have played the same episodes in the same order: then the episodes' own
    spread cancels.

    Raises:
        ValueError: If the two are not of one shape.
    """
    values, reference = np.asarray(values), np.asarray(reference)
    if values.shape != reference.shape:
        rule = f"of the shape of 'values', {values.shape}"
        reject("reference", "paired_difference", rule, reference.shape)
    return estimate(values - reference)


def mean_interval(
    values: Array, *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Return the mean of `(runs,)` with a BCa bootstrap interval (percentile past 2,000 runs).

    Raises:
        ValueError: If the values are not finite, or a parameter is out of its range.
    """
    from scipy import stats  # slow to import, and read results need none

    rng = bootstrap_generator("mean_interval", level, resamples, seed)
    values = checked_runs("values", values, "mean_interval")
    if len(values) < 2:
        return Interval(float(values[0]), math.nan, math.nan)
    if np.ptp(values) == 0.0:
        return Interval(*3 * (float(values[0]),))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # BCa warns where it has no answer, which is met below
        result = stats.bootstrap(
            (values,),
            np.mean,
            n_resamples=resamples,
            batch=max(1, BLOCK // len(values)),
            confidence_level=level,
            method="BCa" if len(values) <= JACKKNIFE else "percentile",
            random_state=rng,
        )
    low, high = map(float, result.confidence_interval)
    if math.isnan(low + high):
        return percentile_interval(values.mean(), result.bootstrap_distribution, level)
    return Interval(float(values.mean()), low, high)


def median_interval(
    values: Array, *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Return the median of `(runs,)`, which may hold inf, with a percentile bootstrap interval.

    Raises:
        ValueError: If a value is NaN or -inf, or a parameter is out of its range.
    """
    rng = bootstrap_generator("median_interval", level, resamples, seed)
    values = np.sort(checked_runs("values", values, "median_interval", math.inf))
    runs = len(values)
    # A resample's ranks are those of uniforms, whose middle two are drawn without the others.
    middle = (runs + 1) // 2
    lower = rng.beta(middle, runs - middle + 1, size=resamples)
    gap = (1.0 - lower) * rng.beta(1, runs - middle, size=resamples) if runs % 2 == 0 else 0.0
    ranks = np.minimum((runs * np.array([lower, lower + gap])).astype(int), runs - 1)
    return percentile_interval(np.median(values), values[ranks].mean(axis=0), level, runs)


def share_of(values: Array, of: Array) -> Array:
    """Return values / mean(of): 0 for the oracle and 1 for what `of` holds, say random play.

    Raises:
        ValueError: If the mean of `of` is not positive.
    """
    mean = float(np.mean(of))
    if not 0.0 < mean < math.inf:
        reject("of", "share_of", "values of a positive, finite mean", mean)
    return np.asarray(values) / mean


def loglog_slope(
    x: Array,
    samples: Sequence[Array],
    *,
    paired: bool = True,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Return the least-squares slope of log(mean regret) over log(x), with percentile interval.

    The slope is NaN where a mean is not positive; resamples without a slope count against both
    ends.

    Args:
        x: Positive and increasing, `(k,)`, k >= 2.
        samples: For each x the regrets of its runs, `(runs,)`.
        paired: Run i is the same episode at every x, so that runs are resampled jointly; without
            effect where the arrays differ in length.
        level: Level of the interval, in (0, 1).
        resamples: Number of resamples.
        seed: Seed of the resampling.

    Raises:
        ValueError: If x is not as said, the samples are not finite or not one per x, or a
            parameter is out of its range.
    """
    rng = bootstrap_generator("loglog_slope", level, resamples, seed)
    arrays = checked_tasks("samples", samples, "loglog_slope")
    rule = f"{len(arrays)} positive, increasing numbers, one per sample, and at least 2"
    x = as_floats("x", x, "loglog_slope", rule)
    if x.shape != (len(arrays),) or len(x) < 2 or not (x[0] > 0 and np.all(np.diff(x) > 0)):
        reject("x", "loglog_slope", rule, x)
    sizes = [len(array) for array in arrays]
    joint = paired and len(set(sizes)) == 1
    slopes = []
    for block in block_sizes(resamples, sum(sizes)):
        shared = resample_counts(rng, sizes[0], block) if joint else None
        drawn = [resample_counts(rng, s, block) if shared is None else shared for s in sizes]
        means = [c @ a / len(a) for c, a in zip(drawn, arrays, strict=True)]
        slopes.append(_slope(x, np.stack(means)))
    value = _slope(x, np.array([[array.mean()] for array in arrays]))[0]
    return percentile_interval(value, np.concatenate(slopes), level, min(sizes))


def _slope(x: Array, means: Array) -> Array:
    """Return the slope of every column of means `(k, columns)` in logarithms."""
    centred = np.log(x) - np.log(x).mean()
    logs = np.log(np.where(means > 0.0, means, np.nan))
    return np.asarray(centred @ logs / (centred @ centred))
