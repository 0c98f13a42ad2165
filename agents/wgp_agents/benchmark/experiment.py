"""A benchmark as data: which agents play which tasks, how often, and from which seed.

A spec is checked when it is made, from whatever it is made: a file, flags, a manifest or in Python.
"""

from __future__ import annotations

import itertools
import json
import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from wgp_agents.benchmark.accepted import check_id
from wgp_agents.benchmark.files import JSON
from wgp_agents.benchmark.values import (
    DEEPEST,
    MOST_RUNS,
    MOST_UNITS,
    check_line,
    check_paragraph,
    check_values,
)
from wgp_agents.registry import AgentEntry, agent_entry
from wgp_gym.validation import check_int, reject

__all__ = ["AgentSpec", "Experiment", "TaskSpec", "Unit", "run_seeds"]

BATCH = 100
LARGEST_FIRST = 2**62  # with a drawn one, of 32 bits, a seed is a number of 64 bits


@dataclass(frozen=True)
class TaskSpec:
    """One environment to play.

    Attributes:
        name: What it is called in files and pictures; no two tasks share it.
        id: The environment's id, or "module:id".
        kwargs: What it is made with.
        seed_name: What its seeds follow from, beside the root: the variants of one entry share
            it, so that they are played on the same draws.
        varied: Those of its kwargs for which the entry lists several values; "default" where a
            value is the environment's own.
        first_seed: What is added to the seeds of its episodes, so that they are none that a
            trained policy has seen.
        spec: What Gymnasium's registry says of it here, wherever the unit is played.
    """

    name: str
    id: str
    kwargs: dict[str, JSON] = field(default_factory=dict)
    seed_name: str = ""
    varied: dict[str, JSON] = field(default_factory=dict)
    first_seed: int = 0
    spec: EnvSpec | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        owner = "an [[environment]]"
        check_id(self.id, owner)
        object.__setattr__(self, "spec", gymnasium.registry.get(self.id))
        check_line("name", self.name, owner)
        check_paragraph("seed_name", self.seed_name, owner)
        check_int("first_seed", self.first_seed, owner, 0, LARGEST_FIRST)
        check_table("kwargs", self.kwargs, owner)
        check_table("varied", self.varied, owner)

    @property
    def settings(self) -> dict[str, JSON]:
        """All that tells it from another of its id; "default" for a listed default."""
        return self.kwargs | self.varied


@dataclass(frozen=True)
class AgentSpec:
    """One agent to play them.

    Attributes:
        label: What it is called in tables and pictures; no two agents share it.
        name: The agent's name in the registry, or "module:Class".
        parameters: What it is made with.
        varied: Those of its parameters for which the entry lists several values; "default"
            where a value is the agent's own.
        entry: What the registry says of it, wherever the unit is played.
    """

    label: str
    name: str
    parameters: dict[str, JSON] = field(default_factory=dict)
    varied: dict[str, JSON] = field(default_factory=dict)
    entry: AgentEntry = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        owner = "an [[agent]]"
        object.__setattr__(self, "entry", agent_entry(self.name, owner))
        check_line("label", self.label, owner)
        check_table("parameters", self.parameters, owner)
        check_table("varied", self.varied, owner)

    @property
    def settings(self) -> dict[str, JSON]:
        """All that tells it from another of its name; "default" for a listed default."""
        return self.parameters | self.varied

    @property
    def reference(self) -> bool:
        """Whether it reads the truth: a reference line, no competitor."""
        return self.entry.reference


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
    def identity(self) -> dict[str, JSON]:
        """What the unit's numbers follow from, in plain JSON values."""
        first = {"first_seed": self.task.first_seed} if self.task.first_seed else {}
        return first | {
            "environment": self.task.id,
            "kwargs": self.task.kwargs,
            "seed_name": self.task.seed_name,
            "agent": self.agent.name,
            "parameters": self.agent.parameters,
            "runs": [self.runs.start, self.runs.stop],
            "root_seed": self.root_seed,
        }


@dataclass(frozen=True, kw_only=True)
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

    title: str = "experiment"
    tasks: tuple[TaskSpec, ...]
    agents: tuple[AgentSpec, ...]
    seeds: int = 100
    root_seed: int = 2022
    batch: int = BATCH
    cuts: tuple[int, ...] = ()
    description: str = ""
    source: dict[str, JSON] = field(default_factory=dict)

    def __post_init__(self) -> None:
        owner = "the experiment"
        check_line("title", self.title, owner)
        check_paragraph("description", self.description, owner)
        check_int("seeds", self.seeds, owner, 1, MOST_RUNS)
        check_int("batch", self.batch, owner, 1, MOST_RUNS)
        check_int("root_seed", self.root_seed, owner, 0)
        for end in self.cuts:
            check_int("cuts", end, owner, 1, self.seeds)
        check_table("source", self.source, owner)
        check_different("environment", "name", [task.name for task in self.tasks])
        check_different("agent", "label", [agent.label for agent in self.agents])
        self._check_size()

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

    def as_dict(self) -> dict[str, JSON]:
        """Return it in plain JSON values."""
        plain: dict[str, Any] = json.loads(json.dumps(asdict(self), default=str))
        for task in plain["tasks"]:
            del task["spec"]
            if not task["first_seed"]:  # which the first folders of this format do not have
                del task["first_seed"]
        for agent in plain["agents"]:
            del agent["entry"]
        return plain

    @staticmethod
    def from_dict(values: dict[str, Any]) -> Experiment:
        """Return the experiment that `as_dict` has written down.

        Raises:
            ValueError: If a value is wrong.
            TypeError, KeyError, AttributeError: If it is no table of these values.
        """
        check_values(values, DEEPEST + 1)  # its source is as deep as a declaration
        parts = {
            "tasks": tuple(TaskSpec(**one) for one in values["tasks"]),
            "agents": tuple(AgentSpec(**one) for one in values["agents"]),
            "cuts": tuple(values["cuts"]),
        }
        return Experiment(**values | parts)

    def _check_size(self) -> None:
        """Check that a folder takes so many units."""
        each = -(-self.seeds // self.batch) + len(self.cuts)
        units = len(self.tasks) * len(self.agents) * each
        if units > MOST_UNITS:
            raise ValueError(
                f"{len(self.tasks)} environments x {len(self.agents)} agents x {self.seeds} runs "
                f"in batches of {self.batch} are {units} units of work. An experiment has at most "
                f"{MOST_UNITS}: give it fewer of them, or a larger batch."
            )

    def extends(self, other: Experiment) -> bool:
        """Tell whether all runs of another experiment are among this one's, in the same batches.

        Labels and what tasks are called may differ: they move no number.
        """

        def _cells(one: Experiment) -> list[dict[str, JSON]]:
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


def check_table(key: str, value: object, owner: str) -> None:
    """Check that a value is a table.

    Raises:
        ValueError: If it is none.
    """
    if not isinstance(value, dict):
        reject(key, owner, "a table, as { key = value }", value)


def check_different(kind: str, key: str, names: list[str]) -> None:
    """Check that there are entries of a kind, and that no two are called the same.

    Raises:
        ValueError: If there are none, or two are.
    """
    if not names:
        reject(kind, "the experiment", f"one or more tables [[{kind}]]", names)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        rule = f"different for every [[{kind}]]: give each a {key!r} of its own"
        reject(key, f"an [[{kind}]]", rule, twice[0])
