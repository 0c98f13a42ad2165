"""Playing one unit of work, wherever it is done."""

from __future__ import annotations

import math
import os
import socket
import sys
import time
import traceback
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import scipy.linalg  # noqa: F401 (its BLAS, whose threads are limited once it is there)
from threadpoolctl import threadpool_limits

from wgp_agents.base import Agent
from wgp_agents.benchmark.experiment import Unit
from wgp_agents.benchmark.inputs import check_files
from wgp_agents.benchmark.layout import ACTIONS, Arrays, Size, seeds_of
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.registry import AGENTS, agent_class, make

__all__ = ["Outcome", "attempt", "play", "prepare"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """What has become of a unit."""

    unit: Unit
    arrays: Arrays | None  # what was played, or None where it failed
    seconds: float  # how long it took
    peak_memory: float  # the largest memory of the process that played it, up to then, in MiB
    worker: str  # that process, as "host:number"
    error: str = ""  # why it failed, as a traceback; empty otherwise
    warnings: list[str] = field(default_factory=list)  # what was warned of


def attempt(unit: Unit, digests: Mapping[str, str] | None = None) -> Outcome:
    """Play a unit; a failure is part of the outcome, so that it does not end the others.

    Where `digests` are given, the SHA-256 of the files that it may read, a unit for which one is
    another before or after it is played has failed.
    """
    started = time.perf_counter()
    arrays, error = None, ""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            if digests is not None:
                check_files(unit, digests)
            played = play(unit)
            if digests is not None:
                check_files(unit, digests)
            arrays = played
        except Exception:
            error = traceback.format_exc()
    return Outcome(
        unit,
        arrays,
        seconds=time.perf_counter() - started,
        peak_memory=peak_memory(),
        worker=f"{socket.gethostname()}:{os.getpid()}",
        error=error,
        warnings=[f"{one.category.__name__}: {one.message}" for one in caught],
    )


def peak_memory() -> float:
    """Return the largest memory of this process so far in MiB, NaN where none can tell."""
    try:
        import resource
    except ImportError:  # Windows
        return math.nan
    largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return largest / (2**20 if sys.platform == "darwin" else 2**10)


def play(unit: Unit) -> Arrays:
    """Play the runs of a unit in one batch; return the arrays of `Size.layout`."""
    # What was registered in another process alone is registered here.
    if ":" not in unit.agent.name:
        AGENTS.setdefault(unit.agent.name, unit.agent.entry)
    if unit.task.spec is not None:
        gymnasium.registry.setdefault(unit.task.id, unit.task.spec)
    agent_class(unit.agent.name)  # what it imports may bring a pool of threads, as torch does
    of_env, of_agent = seeds_of(unit)
    with threadpool_limits(limits=1):
        env, agent = prepare(unit, len(unit.runs))
        played = rollout(agent, env, of_env, of_agent)
    arrays: Arrays = {
        "env_seed": np.array(of_env, np.int64),
        "agent_seed": np.array(of_agent, np.int64),
        "norm_bound": played.norm_bounds,
        "variation_budget": played.variation_budgets,
        "final_regret": played["cumulative_regret"][:, -1].astype(float),
        "regret": played["regret"].astype(np.float32),
        "changed": played["changed"],
    }
    for name in ACTIONS:
        arrays[name] = played[name].astype(Size.of(agent.problem).action_type)
    return {name: np.ascontiguousarray(array) for name, array in arrays.items()}


def prepare(unit: Unit, learners: int) -> tuple[Any, Agent]:
    """Return environment and agent of a unit, for so many learners."""
    env = make_vector(unit.task.id, learners, **unit.task.kwargs)
    return env, make(unit.agent.name, env, **unit.agent.parameters)
