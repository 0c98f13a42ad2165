"""Statistics over several tasks, as Agarwal and others recommend them.

References:
    [Agarwal21] Agarwal, Schwarzer, Castro, Courville, Bellemare. Deep Reinforcement Learning at
    the Edge of the Statistical Precipice. NeurIPS 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.statistics.bootstrap import (
    LEVEL,
    RESAMPLES,
    Interval,
    block_sizes,
    bootstrap_generator,
    checked_tasks,
    percentile_interval,
    resample_counts,
)
from wgp_gym.types import Array
from wgp_gym.validation import reject

__all__ = [
    "improvement",
    "interquartile_mean",
    "probability_of_improvement",
    "profile_shares",
]

Drawn = TypeVar("Drawn")


def interquartile_mean(
    scores: Sequence[Array],
    *,
    groups: Sequence[Hashable] | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Return the mean of the middle half of all scores.

    Of N pooled scores the floor(N / 4) lowest and highest are left out, whole scores only.
    [Agarwal21], with runs resampled within each task and the percentile interval.

    Args:
        scores: One array `(runs,)` for each task.
        groups: What each task belongs to. Tasks of one group are played on the same draws, run
            i on those of run i: their runs are resampled together. By default each task is a
            group of its own.
        level: Level of the interval, in (0, 1).
        resamples: Number of resamples.
        seed: Seed of the resampling.

    Raises:
        ValueError: If the scores are not finite, there is not one group for each task, or a
            parameter is out of its range.
    """
    from scipy import stats  # slow to import, and read results need none

    owner = "interquartile_mean"
    rng = bootstrap_generator(owner, level, resamples, seed)
    tasks = checked_tasks("scores", scores, owner)
    shared = checked_groups(groups, len(tasks), owner)
    sizes = list(map(len, tasks))
    resampled = []
    for block in block_sizes(resamples, sum(sizes)):
        drawn = by_group(shared, sizes, partial(resample_indices, rng, block))
        pooled = [task[indices] for task, indices in zip(tasks, drawn, strict=True)]
        resampled.append(stats.trim_mean(np.concatenate(pooled, axis=1), 0.25, axis=1))
    value = stats.trim_mean(np.concatenate(tasks), 0.25)
    return percentile_interval(value, np.concatenate(resampled), level, min(sizes))


def probability_of_improvement(
    values: Sequence[Array],
    others: Sequence[Array],
    *,
    groups: Sequence[Hashable] | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Return how likely a run of `values` has lower regret than one of `others`, over tasks.

    The mean over tasks of P(lower) + P(equal) / 2 over all pairs of runs. Both sides are
    resampled within each task, by themselves, as in [Agarwal21]: where runs are paired and do
    well together, the interval is wider than need be.

    Args:
        values: One array `(runs,)` for each task.
        others: Likewise.
        groups: See `interquartile_mean`.
        level: Level of the interval, in (0, 1).
        resamples: Number of resamples.
        seed: Seed of the resampling.

    Raises:
        ValueError: If the values are not finite, the tasks differ in number, there is not one
            group for each, or a parameter is out of its range.
    """
    owner = "probability_of_improvement"
    rng = bootstrap_generator(owner, level, resamples, seed)
    tasks = checked_tasks("values", values, owner)
    rivals = checked_tasks("others", others, owner)
    if len(tasks) != len(rivals):
        reject("others", owner, f"a list of {len(tasks)} arrays, as 'values'", len(rivals))
    shared = checked_groups(groups, len(tasks), owner)
    sizes = [len(array) for array in tasks + rivals]
    resampled = []
    for block in block_sizes(resamples, sum(sizes)):
        draw = partial(resample_counts, rng, resamples=block)
        counts = [by_group(shared, map(len, side), draw) for side in (tasks, rivals)]
        resampled.append(np.mean(list(map(wins, tasks, rivals, *counts)), axis=0))
    value = improvement(tasks, rivals)
    return percentile_interval(value, np.concatenate(resampled), level, min(sizes))


def improvement(tasks: Sequence[Array], rivals: Sequence[Array]) -> float:
    """Return the probability of improvement alone."""
    pairs = zip(tasks, rivals, strict=True)
    return float(np.mean([wins(a, b, *(np.ones((1, len(s))) for s in (a, b))) for a, b in pairs]))


def profile_shares(regrets: Sequence[Array], tau: Array) -> tuple[Array, Array]:
    """Return the share of runs with at most tau, the mean over tasks, and its standard error.

    Args:
        regrets: `(runs,)` for each task.
        tau: Where the shares are wanted, `(k,)`.

    Returns:
        Shares and standard errors, `(k,)` each.
    """
    below = np.stack([np.searchsorted(np.sort(t), tau, "right") / len(t) for t in regrets])
    runs = np.array([[len(task)] for task in regrets])
    variance = (below * (1 - below) / runs).sum(axis=0) / len(regrets) ** 2
    return below.mean(axis=0), np.sqrt(variance)


def checked_groups(groups: Sequence[Hashable] | None, tasks: int, owner: str) -> Sequence[Hashable]:
    """Return what each task belongs to; ValueError if there is not one for each."""
    if groups is None:
        return range(tasks)
    if len(groups) != tasks:
        reject("groups", owner, f"one for each of {tasks} tasks", groups)
    return groups


def by_group(
    groups: Sequence[Hashable], sizes: Iterable[int], draw: Callable[[int], Drawn]
) -> list[Drawn]:
    """Return a draw for each task, the same for those of one group and size."""
    drawn: dict[tuple[Hashable, int], Drawn] = {}
    pairs = list(zip(groups, sizes, strict=True))
    for pair in pairs:
        if pair not in drawn:
            drawn[pair] = draw(pair[1])
    return [drawn[pair] for pair in pairs]


def resample_indices(rng: np.random.Generator, resamples: int, runs: int) -> NDArray[np.int64]:
    """Return the runs that each resample holds, `(resamples, runs)`."""
    return rng.integers(runs, size=(resamples, runs))


def wins(values: Array, others: Array, counts: Array, other_counts: Array) -> Array:
    """Return P(below) + P(equal) / 2 where run i counts `counts[:, i]` times, `(resamples,)`."""
    rank = np.argsort(others)
    order = others[rank]
    runs = np.pad(np.cumsum(other_counts[:, rank], axis=1), ((0, 0), (1, 0)))
    # Mean of the others strictly below and of those not above: ties count one half.
    below = runs[:, np.searchsorted(order, values, "left")]
    not_above = runs[:, np.searchsorted(order, values, "right")]
    shares = 1.0 - (below + not_above) / (2 * len(others))
    return np.asarray(np.einsum("ij,ij->i", counts, shares) / len(values))
