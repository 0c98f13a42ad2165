"""What an experiment varies, and the charts of it: an agent's parameters, a task's kwargs."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from wgp_agents.benchmark.experiment import AgentSpec, TaskSpec
from wgp_agents.benchmark.figures.grid import is_log, is_number
from wgp_agents.benchmark.report.numbers import with_interval
from wgp_agents.benchmark.report.summary import Summary, competitors
from wgp_agents.benchmark.results import Results
from wgp_agents.benchmark.statistics import loglog_slope
from wgp_agents.registry import AGENTS

__all__ = ["groups", "growth_charts", "sensitivity_charts"]

Chart = dict[str, Any]
Spec = AgentSpec | TaskSpec


def sensitivity_charts(results: Results, summary: Summary) -> list[Chart]:
    """Return a chart for each task of how the final regret depends on the agents' parameters.

    All agents' variants of one parameter share a chart; two parameters of one agent that vary
    at once have a map.
    """
    specs = results.experiment.agents
    parameters = sorted({name for spec in specs for name in numeric(specs, spec.name)})
    found = []
    for i, task in enumerate(results.tasks):
        found += [line_chart(results, summary, i, task, parameter) for parameter in parameters]
        found += [
            heat_map(results, i, task, name, *pair)
            for name in dict.fromkeys(spec.name for spec in specs)
            for pair in itertools.combinations(numeric(specs, name), 2)
        ]
    return [chart for chart in found if chart]


def numeric(specs: Sequence[AgentSpec], name: str) -> list[str]:
    """Return the parameters of an agent that take two or more different numbers."""
    taken: dict[str, set[float]] = {}
    for spec in specs:
        for key, value in spec.settings.items():
            if spec.name == name and is_number(value):
                taken.setdefault(key, set()).add(float(value))
    return [key for key, values in taken.items() if len(values) > 1]


def groups(
    specs: Sequence[Any], varied: str
) -> Iterator[tuple[dict[str, Any], list[tuple[float, Any]]]]:
    """Yield the specs that differ in one parameter alone, as (its value, spec), in its order.

    Each group comes with those other parameters in which it differs from other groups.
    """
    found: dict[str, tuple[dict[str, Any], dict[float, Any]]] = {}
    for spec in specs:
        if is_number(spec.settings.get(varied)):
            rest = {key: value for key, value in spec.settings.items() if key != varied}
            _, points = found.setdefault(repr(sorted(rest.items())), (rest, {}))
            points.setdefault(float(spec.settings[varied]), spec)
    lines = [(rest, points) for rest, points in found.values() if len(points) > 1]
    for rest, points in lines:
        apart = [key for key in rest if any(other.get(key) != rest[key] for other, _ in lines)]
        yield {key: rest[key] for key in apart}, sorted(points.items())


def words(values: dict[str, Any]) -> str:
    """Return parameters for people."""
    return ", ".join(f"{key}={value}" for key, value in values.items())


def measured(summary: Summary, places: Iterable[tuple[str, str]]) -> Chart:
    """Return the means and intervals of a line, point by point the row of a task and an agent."""
    rows = [summary.row(*place) for place in places]
    names = {"y": "mean", "low": "mean_low", "high": "mean_high"}
    return {key: [row[name] for row in rows] for key, name in names.items()}


def line_chart(
    results: Results, summary: Summary, i: int, task: str, parameter: str
) -> Chart | None:
    """Return final regret against one parameter, a line for each agent and what else varies."""
    series = []
    taken: list[float] = []
    for name in dict.fromkeys(spec.name for spec in results.experiment.agents):
        specs = [spec for spec in results.experiment.agents if spec.name == name]
        for rest, points in groups(specs, parameter):
            x = [value for value, _ in points]
            taken += x
            title = AGENTS[name].title
            text = " ".join(filter(None, [title, words(rest)]))
            first = results.agents.index(points[0][1].label)
            line: Chart = {"agent": None, "like": first, "label": text, "x": x, "markers": True}
            series.append(line | measured(summary, ((task, spec.label) for _, spec in points)))
    if not series:
        return None
    return {
        "id": f"sensitivity-{i}-{parameter}",
        "section": "Sensitivity",
        "task": i,
        "kind": "lines",
        "title": f"Final regret against {parameter}",
        "caption": "mean and 95 % interval",
        "x_label": parameter,
        "y_label": "final regret (units of reward)",
        "x_log": is_log(np.array(taken)),
        "marks": [],
        "series": series,
    }


def heat_map(
    results: Results, i: int, task: str, name: str, across: str, along: str
) -> Chart | None:
    """Return the mean final regret over two parameters of an agent.

    None where they do not vary together, or others vary beside them.
    """
    specs = [spec for spec in results.experiment.agents if spec.name == name]
    means: dict[tuple[float, float], float] = {}
    for spec in specs:
        taken = [spec.settings.get(key) for key in (across, along)]
        if not all(map(is_number, taken)):
            continue
        place = float(taken[0]), float(taken[1])  # type: ignore[arg-type]
        if place in means:
            return None
        means[place] = float(results.final_regret(task, spec.label).mean())
    if not means:
        return None
    x, y = (sorted({place[axis] for place in means}) for axis in (0, 1))
    return {
        "id": f"map-{i}-{name}-{across}-{along}",
        "section": "Sensitivity",
        "task": i,
        "kind": "heatmap",
        "title": f"{name}: {across} and {along}",
        "caption": "mean final regret",
        "x_label": across,
        "y_label": along,
        "x": [f"{value:g}" for value in x],
        "y": [f"{value:g}" for value in y],
        "values": [[means.get((a, b)) for a in x] for b in y],
        "low_is_best": True,
        "unit": "units of reward",
        "agent": None,
    }


def growth_charts(results: Results, summary: Summary) -> list[Chart]:
    """Return a chart of the final regret against each number that the tasks of an entry vary."""
    tasks = [results.task(name) for name in results.tasks]
    found = []
    for family in dict.fromkeys(task.seed_name for task in tasks):
        specs = [task for task in tasks if task.seed_name == family]
        for kwarg in dict.fromkeys(key for spec in specs for key in spec.settings):
            for rest, points in groups(specs, kwarg):
                found.append(growth_chart(results, summary, family, kwarg, rest, points))
    return found


def growth_chart(
    results: Results,
    summary: Summary,
    family: str,
    kwarg: str,
    rest: dict[str, Any],
    points: list[tuple[float, TaskSpec]],
) -> Chart:
    """Return one such chart; both axes are logarithmic, and slopes stand beside the agents."""
    x = [value for value, _ in points]
    series = []
    logarithmic = x[0] > 0
    for label in competitors(results):
        finals = [results.final_regret(task.name, label) for _, task in points]
        line: Chart = {"agent": results.agents.index(label), "x": x, "markers": True}
        line |= measured(summary, ((task.name, label) for _, task in points))
        slope = loglog_slope(np.array(x), finals) if logarithmic else None
        if slope is not None and math.isfinite(slope.value):
            line["note"] = f"slope {with_interval(*slope, decimals=2)}"
        series.append(line)
    return {
        "id": f"growth-{family}-{kwarg}-{words(rest)}",
        "section": "Growth",
        "task": None,
        "kind": "lines",
        "title": " ".join(filter(None, [f"{family}: final regret against {kwarg}", words(rest)])),
        "caption": "mean and 95 % interval; the slope is that of the logarithms, by least squares",
        "x_label": kwarg,
        "y_label": "final regret (units of reward)",
        "x_log": logarithmic,
        "y_log": logarithmic and all(min(line["y"]) > 0 for line in series),
        "marks": [],
        "series": series,
    }
