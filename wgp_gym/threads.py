"""Loops over learners, or over episodes that are drawn, on several threads.

A compiled loop holds no lock of Python's, nor does numpy while it draws or multiplies, and each
learner is worked on by itself. So parts of the learners can go through it side by side, and each
learner's numbers are the same on any number of threads, bit for bit. Loops of little work stay on
one: handing over takes some ten microseconds.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, partial
from typing import TypeVar, TypeVarTuple

import numpy as np

from wgp_gym.types import Mask
from wgp_gym.validation import check_int

__all__ = ["get_threads", "over_learners", "over_parts", "set_threads"]

PINNED = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")  # what others go by, the first that is set
LEAST = 1e6  # multiplications of a part: about a tenth of a millisecond
MOST = 1_024
Result = TypeVar("Result")
Others = TypeVarTuple("Others")
_given: dict[str, int | None] = {"threads": None}  # what `set_threads` was given last


def set_threads(count: int | None) -> None:
    """Let learners in a batch, and episodes at a reset, go over so many threads of this process.

    Args:
        count: From 1 to 1,024; None: the default of `get_threads`.

    Raises:
        ValueError: If it is neither.
    """
    given = None if count is None else check_int("count", count, "set_threads", 1, MOST)
    _given["threads"] = given


def get_threads() -> int:
    """Return on how many threads batches of learners and resets go.

    By default 1 in a worker process, so that workers do not fight for cores; else NUMBA_NUM_THREADS
    or OMP_NUM_THREADS, where one is set; else as many as this process has cores.
    """
    given = _given["threads"]
    return default_threads() if given is None else given


@cache
def default_threads() -> int:
    """Return what `get_threads` does where nothing was set."""
    if multiprocessing.parent_process() is not None:
        return 1
    for name in PINNED:
        told = os.environ.get(name, "").split(",")[0]
        if told.isdigit() and int(told) > 0:
            return min(int(told), MOST)
    usable = getattr(os, "sched_getaffinity", None)  # Linux alone has it
    return min(len(usable(0)) if usable else os.cpu_count() or 1, MOST)


@cache
def pool(threads: int) -> ThreadPoolExecutor:
    """Return the threads beside the caller's."""
    return ThreadPoolExecutor(threads - 1, "wgp")


def begin_anew() -> None:
    """Forget threads and settings: a child of this process has none of them, and is a worker."""
    pool.cache_clear()
    default_threads.cache_clear()
    _given["threads"] = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=begin_anew)


def handed_over(call: Callable[[], Result], threads: int) -> Future[Result]:
    """Return what a function will return on another thread; at the interpreter's end, on this."""
    try:
        return pool(threads).submit(call)
    except RuntimeError:  # no thread is started any more
        done: Future[Result] = Future()
        done.set_result(call())
        return done


def over_parts(
    call: Callable[[slice[int, int, None]], Result], count: int, work: float
) -> list[Result]:
    """Call a function for parts of `count` learners, each on a thread of its own.

    Args:
        call: The function, of a part's indices.
        count: How many learners there are.
        work: About how many multiplications one of them takes.

    Returns:
        What it returned, by part.
    """
    threads = get_threads()
    parts = min(threads, int(count * work / LEAST), count)
    if parts < 2:
        return [call(slice(0, count))]
    edges = [count * k // parts for k in range(parts + 1)]
    slices = [slice(edges[k], edges[k + 1]) for k in range(parts)]
    others: list[Future[Result]] = []
    try:
        for part in slices[1:]:
            others.append(handed_over(partial(call, part), threads))
        first = call(slices[0])
    finally:  # nobody works on once this has ended, an interrupt while it waits aside
        wait(others)
    return [first, *(other.result() for other in others)]


def over_learners(
    call: Callable[[Mask, *Others], Result], active: Mask, work: float, *others: *Others
) -> list[Result]:
    """Call a function for parts of the learners in `active` `(B,)`, as `over_parts` does.

    It is given who is meant, `(B,)`, and then all other arguments.
    """
    if len(active) == 1:
        return [call(active, *others)]

    def _part(part: slice[int, int, None]) -> Result:
        mine = active
        if part.stop - part.start < len(active):
            mine = np.zeros_like(active)
            mine[part] = active[part]
        return call(mine, *others)

    return over_parts(_part, len(active), work)
