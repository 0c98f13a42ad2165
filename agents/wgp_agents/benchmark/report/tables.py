"""The tables of a report: as files for a spreadsheet, and as the page shows them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from wgp_agents.benchmark.files import write_csv
from wgp_agents.benchmark.report.numbers import decimals_for, finite, for_page
from wgp_agents.benchmark.report.summary import Row, Summary, Task, flat
from wgp_agents.benchmark.statistics import Difference, Interval

__all__ = ["Cell", "Column", "Line", "Table", "page_tables", "write_tables"]

MOST_PAIRED = 6  # agents of which all pairs are shown
DASH = "\N{EN DASH}"


@dataclass(frozen=True)
class Column:
    """The head of a column: its title, what it means, and whether it holds numbers."""

    title: str
    hint: str = ""
    numeric: bool = True


@dataclass(frozen=True)
class Cell:
    """What stands in a place of a table."""

    text: str  # what is shown
    value: float | str | None = None  # what the column is sorted by; None where there is nothing
    spread: str = ""  # the interval, shown after the text
    agent: int | None = None  # the number of the agent that it names
    best: bool = False  # whether it is the best of its column


@dataclass(frozen=True)
class Line:
    """A row, of the agent with this number."""

    agent: int
    cells: list[Cell]


@dataclass(frozen=True)
class Table:
    """A table."""

    title: str
    caption: str  # what it is about
    columns: list[Column]
    lines: list[Line] = field(default_factory=list)
    task: int | None = None  # the number of its task; None where it is of no single one


def write_tables(summary: Summary, folder: Path) -> None:
    """Write summary.csv, comparisons.csv, aggregate.csv and runs.csv."""
    write_csv(folder / "summary.csv", [flat(row) for row in summary.rows.values()])
    pairs = [
        {"task": task} | difference._asdict()
        for task, found in summary.differences.items()
        for difference in found
    ]
    write_csv(folder / "comparisons.csv", pairs, ("task", *Difference._fields))
    shares = [flat(row) for row in summary.aggregate]
    write_csv(folder / "aggregate.csv", shares, list(*shares[:1]) or ["agent"])
    columns = list(dict.fromkeys(itertools.chain.from_iterable(summary.runs)))
    write_csv(folder / "runs.csv", summary.runs, columns)


def page_tables(summary: Summary) -> list[Table]:
    """Return the tables of the page, those of each task first; none is empty."""
    found = []
    for i, task in enumerate(summary.tasks):
        found += [regret_table(summary, i, task), differences_table(summary, i, task.name)]
    found += [across_table(summary), *growth_tables(summary), cost_table(summary)]
    return [table for table in found if table.lines]


def regret_table(summary: Summary, i: int, task: Task) -> Table:
    """Return the final regrets in a task."""
    rows = [summary.rows[task.name, label] for label in summary.labels]
    what = "of the final regret, with its 95 % interval"
    digits = shared_decimals([row.mean.value for row in rows])
    columns = {
        Column("Mean", what): [ranged(row.mean, digits) for row in rows],
        Column("Median", what): [ranged(row.median, digits) for row in rows],
    }
    if any(row.share_of_random is not None for row in rows):
        head = Column("Of random play's", "mean regret over random play's")
        columns[head] = [percent(row) for row in rows]
    if any(row.adaptation is not None for row in rows):
        head = Column("Adaptation", "median steps after a change; a dash where it fails")
        columns[head] = [plain(row.adaptation, 0) for row in rows]
    caption = f"{task.runs} runs of {task.horizon} steps"
    columns = {head: marked(summary, summary.labels, cells) for head, cells in columns.items()}
    return by_agent(summary, "Final regret", caption, summary.labels, columns, i)


def by_agent(
    summary: Summary,
    title: str,
    caption: str,
    labels: Sequence[str],
    columns: Mapping[Column, Sequence[Cell]],
    task: int | None = None,
) -> Table:
    """Return a table with a row for each of the agents, from the cells of its columns."""
    lines = []
    for label, *cells in zip(labels, *columns.values(), strict=True):
        lines.append(Line(summary.labels.index(label), [agent_cell(summary, label), *cells]))
    return Table(title, caption, [Column("Agent", numeric=False), *columns], lines, task)


def marked(summary: Summary, labels: Sequence[str], cells: Sequence[Cell]) -> list[Cell]:
    """Return the cells of a column, the lowest among competitors marked as the best."""
    competing = set(summary.competitors)
    named = list(zip(labels, cells, strict=True))
    values = [c.value for label, c in named if label in competing and isinstance(c.value, float)]
    lowest = min(values, default=math.nan)
    return [replace(c, best=label in competing and c.value == lowest) for label, c in named]


def differences_table(summary: Summary, i: int, task: str) -> Table:
    """Return the paired differences of a task: of all pairs, or of the best with every other."""
    pairs, best = summary.differences[task], summary.best(task)
    caption, minus = "all pairs, run by run; intervals hold together", True
    if len(summary.competitors) > MOST_PAIRED and best is not None:
        pairs = [pair for pair in pairs if best in (pair.first, pair.second)]
        pairs = [pair if pair.second == best else pair.turned() for pair in pairs]
        caption, minus = f"each agent minus {best}, run by run; intervals hold together", False
    digits = shared_decimals([pair.difference for pair in pairs])
    lines = []
    for pair in pairs:
        first, second = (agent_cell(summary, label) for label in (pair.first, pair.second))
        difference = ranged(Interval(pair.difference, pair.low, pair.high), digits)
        said = verdict(pair)
        cells = [first, *[second] * minus, difference, Cell(said, said)]
        lines.append(Line(summary.labels.index(pair.first), cells))
    columns = [
        Column("Agent", numeric=False),
        *[Column("Minus", numeric=False)] * minus,
        Column("Difference", "of the mean regrets, with its interval"),
        Column("Regret is", numeric=False),
    ]
    return Table("Paired differences", caption, columns, lines, i)


def verdict(pair: Difference) -> str:
    """Return in few words what a pair's interval says of the first agent."""
    if pair.better is None:
        return "equal" if pair.low == pair.high == 0 else "not clearly different"
    return "clearly lower" if pair.better == pair.first else "clearly higher"


def across_table(summary: Summary) -> Table:
    """Return how the agents do across tasks."""
    rows, labels = summary.aggregate, [row.agent for row in summary.aggregate]
    better = f"probability that a run is better than one of {summary.leader}, in the same task"
    iqms = marked(summary, labels, [ranged(row.iqm, 3) for row in rows])
    means = marked(summary, labels, [plain(row.mean_share, 3) for row in rows])
    columns = {
        Column("Interquartile mean", "of the shares, with its 95 % interval"): iqms,
        Column("Mean", "of the shares"): means,
        Column(f"Beats {summary.leader}", better): [ranged(row.beats_leader, 2) for row in rows],
    }
    caption = "shares of random play's regret, or of the competitors' mean without it"
    return by_agent(summary, "Across tasks", caption, labels, columns)


def growth_tables(summary: Summary) -> list[Table]:
    """Return the slopes with which regrets grow with numbers of the tasks."""
    head = Column("Slope", "of the logarithms, by least squares, with its 95 % interval")
    found = []
    for growth in summary.growth:
        slopes = {one.agent: ranged(one.slope, 2) for one in growth.lines if one.slope is not None}
        columns = {head: list(slopes.values())}
        found.append(by_agent(summary, "Growth", growth.title, list(slopes), columns))
    return found


def cost_table(summary: Summary) -> Table:
    """Return what the agents cost."""
    costs, labels = summary.costs, [cost.agent for cost in summary.costs]
    times = marked(summary, labels, [plain(cost.milliseconds, 2) for cost in costs])
    memory = [plain(cost.peak_memory, 0) for cost in costs]
    columns = {
        Column("Milliseconds per run", "in a batch, environment and all"): times,
        Column("Peak memory, MiB", "of the worker process up to then"): memory,
    }
    caption = "median over the units of work; memory of the process that played them"
    return by_agent(summary, "Cost", caption, labels, columns)


def shared_decimals(values: list[float]) -> int:
    """Return how many decimals show a column: three digits of the smallest, few of the largest."""
    sizes = [abs(value) for value in values if value]
    return min(decimals_for(min(sizes)), decimals_for(max(sizes)) + 1) if sizes else 0


def agent_cell(summary: Summary, label: str) -> Cell:
    """Return the name of an agent."""
    return Cell(label, label, agent=summary.labels.index(label))


def plain(value: float | None, digits: int) -> Cell:
    """Return a number, or a dash where there is none."""
    known = finite(value)
    return Cell(DASH) if known is None else Cell(for_page(known, digits), float(known))


def ranged(value: Interval | None, digits: int) -> Cell:
    """Return a number with its interval."""
    cell = plain(None if value is None else value.value, digits)
    if value is None or None in (finite(value.low), finite(value.high)):
        return cell
    spread = f"({for_page(value.low, digits)} to {for_page(value.high, digits)})"
    return Cell(cell.text, cell.value, spread)


def percent(row: Row) -> Cell:
    """Return the share of random play's regret."""
    share = row.share_of_random
    return Cell(DASH) if share is None else Cell(f"{for_page(100 * share, 0)}\u202f%", share)
