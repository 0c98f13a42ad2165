"""Pieces of work on several processes, in order, with a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits
from tqdm import tqdm

__all__ = ["run_in_order"]

Piece = TypeVar("Piece")
Result = TypeVar("Result")


def run_in_order(
    function: Callable[[Piece], Result], work: Sequence[Piece], jobs: int, unit: str, title: str
) -> Iterator[Result]:
    """Yield what a function makes of each piece of work, in the order of the pieces.

    Args:
        function: What is done, with one BLAS thread: on more, the last digits depend on their
            number, and processes get into each other's way.
        work: The pieces.
        jobs: Processes; 1 runs everything in this one. Any number gives the same results.
        unit: What a piece is called in the progress bar.
        title: What is being done.
    """
    with parallel_config("loky", n_jobs=jobs):
        if jobs == 1:
            results: Iterator[Result] = (with_one_thread(function, piece) for piece in work)
        else:
            calls = (delayed(with_one_thread)(function, piece) for piece in work)
            results = Parallel(return_as="generator")(calls)
        yield from tqdm(results, total=len(work), unit=unit, desc=title)


def with_one_thread(function: Callable[[Piece], Result], piece: Piece) -> Result:
    """Call the function with one BLAS thread."""
    with threadpool_limits(limits=1, user_api="blas"):
        return function(piece)
