"""Pieces of work on several processes, of one machine or of a cluster."""

from __future__ import annotations

import os
import signal
import threading
import time
import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from importlib import import_module
from multiprocessing import resource_tracker
from typing import Any, NamedTuple, TypeVar

from joblib import Parallel, delayed, parallel_config
from joblib.parallel import BACKENDS, get_active_backend

from wgp_gym.validation import check_choice, check_int, reject

__all__ = ["LostWorker", "Workers", "begun", "run_as_done"]

CLUSTERS = {"dask": "distributed", "ray": "ray"}  # the backends with an address: their packages
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
        backend: "loky": processes of this machine; "dask" or "ray": a cluster; or the name of
            another backend of joblib, or of one that a package has registered with it.
        address: Where the cluster's scheduler is; empty starts one on this machine.
    """

    jobs: int
    backend: str = "loky"
    address: str = ""

    def checked(self) -> Workers:
        """Return these workers."""
        check_int("jobs", self.jobs, "the workers", 1)
        # Those with threads are none: BLAS threads and warnings belong to a process.
        known = [name for name, one in BACKENDS.items() if not getattr(one, "uses_threads", False)]
        check_choice("backend", self.backend, "the workers", dict.fromkeys([*known, *CLUSTERS]))
        if self.backend in CLUSTERS:
            import_module(CLUSTERS[self.backend])
        elif self.address:
            reject("address", "the workers", f"empty for {self.backend!r}", self.address)
        return self

    @property
    def beside(self) -> bool:
        """Whether they are other processes of this machine."""
        return self.backend == "loky" and self.jobs > 1


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
    calls = [delayed(function)(piece) for piece in work]
    with losses_named(), started(workers):
        backend, jobs = get_active_backend()
        if backend.supports_return_generator:
            yield from one_by_one(calls)
        else:
            yield from in_blocks(calls, BLOCK * backend.effective_n_jobs(jobs))


@contextmanager
def begun(
    function: Callable[[Piece], Result], work: Sequence[Piece], workers: Workers
) -> Generator[Iterator[Result], None, None]:
    """Begin work on other processes of this machine; what is not waited for is lost at the end.

    Yields:
        The results, which are waited for when they are asked for. Without other processes, the work
        is done here, and then.

    Raises:
        LostWorker: If a process was killed.
    """
    if not workers.beside:
        yield map(function, work)
        return
    with losses_named(), started(workers):
        results = launched([delayed(function)(piece) for piece in work])
        try:
            yield results
        finally:
            close(results)


@contextmanager
def losses_named() -> Iterator[None]:
    """Raise LostWorker for what a backend raises where a process is gone."""
    try:
        yield
    except Exception as error:
        if type(error).__name__ not in LOST:
            raise
        remedy = "It may have been short of memory: fewer jobs or a smaller batch need less"
        raise LostWorker(f"A worker process ended in mid-work. {remedy}.") from error


@contextmanager
def started(workers: Workers) -> Iterator[None]:
    """Let joblib use the workers meanwhile; a cluster is joined, or started here."""
    options: dict[str, object] = {"n_jobs": -1 if workers.backend in CLUSTERS else workers.jobs}
    with ExitStack() as stack:
        if workers.backend == "loky":
            # A worker that has grown much is replaced: nothing is lost by that.
            warnings.filterwarnings("ignore", "A worker stopped while some jobs", UserWarning)
            options |= {"initializer": end_with, "initargs": (os.getpid(),)}
        elif workers.backend == "dask":
            stack.enter_context(dask_client(workers))
        elif workers.backend == "ray":
            join_ray(workers)
        stack.enter_context(parallel_config(workers.backend, **options))
        yield


def dask_client(workers: Workers) -> AbstractContextManager[object]:
    """Return a client of the Dask cluster at the address, or of one started here."""
    from distributed import Client

    here = {"n_workers": workers.jobs, "threads_per_worker": 1, "dashboard_address": ":0"}
    client: Callable[..., AbstractContextManager[object]] = Client
    return client(workers.address) if workers.address else client(**here)


def join_ray(workers: Workers) -> None:
    """Join the Ray cluster at the address, or start one here, for joblib."""
    import ray
    from ray.util.joblib import register_ray

    here = {"num_cpus": workers.jobs, "include_dashboard": False}
    if not ray.is_initialized():
        ray.init(**({"address": workers.address} if workers.address else here))
    register_ray()


def one_by_one(calls: Sequence[Any]) -> Iterator[Any]:
    """Yield the result of each call as soon as there is one."""
    results = launched(calls)
    try:
        for result in results:  # noqa: UP028 (for the sake of the last line)
            yield result
    finally:
        close(results)


def launched(calls: Sequence[Any]) -> Generator[Any, None, None]:
    """Begin calls on joblib's processes; return their results, each as soon as there is one."""
    with interrupts_blocked():
        results: Generator[Any, None, None] = Parallel(
            return_as="generator_unordered", batch_size=1
        )(calls)
    return results


def close(results: Generator[Any, None, None]) -> None:
    """End what is not done yet."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # who ends early knows that work is lost
        results.close()


def in_blocks(calls: Sequence[Any], size: int) -> Iterator[Any]:
    """Yield the results of calls, so many at once: not all backends give them one by one."""
    for start in range(0, len(calls), size):
        yield from Parallel(batch_size=1)(calls[start : start + size])


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


def end_with(parent: int) -> None:
    """Let this process end soon after its parent, which a kill gives no chance to say so."""

    def _watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=_watch, daemon=True).start()
