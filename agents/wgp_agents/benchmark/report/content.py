"""The report of an experiment: one page, or tables in Markdown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli_w

from wgp_agents.benchmark.figures.styles import styles
from wgp_agents.benchmark.files import write_whole
from wgp_agents.benchmark.report import charts
from wgp_agents.benchmark.report.numbers import with_interval
from wgp_agents.benchmark.report.page import assemble
from wgp_agents.benchmark.report.summary import Summary, competitors
from wgp_agents.benchmark.report.tables import shared_tables, task_tables, timings
from wgp_agents.benchmark.results import Results
from wgp_agents.benchmark.statistics import Difference
from wgp_agents.registry import AGENTS

__all__ = ["content", "findings", "write_page"]

MOST_NAMED = 4  # rivals that one sentence names

NOTES = (
    "Regret is the sum over the steps of the best expected reward less that of the action that "
    "was played: lower is better. Every agent plays the same episodes, run by run.",
    "Means and medians: 95 % bootstrap intervals over the runs. Bands of curves: the mean with "
    "1.96 standard errors on either side.",
    "Differences: of the same runs, with intervals that hold for all pairs of a task together "
    "with 95 %. One agent beats another where the interval excludes zero.",
    "Adaptation: steps after a change until the regret per step, averaged over ten steps, is at "
    "most a tenth of random play's; the median over runs and changes, a dash where half of them or "
    "more do not get there before the next change.",
    "Across tasks, a regret is divided by the mean of random play's in the same task (or, where "
    "nobody played at random, of all competitors'): 0 is the oracle, 1 is chance. That mean is "
    "taken as known. The interquartile mean leaves out the lowest and the highest quarter of the "
    "runs. Tasks that share their draws are resampled together; one without regret is left out.",
)


def write_page(results: Results, summary: Summary, path: Path) -> None:
    """Write the page, one file that needs no other."""
    write_whole(path, assemble(content(results, summary)).encode())


def content(results: Results, summary: Summary) -> dict[str, Any]:
    """Return what the page shows, as `wgp_agents.benchmark.report.page.assemble` takes it."""
    experiment = results.experiment
    looks = styles(experiment.agents)
    agents = [
        {
            "label": agent.label,
            "agent": agent.name,
            "parameters": agent.parameters,
            "summary": AGENTS[agent.name].summary,
            "reference": agent.reference,
            "colour": looks[agent.label].colour,
            "dash": looks[agent.label].dash,
        }
        for agent in experiment.agents
    ]
    tasks = [
        {
            "name": name,
            "id": results.task(name).id,
            "kwargs": {k: v for k, v in results.task(name).kwargs.items() if k != "horizon"},
            "horizon": results.horizon(name),
            "runs": len(results.runs(name)),
        }
        for name in results.tasks
    ]
    return {
        "title": experiment.title,
        "subtitle": experiment.description,
        "agents": agents,
        "tasks": tasks,
        "findings": [*left_out(results), *findings(results, summary)],
        "tables": [*task_tables(results, summary), *shared_tables(results, summary)],
        "charts": charts.charts(results, summary),
        "reproduce": reproduce(results),
        "notes": list(NOTES),
    }


def left_out(results: Results) -> list[str]:
    """Return a sentence that says that results are partial, if they are."""
    if not results.missing:
        return []
    whole = results.folder.experiment
    gone = [
        f"the agent {agent.label}" for agent in whole.agents if agent.label not in results.agents
    ]
    gone += [f"the task {task.name}" for task in whole.tasks if task.name not in results.tasks]
    shown = gone[:MOST_NAMED] + ["more"] * (len(gone) > MOST_NAMED)
    what = ", ".join(shown) or "runs that an agent lacks"
    return [f"Units are missing, {len(results.missing)} of them. Left out: {what}."]


def findings(results: Results, summary: Summary) -> list[str]:
    """Return a sentence or two on each task."""
    found = []
    labels = competitors(results)
    for task in results.tasks if len(labels) > 1 else ():
        best = summary.best(task, labels)
        row = summary.row(task, best)
        pairs = [pair for pair in summary.differences[task] if best in (pair.first, pair.second)]
        beaten = [pair for pair in pairs if pair.better == best]
        unclear = [other(pair, best) for pair in pairs if pair.better is None]
        text = f"{task}: {best} has the lowest mean regret, {interval(row, 'mean')}."
        if beaten:
            text += f" It beats {len(beaten)} of {len(pairs)} other agents clearly."
        if 0 < len(unclear) <= MOST_NAMED:
            text += f" Not clearly above: {', '.join(unclear)}."
        elif unclear:
            text += f" {len(unclear)} are not clearly above it."
        found.append(text)
    return found


def other(pair: Difference, label: str) -> str:
    """Return the other agent of a pair."""
    return pair.second if pair.first == label else pair.first


def interval(row: dict[str, Any], name: str, decimals: int | None = None) -> str:
    """Return a value of a row with its interval, for people; nothing where there is none."""
    if row[name] is None:
        return ""
    return with_interval(row[name], row[f"{name}_low"], row[f"{name}_high"], decimals)


def reproduce(results: Results) -> dict[str, Any]:
    """Return how to do it again."""
    experiment = results.folder.experiment
    rows = timings(results)
    return {
        "command": "wgp-gym run experiment.toml --out results/again",
        "experiment": tomli_w.dumps(experiment.source),
        "root_seed": experiment.root_seed,
        "versions": results.folder.manifest["versions"],
        "units": len(experiment.units()),
        "seconds": sum(float(row["seconds"]) for row in rows) if rows else None,
        "failed": [
            f"{unit.agent.label} in {unit.task.name}, run {unit.runs.start} on"
            for unit in results.missing
        ],
    }
