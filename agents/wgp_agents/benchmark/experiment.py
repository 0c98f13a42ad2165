"""A benchmark as data: which agents play which tasks, how often, and from which seed."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from wgp_agents.registry import AGENTS

__all__ = ["AgentSpec", "Experiment", "TaskSpec", "Unit", "run_seeds"]

BATCH = 100


@dataclass(frozen=True)
class TaskSpec:
    """One environment to play.

    Attributes:
        name: What it is called in files and pictures; no two tasks share it.
        id: The environment's id.
        kwargs: What it is made with.
        seed_name: What its seeds follow from, beside the root: the variants of one entry share
            it, so that they are played on the same draws.
        varied: Those of its kwargs for which the entry lists several values; "default" where a
            value is the environment's own.
    """

    name: str
    id: str
    kwargs: dict[str, Any] = field(default_factory=dict)
    seed_name: str = ""
    varied: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """All that tells it from another of its id; "default" for a listed default."""
        return self.kwargs | self.varied


@dataclass(frozen=True)
class AgentSpec:
    """One agent to play them.

    Attributes:
        label: What it is called in tables and pictures; no two agents share it.
        name: The agent's name in the registry.
        parameters: What it is made with.
        varied: Those of its parameters for which the entry lists several values; "default"
            where a value is the agent's own.
    """

    label: str
    name: str
    parameters: dict[str, Any] = field(default_factory=dict)
    varied: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """All that tells it from another of its name; "default" for a listed default."""
        return self.parameters | self.varied

    @property
    def reference(self) -> bool:
        """Whether it reads the truth: a reference line, no competitor."""
        return AGENTS[self.name].reference


@dataclass(frozen=True)
class Unit:
    """One piece of work: a batch of runs of one agent in one task.

    Attributes:
        task: The task.
        agent: The agent.
        runs: The runs' numbers.
        root_seed: The seed that all others follow from.
    """

    task: TaskSpec
    agent: AgentSpec
    runs: range
    root_seed: int

    @property
    def identity(self) -> dict[str, Any]:
        """What the unit's numbers follow from, in plain JSON values."""
        return {
            "environment": self.task.id,
            "kwargs": self.task.kwargs,
            "seed_name": self.task.seed_name,
            "agent": self.agent.name,
            "parameters": self.agent.parameters,
            "runs": [self.runs.start, self.runs.stop],
            "root_seed": self.root_seed,
        }


@dataclass(frozen=True)
class Experiment:
    """Every agent in every task, on the same episodes.

    Attributes:
        title: What stands above the report.
        description: What it is for.
        seeds: The runs of each agent in each task.
        root_seed: The seed that all others follow from.
        batch: Runs in one unit of work. It changes no number.
        cuts: Numbers of runs that it had before it was extended: a unit ends there too, so that
            what was played stays as it is.
        tasks: The environments.
        agents: The agents.
        source: The declaration that it was made from.
    """

    title: str
    tasks: tuple[TaskSpec, ...]
    agents: tuple[AgentSpec, ...]
    seeds: int = 100
    root_seed: int = 2022
    batch: int = BATCH
    cuts: tuple[int, ...] = ()
    description: str = ""
    source: dict[str, Any] = field(default_factory=dict)

    def units(self) -> list[Unit]:
        """Return all work, task by task and agent by agent."""
        return [
            unit for task in self.tasks for agent in self.agents for unit in self.cell(task, agent)
        ]

    def cell(self, task: TaskSpec, agent: AgentSpec) -> Iterator[Unit]:
        """Yield the units of one agent in one task."""
        inner = {*range(self.batch, self.seeds, self.batch), *self.cuts}
        ends = sorted(end for end in {*inner, self.seeds} if end <= self.seeds)
        for start, stop in itertools.pairwise([0, *ends]):
            yield Unit(task, agent, range(start, stop), self.root_seed)

    def as_dict(self) -> dict[str, Any]:
        """Return it in plain JSON values."""
        return asdict(self)

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Experiment:
        """Return the experiment that `as_dict` has written down."""
        tasks = tuple(TaskSpec(**task) for task in values["tasks"])
        agents = tuple(AgentSpec(**agent) for agent in values["agents"])
        cuts = tuple(values["cuts"])
        return Experiment(**{**values, "tasks": tasks, "agents": agents, "cuts": cuts})

    def extends(self, other: Experiment) -> bool:
        """Tell whether all runs of another experiment are among this one's, in the same batches.

        Labels and what tasks are called may differ: they move no number.
        """

        def _cells(one: Experiment) -> list[dict[str, Any]]:
            runs = range(1)
            pairs = [(task, agent) for task in one.tasks for agent in one.agents]
            return [Unit(task, agent, runs, one.root_seed).identity for task, agent in pairs]

        own = _cells(self)
        wide = self.seeds >= other.seeds and self.batch == other.batch
        return wide and all(cell in own for cell in _cells(other))


def run_seeds(root_seed: int, name: str, run: int) -> tuple[int, int]:
    """Return the seeds of environment and agent in a task: the same for every agent."""
    key = (zlib.crc32(name.encode()), run)
    state = np.random.SeedSequence(root_seed, spawn_key=key).generate_state(2)
    return int(state[0]), int(state[1])
