"""The page of a report: one HTML file that opens from disk and asks nothing of a network.

Findings, tables and settings are HTML, so that they are readable without JavaScript. The charts
are drawn by Plotly, which the page carries, from data embedded as JSON.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from wgp_agents.benchmark.files import write_whole
from wgp_agents.benchmark.report.charts import Chart, charts
from wgp_agents.benchmark.report.colours import agent_rules
from wgp_agents.benchmark.report.summary import Summary
from wgp_agents.benchmark.report.tables import page_tables
from wgp_agents.benchmark.report.text import NOTES, findings, left_out

if TYPE_CHECKING:
    from jinja2 import Environment

__all__ = ["asset", "page", "page_environment", "policy", "preselected", "write_page"]

CROWD = 8  # agents, of which all are shown at first
FEW = 6  # competitors that are shown at first of more agents


def write_page(summary: Summary, path: Path) -> None:
    """Write the page, one file that needs no other."""
    write_whole(path, page(summary).encode())


def page(summary: Summary) -> str:
    """Return the HTML text of the page, with every text of the experiment escaped."""
    from plotly.offline import get_plotlyjs

    environment = page_environment(asset)
    environment.filters |= {"parameters": parameters, "duration": duration}
    drawn = charts(summary)
    style = asset("page.css") + agent_rules([agent.style.colour for agent in summary.agents])
    scripts = {"plotly": get_plotlyjs(), "script": asset("page.js")}
    return environment.get_template("page.html.j2").render(
        scripts,
        policy=policy(*scripts.values()),
        style=style,
        summary=summary,
        findings=[*left_out(summary), *findings(summary)],
        notes=NOTES,
        tables=page_tables(summary),
        sections=sections(drawn),
        data=[asdict(chart) for chart in drawn],
        shown=preselected(summary),
    )


def page_environment(load: Callable[[str], str]) -> Environment:
    """Return where templates are filled in, with every text escaped; `load` finds one by name."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(load),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.policies["json.dumps_kwargs"] = {"allow_nan": False, "separators": (",", ":")}
    return environment


def asset(name: str) -> str:
    """Return the text of a file beside this one."""
    return files("wgp_agents.benchmark.report").joinpath(name).read_text(encoding="utf-8")


def policy(*scripts: str) -> str:
    """Return the content security policy: these scripts, and no request at all.

    Plotly adds styles of its own, and makes the pictures that it saves in memory.
    """
    allowed = " ".join(f"'sha256-{digest(script)}'" for script in scripts)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; "
        "style-src-attr 'none'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )


def digest(text: str) -> str:
    """Return the SHA-256 of a text, in base 64."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def sections(drawn: list[Chart]) -> dict[str, list[tuple[int, Chart]]]:
    """Return the charts with their numbers, by the heading that they stand under."""
    found: dict[str, list[tuple[int, Chart]]] = {}
    for k, chart in enumerate(drawn):
        found.setdefault(chart.section, []).append((k, chart))
    return found


def preselected(summary: Summary) -> list[bool]:
    """Return which agents are shown at first: all, or of many the best and the references."""
    if len(summary.agents) <= CROWD:
        return [True] * len(summary.agents)
    scores = {row.agent: row.mean_share for row in summary.aggregate}
    if not scores:
        for (_, label), row in summary.rows.items():
            scores[label] = scores.get(label, 0.0) + row.mean.value
    best = sorted(summary.competitors, key=scores.__getitem__)[:FEW]
    return [agent.reference or agent.label in best for agent in summary.agents]


def parameters(values: Mapping[str, object]) -> str:
    """Return parameters for people."""
    return ", ".join(f"{key} = {json.dumps(value)}" for key, value in values.items())


def duration(seconds: float) -> str:
    """Return seconds in words: "41 s", "12 min 5 s", "3 h 20 min"."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.3g} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
