"""The charts of a report's page, as data for Plotly.

Colours are left to the page, which has two, and so is which agents are shown: a trace says of
which agent it is. What many traces share is given once.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wgp_agents.benchmark.figures.canvas import is_wide
from wgp_agents.benchmark.figures.grid import LOG_FROM
from wgp_agents.benchmark.report.numbers import decimals_for
from wgp_agents.benchmark.report.summary import (
    Agent,
    Curve,
    Growth,
    ParameterMap,
    Sensitivity,
    Summary,
    Task,
)
from wgp_agents.benchmark.statistics import Interval
from wgp_gym.types import Array

__all__ = ["Chart", "axis", "charts", "plain_text", "rounded"]

DOTS = 100  # runs shown one by one
WHISKERS = (0.05, 0.25, 0.5, 0.75, 0.95)
UNIT = "units of reward"
SHORT = 14  # letters of a name in a map, where there is little room
FEW_MARKS = 30  # changes, from which on their lines are thinner

Json = dict[str, Any]
Scale = list[tuple[float, str]]

BLUES: Scale = [(0.0, "#f2f6fa"), (1.0, "#12497c")]  # dark is better


@dataclass(frozen=True)
class Chart:
    """A chart."""

    section: str  # the heading that it stands under
    title: str
    caption: str  # what it shows
    kind: str  # "lines", "boxes" or "map"
    # Plotly's traces; "agent" is the number of the agent that each belongs to, None where it always
    # shows, "like" that of the agent in whose colour it is drawn. "low" and "high" are a band.
    data: list[Json]
    layout: Json
    task: int | None = None  # the number of its task; None where it is of no single one
    x: list[float] = field(default_factory=list)  # where all traces of a line chart are given
    # The numbers of the agents in the rows and columns of a map.
    agents: list[int] = field(default_factory=list)


def charts(summary: Summary) -> list[Chart]:
    """Return all charts, those of each task first."""
    found: list[Chart] = []
    for i, task in enumerate(summary.tasks):
        played = {label: summary.played[task.name, label] for label in summary.labels}
        sums = {label: one.cumulative for label, one in played.items()}
        caption = f"mean over the runs; bands: 1.96 standard errors on either side{some(task)}"
        found.append(curves(summary, i, sums, "Cumulative regret", caption))
        steps = {label: one.per_step for label, one in played.items()}
        caption = f"mean over the runs and the last 10 steps{some(task)}"
        found.append(curves(summary, i, steps, "Regret per step", caption))
        found += [boxes(summary, i, task), *plays(summary, i, task)]
    found += [*profiles(summary), *improvement(summary)]
    found += [sensitivity(summary, one) for one in summary.sensitivity]
    found += [parameter_map(summary, one) for one in summary.maps]
    return found + [growth(summary, one) for one in summary.growth]


def some(task: Task) -> str:
    """Return how many steps are shown, if not all are."""
    shown = len(task.steps)
    return "" if shown == task.horizon else f"; {shown} of {task.horizon} steps shown"


def curves(summary: Summary, i: int, found: dict[str, Curve], title: str, caption: str) -> Chart:
    """Return curves over time, the lowest end first, with lines where the function changes."""
    order = sorted(found, key=lambda label: float(found[label].mean[-1]))
    data = []
    for label in order:
        curve = found[label]
        trace = line(summary, label, curve.mean)
        if curve.low is not None and curve.high is not None:
            trace |= {"low": rounded(curve.low), "high": rounded(curve.high)}
        data.append(trace)
    if summary.tasks[i].changes:
        caption += "; dashed: the function changes"
    y_title = f"{title.lower()} ({UNIT})"
    return over_time("Regret", title, caption, data, summary, i, y_title)


def over_time(
    section: str, title: str, caption: str, data: list[Json], summary: Summary, i: int, y_title: str
) -> Chart:
    """Return a chart over the steps of a task."""
    task = summary.tasks[i]
    width = 1.0 if len(task.changes) < FEW_MARKS else 0.4
    shapes = [
        {"type": "line", "x0": step, "x1": step, "y0": 0, "y1": 1, "yref": "paper"}
        | {"line": {"dash": "4px,3px", "width": width, "color": "#888888"}, "layer": "below"}
        for step in task.changes
    ]
    steps = axis("step t") | {"unifiedhovertitle": {"text": "step %{x}"}}
    layout = {"xaxis": steps, "yaxis": axis(y_title), "shapes": shapes}
    return Chart(section, title, caption, "lines", data, layout, i, task.steps.tolist())


def line(summary: Summary, label: str, y: Array) -> Json:
    """Return the line of an agent."""
    j = summary.labels.index(label)
    return {"agent": j, "like": j, "mode": "lines", "y": rounded(y)} | look(summary.agents[j])


def look(agent: Agent) -> Json:
    """Return an agent's name and how its line is broken."""
    dash = agent.style.dash.replace(" ", "px,") + "px" if agent.style.dash else "solid"
    width = 1.2 if agent.reference else 1.8
    return {"name": plain_text(agent.label), "line": {"dash": dash, "width": width}}


def boxes(summary: Summary, i: int, task: Task) -> Chart:
    """Return the spread of the final regrets, the lowest mean first."""
    finals = {label: summary.played[task.name, label].final for label in summary.labels}
    data = []
    for label in sorted(finals, key=lambda one: float(finals[one].mean())):
        j, values = summary.labels.index(label), finals[label]
        low, first, middle, third, high = ([one] for one in rounded(np.quantile(values, WHISKERS)))
        ends = {"lowerfence": low, "q1": first, "median": middle, "q3": third, "upperfence": high}
        dots = {"x": [rounded(values[:DOTS])], "boxpoints": "all", "pointpos": 0, "jitter": 0.6}
        dots |= {"marker": {"size": 4}, "boxmean": True}
        trace = {"agent": j, "like": j, "type": "box", "orientation": "h", "mean": [values.mean()]}
        data.append(trace | ends | dots | {"name": plain_text(label)})
    caption = "box: quartiles and median; whiskers: 5 and 95 %; points: runs; dashed: mean"
    layout = {"xaxis": axis(f"final regret ({UNIT})"), "yaxis": {"showgrid": False}}
    return Chart("Regret", "Final regret of every run", caption, "boxes", data, layout, i)


def plays(summary: Summary, i: int, task: Task) -> list[Chart]:
    """Return what each agent played in the first run, against the optimum, where it is a number."""
    data: list[Json] = []
    best: Array | None = None
    for label in summary.labels:
        played = summary.played[task.name, label]
        if played.actions is None:
            return []
        trace = line(summary, label, played.actions)
        data.append(trace | {"mode": "markers", "marker": {"size": 5, "opacity": 0.7}})
        best = played.optimal_actions if best is None else best
    if best is None:
        return []
    data.append({"agent": None, "like": None, "mode": "lines", "y": rounded(best)})
    data[-1] |= {"name": "true optimum", "line": {"shape": "hvh", "width": 1.8}}
    caption = f"points: in run {task.first_run}; line: the true optimum{some(task)}"
    y_title = "arm, or place in [0, 1]"
    return [over_time("Plays", "What was played", caption, data, summary, i, y_title)]


def profiles(summary: Summary) -> list[Chart]:
    """Return the performance profiles, if there is a regret to divide by."""
    if summary.profiles is None:
        return []
    of = "the competitors' mean" if summary.chance is None else "random play's mean"
    data = [line(summary, label, share) for label, share in summary.profiles.shares.items()]
    caption = f"share of the runs with at most so much regret; 1 is {of}; higher is better"
    layout = {
        "xaxis": axis(f"final regret, as a share of {of}"),
        "yaxis": axis("share of the runs"),
    }
    x = rounded(summary.profiles.tau)
    return [Chart("Across tasks", "Performance profiles", caption, "lines", data, layout, x=x)]


def improvement(summary: Summary) -> list[Chart]:
    """Return the map of all pairs, if it was worked out."""
    if not summary.improvement:
        return []
    labels = summary.competitors
    trace = heat(summary.improvement, "%{z:.2f}", BLUES, zmin=0, zmax=1)
    trace |= {"x": [str(k) for k in range(1, len(labels) + 1)]}
    names = [f"{k}  {label}" for k, label in enumerate(labels, 1)]
    trace |= {"y": [plain_text(name) for name in names]}
    trace |= {"meta": [plain_text(name[:SHORT]) for name in names]}  # for a phone
    trace["hovertemplate"] = "%{y} is better than %{x} with %{z:.2f}<extra></extra>"
    caption = (
        "that a run of the row's agent has a lower regret than one of the column's, in the same "
        "task; the mean over tasks"
    )
    layout = {
        "xaxis": {"type": "category", "title": {"text": "than the agent of this number"}},
        "yaxis": {"type": "category", "autorange": "reversed"},
    }
    agents = [summary.labels.index(label) for label in labels]
    title = "Probability of improvement"
    return [Chart("Across tasks", title, caption, "map", [trace], layout, agents=agents)]


def heat(values: list[list[float | None]], template: str, scale: Scale, **rest: float) -> Json:
    """Return a map of colours with its values written into it."""
    shown = [[None if one is None else float(f"{one:.4g}") for one in row] for row in values]
    colours = {"colorscale": scale, "showscale": False, "xgap": 1, "ygap": 1}
    return {"type": "heatmap", "z": shown, "texttemplate": template} | colours | rest


def sensitivity(summary: Summary, found: Sensitivity) -> Chart:
    """Return the final regret against one parameter."""
    data = []
    for one in found.lines:
        j = summary.labels.index(one.like)
        trace = with_intervals(one.means) | look(summary.agents[j]) | {"agent": None, "like": j}
        data.append(trace | {"x": one.x, "name": plain_text(one.label)})
    places = np.array([x for one in found.lines for x in one.x])
    layout = {
        "xaxis": axis(found.parameter, log=is_wide(places, LOG_FROM)),
        "yaxis": axis(f"final regret ({UNIT})"),
        "showlegend": True,
    }
    title, caption = f"Final regret against {found.parameter}", "mean and 95 % interval"
    return Chart("Sensitivity", title, caption, "lines", data, layout, task_number(summary, found))


def parameter_map(summary: Summary, found: ParameterMap) -> Chart:
    """Return the mean final regret over two parameters, the lowest outlined."""
    flat = [value for row in found.means for value in row if value is not None]
    digits = decimals_for(max(flat))
    trace = heat(found.means, f"%{{z:.{digits}f}}", BLUES, reversescale=True)
    trace |= {"x": [f"{x:.12g}" for x in found.x], "y": [f"{y:.12g}" for y in found.y]}
    row, column = next(
        (r, c) for r, line in enumerate(found.means) for c, z in enumerate(line) if z == min(flat)
    )
    outline = {"type": "rect", "x0": column - 0.5, "x1": column + 0.5, "y0": row - 0.5}
    outline |= {"y1": row + 0.5, "line": {"color": "#D55E00", "width": 3}}
    layout = {
        "xaxis": {"type": "category", "title": {"text": plain_text(found.across)}},
        "yaxis": {"type": "category", "title": {"text": plain_text(found.along)}},
        "shapes": [outline],
    }
    title, caption = f"{found.agent}: {found.across} and {found.along}", "mean final regret"
    caption += "; the lowest is outlined"
    return Chart("Sensitivity", title, caption, "map", [trace], layout, task_number(summary, found))


def task_number(summary: Summary, found: Sensitivity | ParameterMap) -> int:
    """Return the place of a task."""
    return [task.name for task in summary.tasks].index(found.task)


def growth(summary: Summary, found: Growth) -> Chart:
    """Return the final regret against a number of the tasks."""
    data = []
    for one in found.lines:
        j = summary.labels.index(one.agent)
        data.append(with_intervals(one.means) | look(summary.agents[j]) | {"agent": j, "like": j})
    log = found.x[0] > 0
    positive = all(mean.value > 0 for one in found.lines for mean in one.means)
    layout = {
        "xaxis": axis(found.kwarg, log=log),
        "yaxis": axis(f"final regret ({UNIT})", log=log and positive),
    }
    caption = "mean and 95 % interval; the slopes stand below, in the table"
    return Chart("Growth", found.title, caption, "lines", data, layout, x=found.x)


def with_intervals(means: Sequence[Interval]) -> Json:
    """Return a line of means with bars where there are intervals."""
    values, low, high = np.array(means).T
    trace: Json = {"mode": "lines+markers", "y": rounded(values)}
    if np.isfinite([low, high]).all():
        bars = {"array": rounded(high - values), "arrayminus": rounded(values - low)}
        trace["error_y"] = {"type": "data", "symmetric": False} | bars
    return trace


def axis(title: str, *, log: bool = False) -> Json:
    """Return an axis."""
    return {"title": {"text": plain_text(title)}, "type": "log" if log else "linear"}


def rounded(values: Array) -> list[float]:
    """Return numbers with five digits."""
    return [float(f"{value:.5g}") for value in values.tolist()]


def plain_text(text: str) -> str:
    """Return a text as Plotly shows it, to whom tags and entities have a meaning."""
    return html.escape(text, quote=False)
