"""The charts of a live bandit's page, as data for Plotly.

Traces are drawn in the colours of `LOOKS`, whose place in it they name by "like".
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np

from wgp_agents.benchmark.figures.canvas import is_wide
from wgp_agents.benchmark.report.charts import Chart, Json, axis, plain_text, rounded
from wgp_agents.live.facts import Facts
from wgp_agents.live.plot import BLUE, GREEN, ORANGE, best_arms, floats, is_last, places
from wgp_agents.live.words import labelled
from wgp_gym.types import Array, Mask

__all__ = ["LOOKS", "live_charts"]

LOOKS = (BLUE, "#777777", GREEN, ORANGE)
EXPECTED, REWARD, KNOWN, MARKED = range(len(LOOKS))
TICKS = [digit * 10.0**power for power in range(-2, 9) for digit in (1, 2, 5)]
"""Of a logarithmic axis: Plotly itself would write 2 and 5 for 20 and 50."""
AROUND, ROW = 150, 24  # pixels of height around a chart of names, and for each of them
ALWAYS: Json = {"agent": None}  # of no agent that can be switched off


def live_charts(facts: Facts) -> list[Chart]:
    """Return the charts for which there is anything to draw."""
    found = [rewards(facts), arms(facts), memory(facts)]
    return [chart for chart in found if any(len(trace["y"]) for trace in chart.data)]


def rewards(facts: Facts) -> Chart:
    """Return the rewards over time, with what was expected of them."""
    history = facts.history
    x = on_axis(facts)
    reward, low, expected, high = (
        floats(one) for one in (history.reward, history.low, history.expected, history.high)
    )
    came, known = np.isfinite(reward), np.isfinite(low + expected + high)
    points = ALWAYS | {
        "like": REWARD,
        "name": "reward",
        "mode": "markers",
        "y": rounded(reward[came]),
    }
    points |= {"x": picked(x, came), "marker": {"size": 4}}
    line = ALWAYS | {"like": EXPECTED, "name": "expected before", "mode": "lines"}
    line |= {
        "y": rounded(expected[known]),
        "low": rounded(low[known]),
        "high": rounded(high[known]),
    }
    line |= {"line": {"width": 1.8}}
    layout = time_layout(facts) | {"yaxis": axis("reward"), "showlegend": True}
    caption = "line: what was expected of the arm chosen, before; band: 95 % of rewards"
    if facts.changes:
        caption += "; dashed: a change was noticed"
    title = "Rewards, and what was expected"
    return Chart("Over time", title, caption, "lines", [points, line], layout, x=picked(x, known))


def arms(facts: Facts) -> Chart:
    """Return the band of each arm: along an axis where they are numbers, else by name."""
    shown = best_arms(facts)
    means = floats([arm.mean for arm in shown])
    ends = np.array([[arm.low, arm.high] for arm in shown], float).reshape(-1, 2).T
    there = np.array([arm.there for arm in shown], bool)
    spots = [float(a.label) for a in shown] if facts.numeric else [named(a.label) for a in shown]
    last = np.array([is_last(arm, facts) for arm in shown], bool)
    along, across = ("x", "y") if facts.numeric else ("y", "x")
    data = []
    for mask, like, name in ((there, KNOWN, "mean and 95 % band"), (~there, REWARD, "removed")):
        bars = {"array": some(ends[1] - means, mask), "arrayminus": some(means - ends[0], mask)}
        trace = ALWAYS | {"like": like, "name": name, "mode": "markers", "marker": {"size": 7}}
        trace |= {along: picked(spots, mask), across: rounded(means[mask])}
        trace[f"error_{across}"] = {"type": "data", "symmetric": False} | bars
        data.append(trace)
    ring = {"size": 15, "symbol": "circle-open", "line": {"width": 2}}
    trace = ALWAYS | {"like": MARKED, "name": "last decision", "mode": "markers", "marker": ring}
    data.append(trace | {along: picked(spots, last), across: rounded(means[last])})
    for trace in data:
        trace["hovertemplate"] = f"%{{{along}}}: %{{{across}:.4~g}}"
    layout: Json = {f"{across}axis": axis("reward"), "showlegend": True, "hovermode": "closest"}
    if facts.numeric:
        layout["xaxis"] = axis("arm", log=len(shown) > 0 and is_wide(np.array(spots, float)))
    else:
        layout["yaxis"] = {"type": "category", "autorange": "reversed", "showgrid": False}
        layout["yaxis"] |= {"categoryorder": "array", "categoryarray": spots, "dtick": 1}
        layout["height"] = AROUND + ROW * len(shown)
    caption = "bars: the band that holds the mean with 95 %; ring: the last decision"
    if len(shown) < len(facts.arms):
        caption += f"; {len(shown)} of {len(facts.arms)} arms, the table has all"
    title = "What each arm is expected to earn"
    return Chart("Arms", title, caption, "lines", [one for one in data if one["y"]], layout)


def memory(facts: Facts) -> Chart:
    """Return the memory over time."""
    x = on_axis(facts)
    steps = floats(facts.history.memory)
    known = np.isfinite(steps) & (steps > 0)
    line = ALWAYS | {"like": KNOWN, "name": "memory", "mode": "lines", "y": rounded(steps[known])}
    line |= {"line": {"width": 1.8}}
    layout = time_layout(facts) | {"yaxis": axis("steps", log=True)}
    layout["yaxis"] |= {"tickvals": TICKS, "ticktext": [f"{one:g}" for one in TICKS]}
    caption = "the number of past steps that it goes by; none is drawn where it goes by all"
    return Chart("Over time", "Memory", caption, "lines", [line], layout, x=picked(x, known))


def time_layout(facts: Facts) -> Json:
    """Return the axis of time, with a line at each change."""
    _, changes, name = places(facts)
    found = axis(name)
    if name.startswith("date"):
        found["type"] = "date"
    shapes = [
        {"type": "line", "x0": place, "x1": place, "y0": 0, "y1": 1, "yref": "paper"}
        | {"line": {"dash": "4px,3px", "width": 1.0, "color": ORANGE}, "layer": "below"}
        for place in as_shown(changes, name)
    ]
    return {"xaxis": found, "shapes": shapes}


def on_axis(facts: Facts) -> list[Any]:
    """Return where decisions stand on the axis of time."""
    x, _, name = places(facts)
    return as_shown(x, name)


def as_shown(x: Array, name: str) -> list[Any]:
    """Return places on the axis of time as Plotly takes them: dates as texts, in UTC."""
    if not name.startswith("date"):
        return list(x.tolist())
    return [f"{datetime.fromtimestamp(one, UTC):%Y-%m-%d %H:%M:%S}" for one in x.tolist()]


def picked(values: list[Any], mask: Mask) -> list[Any]:
    """Return the values in a mask."""
    return [value for value, kept in zip(values, mask, strict=True) if kept]


def some(values: Array, mask: Mask) -> list[float | None]:
    """Return numbers in a mask, None where there is none or no end."""
    return [float(f"{one:.5g}") if np.isfinite(one) else None for one in values[mask].tolist()]


def named(label: str | float) -> str:
    """Return the name of an arm, which Plotly may take for no tag."""
    return plain_text(labelled(label))
