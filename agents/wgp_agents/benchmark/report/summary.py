"""All that is said of an experiment's results, as one object: tables, charts and text read it.

Agents and tasks are named by their labels, and stand in the order of the experiment.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.figures.styles import Style
from wgp_agents.benchmark.statistics import Difference, Interval
from wgp_gym.types import Array

__all__ = [
    "Agent",
    "AgentShare",
    "Cost",
    "Curve",
    "Growth",
    "GrowthLine",
    "Missing",
    "ParameterLine",
    "ParameterMap",
    "Played",
    "Profiles",
    "Reproduction",
    "Row",
    "Sensitivity",
    "Summary",
    "Task",
    "flat",
]


INTERVALS = ("mean", "median", "iqm", "beats_leader")  # fields of rows, with columns of their ends


@dataclass(frozen=True)
class Agent:
    """An agent.

    Attributes:
        label: What it is called.
        name: Its name in the registry.
        purpose: What it does, in a line.
        parameters: What it was made with.
        reference: Whether it reads the truth, so that it does not compete.
        style: How it looks.
    """

    label: str
    name: str
    purpose: str
    parameters: dict[str, Any]
    reference: bool
    style: Style


@dataclass(frozen=True)
class Task:
    """A task.

    Attributes:
        name: What it is called.
        id: The environment's id.
        kwargs: What it was made with, the horizon apart.
        horizon: Number of steps T.
        runs: Number of runs of each agent.
        first_run: The number of the first of them.
        changes: Steps, counted from 1, that are the first to meet a new function in all runs.
        steps: Steps, counted from 1, at which curves are given, `(k,)`.
    """

    name: str
    id: str
    kwargs: dict[str, Any]
    horizon: int
    runs: int
    first_run: int
    changes: list[int]
    steps: NDArray[np.int64]


@dataclass(frozen=True)
class Row:
    """The final regret of an agent in a task.

    Attributes:
        task: The task.
        agent: The agent.
        runs: Number of runs.
        mean: The mean, with its interval.
        standard_error: Of the mean.
        median: The median, with its interval.
        share_of_random: The mean over that of random play; None where there is none.
        adaptation: Median over runs and changes of the steps until the regret per step, averaged
            over ten steps, is at most a tenth of random play's; infinite where it is not before
            the next change in half of them or more; None where there is nothing to adapt to.
    """

    task: str
    agent: str
    runs: int
    mean: Interval
    standard_error: float
    median: Interval
    share_of_random: float | None
    adaptation: float | None


@dataclass(frozen=True)
class AgentShare:
    """How an agent does across tasks, in shares of random play's mean regret.

    Attributes:
        agent: The agent.
        tasks: Number of tasks with a regret to divide by.
        iqm: The interquartile mean, with its interval.
        mean_share: The mean.
        beats_leader: Probability that one of its runs has a lower regret than one of the
            leader's in the same task; None for the leader.
    """

    agent: str
    tasks: int
    iqm: Interval
    mean_share: float
    beats_leader: Interval | None


@dataclass(frozen=True)
class Curve:
    """A mean over runs with its band, `(k,)` each; no band for a single run."""

    mean: Array
    low: Array | None
    high: Array | None


@dataclass(frozen=True)
class Played:
    """What an agent did in a task.

    Attributes:
        final: Regret of each run, `(runs,)`.
        cumulative: The regret up to each of the task's steps.
        per_step: The regret per step, averaged over the last ten steps, there.
        actions: What it played there in the first run, `(k,)`; None where it is no number.
        optimal_actions: What would have been best, likewise.
    """

    final: Array
    cumulative: Curve
    per_step: Curve
    actions: Array | None
    optimal_actions: Array | None


@dataclass(frozen=True)
class Profiles:
    """The share of runs whose relative regret is at most tau.

    Attributes:
        tau: Relative regrets, `(k,)`.
        shares: By agent, `(k,)` each.
    """

    tau: Array
    shares: dict[str, Array]


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
    """Final regret against a number in which an entry's tasks differ.

    Attributes:
        title: Entry and number, and what else tells these tasks from others.
        kwarg: The number's name.
        x: Its values.
        lines: One for each competitor.
    """

    title: str
    kwarg: str
    x: list[float]
    lines: list[GrowthLine]


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
    """How to do it again.

    Attributes:
        command: The command.
        experiment: The experiment's file.
        root_seed: The seed that all others follow from.
        versions: Of packages, by name.
        units: Number of units of work.
        seconds: Their time together; None where it is not known.
    """

    command: str
    experiment: str
    root_seed: int
    versions: dict[str, str]
    units: int
    seconds: float | None


@dataclass(frozen=True)
class Summary:
    """All that is said of an experiment's results: see `wgp_agents.benchmark.report.summarise`.

    Attributes:
        title: The experiment's title.
        description: What it is for.
        agents: The agents.
        tasks: The tasks.
        rows: Final regrets, by task and agent.
        played: Curves and runs, by task and agent.
        differences: The pairs of competitors, by task.
        aggregate: One for each agent; none where there is no regret to divide by.
        leader: The competitor with the lowest regret over all tasks; None where there is none.
        chance: The agent that plays at random; None where there is none.
        profiles: Performance profiles; None where there is no regret to divide by.
        improvement: For competitors i and j, `[i][j]`, the probability that a run of i has a
            lower regret than one of j; None on the diagonal. Empty for fewer than three
            competitors and for more than twenty.
        sensitivity: Final regret against parameters.
        maps: Final regret over two parameters.
        growth: Final regret against numbers of the tasks.
        costs: Those of the agents whose time is known.
        missing: What was not played.
        reproduction: How to do it again.
        runs: One row for each run of each agent in each task, as runs.csv has them.
    """

    title: str
    description: str
    agents: list[Agent]
    tasks: list[Task]
    rows: dict[tuple[str, str], Row]
    played: dict[tuple[str, str], Played]
    differences: dict[str, list[Difference]]
    aggregate: list[AgentShare]
    leader: str | None
    chance: str | None
    profiles: Profiles | None
    improvement: list[list[float | None]]
    sensitivity: list[Sensitivity]
    maps: list[ParameterMap]
    growth: list[Growth]
    costs: list[Cost]
    missing: Missing
    reproduction: Reproduction
    runs: list[dict[str, Any]]

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


def flat(row: Row | AgentShare) -> dict[str, Any]:
    """Return a row's values by name; of an interval also those of its ends, `_low` and `_high`."""
    found: dict[str, Any] = {}
    for field in fields(row):
        value = getattr(row, field.name)
        found[field.name] = value
        if field.name in INTERVALS:
            ends = (None, None, None) if value is None else value
            found |= dict(zip(interval_names(field.name), ends, strict=True))
    return found


def interval_names(name: str) -> tuple[str, str, str]:
    """Return the names of an interval's columns."""
    return name, f"{name}_low", f"{name}_high"
