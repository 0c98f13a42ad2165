"""The tables of a report in Markdown, aligned so that a terminal shows them well too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from wgp_agents.benchmark.files import write_whole
from wgp_agents.benchmark.report.content import findings, interval, left_out
from wgp_agents.benchmark.report.summary import Summary, competitors
from wgp_agents.benchmark.report.sweeps import growth_charts
from wgp_agents.benchmark.results import Results

__all__ = ["fill_in", "markdown", "regret_table", "write_markdown"]

MOST_COLUMNS = 6


def markdown(results: Results, summary: Summary) -> str:
    """Return the tables with what follows from them."""
    runs = sorted({len(results.runs(task)) for task in results.tasks})
    shown = " or ".join(map(str, runs))
    parts = [
        *map(escaped, left_out(results)),
        f"Final regret, mean and 95 % bootstrap interval, runs: {shown} (lower is better; the "
        "lowest mean of each task in bold, references apart):",
        regret_table(results, summary),
        "\n".join(f"- {escaped(text)}" for text in findings(results, summary)),
        *aggregate_table(results, summary),
        *growth_tables(results, summary),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def regret_table(results: Results, summary: Summary) -> str:
    """Return the final regrets, a row for each agent and a column for each task.

    Many tasks and few agents are turned round.
    """
    labels = competitors(results)
    best = {task: summary.best(task, labels) for task in results.tasks if labels}
    rows = [["agent", *results.tasks]]
    for agent in results.agents:
        cells = [interval(summary.row(task, agent), "mean") for task in results.tasks]
        marked = [
            f"**{cell}**" if best.get(task) == agent else cell
            for task, cell in zip(results.tasks, cells, strict=True)
        ]
        rows.append([agent if agent in labels else f"{agent} (reference)", *marked])
    if len(results.tasks) > max(len(results.agents), MOST_COLUMNS):
        rows[0][0] = "task"
        rows = [list(row) for row in zip(*rows, strict=True)]
    return table(rows)


def growth_tables(results: Results, summary: Summary) -> list[str]:
    """Return for each number that tasks vary how the final regret grows with it."""
    parts = []
    for chart in growth_charts(results, summary):
        lines = [(results.agents[line["agent"]], line.get("note")) for line in chart["series"]]
        rows = [[agent, note.removeprefix("slope ")] for agent, note in lines if note]
        if rows:
            parts.append(f"{escaped(chart['title'])}, slope of the logarithms:")
            parts.append(table([["agent", "slope"], *rows]))
    return parts


def aggregate_table(results: Results, summary: Summary) -> list[str]:
    """Return what holds across tasks, a row for each agent, with a line that says what it is."""
    if summary.leader is None:
        return []
    unit = "random play's" if results.random() else "the competitors'"
    leader = escaped(summary.leader)
    text = (
        f"Across tasks, as shares of {unit} mean regret (0: the oracle): interquartile mean, and "
        f"the probability that a run is better than one of {leader} in the same task:"
    )
    rows = [
        [row["agent"], interval(row, "iqm", 3), interval(row, "beats_leader", 2)]
        for row in summary.aggregate
    ]
    return [text, table([["agent", "interquartile mean", f"better than {summary.leader}"], *rows])]


def table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows of cells, the first of them the head."""
    cells = [[escaped(cell).replace("|", "\\|") for cell in row] for row in rows]
    wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True)) + " |"
        for row in cells
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in wide) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def escaped(text: str) -> str:
    """Return a text in which nothing can end a line or reach beyond it.

    Of Markdown's signs these are comments and other HTML, fences of code, and the sign that takes
    the meaning from others. What only makes a word look different stays.
    """
    return re.sub(r"[\\<`~]|(?<=<)!", r"\\\g<0>", " ".join(text.splitlines()))


def write_markdown(results: Results, summary: Summary, path: Path) -> None:
    """Write the tables to a file."""
    title = f"# {escaped(results.experiment.title)}\n\n"
    write_whole(path, (title + markdown(results, summary)).encode())


def fill_in(path: Path, name: str, text: str) -> None:
    """Put a text between `<!-- NAME -->` and `<!-- /NAME -->` in a file, as a README's results.

    Raises:
        ValueError: If the file has no such marks, or is no text.
    """
    try:
        whole = path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no text in UTF-8: {error}") from error
    end = "\r\n" if "\r\n" in whole else "\n"  # of its lines, which stays
    before = whole.replace("\r\n", "\n")
    first, last = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    once = before.count(first) == before.count(last) == 1
    if not once or before.index(first) > before.index(last):
        raise ValueError(f"{path} must have the lines {first.strip()!r} and {last!r}, once each.")
    head, _, rest = before.partition(first)
    tail = rest.partition(last)[2]
    after = f"{head}{first}\n{text.strip()}\n\n{last}{tail}"
    write_whole(path, after.replace("\n", end).encode())
