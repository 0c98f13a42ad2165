"""Pieces of work on several processes, of one machine or of a cluster, with a progress bar."""

from __future__ import annotations

import functools
import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from multiprocessing import resource_tracker
from typing import Any, NamedTuple, NoReturn, TypeVar, cast

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits
from tqdm import tqdm

from wgp_gym.validation import check_choice, check_int, reject

__all__ = ["BACKENDS", "LostWorker", "Workers", "run_as_done", "run_in_order"]

BACKENDS = ("loky", "dask", "ray")
BLOCK = 4  # pieces for each process at once, where results cannot be had one by one

# What loky, Dask and Ray raise where a process is gone.
LOST = (
    "TerminatedWorkerError",
    "BrokenProcessPool",
    "KilledWorker",
    "WorkerCrashedError",
    "ActorDiedError",
    "RayActorError",
)

Piece = TypeVar("Piece")
Result = TypeVar("Result")


class LostWorker(RuntimeError):
    """A process ended before it gave its result."""


class Workers(NamedTuple):
    """Where work is done.

    Attributes:
        jobs: Processes; 1 on "loky" runs everything in this one. On a cluster that stands at an
            address: at least 1, of no effect.
        backend: "loky": processes of this machine; "dask" or "ray": a cluster.
        address: Where the cluster's scheduler is; empty starts one on this machine.
    """

    jobs: int
    backend: str = "loky"
    address: str = ""

    def checked(self) -> Workers:
        """Return these workers.

        Raises:
            ValueError: If a parameter is out of its range, or an address is of no use.
            ModuleNotFoundError: If the cluster's package is not installed.
        """
        check_int("jobs", self.jobs, "the workers", 1)
        check_choice("backend", self.backend, "the workers", BACKENDS)
        if self.address and self.backend == "loky":
            reject("address", "the workers", "empty for 'loky'", self.address)
        if self.backend == "dask":
            import distributed  # noqa: F401
        if self.backend == "ray":
            import ray  # noqa: F401
        return self


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
            with interrupts_blocked():
                results = Parallel(return_as="generator")(calls)
        yield from tqdm(results, total=len(work), unit=unit, desc=title)


def run_as_done(
    function: Callable[[Piece], Result], work: Sequence[Piece], workers: Workers
) -> Generator[Result, None, None]:
    """Yield what a function makes of each piece of work, whichever is done first.

    Args:
        function: What is done. A cluster's workers must be able to import it.
        work: The pieces.
        workers: Where; any place gives the same results.

    Raises:
        LostWorker: If a process was killed (on Dask: again and again).
    """
    if workers.backend == "loky" and workers.jobs == 1:
        yield from map(function, work)
        return
    parent = os.getpid() if workers.backend == "loky" else 0
    calls = [delayed(under)(parent, function, piece) for piece in work]
    with ExitStack() as stack:
        if workers.backend == "ray":
            jobs = start_ray(workers)
            stack.enter_context(parallel_config("ray", n_jobs=jobs))
            yield from in_blocks(calls, BLOCK * jobs)
            return
        if workers.backend == "dask":
            stack.enter_context(dask_client(workers))
            stack.enter_context(parallel_config("dask"))
        else:
            stack.enter_context(parallel_config("loky", n_jobs=workers.jobs))
        with interrupts_blocked():
            results = Parallel(return_as="generator_unordered", batch_size=1)(calls)
        try:
            for result in results:  # noqa: UP028 (for the sake of the last lines)
                yield result
        except Exception as error:
            raise_lost(error)
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # who ends early knows that work is lost
                results.close()


@contextmanager
def interrupts_blocked() -> Iterator[None]:
    """Let SIGINT wait, and processes that are started meanwhile never get it.

    A terminal sends it to every process. This one ends the others, which would print tracebacks.
    """
    if os.name != "posix":
        yield
        return
    resource_tracker.ensure_running()  # which would be started meanwhile, and unblock it
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def in_blocks(calls: Sequence[Any], size: int) -> Iterator[Any]:
    """Yield the results of calls, so many at once: Ray does not give them one by one."""
    for start in range(0, len(calls), size):
        try:
            results = Parallel(batch_size=1)(calls[start : start + size])
        except Exception as error:
            raise_lost(error)
        yield from results


def raise_lost(error: Exception) -> NoReturn:
    """Raise a `LostWorker` where an error says that a process is gone, or else the error."""
    if type(error).__name__ not in LOST:
        raise error
    remedy = "It may have been short of memory: fewer jobs or a smaller batch need less"
    raise LostWorker(f"A worker process ended in mid-work. {remedy}.") from error


def under(parent: int, function: Callable[[Piece], Result], piece: Piece) -> Result:
    """Call the function in a process that is to end with its parent; 0: there is none."""
    if parent:
        end_with(parent)
    return function(piece)


@functools.cache
def end_with(parent: int) -> None:
    """End this process soon after its parent, which a kill gives no chance to say so."""

    def _watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=_watch, daemon=True).start()


def dask_client(workers: Workers) -> AbstractContextManager[Any]:
    """Return a client of the Dask cluster at the address, or of one started here."""
    import distributed

    client: Any = distributed.Client
    if workers.address:
        return cast(AbstractContextManager[Any], client(workers.address))
    here = {"n_workers": workers.jobs, "threads_per_worker": 1, "dashboard_address": ":0"}
    return cast(AbstractContextManager[Any], client(**here))


def start_ray(workers: Workers) -> int:
    """Join the Ray cluster at the address, or start one here; return its processors."""
    import ray
    from ray.util.joblib import register_ray

    here = {"num_cpus": workers.jobs, "include_dashboard": False}
    if not ray.is_initialized():
        ray.init(**({"address": workers.address} if workers.address else here))
    register_ray()
    return int(ray.cluster_resources()["CPU"])


def with_one_thread(function: Callable[[Piece], Result], piece: Piece) -> Result:
    """Call the function with one BLAS thread."""
    with threadpool_limits(limits=1, user_api="blas"):
        return function(piece)
