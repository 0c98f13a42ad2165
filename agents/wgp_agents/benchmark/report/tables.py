"""The tables of a report's page, as data."""

from __future__ import annotations

import csv
from statistics import median
from typing import Any

from wgp_agents.benchmark.report.numbers import decimals_for, finite
from wgp_agents.benchmark.report.summary import Summary, competitors
from wgp_agents.benchmark.results import Results
from wgp_agents.benchmark.statistics import Difference

__all__ = ["shared_tables", "task_tables", "timings"]

MOST_PAIRED = 6  # agents of which all pairs are shown
FURTHER = (
    ("share_of_random", "Of random play's", "percent", "mean regret over random play's"),
    ("adaptation", "Adaptation", "number", "median steps after a change; a dash where it fails"),
)

Table = dict[str, Any]


def task_tables(results: Results, summary: Summary) -> list[Table]:
    """Return for each task the table of final regrets and that of paired differences."""
    tables = []
    for i, task in enumerate(results.tasks):
        rows = [summary.row(task, agent) for agent in results.agents]
        digits = shared_decimals([row["mean"] for row in rows])
        columns = [
            column("Agent", "agent"),
            column("Mean", "interval", "of the final regret", digits, "low"),
            column("Median", "interval", "of the final regret", digits, "low"),
        ]
        cells: list[list[Any]] = [
            [j, cell(row, "mean"), cell(row, "median")] for j, row in enumerate(rows)
        ]
        for key, title, kind, hint in FURTHER:
            if any(row[key] is not None for row in rows):
                columns.append(column(title, kind, hint, 0, "low"))
                for line, row in zip(cells, rows, strict=True):
                    line.append(finite(row[key]))
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


def shared_decimals(values: list[float]) -> int:
    """Return how many decimals show a column: three digits of the smallest, few of the largest."""
    sizes = [abs(value) for value in values if value]
    return min(decimals_for(min(sizes)), decimals_for(max(sizes)) + 1) if sizes else 0


def differences_table(results: Results, summary: Summary, i: int, task: str) -> Table:
    """Return the paired differences of a task: of all pairs, or of the best with every other."""
    pairs = summary.differences[task]
    labels = competitors(results)
    caption, minus = "all pairs, run by run; intervals hold together", [column("Minus", "agent")]
    if len(labels) > MOST_PAIRED:
        best = summary.best(task, labels)
        pairs = [pair for pair in pairs if best in (pair.first, pair.second)]
        pairs = [pair if pair.second == best else pair.turned() for pair in pairs]
        caption, minus = f"each agent minus {best}, run by run; intervals hold together", []
    place = {label: j for j, label in enumerate(results.agents)}
    rows: list[list[Any]] = []
    for pair in pairs:
        others = [place[pair.second]] * len(minus)
        difference = [pair.difference, finite(pair.low), finite(pair.high)]
        rows.append([place[pair.first], *others, difference, verdict(pair)])
    digits = shared_decimals([pair.difference for pair in pairs])
    difference_column = column("Difference", "interval", "of the mean regrets", digits)
    columns = [column("Agent", "agent"), *minus, difference_column, column("Regret is", "text")]
    return {
        "id": f"differences-{i}",
        "title": "Paired differences",
        "caption": caption,
        "task": i,
        "columns": columns,
        "rows": [{"agent": row[0], "cells": row} for row in rows],
    }


def verdict(pair: Difference) -> str:
    """Return in few words what a pair's interval says of the first agent."""
    if pair.better is None:
        return "equal" if pair.low == pair.high == 0 else "not clearly different"
    return "clearly lower" if pair.better == pair.first else "clearly higher"


def shared_tables(results: Results, summary: Summary) -> list[Table]:
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
        columns.append(column(f"Beats {summary.leader}", "interval", hint, 2))
        for line, row in zip(rows, summary.aggregate, strict=True):
            line.append(cell(row, "beats_leader"))
    across = {
        "id": "across",
        "title": "Across tasks",
        "caption": "shares of random play's regret, or of the competitors' mean without it",
        "task": None,
        "columns": columns,
        "rows": [{"agent": row[0], "cells": row} for row in rows],
    }
    return [table for table in (across, cost_table(results)) if table["rows"]]


def cost_table(results: Results) -> Table:
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
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        return [row for row in csv.DictReader(file) if row.get("worker")]


def cell(row: dict[str, Any], name: str) -> list[float | None]:
    """Return a value with its interval, for the page."""
    return [finite(row[key]) for key in (name, f"{name}_low", f"{name}_high")]


def column(
    title: str, kind: str, hint: str = "", digits: int = 0, best: str | None = None
) -> Table:
    """Return the head of a table's column."""
    return {"title": title, "kind": kind, "hint": hint, "digits": digits, "best": best}
