"""Statistics over several tasks, as Agarwal and others recommend them.

References:
    [Agarwal21] Agarwal, Schwarzer, Castro, Courville, Bellemare. Deep Reinforcement Learning at
    the Edge of the Statistical Precipice. NeurIPS 2021.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy import stats

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
from wgp_gym.kernels import Array
from wgp_gym.validation import reject

__all__ = ["interquartile_mean", "probability_of_improvement"]


def interquartile_mean(
    scores: Sequence[Array], *, level: float = LEVEL, resamples: int = RESAMPLES, seed: int = 0
) -> Interval:
    """Return the mean of the middle half of all scores, one array `(runs,)` per task.

    Of N pooled scores the floor(N / 4) lowest and highest are left out, whole scores only.
    [Agarwal21], with runs resampled within each task and the percentile interval.

    Raises:
        ValueError: If the scores are not finite, or a parameter is out of its range.
    """
    rng = bootstrap_generator("interquartile_mean", level, resamples, seed)
    tasks = checked_tasks("scores", scores, "interquartile_mean")
    resampled = [
        stats.trim_mean(
            np.concatenate([t[rng.integers(len(t), size=(block, len(t)))] for t in tasks], axis=1),
            0.25,
            axis=1,
        )
        for block in block_sizes(resamples, sum(map(len, tasks)))
    ]
    value = stats.trim_mean(np.concatenate(tasks), 0.25)
    return percentile_interval(value, np.concatenate(resampled), level, min(map(len, tasks)))


def probability_of_improvement(
    values: Sequence[Array],
    others: Sequence[Array],
    *,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Return how likely a run of `values` has lower regret than one of `others`, over tasks.

    The mean over tasks of P(lower) + P(equal) / 2 over all pairs of runs, `(runs,)` per task and
    side; both sides are resampled within each task, by themselves.

    Raises:
        ValueError: If the values are not finite, the tasks differ in number, or a parameter is
            out of its range.
    """
    owner = "probability_of_improvement"
    rng = bootstrap_generator(owner, level, resamples, seed)
    tasks = checked_tasks("values", values, owner)
    rivals = checked_tasks("others", others, owner)
    if len(tasks) != len(rivals):
        reject("others", owner, f"a list of {len(tasks)} arrays, as 'values'", len(rivals))
    sizes = [len(array) for array in tasks + rivals]
    resampled = [
        improvement(tasks, rivals, partial(resample_counts, rng, resamples=block))
        for block in block_sizes(resamples, sum(sizes))
    ]
    value = improvement(tasks, rivals, lambda runs: np.ones((1, runs)))[0]
    return percentile_interval(value, np.concatenate(resampled), level, min(sizes))


def improvement(tasks: list[Array], rivals: list[Array], draw: Callable[[int], Array]) -> Array:
    """Return the probability of improvement for every row of counts drawn."""
    pairs = zip(tasks, rivals, strict=True)
    found = [wins(a, b, draw(len(a)), draw(len(b))) for a, b in pairs]
    return np.asarray(np.mean(found, axis=0))


def wins(values: Array, others: Array, counts: Array, other_counts: Array) -> Array:
    """Return P(below) + P(equal) / 2 where run i counts `counts[:, i]` times, `(resamples,)`."""
    order = np.sort(others)
    # Counts are exchangeable, so those of the others are taken to be of the sorted ones.
    runs = np.pad(np.cumsum(other_counts, axis=1), ((0, 0), (1, 0)))
    # Mean of the others strictly below and of those not above: ties count one half.
    below = runs[:, np.searchsorted(order, values, "left")]
    not_above = runs[:, np.searchsorted(order, values, "right")]
    shares = 1.0 - (below + not_above) / (2 * len(others))
    return np.asarray(np.einsum("ij,ij->i", counts, shares) / len(values))
