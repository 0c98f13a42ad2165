"""From results to rows: final regrets, paired comparisons, and what holds across tasks."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wgp_agents.benchmark.files import write_csv
from wgp_agents.benchmark.results import Results
from wgp_agents.benchmark.statistics import (
    Difference,
    adaptation_times,
    estimate,
    interquartile_mean,
    mean_interval,
    median_interval,
    paired_comparisons,
    probability_of_improvement,
    share_of,
)
from wgp_gym.kernels import Array

__all__ = [
    "WINDOW",
    "Summary",
    "competitors",
    "relative_regrets",
    "scored",
    "summarise",
    "write_tables",
    "yardstick",
]

Row = dict[str, Any]

ADAPTED = 0.1  # of random play's regret per step: an agent below has adapted to a change
MOST_PAIRED = 150  # competitors: 11,175 pairs, whose resamples take 600 MiB
ACROSS = 1_000  # resamples of all tasks' runs, which are many
WINDOW = 10  # steps over which regret per step is averaged


class Summary(NamedTuple):
    """All that is said of an experiment's results.

    Attributes:
        rows: One for each task and agent, by the two: see `summary_rows`.
        differences: The pairs of competitors, by task: see `comparisons`.
        aggregate: One row for each agent: see `aggregate_rows`.
        leader: The competitor with the lowest regret over all tasks; None where there is none.
    """

    rows: dict[tuple[str, str], Row]
    differences: dict[str, list[Difference]]
    aggregate: list[Row]
    leader: str | None

    def row(self, task: str, agent: str) -> Row:
        """Return the row of an agent in a task."""
        return self.rows[task, agent]

    def best(self, task: str, labels: list[str]) -> str:
        """Return which of these agents has the lowest mean in a task."""
        return min(labels, key=lambda label: self.row(task, label)["mean"])


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


def mean_share(shares: list[Array]) -> float:
    """Return the mean over tasks of the mean share."""
    return float(np.mean([share.mean() for share in shares]))


def adaptation_threshold(results: Results, task: str, changes: list[int]) -> Array | None:
    """Return the regret per step below which an agent has adapted to each change, `(changes,)`.

    It is a tenth of random play's mean regret per step from that change to the next. None
    without changes or without random play.
    """
    chance = results.random()
    if chance is None or not changes:
        return None
    level = results.regret(task, chance).mean(axis=0)
    ends = [*changes[1:], len(level) + 1]
    means = [level[c - 1 : end - 1].mean() for c, end in zip(changes, ends, strict=True)]
    return ADAPTED * np.array(means)


def summary_rows(results: Results) -> dict[tuple[str, str], Row]:
    """Return one row for each task and agent.

    "adaptation" is the median over runs and changes of the steps until the regret per step,
    averaged over ten steps, is at most a tenth of random play's; infinite where it is not before
    the next change in half of them or more; empty where there is nothing to adapt to.
    """
    rows = {}
    chance = results.random()
    known = scored(results) if chance is not None else []
    for task in results.tasks:
        changes = results.changes(task)
        threshold = adaptation_threshold(results, task, changes)
        for agent in results.agents:
            regret = results.regret(task, agent)  # before what is kept: the files are read once
            final = results.final_regret(task, agent)
            mean, median = mean_interval(final), median_interval(final)
            row = {"task": task, "agent": agent, "runs": len(final)}
            row |= {"mean": mean.value, "mean_low": mean.low, "mean_high": mean.high}
            row["standard_error"] = float(estimate(final).standard_error)
            row |= {"median": median.value, "median_low": median.low, "median_high": median.high}
            row["share_of_random"] = None
            if task in known:
                row["share_of_random"] = mean.value / float(yardstick(results, task).mean())
            row["adaptation"] = None
            if threshold is not None:
                times = adaptation_times(regret, changes, threshold=threshold, window=WINDOW)
                row["adaptation"] = float(np.median(times))
            rows[task, agent] = row
    return rows


def comparisons(results: Results, task: str) -> list[Difference]:
    """Return the paired differences of all pairs of competitors, with simultaneous intervals.

    Of more than 150 competitors only those of the lowest mean with every other, whose intervals
    hold together.
    """
    finals = {label: results.final_regret(task, label) for label in competitors(results)}
    if len(finals) < 2:
        return []
    if len(finals) <= MOST_PAIRED:
        return paired_comparisons(finals)
    best = min(finals, key=lambda label: finals[label].mean())
    return paired_comparisons(finals, pairs=[(best, label) for label in finals if label != best])


def aggregate_rows(results: Results) -> tuple[list[Row], str | None]:
    """Return one row for each agent, and the leader: their shares of random play's regret.

    "beats_leader" is the probability that one of its runs has a lower regret than one of the
    leader's in the same task; empty for the leader. There is no row where there is nothing to
    divide by.
    """
    groups = [results.task(task).seed_name for task in scored(results)]
    if not groups:
        return [], None
    relative = relative_regrets(results)
    first = min(competitors(results), key=lambda label: mean_share(relative[label]))
    rows = []
    for label, shares in relative.items():
        middle = interquartile_mean(shares, groups=groups, resamples=ACROSS)
        row: Row = {"agent": label, "tasks": len(shares)}
        row |= {"iqm": middle.value, "iqm_low": middle.low, "iqm_high": middle.high}
        row["mean_share"] = mean_share(shares)
        row |= dict.fromkeys(("beats_leader", "beats_leader_low", "beats_leader_high"))
        if label != first:
            chance = probability_of_improvement(
                shares, relative[first], groups=groups, resamples=ACROSS
            )
            row |= {"beats_leader": chance.value}
            row |= {"beats_leader_low": chance.low, "beats_leader_high": chance.high}
        rows.append(row)
    return rows, first


def summarise(results: Results) -> Summary:
    """Work out all statistics."""
    rows = summary_rows(results)
    differences = {task: comparisons(results, task) for task in results.tasks}
    return Summary(rows, differences, *aggregate_rows(results))


def write_tables(results: Results, summary: Summary, folder: Path) -> None:
    """Write summary.csv, comparisons.csv, aggregate.csv and runs.csv."""
    write_csv(folder / "summary.csv", list(summary.rows.values()))
    pairs = [
        {"task": task} | difference._asdict()
        for task, found in summary.differences.items()
        for difference in found
    ]
    write_csv(folder / "comparisons.csv", pairs, ("task", *Difference._fields))
    write_csv(
        folder / "aggregate.csv", summary.aggregate, list(*summary.aggregate[:1]) or ["agent"]
    )
    rows = list(results.rows())
    columns = list(dict.fromkeys(itertools.chain.from_iterable(rows)))
    write_csv(folder / "runs.csv", rows, columns)
