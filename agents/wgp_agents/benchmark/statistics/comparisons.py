"""All pairs of agents on the same episodes, with intervals that hold together.

At `level` 0.95, all intervals of one call cover their true differences at once in 95 % of
experiments (family-wise), however many pairs there are. Lower regret is better.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.statistics.bootstrap import (
    LEVEL,
    RESAMPLES,
    block_sizes,
    bootstrap_generator,
    resample_counts,
)
from wgp_gym.types import Array
from wgp_gym.validation import as_floats, reject

__all__ = ["Difference", "paired_comparisons"]

OWNER = "paired_comparisons"
ROUNDING = 1e-12  # relative; a spread below it is that of the arithmetic
PAIRS = 256  # pairs whose resamples are computed at once


class Difference(NamedTuple):
    """The mean of first - second over paired runs.

    Attributes:
        first: Label of the one agent.
        second: Label of the other.
        difference: The mean difference in regret; negative where `first` is better.
        low: Lower end of its simultaneous interval.
        high: Upper end.
        verdict: What the interval says, in words.
    """

    first: str
    second: str
    difference: float
    low: float
    high: float
    verdict: str

    @property
    def better(self) -> str | None:
        """Which of the two has clearly the lower regret; None where it is not clear."""
        if self.high < 0:
            return self.first
        return self.second if self.low > 0 else None

    def turned(self) -> Difference:
        """Return the difference the other way round."""
        return Difference(
            self.second, self.first, -self.difference, -self.high, -self.low, self.verdict
        )


def paired_comparisons(
    values: dict[str, Array],
    *,
    pairs: Sequence[tuple[str, str]] | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> list[Difference]:
    """Compare agents pair by pair, with intervals that hold together at `level`.

    A studentised max-t bootstrap: runs are resampled jointly for all agents, and every interval
    is d -+ q standard errors with q the `level` quantile of the largest |t*| of all pairs.

    Args:
        values: For each label the regrets `(runs,)`, on the same episodes in the same order.
        pairs: Labels to compare, (first, second); all pairs by default.
        level: Probability that all intervals cover at once, in (0, 1).
        resamples: Number of resamples.
        seed: Seed of the resampling.

    Returns:
        One difference per pair. An interval is infinite where too many resamples hold no spread
        to measure t* by, as with 2 or 3 runs or where the agents differ in hardly any run; NaN
        with one run.

    Raises:
        ValueError: If the values are not finite arrays of one length, a pair has an unknown
            label, or a parameter is out of its range.
    """
    rng = bootstrap_generator(OWNER, level, resamples, seed)
    table = _table(values)
    labels = list(values)
    chosen = list(combinations(labels, 2)) if pairs is None else _checked_pairs(pairs, labels)
    if not chosen:
        return []
    indices = np.array([[labels.index(label) for label in pair] for pair in chosen]).T
    centres, spreads = _moments(table, indices)
    if len(table) == 1:
        half = np.full(len(chosen), math.nan)
    else:
        half = _half_widths(table, indices, centres, spreads, level, resamples, rng)
    return [
        Difference(*pair, float(d), float(d - h), float(d + h), _verdict(*pair, d - h, d + h))
        for pair, d, h in zip(chosen, centres, half, strict=True)
    ]


def _table(values: dict[str, Array]) -> Array:
    """Return the values as `(runs, agents)`."""
    rule = "a dict of 1-D arrays of finite numbers, all of one length and not empty"
    table = as_floats("values", list(values.values()), OWNER, rule)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        reject("values", OWNER, rule, table)
    return table.T


def _checked_pairs(pairs: Sequence[tuple[str, str]], labels: list[str]) -> list[tuple[str, str]]:
    """Return the pairs as a list of known labels."""
    for pair in pairs:
        if len(pair) != 2 or not set(pair) <= set(labels):
            reject("pairs", OWNER, f"pairs of labels out of {labels}", pair)
    return [(first, second) for first, second in pairs]


def _moments(table: Array, indices: NDArray[np.intp]) -> tuple[Array, Array]:
    """Return mean and standard deviation of each pair's differences, rounding set to zero."""
    first, second = indices
    size = ROUNDING / 100 * np.maximum(*np.abs(table).max(axis=0)[indices])
    centres = np.empty(len(first))
    spreads = np.empty(len(first))
    for start in range(0, len(first), PAIRS):
        part = slice(start, start + PAIRS)
        differences = table[:, first[part]] - table[:, second[part]]
        centres[part] = differences.mean(axis=0)
        spreads[part] = differences.std(axis=0, ddof=min(1, len(table) - 1))
    spreads[spreads <= size] = 0.0
    centres[(spreads == 0.0) & (np.abs(centres) <= size)] = 0.0
    return centres, spreads


def _half_widths(
    table: Array,
    indices: NDArray[np.intp],
    centres: Array,
    spreads: Array,
    level: float,
    resamples: int,
    rng: np.random.Generator,
) -> Array:
    """Return half the width of each pair's interval, `(pairs,)`."""
    half = np.zeros(len(centres))
    varying = np.flatnonzero(spreads > 0.0)  # a constant difference is known, and costs no q
    if not varying.size:
        return half
    roots = [
        _roots(table, indices[:, varying], centres[varying], spreads[varying], counts)
        for block in block_sizes(resamples, len(table))
        for counts in [resample_counts(rng, len(table), block)]
    ]
    quantiles = _joint_quantiles(np.concatenate(roots), level)
    half[varying] = quantiles * spreads[varying] / math.sqrt(len(table))
    return half


def _roots(
    table: Array, indices: NDArray[np.intp], centres: Array, spreads: Array, counts: Array
) -> Array:
    """Return |t*| of each resample and pair, `(resamples, pairs)`; inf for a jump over no spread.

    Differences are centred and scaled before they are squared, so that the second moment less
    the squared mean does not cancel.
    """
    runs = len(table)
    parts = []
    for start in range(0, len(centres), PAIRS):
        part = slice(start, start + PAIRS)
        first, second = indices[:, part]
        scaled = (table[:, first] - table[:, second] - centres[part]) / spreads[part]
        mean = np.abs(counts @ scaled) / runs
        second_moment = counts @ scaled**2 / runs
        variance = second_moment - mean**2
        flat = variance <= ROUNDING * second_moment
        jump = np.where(mean > ROUNDING, math.inf, 0.0)
        parts.append(
            np.where(flat, jump, mean / np.sqrt(np.where(flat, 1.0, variance) / (runs - 1)))
        )
    return np.concatenate(parts, axis=1)


def _joint_quantiles(roots: Array, level: float) -> Array:
    """Return the quantile of the largest root, and inf for pairs that would make it infinite.

    An infinite interval always covers, so a pair may leave the family by it. Pairs leave, most
    affected first, until the resamples in which any other has an infinite root are few enough.
    """
    resamples, pairs = roots.shape
    rank = min(math.ceil(level * (resamples + 1) - 1e-9), resamples) - 1
    infinite = np.isinf(roots)
    order = np.argsort(infinite.sum(axis=0), kind="stable")
    affected = np.logical_or.accumulate(infinite[:, order], axis=1).sum(axis=0)
    kept = order[affected <= resamples - 1 - rank]
    quantiles = np.full(pairs, math.inf)
    if kept.size:
        quantiles[kept] = np.sort(roots[:, kept].max(axis=1))[rank]
    return quantiles


def _verdict(first: str, second: str, low: float, high: float) -> str:
    """Return what the interval of first - second says; lower regret beats."""
    if math.isnan(low):
        return "one run tells nothing"
    if low == high == 0.0:
        return "equal"
    if high < 0.0:
        return f"{first} beats {second} by {_range(-high, -low)}"
    if low > 0.0:
        return f"{second} beats {first} by {_range(low, high)}"
    return (
        f"no clear difference ({_range(low, high)})"
        if math.isfinite(low)
        else "no clear difference"
    )


def _range(low: float, high: float) -> str:
    """Return "low to high" to 3 significant digits, and one number where both read the same."""
    # Adding zero turns -0.0 into 0.0; the inner format rounds and the outer avoids 1.23e+03.
    ends = [f"{float(f'{end:.3g}') + 0.0:g}" for end in (low, high)]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)
