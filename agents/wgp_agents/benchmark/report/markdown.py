"""The tables of a report in Markdown, aligned so that a terminal shows them well too."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from wgp_agents.benchmark.files import write_whole
from wgp_agents.benchmark.report.numbers import with_interval
from wgp_agents.benchmark.report.summary import Summary
from wgp_agents.benchmark.report.text import findings, left_out

__all__ = ["fill_in", "markdown", "regret_table", "write_markdown"]

MOST_COLUMNS = 6


def markdown(summary: Summary) -> str:
    """Return the tables with what follows from them."""
    runs = sorted({task.runs for task in summary.tasks})
    shown = " or ".join(map(str, runs))
    parts = [
        *map(escaped, left_out(summary)),
        f"Final regret, mean and 95 % bootstrap interval, runs: {shown} (lower is better; the "
        "lowest mean of each task in bold, references apart):",
        regret_table(summary),
        "\n".join(f"- {escaped(text)}" for text in findings(summary)),
        *aggregate_table(summary),
        *growth_tables(summary),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def regret_table(summary: Summary) -> str:
    """Return the final regrets, a row for each agent and a column for each task.

    Many tasks and few agents are turned round.
    """
    tasks = [task.name for task in summary.tasks]
    best = {task: summary.best(task) for task in tasks}
    rows = [["agent", *tasks]]
    for agent in summary.agents:
        cells = {task: with_interval(summary.rows[task, agent.label].mean) for task in tasks}
        marked = [
            f"**{cell}**" if best[task] == agent.label else cell for task, cell in cells.items()
        ]
        rows.append([f"{agent.label} (reference)" if agent.reference else agent.label, *marked])
    if len(tasks) > max(len(summary.agents), MOST_COLUMNS):
        rows[0][0] = "task"
        rows = [list(row) for row in zip(*rows, strict=True)]
    return markdown_table(rows)


def growth_tables(summary: Summary) -> list[str]:
    """Return for each number that tasks vary how the final regret grows with it."""
    parts = []
    for growth in summary.growth:
        rows = [[line.agent, with_interval(line.slope, 2)] for line in growth.lines if line.slope]
        if rows:
            parts.append(f"{escaped(growth.title)}, slope of the logarithms:")
            parts.append(markdown_table([["agent", "slope"], *rows]))
    return parts


def aggregate_table(summary: Summary) -> list[str]:
    """Return what holds across tasks, a row for each agent, with a line that says what it is."""
    if summary.leader is None:
        return []
    unit = "the competitors'" if summary.chance is None else "random play's"
    leader = escaped(summary.leader)
    text = (
        f"Across tasks, as shares of {unit} mean regret (0: the oracle): interquartile mean, and "
        f"the probability that a run is better than one of {leader} in the same task:"
    )
    rows = [
        [row.agent, with_interval(row.iqm, 3), with_interval(row.beats_leader, 2)]
        for row in summary.aggregate
    ]
    head = ["agent", "interquartile mean", f"better than {summary.leader}"]
    return [text, markdown_table([head, *rows])]


def markdown_table(rows: Sequence[Sequence[str]]) -> str:
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


def write_markdown(summary: Summary, path: Path) -> None:
    """Write the tables to a file."""
    title = f"# {escaped(summary.title)}\n\n"
    write_whole(path, (title + markdown(summary)).encode())


def fill_in(path: Path, name: str, text: str) -> None:
    """Put a text between `<!-- NAME -->` and `<!-- /NAME -->` in a file, as a README's results."""
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
