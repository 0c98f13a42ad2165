"""The report of an experiment: one page, or tables in Markdown."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from statistics import median
from typing import Any

import tomli_w

from wgp_agents.benchmark import charts
from wgp_agents.benchmark.comparisons import Difference
from wgp_agents.benchmark.files import write_whole
from wgp_agents.benchmark.page import assemble
from wgp_agents.benchmark.results import Results
from wgp_agents.benchmark.styles import styles
from wgp_agents.benchmark.summary import Summary, competitors
from wgp_agents.registry import AGENTS

__all__ = ["content", "findings", "write_page"]

MOST_NAMED = 4  # rivals that one sentence names
MOST_PAIRED = 6  # agents of which all pairs are shown

NOTES = (
    "Regret is the sum over the steps of the best expected reward less that of the action that "
    "was played: lower is better. Every agent plays the same episodes, run by run.",
    "Means and medians: 95 % bootstrap intervals over the runs. Bands of curves: the mean with "
    "1.96 standard errors on either side.",
    "Differences: of the same runs, with intervals that hold for all pairs of a task together "
    "with 95 %. One agent beats another where the interval excludes zero.",
    "Adaptation: steps after a change until the regret per step, averaged over ten steps, is below "
    "a tenth of random play's; the median over runs and changes, infinite where more than half do "
    "not get there before the next change.",
    "Across tasks, a regret is divided by the mean of random play's in the same task (or, where "
    "nobody played at random, of all agents'): 0 is the oracle, 1 is chance. The interquartile "
    "mean leaves out the lowest and the highest quarter of the runs.",
)


def write_page(results: Results, summary: Summary, path: Path) -> None:
    """Write the page, one file that needs no other."""
    write_whole(path, assemble(content(results, summary)).encode())


def content(results: Results, summary: Summary) -> dict[str, Any]:
    """Return what the page shows, as `wgp_agents.benchmark.page.assemble` takes it."""
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
            "kwargs": results.task(name).kwargs,
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
        "findings": findings(results, summary),
        "tables": [*task_tables(results, summary), *shared_tables(results, summary)],
        "charts": charts.charts(results, summary),
        "reproduce": reproduce(results),
        "notes": list(NOTES),
    }


def findings(results: Results, summary: Summary) -> list[str]:
    """Return a sentence or two on each task."""
    found = []
    labels = competitors(results)
    for task in results.tasks if len(labels) > 1 else ():
        best = summary.best(task, labels)
        row = summary.row(task, best)
        pairs = [pair for pair in summary.differences[task] if best in (pair.first, pair.second)]
        beaten = [pair.verdict for pair in pairs if pair.verdict.startswith(f"{best} beats")]
        unclear = [other(pair, best) for pair in pairs if pair.verdict not in beaten]
        text = f"{task}: {best} has the lowest mean regret, {interval(row, 'mean')}."
        if beaten:
            text += f" It beats {len(beaten)} of {len(pairs)} other agents clearly."
        if 0 < len(unclear) <= MOST_NAMED:
            text += f" No clear difference: {', '.join(unclear)}."
        found.append(text)
    return found


def other(pair: Difference, label: str) -> str:
    """Return the other agent of a pair."""
    return pair.second if pair.first == label else pair.first


def interval(row: dict[str, Any], name: str) -> str:
    """Return a value with its interval, for people: "254 (240 to 268)"."""
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2
    ends = "" if math.isnan(low) else f" ({low:.{digits}f} to {high:.{digits}f})"
    return f"{value:.{digits}f}{ends}"


def cell(row: dict[str, Any], name: str) -> list[float | None]:
    """Return a value with its interval, for the page."""
    return [finite(row[key]) for key in (name, f"{name}_low", f"{name}_high")]


def finite(value: float | None) -> float | None:
    """Return a number, or None for what JSON cannot hold."""
    return None if value is None or not math.isfinite(value) else value


def column(title: str, kind: str, hint: str = "", digits: int = 0, best: str | None = None) -> Any:
    """Return the head of a table's column."""
    return {"title": title, "kind": kind, "hint": hint, "digits": digits, "best": best}


def task_tables(results: Results, summary: Summary) -> list[dict[str, Any]]:
    """Return for each task the table of final regrets and that of paired differences."""
    tables = []
    for i, task in enumerate(results.tasks):
        rows = [summary.row(task, agent) for agent in results.agents]
        digits = 0 if max(row["mean"] for row in rows) >= 100 else 2
        columns = [
            column("Agent", "agent"),
            column("Mean", "interval", "of the final regret", digits, "low"),
            column("Median", "interval", "of the final regret", digits, "low"),
        ]
        cells = [[j, cell(row, "mean"), cell(row, "median")] for j, row in enumerate(rows)]
        for key, title, kind, hint in (
            ("share_of_random", "Of random play's", "percent", "mean regret over random play's"),
            ("adaptation", "Adaptation", "text", "median steps after a change"),
        ):
            if any(row[key] is not None for row in rows):
                columns.append(column(title, kind, hint, 0, "low" if kind == "percent" else None))
                for line, row in zip(cells, rows, strict=True):
                    value = row[key]
                    line.append(
                        value if kind == "percent" or finite(value) is not None else "never"
                    )
        tables.append(
            {
                "id": f"regret-{i}",
                "title": "Final regret",
                "caption": f"{len(results.runs(task))} runs of {results.horizon(task)} steps",
                "task": i,
                "columns": columns,
                "rows": [{"agent": line[0], "cells": line} for line in cells],
            }
        )
        tables.append(differences_table(results, summary, i, task))
    return [table for table in tables if table["rows"]]


def differences_table(results: Results, summary: Summary, i: int, task: str) -> dict[str, Any]:
    """Return the paired differences of a task: of all pairs, or of the best with every other."""
    pairs = summary.differences[task]
    labels = competitors(results)
    caption = "all pairs, run by run; intervals hold together"
    if len(labels) > MOST_PAIRED:
        best = summary.best(task, labels)
        pairs = [pair for pair in pairs if best in (pair.first, pair.second)]
        caption = f"{best} and every other agent, run by run; intervals hold for all pairs together"
    place = {label: j for j, label in enumerate(results.agents)}
    rows = [
        [place[p.first], place[p.second], [p.difference, finite(p.low), finite(p.high)], p.verdict]
        for p in pairs
    ]
    columns = [column("Agent", "agent"), column("Minus", "agent")]
    columns += [column("Difference", "interval", "of the mean regrets", 1)]
    columns += [column("Verdict", "text")]
    return {
        "id": f"differences-{i}",
        "title": "Paired differences",
        "caption": caption,
        "task": i,
        "columns": columns,
        "rows": [{"agent": row[0], "cells": row} for row in rows],
    }


def shared_tables(results: Results, summary: Summary) -> list[dict[str, Any]]:
    """Return the table across tasks and that of what the agents cost."""
    columns = [
        column("Agent", "agent"),
        column("Interquartile mean", "interval", "of the shares", 3, "low"),
        column("Mean", "number", "of the shares", 3, "low"),
    ]
    rows: list[list[Any]] = [
        [j, cell(row, "iqm"), row["mean_share"]] for j, row in enumerate(summary.aggregate)
    ]
    if summary.leader is not None:
        hint = f"probability that a run is better than one of {summary.leader}, in the same task"
        columns.append(column(f"Beats {summary.leader}", "interval", hint, 2, "high"))
        for line, row in zip(rows, summary.aggregate, strict=True):
            line.append(cell(row, "beats_leader"))
    across = {
        "id": "across",
        "title": "Across tasks",
        "caption": "shares of random play's regret" if results.random() else "shares of the mean",
        "task": None,
        "columns": columns,
        "rows": [{"agent": row[0], "cells": row} for row in rows],
    }
    return [across, cost_table(results)]


def cost_table(results: Results) -> dict[str, Any]:
    """Return the table of times and memory, from timings.csv."""
    spent: dict[str, list[float]] = {}
    peaks: dict[str, float] = {}
    for row in timings(results):
        label = row["agent"]
        spent.setdefault(label, []).append(float(row["seconds"]) / int(row["runs"]))
        peaks[label] = max(peaks.get(label, 0.0), float(row["peak_memory_mib"]))
    lines = [
        [j, 1000 * median(spent[label]), peaks[label]]
        for j, label in enumerate(results.agents)
        if label in spent
    ]
    return {
        "id": "cost",
        "title": "Cost",
        "caption": "median over the units of work; memory of the process that played them",
        "task": None,
        "columns": [
            column("Agent", "agent"),
            column("Milliseconds per run", "number", "in a batch, environment and all", 2, "low"),
            column("Peak memory, MiB", "number", "of the worker process up to then", 0),
        ],
        "rows": [{"agent": line[0], "cells": line} for line in lines],
    }


def timings(results: Results) -> list[dict[str, str]]:
    """Return the rows of timings.csv; a line that a kill has cut short is left out."""
    path = results.folder.path / "timings.csv"
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if None not in row.values()]


def reproduce(results: Results) -> dict[str, Any]:
    """Return how to do it again."""
    experiment = results.experiment
    rows = timings(results)
    missing = [unit for unit in experiment.units() if not results.folder.file(unit).exists()]
    return {
        "command": "wgp-gym run experiment.toml --out results/again",
        "experiment": tomli_w.dumps(experiment.source),
        "root_seed": experiment.root_seed,
        "versions": results.folder.manifest["versions"],
        "units": len(experiment.units()),
        "seconds": sum(float(row["seconds"]) for row in rows) if rows else None,
        "failed": [f"{u.agent.label} in {u.task.name}, run {u.runs.start} on" for u in missing],
    }
