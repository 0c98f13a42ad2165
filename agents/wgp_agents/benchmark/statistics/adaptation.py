"""How soon the regret per step falls again after the function has changed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wgp_gym.types import Array
from wgp_gym.validation import as_floats, check_int, reject

__all__ = ["adaptation_times", "smoothed"]

ROUNDING = 64 * np.finfo(float).eps  # of a cumulative sum, relative to its largest entry


def adaptation_times(
    regret: Array,
    changes: Sequence[int] | NDArray[np.integer],
    *,
    threshold: float | Array,
    window: int = 10,
) -> Array:
    """Return how many steps each run needs to play well again after each change.

    For a change at step c, the smallest k >= 0 such that the mean regret over the steps
    c + k, ..., c + k + window - 1 is at most the threshold, all of them before the next change;
    inf where there is none.

    Args:
        regret: Regret of each step, `(runs, T)`.
        changes: Steps, counted from 1, that are the first to meet a new function; increasing.
        threshold: Regret per step that counts as good, one number or one per change.
        window: Number of steps averaged, at least 1.

    Returns:
        Steps from each change on, `(runs, changes)`, inf for a run that never adapts.

    Raises:
        ValueError: If a parameter is not as said.
    """
    owner = "adaptation_times"
    regret = _checked_regret(regret, owner)
    window = check_int("window", window, owner, 1)
    horizon = regret.shape[1]
    starts = _checked_changes(changes, horizon, owner) - 1
    limits = _checked_threshold(threshold, len(starts), owner)
    sums = _cumulative(regret)
    slack = ROUNDING * np.abs(sums).max()
    windows = sums[:, window:] - sums[:, :-window]  # empty where the window exceeds T
    times = np.full((len(regret), len(starts)), math.inf)
    ends = np.append(starts, horizon)[1:]
    for j, (start, end) in enumerate(zip(starts, ends, strict=True)):
        good = windows[:, start : max(start, end - window + 1)] <= window * limits[j] + slack
        adapted = good.any(axis=1)
        if adapted.any():
            times[adapted, j] = good[adapted].argmax(axis=1)
    return times


def smoothed(regret: Array, window: int) -> Array:
    """Return the mean regret over the last `window` steps, `(runs, T)`; fewer at the start.

    Args:
        regret: Regret of each step, `(runs, T)`.
        window: Number of steps averaged, at least 1.

    Raises:
        ValueError: If a parameter is not as said.
    """
    regret = _checked_regret(regret, "smoothed")
    window = check_int("window", window, "smoothed", 1)
    sums = _cumulative(regret)
    steps = np.arange(1, regret.shape[1] + 1)
    before = np.maximum(steps - window, 0)
    return np.asarray((sums[:, steps] - sums[:, before]) / (steps - before))


def _cumulative(regret: Array) -> Array:
    """Return the regret before each step and at the end, `(runs, T + 1)`."""
    return np.pad(np.cumsum(regret, axis=1), ((0, 0), (1, 0)))


def _checked_regret(regret: Array, owner: str) -> Array:
    """Return the regret as finite floats, `(runs, T)`."""
    rule = "a 2-D array (runs, T) of finite numbers, not empty"
    array = as_floats("regret", regret, owner, rule)
    if array.ndim != 2 or not array.size or not np.isfinite(array).all():
        reject("regret", owner, rule, regret)
    return array


def _checked_changes(
    changes: Sequence[int] | NDArray[np.integer], horizon: int, owner: str
) -> NDArray[np.intp]:
    """Return the steps of change as an array of integers."""
    steps = np.asarray(changes)
    whole = steps.ndim == 1 and (not steps.size or steps.dtype.kind in "iu")
    if not whole or np.any((steps < 1) | (steps > horizon)) or np.any(np.diff(steps) <= 0):
        reject("changes", owner, f"increasing integers in [1, {horizon}]", changes)
    return steps.astype(np.intp)


def _checked_threshold(threshold: float | Array, changes: int, owner: str) -> Array:
    """Return one threshold per change."""
    rule = f"a finite number, or one for each of the {changes} changes"
    limits = as_floats("threshold", threshold, owner, rule)
    if limits.shape not in ((), (changes,)) or not np.isfinite(limits).all():
        reject("threshold", owner, rule, threshold)
    return np.broadcast_to(limits, (changes,))
