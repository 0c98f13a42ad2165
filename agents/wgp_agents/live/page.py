"""The page of a live bandit: one HTML file that opens from disk and asks nothing of a network.

Style and script are those of the report of an experiment.
"""

from __future__ import annotations

from dataclasses import asdict
from importlib.resources import files

from wgp_agents.benchmark.report.colours import agent_rules
from wgp_agents.benchmark.report.numbers import for_page
from wgp_agents.benchmark.report.page import asset, page_environment, policy
from wgp_agents.live.charts import LOOKS, live_charts
from wgp_agents.live.facts import Facts
from wgp_agents.live.words import arm_columns, key_facts

__all__ = ["page"]

# There is nothing to choose beside the charts, and tables of short words, which stay whole.
ONE_COLUMN = """#page { display: block; }
.scroll { overflow-wrap: normal; }
td.number:first-child { min-width: 0; }
"""


def page(facts: Facts) -> str:
    """Return the HTML text of the page, with every text of the user escaped."""
    from plotly.offline import get_plotlyjs

    drawn = live_charts(facts)
    scripts = {"plotly": get_plotlyjs(), "script": asset("page.js")}
    return (
        page_environment(template)
        .get_template("page.html.j2")
        .render(
            scripts,
            policy=policy(*scripts.values()),
            style=asset("page.css") + ONE_COLUMN + agent_rules(LOOKS),
            looks=range(len(LOOKS)),
            facts=facts,
            known=key_facts(facts, for_page),
            charts=drawn,
            data=[asdict(chart) for chart in drawn],
            columns=arm_columns(facts, for_page),
        )
    )


def template(name: str) -> str:
    """Return the text of a template beside this file."""
    return files("wgp_agents.live").joinpath(name).read_text(encoding="utf-8")
