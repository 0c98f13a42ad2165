"""What stands in the report's page before a browser draws it."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from made_up_summary import around, made_up

from wgp_agents.benchmark.report.charts import charts
from wgp_agents.benchmark.report.colours import PAPER_DARK, PAPER_LIGHT, contrast, readable
from wgp_agents.benchmark.report.page import page, preselected

EVIL = "</script><script>alert(1)</script><!-- \u2028 & \"quoted\" 'text' {{ 7 * 7 }} {% x %}"


class Parsed(HTMLParser):
    """A page's tags with their attributes, its scripts, and the cells of its tables."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.scripts: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag == "script":
            self.scripts.append("")
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "strong":
            self.rows[-1][-1] += "*"

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data
        elif self.rows and self.rows[-1]:
            self.rows[-1][-1] += data.replace("\n", "")


@pytest.fixture(scope="module")
def text() -> str:
    return page(made_up())


@pytest.fixture(scope="module")
def parsed(text: str) -> Parsed:
    return Parsed(text)


def test_the_tables_are_html_and_the_best_is_bold() -> None:
    made = made_up(agents=3, tasks=1)
    means = (254.0, 100.0, 20_000.4)
    for label, mean in zip(made.labels, means, strict=True):
        made.rows["task 0", label] = replace(made.rows["task 0", label], mean=around(mean))
    made.agents[1] = replace(made.agents[1], reference=True)
    made.improvement.clear()  # that of other competitors
    rows = Parsed(page(made)).rows[:4]
    assert rows[0] == ["Agent", "Mean", "Median", "Of random play's"]
    assert rows[1][:2] == ["agent 0", "*254 (241 to 267)"]
    assert rows[2][:2] == ["agent 1 reference", "100 (95 to 105)"]
    assert rows[3][1] == "20\u202f000 (19\u202f000 to 21\u202f000)"


def test_texts_are_escaped_everywhere() -> None:
    evil = made_up(agents=3, tasks=1, words=lambda text: text + EVIL)
    spoiled, plain = Parsed(page(evil)), Parsed(page(made_up(agents=3, tasks=1)))
    assert spoiled.tags == plain.tags
    data: list[dict[str, Any]] = json.loads(spoiled.scripts[0])
    # Plotly, to whom tags and entities have a meaning, takes texts that are escaped in JSON too.
    names = {trace["name"] for trace in data[0]["data"]}
    assert {html.unescape(name) for name in names} == {f"agent {k}{EVIL}" for k in range(3)}
    assert not any("<" in name for name in names)
    assert f"agent 0{EVIL}" in spoiled.rows[1][0]


def test_the_data_are_those_of_the_charts(parsed: Parsed) -> None:
    found = json.loads(parsed.scripts[0])
    drawn = charts(made_up())
    assert [chart["title"] for chart in found] == [chart.title for chart in drawn]
    assert found[0]["data"][0] == drawn[0].data[0]


def test_numbers_have_five_digits_and_none_is_nan() -> None:
    shown = [chart for chart in charts(made_up()) if chart.kind == "lines"]
    numbers = [y for chart in shown for trace in chart.data for y in trace["y"]]
    assert len(numbers) > 500
    assert all(float(f"{y:.5g}") == y for y in numbers)
    profiles = made_up().profiles
    assert profiles is not None
    broken = replace(profiles, tau=np.full_like(profiles.tau, np.nan))
    with pytest.raises(ValueError, match="not JSON compliant"):
        page(replace(made_up(), profiles=broken))


def test_the_policy_allows_these_scripts_and_no_request(parsed: Parsed, text: str) -> None:
    (policy,) = [value for _, value in parsed.attributes if value and "default-src" in value]
    _, plotly, own = parsed.scripts
    digests = [
        base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        for script in (plotly, own)
    ]
    assert f"script-src 'sha256-{digests[0]}' 'sha256-{digests[1]}';" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "http" not in policy
    outside = [v for k, v in parsed.attributes if k in ("src", "href") and v and v[0] != "#"]
    assert outside == ["data:,"]
    (style,) = re.findall("<style>(.*?)</style>", text, re.DOTALL)
    assert not re.search(r"url\(|@import|https?:", own + style)


def test_how_to_reproduce_and_what_failed(text: str) -> None:
    again = text.split('id="reproduce"')[1]
    for piece in ("results/again", "Made up", "2022", "24", "12 min 34 s", "2.3.1", "run 3 on"):
        assert piece in again, piece


@pytest.mark.parametrize(
    ("agents", "shown"),
    [
        (8, list(range(8))),
        (12, [0, 1, 2, 3, 4, 5, 6]),  # the best six, and number 5, which is a reference
    ],
)
def test_of_many_agents_the_best_and_the_references_show_at_first(
    agents: int, shown: list[int]
) -> None:
    made = made_up(agents=agents, tasks=1)
    for one in (made, replace(made, aggregate=[])):
        assert [k for k, on in enumerate(preselected(one)) if on] == shown


@pytest.mark.parametrize("colour", ["#000000", "#BBBBBB", "#0072B2", "#F0E442", "#ffffff"])
def test_the_colours_stay_visible_on_both_papers(colour: str) -> None:
    assert contrast(readable(colour, PAPER_DARK, 4.0), PAPER_DARK) >= 4
    assert contrast(readable(colour, PAPER_LIGHT, 2.2), PAPER_LIGHT) >= 2.2
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # as WebAIM gives it
