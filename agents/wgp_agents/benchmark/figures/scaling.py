"""A picture of how regret grows with a parameter of the task."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

import wgp_agents.benchmark.figures.canvas as canvas
import wgp_agents.benchmark.figures.grid as grid
from wgp_agents.benchmark.experiment import AgentSpec, TaskSpec
from wgp_agents.benchmark.figures.styles import styles
from wgp_agents.benchmark.results import Results
from wgp_agents.benchmark.statistics import Interval, loglog_slope, mean_interval
from wgp_gym.validation import check_choice, reject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["by_size", "growth"]


def growth(
    results: Results,
    kwarg: str,
    *,
    fixed: Mapping[str, object] | None = None,
    entry: str | None = None,
    agents: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean final regret against a parameter of the task, both axes logarithmic.

    The vertical axis is linear where nobody has regret. The legend gives the slope of each
    agent's line with its bootstrap interval (95 %), run i being the same draw at every value.
    Reference agents, whose regret is 0, are left out.

    Args:
        results: The results.
        kwarg: A number that the environment is made with, as "horizon", in which the entry's
            tasks differ; those that leave it at its default are skipped.
        fixed: The values to take of other such parameters, and of "id" where tasks of one
            name are of different environments; "default" where a parameter is not given.
        entry: The environment's entry, where several vary the parameter.
        agents: The labels of the agents to draw, all by default.
        ax: Where to draw, by default in a new figure.

    Raises:
        ValueError: If there is no such agent or entry, the parameter does not have at least two
            positive numbers, or others with several values are not fixed.
    """
    players = [agent for agent in canvas.selected(results, agents, "growth") if not agent.reference]
    if not players:
        reject("agents", "growth", "labels of learners, not of references alone", agents)
    family = family_of(results, kwarg, entry)
    tasks = grid.narrowed(family, [kwarg], fixed or {}, "kwarg", "growth")
    numbers = by_size(tasks, kwarg)
    if len(numbers) < 2:
        rule = "one with at least two values that are positive numbers"
        reject("kwarg", "growth", rule, f"{kwarg}: {grid.values(tasks, kwarg)}")
    axes = canvas.axes_for(ax)
    shown = draw_growth(axes, results, players, numbers)
    axes.set_xlabel(kwarg)
    title = f"{family[0].seed_name}: growth with {kwarg}{grid.fixed_words(fixed or {})}"
    axes.set_title(title, fontsize=canvas.TITLE, **canvas.PLAIN_TEXT)
    canvas.legend_below(axes, shown, "slope, with its 95 % interval", grow=ax is None)
    return axes


def family_of(results: Results, kwarg: str, entry: str | None) -> list[TaskSpec]:
    """Return the tasks of the entry, or of the only one, whose tasks differ in a kwarg."""
    found: dict[str, list[TaskSpec]] = {}
    for task in map(results.task, results.tasks):
        found.setdefault(task.seed_name, []).append(task)
    varied = {name: grid.differing(tasks) for name, tasks in found.items()}
    check_choice("kwarg", kwarg, "growth", dict.fromkeys(itertools.chain(*varied.values())))
    entries = [name for name in found if kwarg in varied[name]]
    if entry is None and len(entries) > 1:
        reject("entry", "growth", f"one of {', '.join(map(repr, entries))}", entry)
    return found[entries[0] if entry is None else check_choice("entry", entry, "growth", entries)]


def by_size(tasks: Sequence[TaskSpec], kwarg: str) -> dict[float, TaskSpec]:
    """Return the tasks with a positive number there, by that number, in its order."""
    found = {grid.settings(task, [kwarg])[kwarg]: task for task in tasks}
    numbers = sorted(value for value in found if grid.is_number(value) and value > 0)
    return {float(value): found[value] for value in numbers}


def draw_growth(
    ax: Axes, results: Results, agents: Sequence[AgentSpec], tasks: Mapping[float, TaskSpec]
) -> canvas.Entries:
    """Draw each agent's mean final regret in each task, by the number that tells tasks apart.

    Returns:
        The lines for the legend, with their slopes, the flattest first.
    """
    x = np.array(list(tasks))
    looks = styles(results.experiment.agents)
    finals = {
        agent.label: [results.final_regret(task.name, agent.label) for task in tasks.values()]
        for agent in agents
    }
    slopes = {label: loglog_slope(x, samples) for label, samples in finals.items()}
    shown: canvas.Entries = []
    for label in sorted(slopes, key=lambda one: slopes[one].value):
        found = [mean_interval(sample) for sample in finals[label]]
        means = np.array([one.value for one in found])
        ends = np.array([[one.low, one.high] for one in found]).T
        look, text = looks[label], f"{label}: {written(slopes[label])}"
        bars = ax.errorbar(
            x,
            means,
            np.abs(ends - means) if np.isfinite(ends).all() else None,
            color=look.colour,
            marker=look.marker,
            linestyle=look.line,
            markersize=5,
            linewidth=1.5,
            capsize=2.5,
            label=text,
        )
        shown += [(bars, text)]
    ax.set(xscale="log", ylabel="mean final regret")
    grid.tick_at(ax, x.tolist())
    if any(sample.mean() > 0 for samples in finals.values() for sample in samples):
        ax.set_yscale("log")
        canvas.plain_log(ax.yaxis)
    canvas.tidy(ax, "both")
    return shown


def written(slope: Interval) -> str:
    """Return a slope with its interval, in which no line breaks."""
    if not np.isfinite(slope.value):
        return "none"
    value, low, high = (f"{end:z.2f}" for end in slope)  # zero without a sign
    return f"{value} [{low}, {high}]".replace(" ", "\u00a0") if np.isfinite(slope.low) else value
