"""Which arrays a unit's results are, and what they must be: their types, shapes and values."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.experiment import Unit, run_seeds
from wgp_agents.benchmark.files import Damaged
from wgp_gym.problem import BanditProblem
from wgp_gym.validation import check_int

Arrays = dict[str, NDArray[Any]]
Layout = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]

SEEDS = ("env_seed", "agent_seed")
AMOUNTS = ("norm_bound", "variation_budget", "final_regret")
ACTIONS = ("action", "optimal_action")
PER_RUN = (*SEEDS, *AMOUNTS)
PER_STEP = ("regret", "action", "optimal_action", "changed")
EVERYTHING = (*PER_RUN, *PER_STEP)
MOST_STEPS = 2**32  # and arms, and dimensions
ROUNDING = 1e-5  # of a sum of numbers in single precision


@dataclass(frozen=True)
class Size:
    """What the shapes of a task's results follow from."""

    horizon: int  # the number of steps T
    arms: int  # the number of arms n; in a box, of points of the domain
    dim: int  # the dimension d of a box; 0 where actions are arms

    def __post_init__(self) -> None:
        for name, low in (("horizon", 1), ("arms", 1), ("dim", 0)):
            check_int(name, getattr(self, name), "a task's size", low, MOST_STEPS)

    @classmethod
    def of(cls, problem: BanditProblem) -> Size:
        """Return the size of a problem."""
        arms, dim = problem.domain.shape
        return cls(problem.known_horizon("an experiment"), arms, dim if problem.continuous else 0)

    @property
    def action_type(self) -> np.dtype[Any]:
        """The smallest type that holds every action."""
        return np.dtype(np.float32) if self.dim else np.min_scalar_type(self.arms)

    def layout(self, runs: int) -> Layout:
        """Return the type and the shape of every array of so many runs."""
        steps = (runs, self.horizon)
        action = self.action_type, (*steps, self.dim) if self.dim else steps
        return {
            **dict.fromkeys(SEEDS, (np.dtype(np.int64), (runs,))),
            **dict.fromkeys(AMOUNTS, (np.dtype(np.float64), (runs,))),
            **dict.fromkeys(ACTIONS, action),
            "regret": (np.dtype(np.float32), steps),
            "changed": (np.dtype(bool), steps),
        }

    def check(self, unit: Unit, arrays: Arrays) -> None:
        """Check arrays of a unit, all of them or some."""
        layout = self.layout(len(unit.runs))
        for name, array in arrays.items():
            if (array.dtype, array.shape) != layout[name]:
                raise Damaged(f"holds {name!r} of another type or shape.")
        for name in self._wrong(unit, arrays):
            raise Damaged(f"holds values of {name!r} that cannot be.")

    def _wrong(self, unit: Unit, arrays: Arrays) -> Iterator[str]:
        """Yield the names of arrays whose values cannot be."""
        high = 1 if self.dim else self.arms - 1
        for name, array in arrays.items():
            if name in SEEDS:
                fits = np.array_equal(array, seeds_of(unit)[SEEDS.index(name)])
            elif name == "changed":
                fits = array.view(np.uint8).max() <= 1  # a byte of a file may be any
            else:
                top = high if name in ACTIONS else np.finfo(array.dtype).max
                fits = bool(((array >= 0) & (array <= top)).all())  # not so where it is NaN
            if not fits:
                yield name
                return
        if {"regret", "final_regret"} <= set(arrays):
            total = arrays["regret"].sum(axis=1, dtype=float)
            if not np.allclose(total, arrays["final_regret"], rtol=ROUNDING, atol=1e-30):
                yield "final_regret"


def seeds_of(unit: Unit) -> tuple[list[int], list[int]]:
    """Return the seeds of the environment and of the agent, run by run."""
    pairs = seed_pairs(unit.root_seed, unit.task.seed_name, unit.runs)
    return [unit.task.first_seed + pair[0] for pair in pairs], [pair[1] for pair in pairs]


@functools.lru_cache(1000)  # the agents of a task share them, and a report reads them often
def seed_pairs(root_seed: int, name: str, runs: range) -> list[tuple[int, int]]:
    """Return the seeds of environment and agent, run by run."""
    return [run_seeds(root_seed, name, run) for run in runs]
