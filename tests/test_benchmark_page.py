from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from wgp_agents.benchmark.report.page import assemble
from wgp_agents.benchmark.report.page.colours import PAPER_DARK, PAPER_LIGHT, contrast, readable

LOOKS = [("#0072B2", ""), ("#009E73", "6 3"), ("#E69F00", "8 3 2 3"), ("#999999", "2 3")]
LOOKS += [("#882255", ""), ("#000000", "4 2"), ("#BBBBBB", "2 3"), ("#D55E00", "")]
NAMES = ["WGP-UCB", "SW-GP-UCB", "R-GP-UCB", "IGP-UCB", "WGP-UCB, unknown B_T", "Oracle"]
NAMES += ["Random", "PPO (stable-baselines3)"]
SCALES = [11.0, 13.0, 12.5, 24.0, 14.0, 2.0, 60.0, 31.0]
TASKS = ["abrupt", "drift", "river"]
EVIL = "</script><script>alert(1)</script><!-- \u2028 & \"quoted\" 'text'"


def agent(index: int) -> dict[str, Any]:
    colour, dash = LOOKS[index % len(LOOKS)]
    name = NAMES[index % len(NAMES)]
    label = name if index < len(NAMES) else f"{name}, version {index // len(NAMES) + 1}"
    return {
        "label": label,
        "agent": name.lower().split(",")[0].replace(" ", "-"),
        "parameters": {"discount": 0.97, "norm_bound": 2.0} if "GP" in name else {},
        "summary": f"One line about what {name} does with its past observations.",
        "reference": name == "Oracle",
        "colour": colour,
        "dash": dash,
    }


def curve(rng: np.random.Generator, index: int, task: int, points: int) -> dict[str, Any]:
    x = np.unique(np.linspace(1, 500, points).round())
    jumps = 1 + 0.6 * (x > 170) + 0.5 * (x > 335)
    y = SCALES[index % 8] * (1 + 0.15 * task + 0.1 * (index // 8)) * np.sqrt(x) * jumps / 2
    y = np.maximum.accumulate(y + rng.normal(0, 0.01, x.size) * y)
    wide = 0.06 * y + 1
    numbers = {"y": y, "low": y - wide, "high": y + wide}
    return {"agent": index} | {key: [round(float(v), 3) for v in n] for key, n in numbers.items()}


def box(rng: np.random.Generator, index: int) -> dict[str, Any]:
    points = SCALES[index % 8] * 22 * rng.gamma(30, 1 / 30, 100)
    marks = np.quantile(points, [0, 0.05, 0.25, 0.5, 0.75, 0.95, 1]).round(2).tolist()
    mean = round(float(points.mean()), 2)
    return {"agent": index, "quantiles": marks, "mean": mean, "points": points.round(2).tolist()}


def table(rng: np.random.Generator, task: int, agents: int) -> dict[str, Any]:
    columns: list[dict[str, Any]] = [
        {"title": "Agent", "hint": "Its label", "kind": "agent", "digits": 0, "best": None},
        {"title": "Regret", "hint": "Mean final regret (95 % interval)", "kind": "interval"},
        {"title": "Steps found", "hint": "Share of optimal steps", "kind": "percent"},
        {"title": "Seconds", "hint": "For one run", "kind": "number"},
    ]
    for column, best, digits in zip(columns[1:], ("low", "high", "low"), (0, 1, 2), strict=True):
        column |= {"best": best, "digits": digits}
    rows: list[dict[str, Any]] = []
    for k in range(agents):
        mean = SCALES[k % 8] * 22 * (1 + 0.1 * task + 0.03 * (k // 8))
        seconds = None if k % 8 == 6 else float(rng.uniform(0.05, 3))
        share = float(rng.uniform(0.2, 0.9))
        rows.append({"agent": k, "cells": [k, [mean, mean - 9, mean + 9], share, seconds]})
    name = TASKS[task % 3]
    return {"id": f"final-{task}", "title": f"Final regret: {name}", "task": task, "rows": rows} | {
        "caption": "Mean over runs, with the interval in brackets.",
        "columns": columns,
    }


def charts(rng: np.random.Generator, task: int, agents: int, points: int) -> list[dict[str, Any]]:
    x = np.unique(np.linspace(1, 500, points).round()).tolist()
    name = TASKS[task % 3]
    regret = {
        "id": f"regret-{task}",
        "section": "Regret over time",
        "task": task,
        "kind": "lines",
        "title": f"Cumulative regret, {name}",
        "caption": "Mean over 100 runs; the band is its 95 % interval.",
        "x_label": "step",
        "y_label": "cumulative regret",
        "marks": [170, 335],
        "mark_label": "change",
        "x": x,
        "series": [curve(rng, k, task, points) for k in range(agents)],
    }
    boxes = {
        "id": f"boxes-{task}",
        "section": "Distribution of the final regret",
        "task": task,
        "kind": "boxes",
        "title": f"Final regret of each run, {name}",
        "caption": "Box: quartiles and median; whiskers: 5 % and 95 %; diamond: mean.",
        "x_label": "final regret",
        "boxes": [box(rng, k) for k in range(agents)],
    }
    return [regret, regret | {"id": f"log-{task}", "x_log": True, "y_log": True}, boxes]


def maps(rng: np.random.Generator) -> list[dict[str, Any]]:
    lengths, discounts = [0.1, 0.2, 0.4, 0.8, 1.6], ["0.9", "0.95", "0.97", "0.99", "1"]
    both = []
    for k in (0, 1):
        values = [[200 + 40 * (i - 2) ** 2 + 25 * (j - k) ** 2 + rng.uniform(0, 9)
                   for i in range(5)] for j in range(5)]  # fmt: skip
        cells: list[list[float | None]] = [[round(v, 1) for v in row] for row in values]
        cells[4][4] = None
        both.append({"id": f"map-{k}", "section": "Sensitivity", "task": None, "kind": "heatmap",
                     "title": f"Final regret of {NAMES[k]} by its parameters", "agent": k,
                     "caption": "The best cell is outlined.", "x_label": "length scale",
                     "y_label": "discount", "x": lengths, "y": discounts, "values": cells,
                     "low_is_best": True, "unit": "regret"})  # fmt: skip
    return both


def content(agents: int = 8, tasks: int = 3, points: int = 100) -> dict[str, Any]:
    rng = np.random.default_rng(7)
    groups = [charts(rng, task, agents, points) for task in range(tasks)]
    return {
        "title": "Gaussian-process bandits in a drifting world",
        "subtitle": f"{agents} agents on {tasks} tasks, 100 runs each, root seed 20260",
        "agents": [agent(k) for k in range(agents)],
        "tasks": [{"name": f"{TASKS[k % 3]}" + f" {k // 3 + 1}" * (k > 2), "horizon": 500,
                   "id": "WGPBandit-Abrupt-v0", "kwargs": {"variation": 2.0, "changes": 2},
                   "runs": 100} for k in range(tasks)],
        "findings": [
            "abrupt: WGP-UCB has the lowest mean final regret, 242; it beats SW-GP-UCB.",
            "drift: WGP-UCB and R-GP-UCB cannot be told apart; all others have more regret.",
            "river: agents that forget nothing have twice the regret of those that do.",
        ],
        "tables": [table(rng, task, agents) for task in range(tasks)],
        "charts": [chart for group in groups for chart in group] + maps(rng),
        "reproduce": {"command": "wgp-gym run experiment.toml --out results", "root_seed": 20260,
                      "experiment": "runs = 100\nhorizon = 500\n\n[[agents]]\nname = 'wgp-ucb'\n",
                      "versions": {"numpy": "2.3.1", "gymnasium": "1.2.0"}, "units": 240,
                      "seconds": 754.2, "failed": ["abrupt / PPO / run 3: out of memory"]},
        "notes": ["Intervals hold the mean with 95 % confidence (bootstrap over runs).",
                  "A reference agent knows what a learner cannot know; it does not compete."],
    }  # fmt: skip


class Skeleton(HTMLParser):
    """Counts the tags and keeps the text of the cells, with each cell's weight."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        if tag == "strong":
            self.rows[-1][-1] += "*"

    def handle_data(self, data: str) -> None:
        if {"td", "th", "strong", "span", "small", "line"} & set(self.tags[-1:]) and self.rows:
            self.rows[-1][-1] += data.strip("\n")


def test_the_tables_are_html_and_the_best_is_bold() -> None:
    report = content(tasks=1)
    for k, mean in enumerate([254, 100, -20_000.4, 300]):
        report["tables"][0]["rows"][k]["cells"][1] = [mean, mean - 14, mean + 14]
    report["agents"][2]["reference"] = True
    report["tables"][0]["rows"][3]["cells"][1:] = [[300, None, None], None, math.nan]
    report["tables"][0]["rows"] = report["tables"][0]["rows"][:4]
    rows = Skeleton(assemble(report)).rows[:5]
    assert rows[0] == ["Agent", "Regret", "Steps found", "Seconds"]
    assert rows[1][:2] == ["WGP-UCB", "254 (240 to 268)"]
    assert rows[2][1] == "*100 (86 to 114)"
    assert rows[3][:2] == [
        "R-GP-UCB reference",
        "\u221220\u202f000 (\u221220\u202f014 to \u221219\u202f986)",
    ]
    assert rows[4][1:] == ["300", "\u2013", "\u2013"]


def test_texts_are_escaped_everywhere() -> None:
    def spoil(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: spoil(item, name) for name, item in value.items()}
        if isinstance(value, list):
            return [spoil(item, key) for item in value]
        return value + EVIL if isinstance(value, str) and key not in ("kind", "best") else value

    plain, spoiled = (Skeleton(assemble(c)) for c in (content(tasks=1), spoil(content(tasks=1))))
    assert spoiled.tags == plain.tags
    page = assemble(spoil(content(tasks=1)))
    assert page.count("</script>") == 2
    assert "\u2028" not in page.split('id="content">')[1].split("<script>")[0]
    embedded = re.findall(r'id="content">(.*?)</script>', page, re.DOTALL)[0]
    assert json.loads(embedded) == spoil(content(tasks=1))


def test_the_page_refers_to_nothing_outside() -> None:
    addresses = re.findall(r"\w+://[^\"'\s<>)]*", assemble(content()))
    assert set(addresses) == {"http://www.w3.org/2000/svg"}
    assert not re.findall(
        r"<(?:link|img|iframe)[^>]*(?:src|href)=\"(?!data:,)", assemble(content())
    )


def test_a_text_that_looks_like_a_placeholder_stays() -> None:
    assert "<h1>{{script}}</h1>" in assemble(content() | {"title": "{{script}}"})


def test_an_empty_report_is_a_page() -> None:
    page = assemble({})
    assert "<h1></h1>" in page
    assert "<section" not in page.split("<script")[0]


def test_what_is_not_json_is_refused() -> None:
    with pytest.raises(TypeError, match="not JSON serializable"):
        assemble({"title": {1, 2}})


@pytest.mark.parametrize("colour", ["#000000", "#BBBBBB", "#0072B2", "#F0E442", "#ffffff"])
def test_the_colours_stay_visible_on_both_papers(colour: str) -> None:
    assert contrast(readable(colour, PAPER_DARK, 4.0), PAPER_DARK) >= 4
    assert contrast(readable(colour, PAPER_LIGHT, 2.2), PAPER_LIGHT) >= 2.2
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # as WebAIM gives it
