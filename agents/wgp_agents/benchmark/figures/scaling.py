"""A picture of how regret grows with a parameter of the task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wgp_agents.benchmark.experiment import AgentSpec, TaskSpec
from wgp_agents.benchmark.figures.canvas import (
    TITLE,
    axes_for,
    chosen,
    legend_below,
    plain_log,
    tidy,
)
from wgp_agents.benchmark.figures.grid import (
    is_number,
    narrowed,
    tick_at,
    values,
)
from wgp_agents.benchmark.figures.styles import styles
from wgp_agents.benchmark.results import Results
from wgp_agents.benchmark.statistics import Interval, loglog_slope, mean_interval
from wgp_gym.validation import check_choice, reject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["growth"]


def growth(
    results: Results,
    kwarg: str,
    *,
    fixed: Mapping[str, Any] | None = None,
    entry: str | None = None,
    agents: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean final regret against a parameter of the task, both axes logarithmic.

    The legend gives the slope of each agent's line with its bootstrap interval (95 %), run i
    being the same draw at every value. Reference agents, whose regret is 0, are left out.

    Args:
        results: The results.
        kwarg: A number that the environment is made with, as "horizon", listed with several
            values; tasks that leave it at its default are skipped.
        fixed: The values to take of other such parameters.
        entry: The environment's entry, where several vary the parameter.
        agents: The labels of the agents to draw, all by default.
        ax: Where to draw, by default in a new figure.

    Raises:
        ValueError: If there is no such agent or entry, the parameter does not have at least two
            positive numbers, or others with several values are not fixed.
    """
    players = [agent for agent in chosen(results, agents, "growth") if not agent.reference]
    if not players:
        reject("agents", "growth", "labels of learners, not of references alone", agents)
    tasks = [task for task in map(results.task, results.tasks) if task.varied]
    entries = list(dict.fromkeys(task.seed_name for task in tasks if kwarg in task.varied))
    if entry is None and len(entries) > 1:
        reject("entry", "growth", f"one of {', '.join(map(repr, entries))}", entry)
    if entry is not None:
        check_choice("entry", entry, "growth", entries)
        tasks = [task for task in tasks if task.seed_name == entry]
    tasks = narrowed(tasks, [kwarg], fixed or {}, "kwarg", "growth")
    numbers = sorted(
        (task for task in tasks if is_number(task.varied[kwarg]) and task.varied[kwarg] > 0),
        key=lambda task: float(task.varied[kwarg]),
    )
    if len(numbers) < 2:
        rule = "one with at least two values that are positive numbers"
        reject("kwarg", "growth", rule, f"{kwarg}: {values(tasks, kwarg)}")
    axes = axes_for(ax)
    draw_growth(axes, results, players, numbers, kwarg)
    legend_below(axes, "slope, with its 95 % interval", grow=ax is None)
    return axes


def draw_growth(
    ax: Axes,
    results: Results,
    agents: Sequence[AgentSpec],
    tasks: Sequence[TaskSpec],
    kwarg: str,
) -> None:
    """Draw each agent's mean final regret in each task, the flattest first in the legend."""
    x = np.array([task.varied[kwarg] for task in tasks], float)
    looks = styles(results.experiment.agents)
    finals = {
        agent.label: [results.final_regret(task.name, agent.label) for task in tasks]
        for agent in agents
    }
    slopes = {label: loglog_slope(x, samples) for label, samples in finals.items()}
    for label in sorted(slopes, key=lambda one: slopes[one].value):
        found = [mean_interval(sample) for sample in finals[label]]
        means = np.array([one.value for one in found])
        ends = np.array([[one.low, one.high] for one in found]).T
        look = looks[label]
        ax.errorbar(
            x,
            means,
            np.abs(ends - means) if np.isfinite(ends).all() else None,
            color=look.colour,
            marker=look.marker,
            linestyle=look.line,
            markersize=5,
            linewidth=1.5,
            capsize=2.5,
            label=f"{label}: {written(slopes[label])}",
        )
    ax.set(xscale="log", yscale="log", xlabel=kwarg, ylabel="mean final regret")
    ax.set_title(f"{tasks[0].seed_name}: growth with {kwarg}", fontsize=TITLE)
    tick_at(ax, x.tolist())
    plain_log(ax.yaxis)
    tidy(ax, "both")


def written(slope: Interval) -> str:
    """Return a slope with its interval, in which no line breaks."""
    if not np.isfinite(slope.low):
        return f"{slope.value:.2f}"
    return f"{slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}]".replace(" ", "\u00a0")
