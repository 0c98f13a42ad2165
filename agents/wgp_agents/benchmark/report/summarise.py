"""From an experiment's results to the one object that its report is made of."""

from __future__ import annotations

import csv
import itertools
from statistics import median

import numpy as np
import tomli_w
from numpy.typing import NDArray

from wgp_agents.benchmark.figures.canvas import Z
from wgp_agents.benchmark.figures.styles import styles
from wgp_agents.benchmark.folder import TIMINGS
from wgp_agents.benchmark.layout import Arrays
from wgp_agents.benchmark.report.summary import (
    Agent,
    AgentShare,
    Cost,
    Curve,
    Missing,
    Played,
    Profiles,
    Reproduction,
    Row,
    Summary,
    Task,
)
from wgp_agents.benchmark.report.sweeps import growth, parameter_maps, sensitivity
from wgp_agents.benchmark.results import (
    WINDOW,
    Results,
    competitors,
    relative_regrets,
    scored,
    yardstick,
)
from wgp_agents.benchmark.statistics import (
    Difference,
    adaptation_times,
    estimate,
    improvement,
    interquartile_mean,
    mean_interval,
    median_interval,
    paired_comparisons,
    probability_of_improvement,
    profile_shares,
    smoothed,
)
from wgp_gym.types import Array

__all__ = ["WINDOW", "adaptation_threshold", "band", "summarise", "timings"]

ADAPTED = 0.1  # of random play's regret per step: an agent below has adapted to a change
MOST_PAIRED = 150  # competitors: 11,175 pairs, whose resamples take 600 MiB
MOST_COMPARED = 20  # competitors of which all pairs' probabilities are worked out
ACROSS = 1_000  # resamples of all tasks' runs, which are many
POINTS = 200  # of a curve
READ = ("regret", "action", "optimal_action", "final_regret")


def summarise(results: Results) -> Summary:
    """Work out all that a report says; each file is read once."""
    experiment, chance = results.experiment, results.random()
    tasks, rows, played = [], {}, {}
    for name in results.tasks:
        # What an agent's row needs of others comes from the first and from random play.
        first = [results.agents[0], *filter(None, [chance])]
        held = {label: results.read(name, label, READ) for label in dict.fromkeys(first)}
        task = task_of(results, name)
        tasks.append(task)
        threshold = adaptation_threshold(results, name, task.changes)
        unit = random_mean(results, name)
        for label in results.agents:
            stored = held.pop(label, None) or results.read(name, label, READ)
            rows[task.name, label] = row(stored, task, label, unit, threshold)
            played[task.name, label] = played_by(stored, task)
    relative, lines = relative_regrets(results), timings(results)
    aggregate, leader = agent_shares(results, relative)
    finals = {place: one.final for place, one in played.items()}
    means = {place: one.mean for place, one in rows.items()}
    specs = [results.task(name) for name in results.tasks]
    return Summary(
        title=experiment.title,
        description=experiment.description,
        agents=agents_of(results),
        tasks=tasks,
        rows=rows,
        played=played,
        differences={task: comparisons(results, task) for task in results.tasks},
        aggregate=aggregate,
        leader=leader,
        chance=chance,
        profiles=profiles(relative) if aggregate else None,
        improvement=improvements(results),
        sensitivity=sensitivity(experiment.agents, results.tasks, means),
        maps=parameter_maps(experiment.agents, results.tasks, means),
        growth=growth(specs, competitors(results), means, finals),
        costs=costs(results, lines),
        missing=missing(results),
        reproduction=reproduction(results, lines),
        runs=list(results.rows()),
    )


def agents_of(results: Results) -> list[Agent]:
    """Return what is known of the agents."""
    looks = styles(results.experiment.agents)
    return [
        Agent(
            label=agent.label,
            name=agent.name,
            purpose=agent.entry.summary,
            parameters=agent.parameters,
            reference=agent.reference,
            style=looks[agent.label],
        )
        for agent in results.experiment.agents
    ]


def task_of(results: Results, name: str) -> Task:
    """Return what is known of a task."""
    spec, runs, horizon = results.task(name), results.runs(name), results.horizon(name)
    return Task(
        name=name,
        id=spec.id,
        kwargs={key: value for key, value in spec.kwargs.items() if key != "horizon"},
        horizon=horizon,
        runs=len(runs),
        first_run=int(runs[0]),
        changes=results.changes(name),
        steps=thinned(horizon) + 1,
    )


def thinned(horizon: int) -> NDArray[np.int64]:
    """Return the columns of a curve that are shown, the first and the last among them."""
    return np.unique(np.linspace(0, horizon - 1, min(horizon, POINTS)).round().astype(np.int64))


def adaptation_threshold(results: Results, task: str, changes: list[int]) -> Array | None:
    """Return the regret per step below which an agent has adapted to each change, `(changes,)`.

    It is a tenth of random play's mean regret per step from that change to the next. None
    without changes or without random play.
    """
    level = results.mean_of_chance(task) if changes else None
    if level is None:
        return None
    ends = [*changes[1:], len(level) + 1]
    means = [level[c - 1 : end - 1].mean() for c, end in zip(changes, ends, strict=True)]
    return ADAPTED * np.array(means)


def random_mean(results: Results, task: str) -> float | None:
    """Return random play's mean final regret; None where it plays none or has none."""
    if results.random() is None:
        return None
    return float(yardstick(results, task).mean()) or None


def row(stored: Arrays, task: Task, label: str, unit: float | None, threshold: Array | None) -> Row:
    """Return the row of an agent in a task, `unit` being random play's mean regret there."""
    final = stored["final_regret"]
    mean, adaptation = mean_interval(final), None
    if threshold is not None:
        regret = stored["regret"].astype(float)
        times = adaptation_times(regret, task.changes, threshold=threshold, window=WINDOW)
        adaptation = float(np.median(times))
    return Row(
        task=task.name,
        agent=label,
        runs=len(final),
        mean=mean,
        standard_error=float(estimate(final).standard_error),
        median=median_interval(final),
        share_of_random=None if unit is None else mean.value / unit,
        adaptation=adaptation,
    )


def played_by(stored: Arrays, task: Task) -> Played:
    """Return an agent's curves in a task, and what its first run played."""
    shown, regret = task.steps - 1, stored["regret"].astype(float)
    actions, best = (stored[name][0] for name in ("action", "optimal_action"))
    flat = actions.ndim == 1 or actions.shape[1] == 1
    return Played(
        final=stored["final_regret"],
        cumulative=band(np.cumsum(regret, axis=1)[:, shown]),
        per_step=band(smoothed(regret, WINDOW)[:, shown]),
        actions=actions.reshape(-1)[shown].astype(float) if flat else None,
        optimal_actions=best.reshape(-1)[shown].astype(float) if flat else None,
    )


def band(runs: Array) -> Curve:
    """Return a mean with 1.96 standard errors on either side, from `(runs, k)`."""
    mean, error = estimate(runs)
    if len(runs) < 2:
        return Curve(mean, None, None)
    return Curve(mean, mean - Z * error, mean + Z * error)


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


def agent_shares(
    results: Results, relative: dict[str, list[Array]]
) -> tuple[list[AgentShare], str | None]:
    """Return how each agent does across tasks, by its relative regrets, and who leads."""
    groups = [results.task(task).seed_name for task in scored(results)]
    if not groups:
        return [], None
    means = {
        label: float(np.mean([share.mean() for share in shares]))
        for label, shares in relative.items()
    }
    leader = min(competitors(results), key=means.__getitem__)
    found = []
    for label, shares in relative.items():
        iqm, beats = interquartile_mean(shares, groups=groups, resamples=ACROSS), None
        if label != leader:
            rivals = relative[leader]
            beats = probability_of_improvement(shares, rivals, groups=groups, resamples=ACROSS)
        found.append(AgentShare(label, len(shares), iqm, means[label], beats))
    return found, leader


def profiles(shares: dict[str, list[Array]]) -> Profiles:
    """Return the performance profiles, up to twice the mean of random play."""
    largest = max(np.quantile(share, 0.99) for found in shares.values() for share in found)
    tau = np.linspace(0.0, min(float(largest), 2.0), POINTS)
    return Profiles(tau, {label: profile_shares(shares[label], tau)[0] for label in shares})


def improvements(results: Results) -> list[list[float | None]]:
    """Return how likely a run of one competitor has a lower regret than one of another."""
    labels = competitors(results)
    if not 2 < len(labels) <= MOST_COMPARED:
        return []
    finals = [[results.final_regret(task, label) for task in results.tasks] for label in labels]
    values: list[list[float | None]] = [[None] * len(labels) for _ in labels]
    for i, j in itertools.combinations(range(len(labels)), 2):
        better = improvement(finals[i], finals[j])
        values[i][j], values[j][i] = better, 1 - better
    return values


def timings(results: Results) -> list[dict[str, str]]:
    """Return the rows of timings.csv; a line that a kill has cut short is left out."""
    path = results.folder.path / TIMINGS
    if not path.exists():
        return []
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        return [row for row in csv.DictReader(file) if row.get("worker")]


def costs(results: Results, lines: list[dict[str, str]]) -> list[Cost]:
    """Return the time of a run, the median over units, and the peak memory of each agent."""
    spent: dict[str, list[float]] = {}
    peaks: dict[str, float] = {}
    for line in lines:
        label = line["agent"]
        spent.setdefault(label, []).append(float(line["seconds"]) / int(line["runs"]))
        peaks[label] = max(peaks.get(label, 0.0), float(line["peak_memory_mib"]))
    known = [label for label in results.agents if label in spent]
    return [Cost(label, 1000 * median(spent[label]), peaks[label]) for label in known]


def missing(results: Results) -> Missing:
    """Return what was not played."""
    whole = results.folder.experiment
    return Missing(
        units=[
            f"{unit.agent.label} in {unit.task.name}, run {unit.runs.start} on"
            for unit in results.missing
        ],
        agents=[one.label for one in whole.agents if one.label not in results.agents],
        tasks=[one.name for one in whole.tasks if one.name not in results.tasks],
    )


def reproduction(results: Results, lines: list[dict[str, str]]) -> Reproduction:
    """Return how to do it again, and how long it took."""
    experiment = results.folder.experiment
    return Reproduction(
        command="wgp-gym run experiment.toml --out results/again",
        experiment=tomli_w.dumps(experiment.source),
        root_seed=experiment.root_seed,
        versions=results.folder.manifest.versions,
        units=len(experiment.units()),
        seconds=sum(float(line["seconds"]) for line in lines) if lines else None,
    )
