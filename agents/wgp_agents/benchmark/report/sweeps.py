"""What an experiment varies, in groups: an agent's parameters, a task's numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import numpy as np

from wgp_agents.benchmark.experiment import AgentSpec, TaskSpec
from wgp_agents.benchmark.figures.grid import is_number
from wgp_agents.benchmark.files import JSON
from wgp_agents.benchmark.report.summary import (
    Growth,
    GrowthLine,
    ParameterLine,
    ParameterMap,
    Sensitivity,
)
from wgp_agents.benchmark.statistics import Interval, loglog_slope
from wgp_agents.registry import agent_entry
from wgp_gym.types import Array

__all__ = ["growth", "parameter_maps", "sensitivity"]

Spec = TypeVar("Spec", AgentSpec, TaskSpec)
Means = Mapping[tuple[str, str], Interval]


def sensitivity(
    agents: Sequence[AgentSpec], tasks: Sequence[str], means: Means
) -> list[Sensitivity]:
    """Return for each task and parameter a line of each agent and of what else it varies."""
    parameters = sorted({name for spec in agents for name in numeric(agents, spec.name)})
    found = []
    for task, parameter in itertools.product(tasks, parameters):
        lines = []
        for name, specs in by_name(agents).items():
            for rest, points in groups(specs, parameter):
                label = " ".join(filter(None, [agent_entry(name).title, words(rest)]))
                values = [means[task, spec.label] for _, spec in points]
                x = [value for value, _ in points]
                lines.append(ParameterLine(label, points[0][1].label, x, values))
        if lines:
            found.append(Sensitivity(task, parameter, lines))
    return found


def parameter_maps(
    agents: Sequence[AgentSpec], tasks: Sequence[str], means: Means
) -> list[ParameterMap]:
    """Return for each task and agent a map over each pair of parameters that vary together."""
    found = []
    for task, (name, specs) in itertools.product(tasks, by_name(agents).items()):
        for across, along in itertools.combinations(numeric(agents, name), 2):
            places = placed(specs, across, along)
            x, y = (sorted({place[axis] for place in places}) for axis in (0, 1))
            values = {place: means[task, label].value for place, label in places.items()}
            table = [[values.get((a, b)) for a in x] for b in y]
            if places:
                found.append(ParameterMap(task, name, across, along, x, y, table))
    return found


def placed(specs: Sequence[AgentSpec], across: str, along: str) -> dict[tuple[float, float], str]:
    """Return labels by two parameters' values; none where others vary beside them."""
    found: dict[tuple[float, float], str] = {}
    for spec in specs:
        x, y = spec.settings.get(across), spec.settings.get(along)
        if is_number(x) and is_number(y):
            if (place := (float(x), float(y))) in found:
                return {}
            found[place] = spec.label
    return found


def growth(
    tasks: Sequence[TaskSpec],
    labels: Sequence[str],
    means: Means,
    finals: Mapping[tuple[str, str], Array],
) -> list[Growth]:
    """Return how the competitors' final regrets grow with each number that an entry varies."""
    found = []
    for family, one in dict.fromkeys((task.seed_name, task.id) for task in tasks):
        specs = [task for task in tasks if (task.seed_name, task.id) == (family, one)]
        alone = all(task.id == one for task in tasks if task.seed_name == family)
        name = family if alone else f"{family} ({one})"
        for kwarg in dict.fromkeys(key for spec in specs for key in spec.settings):
            for rest, points in groups(specs, kwarg):
                x = [value for value, _ in points]
                lines = []
                for label in labels:
                    places = [(spec.name, label) for _, spec in points]
                    steepness = slope(x, [finals[place] for place in places])
                    lines.append(GrowthLine(label, [means[place] for place in places], steepness))
                title = f"{name}: final regret against {kwarg}"
                title = " ".join(filter(None, [title, words(rest)]))
                found.append(Growth(title, kwarg, x, lines))
    return found


def slope(x: Sequence[float], finals: Sequence[Array]) -> Interval | None:
    """Return the slope of the logarithms; None where there is no logarithm."""
    if x[0] <= 0:
        return None
    found = loglog_slope(np.array(x), finals)
    return found if math.isfinite(found.value) else None


def by_name(agents: Sequence[AgentSpec]) -> dict[str, list[AgentSpec]]:
    """Return the variants of each agent."""
    found: dict[str, list[AgentSpec]] = {}
    for spec in agents:
        found.setdefault(spec.name, []).append(spec)
    return found


def numeric(specs: Sequence[AgentSpec], name: str) -> list[str]:
    """Return the parameters of an agent that take two or more different numbers."""
    taken: dict[str, set[float]] = {}
    for spec in specs:
        for key, value in spec.settings.items():
            if spec.name == name and is_number(value):
                taken.setdefault(key, set()).add(float(value))
    return [key for key, values in taken.items() if len(values) > 1]


def groups(
    specs: Sequence[Spec], varied: str
) -> Iterator[tuple[dict[str, JSON], list[tuple[float, Spec]]]]:
    """Yield the specs that differ in one parameter alone, as (its value, spec), in its order.

    Each group comes with those other parameters in which it differs from other groups.
    """
    found: dict[str, tuple[dict[str, JSON], dict[float, Spec]]] = {}
    for spec in specs:
        if is_number(value := spec.settings.get(varied)):
            rest = {key: value for key, value in spec.settings.items() if key != varied}
            _, points = found.setdefault(repr(sorted(rest.items())), (rest, {}))
            points.setdefault(float(value), spec)
    lines = [(rest, points) for rest, points in found.values() if len(points) > 1]
    for rest, points in lines:
        apart = [key for key in rest if any(other.get(key) != rest[key] for other, _ in lines)]
        yield {key: rest[key] for key in apart}, sorted(points.items())


def words(values: Mapping[str, JSON]) -> str:
    """Return parameters for people."""
    return ", ".join(f"{key}={value}" for key, value in values.items())
