"""Reading an experiment's folder: arrays with labels, a tidy table, relative regrets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.experiment import AgentSpec, TaskSpec, Unit
from wgp_agents.benchmark.folder import ResultsFolder
from wgp_agents.benchmark.layout import EVERYTHING, PER_RUN, PER_STEP, Arrays
from wgp_agents.benchmark.reader import UnitReader
from wgp_agents.benchmark.statistics import Estimate, estimate, share_of, smoothed
from wgp_gym.types import Array, Mask
from wgp_gym.validation import check_choice

if TYPE_CHECKING:
    import pandas

__all__ = [
    "RANDOM",
    "WINDOW",
    "Means",
    "Results",
    "competitors",
    "load_results",
    "relative_regrets",
    "scored",
    "yardstick",
]

RANDOM = "random"
MOST_CHANGES = 0.5  # of all steps: a function that changes more often drifts
WINDOW = 10  # steps over which regret per step is averaged


def load_results(path: str | Path, *, partial: bool = False) -> Results:
    """Load what `wgp-gym run` has written.

    Args:
        path: The folder.
        partial: Whether to take what is there of an experiment that is not finished: the
            agents that have played anything, the batches of runs that all of these have played,
            and the tasks that have one.

    Raises:
        ValueError: If the folder holds no results, units are missing and `partial` is False, or
            nothing is complete. A damaged file raises when it is read.
    """
    folder = ResultsFolder.open(Path(path))
    experiment = folder.experiment
    there, missing = list[Unit](), list[Unit]()
    for unit in experiment.units():
        (there if folder.file(unit).exists() else missing).append(unit)
    if missing and not partial:
        which = f"{len(missing)} of them, such as {folder.file(missing[0])}"
        remedy = "Run the experiment again, or take what there is with --partial (partial=True)"
        raise ValueError(f"Units are missing, {which}. {remedy}.")
    agents = [agent for agent in experiment.agents if any(unit.agent == agent for unit in there)]
    complete: dict[str, list[range]] = {}
    for task in experiment.tasks:
        played = Counter((u.runs.start, u.runs.stop) for u in there if u.task == task)
        batches = [range(*runs) for runs, count in played.items() if count == len(agents)]
        if batches:
            complete[task.name] = batches
    if not complete:
        raise ValueError(f"{path} holds no batch of runs that every agent has played yet.")
    return Results(folder, complete, [agent.label for agent in agents], missing)


class Means(NamedTuple):
    """What curves are drawn from: of all runs of an agent in a task, at each step, `(T,)`.

    Attributes:
        per_step: The mean regret of the last `WINDOW` steps.
        cumulative: The cumulative regret.
    """

    per_step: Estimate
    cumulative: Estimate

    @classmethod
    def of(cls, regret: Array) -> Means:
        """Return the means of the regret of each step, `(runs, T)`."""
        return cls(estimate(smoothed(regret, WINDOW)), estimate(np.cumsum(regret, axis=1)))


class Results:
    """The results of an experiment, by the names of its tasks and the labels of its agents.

    Run i of a task is the same episode for every agent.

    Attributes:
        folder: The folder.
        experiment: What was played.
        tasks: The tasks' names.
        agents: The agents' labels.
        missing: The units that were not played.
    """

    def __init__(
        self,
        folder: ResultsFolder,
        complete: dict[str, list[range]],
        agents: list[str],
        missing: list[Unit],
    ) -> None:
        self.folder = folder
        self._complete = complete
        self.tasks = list(complete)
        self.agents = agents
        self.missing = missing
        players = tuple(one for one in folder.experiment.agents if one.label in agents)
        self.experiment = replace(folder.experiment, agents=players)
        self._per_run: dict[tuple[str, str], Arrays] = {}
        self._means: dict[tuple[str, str], Means] = {}
        self._means_wanted = False
        self._of_chance: dict[str, Array] = {}
        self._changed: dict[str, Mask] = {}
        self._units = UnitReader(folder)

    def __repr__(self) -> str:
        """Say what there is."""
        runs = {task: len(self.runs(task)) for task in self.tasks}
        return f"Results(runs={runs}, agents={self.agents})"

    def task(self, name: str) -> TaskSpec:
        """Return a task by its name.

        Raises:
            ValueError: If there is none.
        """
        check_choice("task", name, "the results", self.tasks)
        return next(task for task in self.experiment.tasks if task.name == name)

    def agent(self, label: str) -> AgentSpec:
        """Return an agent by its label.

        Raises:
            ValueError: If there is none.
        """
        check_choice("agent", label, "the results", self.agents)
        return next(agent for agent in self.experiment.agents if agent.label == label)

    def runs(self, task: str) -> NDArray[np.int64]:
        """Return the numbers of a task's runs, `(runs,)`.

        Raises:
            ValueError: If there is no such task.
        """
        check_choice("task", task, "the results", self.tasks)
        return np.concatenate([np.arange(part.start, part.stop) for part in self._complete[task]])

    def horizon(self, task: str) -> int:
        """Return a task's number of steps T."""
        return self.folder.size(self.task(task)).horizon

    def read(self, task: str, agent: str, names: Iterable[str] = EVERYTHING) -> Arrays:
        """Read what is stored of an agent in a task, or the arrays of it that are named.

        What there is for each run is kept, and what `changes`, `mean_of_chance` and, if wanted,
        `means` say; of what there is for each step, the files read last.

        Returns:
            The names in `PER_RUN`, `(runs,)`, and those in `PER_STEP`, `(runs, T)`: see
            `wgp_agents.benchmark.play.play`.

        Raises:
            ValueError: If a file is damaged, or there is nothing of such a name.
        """
        spec, player = self.task(task), self.agent(agent)
        root = self.experiment.root_seed
        names = tuple(check_choice("names", name, "Results.read", EVERYTHING) for name in names)
        wanted = {*names, *PER_RUN, "regret", "changed"}
        parts = [
            self._units.read(Unit(spec, player, runs, root)) for runs in self._complete[spec.name]
        ]
        arrays = {name: np.concatenate([part[name] for part in parts]) for name in wanted}
        self._per_run[task, agent] = {name: arrays[name] for name in PER_RUN}
        self._keep(task, agent, arrays)
        return {name: arrays[name] for name in names}

    def _keep(self, task: str, agent: str, arrays: Arrays) -> None:
        """Keep what reports ask for again, so that they need not read again."""
        if agent == self.agents[0] and task not in self._changed:
            self._changed[task] = np.all(arrays["changed"], axis=0)
        if agent == self.random() and task not in self._of_chance:
            self._of_chance[task] = arrays["regret"].astype(float).mean(axis=0)
        if self._means_wanted and (task, agent) not in self._means:
            self._means[task, agent] = Means.of(arrays["regret"].astype(float))

    def steps(self, task: str, agent: str, name: str) -> NDArray[Any]:
        """Return one of "regret", "action", "optimal_action", "changed", `(runs, T)`."""
        check_choice("name", name, "Results.steps", PER_STEP)
        return self.read(task, agent, [name])[name]

    def regret(self, task: str, agent: str) -> Array:
        """Return the regret of each step, `(runs, T)`; step t stands in column t - 1."""
        return self.steps(task, agent, "regret").astype(float)

    def cumulative_regret(self, task: str, agent: str) -> Array:
        """Return the regret up to each step, `(runs, T)`."""
        return np.cumsum(self.regret(task, agent), axis=1)

    def per_run(self, task: str, agent: str, name: str) -> NDArray[Any]:
        """Return one of the names in `PER_RUN`, `(runs,)`; these are kept."""
        check_choice("name", name, "Results.per_run", PER_RUN)
        if (task, agent) not in self._per_run:
            self.read(task, agent, PER_RUN)
        return self._per_run[task, agent][name]

    def want_means(self) -> None:
        """Keep `means` of whatever is read from now on, as pictures will be drawn from it."""
        self._means_wanted = True

    def means(self, task: str, agent: str) -> Means:
        """Return what curves are drawn from; it is kept."""
        self.want_means()
        if (task, agent) not in self._means:
            self.read(task, agent, PER_RUN)
        return self._means[task, agent]

    def mean_of_chance(self, task: str) -> Array | None:
        """Return random play's mean regret of each step, `(T,)`, if it plays; it is kept."""
        chance = self.random()
        if chance is not None and task not in self._of_chance:
            self.read(task, chance, PER_RUN)
        return self._of_chance.get(task)

    def final_regret(self, task: str, agent: str) -> Array:
        """Return the regret of each whole run, `(runs,)`."""
        return self.per_run(task, agent, "final_regret")

    def random(self) -> str | None:
        """Return the label of the agent that plays at random, None where there is none."""
        found = [agent.label for agent in self.experiment.agents if agent.name == RANDOM]
        return found[0] if found else None

    def changes(self, task: str) -> list[int]:
        """Return the steps, counted from 1, that are the first to meet a new function.

        Only those that all runs share; none where the function drifts.
        """
        if task not in self._changed:
            self.read(task, self.agents[0], PER_RUN)
        changed = self._changed[task]
        steps = np.flatnonzero(changed) + 1
        return [] if len(steps) > MOST_CHANGES * len(changed) else steps.tolist()

    def rows(self) -> Iterator[dict[str, object]]:
        """Yield one row for each run of each agent in each task."""
        for task in map(self.task, self.tasks):
            for agent in self.experiment.agents:
                row: dict[str, object] = {"task": task.name, "environment": task.id}
                row |= {f"task.{key}": value for key, value in task.varied.items()}
                row |= {"agent": agent.label, "name": agent.name}
                row |= {f"agent.{key}": value for key, value in agent.varied.items()}
                columns = [self.per_run(task.name, agent.label, name).tolist() for name in PER_RUN]
                for run, *values in zip(self.runs(task.name).tolist(), *columns, strict=True):
                    yield row | {"run": run} | dict(zip(PER_RUN, values, strict=True))

    def frame(self) -> pandas.DataFrame:
        """Return a tidy table: one row for each run of each agent in each task.

        Raises:
            ModuleNotFoundError: If pandas is not installed: the extra "tables" brings it.
        """
        import pandas

        return pandas.DataFrame(self.rows())

    def to_csv(self, path: str | Path) -> None:
        """Write the tidy table as CSV."""
        self.frame().to_csv(path, index=False)

    def to_parquet(self, path: str | Path) -> None:
        """Write the tidy table as Parquet."""
        frame = self.frame()
        mixed = [name for name in frame if frame[name].map(type).nunique() > 1]
        for name in mixed:  # a column of Parquet has one type
            frame[name] = frame[name].map(str, na_action="ignore")
        frame.to_parquet(path, index=False)

    def to_rliable(self) -> dict[str, Array]:
        """Return scores `(runs, tasks)` by agent, as the package rliable takes them.

        Higher is better there: a score is 1 - regret / random play's mean regret, 1 for the
        oracle and 0 for random play; without random play it is the regret, negative. A task in
        which random play has no regret is left out.

        Raises:
            ValueError: If the tasks have different numbers of runs.
        """
        if len({len(self.runs(task)) for task in self.tasks}) > 1:
            raise ValueError("rliable takes as many runs of one task as of another.")
        chance, units = self.random(), dict.fromkeys(self.tasks, np.ones(1))
        if chance is not None:
            units = {task: self.final_regret(task, chance) for task in self.tasks}
        scored = [task for task, unit in units.items() if unit.mean() > 0]
        best = 0.0 if chance is None else 1.0

        def _scores(agent: str) -> Array:
            shares = [share_of(self.final_regret(task, agent), units[task]) for task in scored]
            return best - np.stack(shares, axis=1)

        return {agent: _scores(agent) for agent in self.agents}


def competitors(results: Results) -> list[str]:
    """Return the labels of the agents that do not read the truth."""
    return [agent.label for agent in results.experiment.agents if not agent.reference]


def yardstick(results: Results, task: str) -> Array:
    """Return the regrets that count as 1: random play's, or without it every competitor's.

    Returns:
        `(runs,)`, or `(agents * runs,)`.
    """
    chance = results.random()
    labels = competitors(results) if chance is None else [chance]
    return np.concatenate([results.final_regret(task, label) for label in labels])


def scored(results: Results) -> list[str]:
    """Return the tasks in which there is a regret to divide by."""
    if not competitors(results):
        return []
    return [task for task in results.tasks if yardstick(results, task).mean() > 0]


def relative_regrets(results: Results) -> dict[str, list[Array]]:
    """Return each agent's final regrets, 0 for the oracle and 1 for the mean of the yardstick.

    Returns:
        `(runs,)` for each of the tasks that are scored.
    """
    units = {task: yardstick(results, task) for task in scored(results)}
    return {
        label: [share_of(results.final_regret(task, label), unit) for task, unit in units.items()]
        for label in results.agents
    }
