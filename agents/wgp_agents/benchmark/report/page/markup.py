"""The parts of the page that are plain HTML: lists, tables, settings, how to reproduce."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from typing import Any

__all__ = ["bullets", "reproduce", "section", "setting", "table"]

DASH = "\u2013"
# More rows than this scroll inside their frame, under a head that stays.
LONG = 20
FIGURES = ("number", "interval", "percent")


def bullets(texts: Sequence[str]) -> str:
    """Return a list of sentences, or nothing if there are none."""
    if not texts:
        return ""
    return f'<ul class="prose">{"".join(f"<li>{_text(one)}</li>" for one in texts)}</ul>'


def section(name: str, title: str, inside: str) -> str:
    """Return a section with the anchor `name`, or nothing if there is nothing inside."""
    return f'<section id="{name}">\n<h2>{title}</h2>\n{inside}\n</section>' if inside else ""


def table(content: dict[str, Any], number: int, agents: Sequence[dict[str, Any]]) -> str:
    """Return a table as a figure: title, caption, rows, and what its columns mean."""
    columns = content["columns"]
    rows = content["rows"]
    best = [_best(rows, k, column, agents) for k, column in enumerate(columns)]
    head = "".join(
        f'<th scope="col"{_figure(column)}{_title(column)}>{_text(column["title"])}</th>'
        for column in columns
    )
    body = "\n".join(_row(row, k, columns, best, agents) for k, row in enumerate(rows))
    task = content.get("task")
    look = "long table" if len(rows) > LONG else "table"
    title = _text(content["title"])
    hints = [(c["title"], c["hint"]) for c in columns if c.get("hint")]
    return f"""<figure class="{look}" id="table-{_text(content["id"])}" data-table="{number}" \
data-task="{"" if task is None else int(task)}">
<h3>{title}</h3>
<p class="caption">{_text(content.get("caption", ""))}</p>
<div class="scroll" tabindex="0" role="region" aria-label="{title}">
<table><thead><tr>{head}</tr></thead>
<tbody>
{body}
</tbody></table></div>
<p class="remark"></p>
{_more("What the columns mean", _pairs(hints)) if hints else ""}
</figure>"""


def setting(agents: Sequence[dict[str, Any]], tasks: Sequence[dict[str, Any]]) -> str:
    """Return the tables of agents and of tasks, with all their parameters."""
    agent_rows = [
        f'<tr><th scope="row" class="name">{_agent(k, agents)}</th>'
        f"<td>{_text(agent.get('summary', ''))}</td>"
        f"<td><code>{_text(agent.get('agent', ''))}</code> {_parameters(agent)}</td></tr>"
        for k, agent in enumerate(agents)
    ]
    task_rows = [
        f'<tr><th scope="row" class="name">{_text(task["name"])}</th>'
        f"<td><code>{_text(task.get('id', ''))}</code> {_parameters(task, 'kwargs')}</td>"
        f'<td class="figure">{_text(task.get("horizon", DASH))}</td>'
        f'<td class="figure">{_text(task.get("runs", DASH))}</td></tr>'
        for task in tasks
    ]
    return _plain("Agents", ("Agent", "What it does", "Name and parameters"), agent_rows) + _plain(
        "Tasks", ("Task", "Environment and parameters", "Horizon", "Runs"), task_rows
    )


def reproduce(content: dict[str, Any]) -> str:
    """Return the command, the experiment, the versions and what failed."""
    parts = []
    if content.get("command"):
        parts.append(
            f'<div class="command"><pre id="command">{_text(content["command"])}</pre>'
            '<button type="button" data-copy="#command">copy</button></div>'
        )
    if content.get("experiment"):
        parts.append(
            _more(
                "The experiment file",
                f'<pre id="experiment">{_text(content["experiment"])}</pre>'
                '<p><button type="button" data-copy="#experiment">copy</button></p>',
            )
        )
    facts = [
        ("Root seed", content.get("root_seed")),
        ("Units", content.get("units")),
        ("Time", None if content.get("seconds") is None else _duration(content["seconds"])),
        *(content.get("versions") or {}).items(),
    ]
    parts.append(_pairs([(name, value) for name, value in facts if value is not None]))
    failed = content.get("failed") or []
    if failed:
        parts.append(f'<p class="failed">Units that failed: {len(failed)}</p>{bullets(failed)}')
    return "\n".join(parts)


def _text(value: object) -> str:
    return html.escape(str(value))


def _figure(column: dict[str, Any]) -> str:
    return ' class="figure"' if column.get("kind") in FIGURES else ""


def _title(column: dict[str, Any]) -> str:
    return f' title="{_text(column["hint"])}"' if column.get("hint") else ""


def _value(cell: Any) -> float | None:
    """The number of a cell, if it has one."""
    value = cell[0] if isinstance(cell, list) and cell else cell
    return float(value) if isinstance(value, int | float) else None


def _best(
    rows: Sequence[dict[str, Any]],
    at: int,
    column: dict[str, Any],
    agents: Sequence[dict[str, Any]],
) -> float | None:
    """The best value of a column among the agents that compete."""
    if column.get("best") not in ("low", "high"):
        return None
    competing = [
        _value(row["cells"][at])
        for row in rows
        if row.get("agent") is None or not agents[row["agent"]].get("reference")
    ]
    known = [value for value in competing if value is not None]
    if not known:
        return None
    return min(known) if column["best"] == "low" else max(known)


def _row(
    row: dict[str, Any],
    number: int,
    columns: Sequence[dict[str, Any]],
    best: Sequence[float | None],
    agents: Sequence[dict[str, Any]],
) -> str:
    agent = row.get("agent")
    competes = agent is None or not agents[agent].get("reference")
    cells = []
    for cell, column, top in zip(row["cells"], columns, best, strict=True):
        text = _cell(cell, column, agents)
        if competes and top is not None and _value(cell) == top:
            text = f"<strong>{text}</strong>"
        named = column.get("kind") == "agent"
        cells.append(
            f'<th scope="row" class="name">{text}</th>'
            if named
            else f"<td{_figure(column)}>{text}</td>"
        )
    key = "" if agent is None else int(agent)
    return f'<tr data-row="{number}" data-agent="{key}">{"".join(cells)}</tr>'


def _cell(cell: Any, column: dict[str, Any], agents: Sequence[dict[str, Any]]) -> str:
    kind = column.get("kind", "text")
    value = _value(cell)
    if cell is None or (kind in FIGURES and value is None and not isinstance(cell, str)):
        return DASH
    if kind == "agent" and isinstance(cell, int):
        return _agent(cell, agents)
    if kind not in FIGURES or value is None:
        return _text(cell)
    digits = int(column.get("digits") or 0)
    if kind == "percent":
        return f"{_number(100 * value, digits)}\u202f%"
    text = _number(value, digits)
    if kind == "interval" and isinstance(cell, list) and None not in cell and len(cell) == 3:
        low, high = (_number(float(bound), digits) for bound in cell[1:])
        return f'{text} <span class="range">({low} to {high})</span>'
    return text


def _number(value: float, digits: int) -> str:
    """A number with thin spaces between thousands (from five digits) and a true minus sign."""
    text = f"{abs(value):,.{digits}f}"
    text = text.replace(",", "\u202f" if abs(value) >= 10_000 else "")
    return f"\u2212{text}" if value < 0 and float(f"{value:.{digits}f}") != 0 else text


def _agent(index: int, agents: Sequence[dict[str, Any]]) -> str:
    """The label of an agent with a piece of its line."""
    agent = agents[index]
    dash = f' stroke-dasharray="{_text(agent["dash"])}"' if agent.get("dash") else ""
    mark = " <small>reference</small>" if agent.get("reference") else ""
    return (
        f'<svg class="swatch a{index}" width="26" height="10" aria-hidden="true">'
        f'<line x1="1" x2="25" y1="5" y2="5"{dash}/></svg>{_text(agent["label"])}{mark}'
    )


def _parameters(content: dict[str, Any], name: str = "parameters") -> str:
    items = (content.get(name) or {}).items()
    return _text(", ".join(f"{key} = {json.dumps(value)}" for key, value in items))


def _pairs(pairs: Sequence[tuple[str, object]]) -> str:
    inside = "".join(f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>" for name, value in pairs)
    return f"<dl>{inside}</dl>" if pairs else ""


def _more(summary: str, inside: str) -> str:
    return f'<details class="more"><summary>{_text(summary)}</summary>{inside}</details>'


def _plain(title: str, head: Sequence[str], rows: Sequence[str]) -> str:
    if not rows:
        return ""
    wide = ("Horizon", "Runs")
    cells = "".join(
        f'<th scope="col"{_figure({"kind": "number" if name in wide else "text"})}>{name}</th>'
        for name in head
    )
    return f"""<div class="fixed table"><h3>{title}</h3>
<div class="scroll" tabindex="0" role="region" aria-label="{title}">
<table><thead><tr>{cells}</tr></thead><tbody>
{"".join(rows)}
</tbody></table></div></div>"""


def _duration(seconds: float) -> str:
    """Seconds in words: "41 s", "12 min 5 s", "3 h 20 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"
