"""All that is said of an experiment's results, as one object: tables, charts and text read it.

Agents and tasks are named by their labels, and stand in the order of the experiment.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.figures.styles import Style
from wgp_agents.benchmark.statistics import Difference, Interval
from wgp_gym.types import Array

INTERVALS = ("mean", "median", "iqm", "beats_leader")  # fields of rows, with columns of their ends


@dataclass(frozen=True)
class Agent:
    """An agent."""

    label: str  # what it is called
    name: str  # its name in the registry
    purpose: str  # what it does, in a line
    parameters: Mapping[str, object]  # what it was made with
    reference: bool  # whether it reads the truth, so that it does not compete
    style: Style  # how it looks


@dataclass(frozen=True)
class Task:
    """A task."""

    name: str  # what it is called
    id: str  # the environment's id
    kwargs: Mapping[str, object]  # what it was made with, the horizon apart
    horizon: int  # number of steps T
    runs: int  # number of runs of each agent
    first_run: int  # the number of the first of them
    # Steps, counted from 1, that are the first to meet a new function in all runs.
    changes: list[int]
    steps: NDArray[np.int64]  # steps, counted from 1, at which curves are given, `(k,)`


@dataclass(frozen=True)
class Row:
    """The final regret of an agent in a task."""

    task: str
    agent: str
    runs: int
    mean: Interval
    standard_error: float  # of the mean
    median: Interval
    share_of_random: float | None  # the mean over that of random play; None where there is none
    # Median over runs and changes of the steps until the regret per step, averaged over ten steps,
    # is at most a tenth of random play's; infinite where it is not before the next change in half
    # of them or more; None where there is nothing to adapt to.
    adaptation: float | None


@dataclass(frozen=True)
class AgentShare:
    """How an agent does across tasks, in shares of random play's mean regret."""

    agent: str
    tasks: int  # number of tasks with a regret to divide by
    iqm: Interval  # the interquartile mean, with its interval
    mean_share: float
    # Probability that one of its runs has a lower regret than one of the leader's in the same task;
    # None for the leader.
    beats_leader: Interval | None


@dataclass(frozen=True)
class Curve:
    """A mean over runs with its band, `(k,)` each; no band for a single run."""

    mean: Array
    low: Array | None
    high: Array | None


@dataclass(frozen=True)
class Played:
    """What an agent did in a task."""

    final: Array  # regret of each run, `(runs,)`
    cumulative: Curve  # the regret up to each of the task's steps
    per_step: Curve  # the regret per step, averaged over the last ten steps, there
    # What it played there in the first run, `(k,)`; None where it is no number.
    actions: Array | None
    optimal_actions: Array | None  # what would have been best, likewise


@dataclass(frozen=True)
class Profiles:
    """The share of runs whose relative regret is at most tau."""

    tau: Array  # relative regrets, `(k,)`
    shares: dict[str, Array]  # by agent, `(k,)` each


@dataclass(frozen=True)
class ParameterLine:
    """Final regret against one parameter: what the line stands for, its places, their means."""

    label: str
    like: str
    x: list[float]
    means: list[Interval]


@dataclass(frozen=True)
class Sensitivity:
    """Final regret in a task against one parameter of the agents."""

    task: str
    parameter: str
    lines: list[ParameterLine]


@dataclass(frozen=True)
class ParameterMap:
    """Mean final regret of an agent in a task over two parameters: `means[along][across]`."""

    task: str
    agent: str
    across: str
    along: str
    x: list[float]
    y: list[float]
    means: list[list[float | None]]


@dataclass(frozen=True)
class GrowthLine:
    """How an agent's final regret grows: means, and the slope of the logarithms if there is one."""

    agent: str
    means: list[Interval]
    slope: Interval | None


@dataclass(frozen=True)
class Growth:
    """Final regret against a number in which an entry's tasks differ."""

    title: str  # entry and number, and what else tells these tasks from others
    kwarg: str  # the number's name
    x: list[float]  # its values
    lines: list[GrowthLine]  # one for each competitor


@dataclass(frozen=True)
class Cost:
    """What an agent costs: milliseconds of a run, and peak memory in MiB."""

    agent: str
    milliseconds: float
    peak_memory: float


@dataclass(frozen=True)
class Missing:
    """What was not played: batches of runs, in words, and agents and tasks that are left out."""

    units: list[str]
    agents: list[str]
    tasks: list[str]


@dataclass(frozen=True)
class Reproduction:
    """How to do it again."""

    command: str
    experiment: str  # the experiment's file
    root_seed: int  # the seed that all others follow from
    versions: dict[str, str]  # of packages, by name
    units: int  # number of units of work
    seconds: float | None  # their time together; None where it is not known


@dataclass(frozen=True)
class Summary:
    """All that is said of an experiment's results: see `wgp_agents.benchmark.report.summarise`."""

    title: str
    description: str
    agents: list[Agent]
    tasks: list[Task]
    rows: dict[tuple[str, str], Row]  # final regrets, by task and agent
    played: dict[tuple[str, str], Played]  # curves and runs, by task and agent
    differences: dict[str, list[Difference]]  # the pairs of competitors, by task
    aggregate: list[AgentShare]  # one for each agent; none where there is no regret to divide by
    # The competitor with the lowest regret over all tasks; None where there is none.
    leader: str | None
    chance: str | None  # the agent that plays at random; None where there is none
    profiles: Profiles | None  # performance profiles; None where there is no regret to divide by
    # For competitors i and j, `[i][j]`, the probability that a run of i has a lower regret than one
    # of j; None on the diagonal. Empty for fewer than three competitors and for more than twenty.
    improvement: list[list[float | None]]
    sensitivity: list[Sensitivity]  # final regret against parameters
    maps: list[ParameterMap]  # final regret over two parameters
    growth: list[Growth]  # final regret against numbers of the tasks
    costs: list[Cost]  # those of the agents whose time is known
    missing: Missing  # what was not played
    reproduction: Reproduction  # how to do it again
    # One row for each run of each agent in each task, as runs.csv has them.
    runs: list[dict[str, object]]

    @property
    def labels(self) -> list[str]:
        """The agents' labels."""
        return [agent.label for agent in self.agents]

    @property
    def competitors(self) -> list[str]:
        """The labels of the agents that do not read the truth."""
        return [agent.label for agent in self.agents if not agent.reference]

    def best(self, task: str) -> str | None:
        """Return the competitor of the lowest mean in a task; None where nobody competes."""
        means = {label: self.rows[task, label].mean.value for label in self.competitors}
        return min(means, key=means.__getitem__) if means else None


def flat(row: Row | AgentShare) -> dict[str, object]:
    """Return a row's values by name; of an interval also those of its ends, `_low` and `_high`."""
    found: dict[str, object] = {}
    for field in fields(row):
        value = getattr(row, field.name)
        found[field.name] = value
        if field.name in INTERVALS:
            ends = (None, None, None) if value is None else value
            names = (f"{field.name}{end}" for end in ("", "_low", "_high"))
            found |= dict(zip(names, ends, strict=True))
    return found
