"""The report of a live bandit: its table, its data, its picture and its page."""

from __future__ import annotations

import html
import json
import math
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_facts import DAY, START, offers, prices

from wgp_agents.live.facts import Arm, Change, Considered, Facts, History, Unit
from wgp_agents.live.page import page
from wgp_agents.live.plot import GREEN, figure
from wgp_agents.live.report import Report
from wgp_agents.live.words import moment
from wgp_gym.types import Array

EVIL = "</script><script>alert(1)</script><!-- & \"quoted\" 'text' {{ 7 * 7 }} {% x %} $x^2$"


def test_json_brings_everything_back() -> None:
    for made in (prices(20, 4), offers(), Report("inf", "-inf", (Arm("inf", -math.inf),))):
        text = made.to_json()
        assert "NaN" not in text
        assert "Infinity" not in text
        assert Report.from_dict(json.loads(text)) == made
    assert json.loads(offers().to_json())["memory"] == "inf"
    assert Facts.from_dict(prices(20, 4).to_dict()).arms == prices(20, 4).arms


@pytest.mark.parametrize("values", [{}, {"name": "x"}, {"arms": 3}, {"magic": 1}])
def test_what_is_no_report_is_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="what to_dict returns"):
        Report.from_dict(values)  # type: ignore[arg-type]


def test_the_table_is_aligned() -> None:
    made = prices(20, 3)
    arms = (
        Arm(9.99, 41_320.0, 41_000.5, 42_000.0, 1_000, 0.25, 7, START + DAY / 2, -3.0),
        Arm(10.5, None, None, None, there=False),
    )
    lines = replace(made, arms=arms).table().splitlines()
    rows = lines[lines.index("") + 1 :]
    assert rows == [
        " Arm   Mean    Low   High  Plays  Last 100  Last played        When (UTC)  Last reward"
        "  State",
        "9.99  41320  41000  42000   1000      25 %            7  2026-01-01 12:00        -3.00",
        "10.5      -      -      -      0       0 %            -                 -            -"
        "  removed",
    ]


@pytest.mark.slow
def test_a_long_table_has_the_best_arms_and_those_played() -> None:
    arms = tuple(
        Arm(float(k), float(k % 100), plays=200 * (k == 7) + (k % 9 == 2)) for k in range(200)
    )
    for minimize in (False, True):
        made = Report("knobs", "wgp-ucb", arms, minimize=minimize)
        lines = made.table().splitlines()
        labels = [float(line.split()[0]) for line in lines[lines.index("") + 2 : -1]]
        assert lines[-1] == "and 160 more arms: see to_frame() or to_html()"
        assert labels == sorted(labels)
        assert len(labels) == 40
        best = range(10) if minimize else range(90, 100)
        assert {*best, *(100 + k for k in best), 7} <= {*labels}
        others = {one for one in labels if one % 100 not in best}
        assert all(one == 7 or one % 9 == 2 for one in others)
        assert page(made).count("<tr>") > 200
    assert "more arms" not in replace(made, arms=arms[:40]).table()
    few = replace(made, arms=tuple(Arm(f"{k}") for k in range(41)))
    assert few.table().splitlines()[-1].startswith("and 21 more arms")


def test_the_key_facts_are_said() -> None:
    text = prices().table()
    for said in (
        "espresso: adaptive-wgp-ucb",
        "2027-01-01 (all dates are in UTC)",
        "365 (350 told, 3 open, 12 missing)",
        "6.02 (std)",
        "38.2 steps; 38.2 days",
        "(log(1 + y) - 41.2) / 6.31",
        "1; latest first: decision 121 (2026-05-01), size 4.90",
        "number 365 (2027-01-01): 19.99, upper bound 48.3 (mean 45.2, std 1.06); next best 20.49",
    ):
        assert said in text
    assert "When (UTC)" in text
    other = offers().table()
    assert "UTC" not in other
    assert "everything since the start" in other
    assert "Two for one (mean 44.0), drawn with probability 0.310" in other
    assert "lower bound" in replace(prices(), minimize=True).table()
    assert "(y + 3.00) / 2.00" in replace(prices(), unit=Unit(-3.0, 2.0)).table()


def test_names_cannot_break_lines_or_speak_to_a_terminal() -> None:
    text = offers(words=lambda name: f"{name}\n\x1b[31m\u202e").table()
    assert len(text.splitlines()) == len(offers().table().splitlines())
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_times_are_shown_as_they_are_told() -> None:
    assert moment(START, "dates") == "2026-01-01"
    assert moment(START + 3_661, "dates") == "2026-01-01 01:01:01"
    assert moment(START + 3_600, "dates") == "2026-01-01 01:00"
    assert moment(12.5, "numbers") == "12.5"
    assert moment(1e30, "dates") == "1e+30 s"


def test_the_frame_has_raw_values() -> None:
    pandas = pytest.importorskip("pandas")
    made = prices(20, 4)
    frame = made.to_frame()
    assert frame["arm"].tolist() == [arm.label for arm in made.arms]
    assert frame["mean"].tolist() == [arm.mean for arm in made.arms]
    assert frame["last_time"][1] == pandas.Timestamp("2026-01-18", tz="UTC")
    assert frame["there"].all()
    assert "last_time" not in offers().to_frame()


def floats(values: Any) -> Array:
    return np.asarray(values, float)


@pytest.mark.slow
def test_the_picture_has_the_data() -> None:
    made = prices()
    top, middle, bottom = figure(made).axes
    points, expected, change, *_ = top.lines
    known = [value for value in made.history.reward if value is not None]
    drawn = floats(points.get_ydata())
    np.testing.assert_allclose(drawn[np.isfinite(drawn)], known)
    np.testing.assert_allclose(floats(points.get_xdata()) * DAY, floats(made.history.time))
    assert np.isnan(np.asarray(expected.get_ydata(), float)[0])
    assert np.asarray(change.get_xdata(), float)[0] * DAY == made.changes[0].time
    assert len(top.collections) == 1  # the band
    bars, removed = middle.containers
    places, means = bars.lines[0].get_data()  # type: ignore[attr-defined]
    kept = [arm for arm in made.arms if arm.there]
    np.testing.assert_allclose(places, floats([arm.label for arm in kept]))
    np.testing.assert_allclose(means, floats([arm.mean for arm in kept]))
    assert removed.lines[0].get_xdata().tolist() == [made.arms[5].label]  # type: ignore[attr-defined]
    assert bottom.get_yscale() == "log"
    np.testing.assert_allclose(floats(bottom.lines[0].get_ydata()), floats(made.history.memory))


@pytest.mark.slow
def test_names_are_categories() -> None:
    made = offers(arms=40)
    middle = figure(made).axes[1]
    names = [label.get_text() for label in middle.get_yticklabels()]
    assert len(names) == 24
    best = max((arm for arm in made.arms if arm.there), key=lambda arm: arm.mean or 0.0)
    assert names[0] == best.label
    assert names[-1] == "Two for one"  # not among the best, but the last decision
    assert "24 of 40" in middle.get_title(loc="left")
    smallest = figure(replace(made, minimize=True)).axes[1].get_yticklabels()[0].get_text()
    worst = min((arm for arm in made.arms if arm.there), key=lambda arm: arm.mean or 0.0)
    assert smallest == worst.label


def test_nothing_known_can_be_drawn(tmp_path: Path) -> None:
    for made in (
        Report("new", "wgp-ucb", (Arm("a"), Arm("b"))),
        Report("new", "wgp-ucb", (Arm(1.0), Arm(100.0, 3.0, -math.inf, math.inf))),
        offers(words=lambda text: text + EVIL),
    ):
        made.plot().savefig(tmp_path / "picture.png")
        assert (tmp_path / "picture.png").stat().st_size > 5_000
        assert made.table()
        assert "<h1>" in page(made)
    with pytest.raises(ValueError, match="three axes"):
        made.plot([])


def data_of(text: str) -> list[dict[str, Any]]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.S)
    assert found
    return list(json.loads(found[1]))


def test_the_page_has_the_charts_and_the_table() -> None:
    text = page(prices())
    charts = data_of(text)
    assert [chart["title"] for chart in charts] == [
        "Rewards, and what was expected",
        "What each arm is expected to earn",
        "Memory",
    ]
    rewards, arms, memory = charts
    points, line = rewards["data"]
    assert len(points["y"]) == 362
    assert points["x"][0] == "2026-01-02 00:00:00"
    assert len(line["y"]) == len(line["low"]) == len(rewards["x"]) == 364
    assert arms["data"][0]["x"][0] == 9.99
    assert memory["layout"]["yaxis"]["type"] == "log"
    assert rewards["layout"]["shapes"][0]["x0"] == "2026-05-01 00:00:00"
    assert text.count("<tr>") == 1 + 8 + 40
    named = data_of(page(offers()))[1]
    assert named["data"][0]["y"][0] == "Free delivery"
    assert named["layout"]["yaxis"]["type"] == "category"


@pytest.mark.slow
def test_hostile_names_are_escaped() -> None:
    text, plain = page(offers(words=lambda name: name + EVIL)), page(offers())
    for tag in ("<script", "<tr", "<td", "<!--", "<b>"):
        assert text.count(tag) == plain.count(tag), tag
    chart = data_of(text)[1]
    names = chart["data"][0]["y"]
    assert not any("<" in name for name in names)  # Plotly reads tags
    assert {html.unescape(name) for name in names} <= {arm.label for arm in evil_arms()}
    assert html.escape(f"Coupon{EVIL}", quote=False).split("'")[0][:30] in text


def evil_arms() -> tuple[Arm, ...]:
    return offers(words=lambda name: name + EVIL).arms


@pytest.mark.slow
def test_the_page_asks_for_nothing(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    prices().to_html(path)
    text = path.read_text(encoding="utf-8")
    outside = re.sub(r"<script.*?</script>", "", text, flags=re.S)
    assert not re.search(r"https?://|url\(|@import|<link(?! rel=\"icon\" href=\"data:,\")", outside)
    assert "default-src 'none'" in html.unescape(outside)


def test_histories_are_thinned_and_checked() -> None:
    made = prices().history
    thin = made.thinned(50)
    assert {len(getattr(thin, one.name)) for one in fields(History)} == {50}
    assert (thin.decision[0], thin.decision[-1]) == (1, 365)
    assert thin.memory[7] == made.memory[thin.decision[7] - 1]
    assert made.thinned() is made
    with pytest.raises(ValueError, match="'reward'"):
        History((1, 2), reward=(1.0,))
    with pytest.raises(ValueError, match="'clock'"):
        Report("x", "y", (), clock="sundial")  # type: ignore[arg-type]


def test_numbers_and_names_are_told_apart() -> None:
    assert Facts("x", "y", (Arm(1), Arm(2.5))).numeric
    assert not Facts("x", "y", (Arm(1), Arm("2.5"))).numeric
    assert not Facts("x", "y", (Arm(True), Arm(False))).numeric
    assert Considered("a").bound is None
    assert Change(3).time is None
    assert re.fullmatch("#[0-9A-F]{6}", GREEN)
