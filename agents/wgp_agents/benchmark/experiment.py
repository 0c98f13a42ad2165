"""A benchmark as data: which agents play which tasks, how often, and from which seed."""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from types import UnionType
from typing import Any, get_args, get_origin, get_type_hints

import numpy as np

from wgp_agents.benchmark.labels import check_line
from wgp_agents.benchmark.limits import MOST_RUNS, MOST_UNITS
from wgp_agents.registry import AGENTS
from wgp_gym.registration import ENVIRONMENTS
from wgp_gym.validation import check_choice, check_int, reject

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
    def from_dict(values: Any) -> Experiment:
        """Return the experiment that `as_dict` has written down.

        Raises:
            ValueError: If it is none, knows an environment or agent that there is not, or is
                larger than a folder takes.
        """
        owner = "the experiment"
        content = fitting(Experiment, values, owner)
        lists = {"tasks": TaskSpec, "agents": AgentSpec}
        for key, made in lists.items():
            content[key] = tuple(made(**fitting(made, one, made.__name__)) for one in content[key])
        for name, low, most in (
            ("seeds", 1, MOST_RUNS),
            ("root_seed", 0, None),
            ("batch", 1, MOST_RUNS),
        ):
            check_int(name, content[name], owner, low, most)
        for end in content["cuts"]:
            check_int("cuts", end, owner, 1, content["seeds"])
        experiment = Experiment(**content | {"cuts": tuple(content["cuts"])})
        experiment.check_names()
        experiment.check_size()
        return experiment

    def check_names(self) -> None:
        """Check that there are its environments and agents, and none is called as another.

        Raises:
            ValueError: If one is not there, or two share a name.
        """
        known = [one.id for one in ENVIRONMENTS]
        for task in self.tasks:
            check_choice("id", task.id, "the experiment", known)
        for agent in self.agents:
            check_choice("name", agent.name, "the experiment", AGENTS)
        for key, names in (
            ("name", [task.name for task in self.tasks]),
            ("label", [agent.label for agent in self.agents]),
        ):
            for name in names:
                check_line(key, name, "the experiment")
            if not names or len(set(names)) < len(names):
                reject(key, "the experiment", "different for each, of which there is one", names)

    def check_size(self) -> None:
        """Check that a folder takes so many units.

        Raises:
            ValueError: If it does not.
        """
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


def fitting(made: type[Any], values: Any, owner: str) -> dict[str, Any]:
    """Return the values of a class's fields, each of the kind that its annotation says.

    Raises:
        ValueError: If one is missing, too many or of another kind.
    """
    kinds = {name: kinds_of(hint) for name, hint in get_type_hints(made).items()}
    if not isinstance(values, dict) or set(values) != set(kinds):
        given = sorted(values) if isinstance(values, dict) else values
        reject("manifest", owner, f"a table of {', '.join(kinds)}", given)
    for name, value in values.items():
        if not isinstance(value, kinds[name]):
            told = " or ".join(kind.__name__ for kind in kinds[name])
            reject(name, owner, f"of the type {told}", value)
    return dict(values)


def kinds_of(hint: Any) -> tuple[type, ...]:
    """Return the types that values of an annotation have in JSON."""
    if isinstance(hint, UnionType):
        return tuple(kind for one in get_args(hint) for kind in kinds_of(one))
    kind = get_origin(hint) or hint
    return (list if kind is tuple else kind,)
