"""What all bootstraps share: resamples in blocks, percentile intervals, checks of what is given."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from wgp_gym.types import Array
from wgp_gym.validation import as_floats, check_float, check_int, reject

LEVEL = 0.95
RESAMPLES = 2_000
BLOCK = 2**20  # numbers held at once; resampling goes block by block


class Interval(NamedTuple):
    """A statistic with its confidence interval; the ends are NaN for fewer than 2 runs."""

    value: float
    low: float
    high: float


def bootstrap_generator(owner: str, level: float, resamples: int, seed: int) -> np.random.Generator:
    """Return the generator of a bootstrap; ValueError for a parameter out of its range."""
    check_float("level", level, owner, 0.0, 1.0, closed="neither")
    check_int("resamples", resamples, owner, 2)
    return np.random.default_rng(check_int("seed", seed, owner, 0))


def block_sizes(resamples: int, size: int) -> Iterator[int]:
    """Split the resamples, of `size` numbers each, into blocks of bounded memory."""
    block = max(1, BLOCK // size)
    for start in range(0, resamples, block):
        yield min(block, resamples - start)


def resample_counts(rng: np.random.Generator, runs: int, resamples: int) -> Array:
    """Return how often each resample holds each run, `(resamples, runs)`."""
    drawn = rng.integers(runs, size=(resamples, runs)) + runs * np.arange(resamples)[:, None]
    counts = np.bincount(drawn.ravel(), minlength=resamples * runs)
    return counts.reshape(resamples, runs).astype(float)


def percentile_interval(value: float, resampled: Array, level: float, runs: int = 2) -> Interval:
    """Return the interval between order statistics; a NaN may lie anywhere, so counts at both."""
    if runs < 2 or math.isnan(value):
        return Interval(float(value), math.nan, math.nan)
    rank = max(math.floor((1.0 - level) / 2 * (len(resampled) + 1) + 1e-9) - 1, 0)
    low, high = (
        np.sort(np.where(np.isnan(resampled), unknown, resampled))
        for unknown in (-math.inf, math.inf)
    )
    return Interval(float(value), float(low[rank]), float(high[-1 - rank]))


def checked_runs(name: str, values: Array, owner: str, top: float = sys.float_info.max) -> Array:
    """Return one value per run, all of them numbers up to `top`."""
    rule = f"a 1-D array, not empty, of {'numbers' if math.isinf(top) else 'finite numbers'}"
    array = as_floats(name, values, owner, rule)
    if array.ndim != 1 or not array.size or not np.all((array > -math.inf) & (array <= top)):
        reject(name, owner, rule, values)
    return array


def checked_tasks(name: str, values: Sequence[Array], owner: str) -> list[Array]:
    """Return one such array per task."""
    if not len(values):
        reject(name, owner, "a list of arrays, at least one", values)
    return [checked_runs(name, array, owner) for array in values]
