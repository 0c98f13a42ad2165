"""The page of a benchmark report: one HTML file that opens from disk and asks nothing of a network.

`assemble` joins a template, a style sheet and a script with the content of one report. Findings,
tables and settings are written as HTML, so that they are readable without JavaScript; the charts
are drawn by the script, from the content embedded as JSON. The page's own security policy names
the digests of its style and script and allows nothing else.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files
from typing import Any

from wgp_agents.benchmark.report.page.colours import agent_rules
from wgp_agents.benchmark.report.page.markup import bullets, reproduce, section, setting, table

__all__ = ["assemble"]

# In this order: each file builds on those before it, and the last one starts the page.
SCRIPTS = ("base.js", "lines.js", "shapes.js", "figures.js", "report.js", "settle.js")


def assemble(content: dict[str, Any]) -> str:
    """Return the HTML text of the page of one report.

    Args:
        content: Title, agents, tasks, findings, tables, charts, how to reproduce, and notes; all
            of it must be JSON-able. A number that is not defined is None (or not finite, which is
            taken for the same). A cell of a "percent" column is a share in [0, 1].

    Returns:
        The page, with every text of `content` escaped.

    Raises:
        TypeError: If `content` holds a value that is not JSON-able.
    """
    content = _finite(content)
    style = _asset("report.css") + agent_rules(content.get("agents", []))
    script = "\n".join(_asset(name) for name in SCRIPTS)
    agents = content.get("agents", [])
    tables = [table(one, number, agents) for number, one in enumerate(content.get("tables", []))]
    parts = {
        "policy": _policy(style, script),
        "title": html.escape(str(content.get("title", ""))),
        "subtitle": html.escape(str(content.get("subtitle", ""))),
        "style": style,
        "findings": section("findings", "Findings", bullets(content.get("findings", []))),
        "tables": section("tables", "Tables", "\n".join(tables)),
        "notes": section("reading", "How to read this page", bullets(content.get("notes", []))),
        "setting": section(
            "setting", "Agents and tasks", setting(agents, content.get("tasks", []))
        ),
        "reproduce": section(
            "reproduce", "How to reproduce", reproduce(content.get("reproduce", {}))
        ),
        "content": _json(content),
        "script": script,
    }
    # One pass: a text of the content that looks like a placeholder stays what it is.
    return re.sub(r"\{\{(\w+)\}\}", lambda match: parts[match[1]], _asset("template.html"))


def _asset(name: str) -> str:
    """The text of the file `name` beside this one."""
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _finite(value: Any) -> Any:
    """The same content with None for every number that is not finite: JSON has no NaN."""
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value


def _json(content: dict[str, Any]) -> str:
    """JSON that cannot end its script element, open a comment there, or break a line."""
    text = json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _policy(style: str, script: str) -> str:
    """The content security policy: this style, this script, and no request at all."""
    digests = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, script)
    ]
    return (
        f"default-src 'none'; style-src 'sha256-{digests[0]}'; script-src 'sha256-{digests[1]}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
