"""Pictures of how regret depends on an agent's parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

import wgp_agents.benchmark.figures.canvas as canvas
import wgp_agents.benchmark.figures.grid as grid
from wgp_agents.benchmark.declaration import DEFAULT
from wgp_agents.benchmark.figures.styles import styles
from wgp_agents.benchmark.results import Results
from wgp_agents.benchmark.statistics import Interval, mean_interval
from wgp_agents.registry import agent_entry
from wgp_gym.validation import check_choice, reject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["sensitivity"]


def sensitivity(
    results: Results,
    task: str,
    name: str,
    parameters: str | Sequence[str],
    *,
    fixed: Mapping[str, object] | None = None,
    agents: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean final regret against one or two of an agent's parameters.

    One: a line with bootstrap intervals (95 %), the agent's default as a level. Two: a map with
    the means written into it and the lowest outlined.

    Args:
        results: The results.
        task: The task's name.
        name: The agent's name in the registry.
        parameters: One or two parameters that the agent's variants differ in.
        fixed: The values to take of other such parameters; "default" where it is not given.
        agents: The labels of the variants to take, all by default.
        ax: Where to draw, by default in a new figure.

    Raises:
        ValueError: If there is no such task or agent, or a parameter is not one with several
            values, or others with several values are not fixed.
    """
    asked = checked_names(parameters)
    players = canvas.selected(results, agents, "sensitivity")
    check_choice("name", name, "sensitivity", dict.fromkeys(agent.name for agent in players))
    variants = [agent for agent in players if agent.name == name]
    found = grid.narrowed(variants, asked, fixed or {}, "parameters", "sensitivity")
    finals = {
        tuple(grid.settings(agent, asked).values()): results.final_regret(task, agent.label)
        for agent in found
    }
    title = f"{agent_entry(name).title} in {results.task(task).name}{grid.fixed_words(fixed or {})}"
    if len(asked) == 2:
        axes = canvas.axes_for(ax, 5.6, 4.2)
        draw_map(axes, {key: float(values.mean()) for key, values in finals.items()}, asked)
        title += "\nmean final regret, the lowest outlined"
    else:
        axes = canvas.axes_for(ax, 5.6, 3.8)
        colour = styles(results.experiment.agents)[variants[0].label].colour
        shown = draw_line(axes, {key[0]: mean_interval(v) for key, v in finals.items()}, colour)
        axes.set(xlabel=asked[0], ylabel="mean final regret")
        if shown:
            canvas.legend_below(axes, shown, grow=ax is None)
    axes.set_title(title, fontsize=canvas.TITLE, **canvas.PLAIN_TEXT)
    return axes


def checked_names(parameters: str | Sequence[str]) -> list[str]:
    """Return one or two different names."""
    asked = [parameters] if isinstance(parameters, str) else list(parameters)
    if len(set(asked)) != len(asked) or len(asked) not in (1, 2):
        reject("parameters", "sensitivity", "one or two different names", parameters)
    return asked


def draw_line(ax: Axes, found: Mapping[grid.Key, Interval], colour: str) -> canvas.Entries:
    """Draw intervals by the value of one parameter; words stand side by side.

    Returns:
        The default's level for the legend, nothing where it is not among them.
    """
    keys = [key for key in grid.ordered(list(found)) if key != DEFAULT]
    numbers = [key for key in keys if grid.is_number(key)]
    numeric = bool(keys) and len(numbers) == len(keys)
    x = numbers if numeric else list(range(len(keys)))
    means = np.array([found[key].value for key in keys])
    ends = np.array([[found[key].low, found[key].high] for key in keys]).reshape(-1, 2).T
    spread = np.abs(ends - means) if np.isfinite(ends).all() else None
    line: canvas.Keywords = {"color": colour, "linestyle": "-" if numeric else "none"}
    ax.errorbar(x, means, spread, marker="o", markersize=5, capsize=3, label="_", **line)
    shown = draw_level(ax, found[DEFAULT]) if DEFAULT in found else []
    if numeric:
        if canvas.is_wide(np.array(numbers, float), grid.LOG_FROM):
            ax.set_xscale("log")
        grid.tick_at(ax, numbers)
    else:
        ax.set_xticks(x, [str(key) for key in keys], **canvas.PLAIN_TEXT)
        ax.margins(x=0.2)
    ax.set_ylim(bottom=0)
    canvas.tidy(ax)
    return shown


def draw_level(ax: Axes, level: Interval) -> canvas.Entries:
    """Draw the default's mean as a level, with its interval; return it for the legend."""
    label = "default, with its 95 % interval"
    style: canvas.Keywords = {"color": canvas.GREY, "linestyle": "--", "linewidth": 1.2}
    line = ax.axhline(level.value, label=label, **style)
    if np.isfinite(level.low):
        ax.axhspan(level.low, level.high, color=canvas.GREY, alpha=0.12, linewidth=0)
    return [(line, label)]


def draw_map(ax: Axes, means: Mapping[tuple[grid.Key, ...], float], names: Sequence[str]) -> None:
    """Draw means by the values of two parameters, the first to the right, the second upwards."""
    from matplotlib.colors import LogNorm, Normalize
    from matplotlib.patches import Rectangle

    columns, rows = (grid.ordered(list(dict.fromkeys(key[i] for key in means))) for i in (0, 1))
    table = np.array([[means.get((column, row), np.nan) for column in columns] for row in rows])
    ends = (np.nanmin(table), np.nanmax(table))
    norm = (LogNorm if canvas.is_wide(np.array(ends)) else Normalize)(*ends)
    image = ax.imshow(table, cmap="cividis_r", norm=norm, origin="lower", aspect="auto")
    for (row, column), value in np.ndenumerate(table):
        if np.isfinite(value):
            dark = np.dot(image.cmap(norm(value))[:3], (0.299, 0.587, 0.114)) < 0.5
            text = f"{value:.0f}" if value >= 100 else f"{value:.3g}"
            ax.text(column, row, text, ha="center", va="center", color="w" if dark else "k")
    row, column = np.unravel_index(np.nanargmin(table), table.shape)
    frame: canvas.Keywords = {"fill": False, "edgecolor": "#D55E00", "linewidth": 2.5}
    ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, clip_on=False, zorder=3, **frame))
    ax.set_xticks(range(len(columns)), [str(key) for key in columns], **canvas.PLAIN_TEXT)
    ax.set_yticks(range(len(rows)), [str(key) for key in rows], **canvas.PLAIN_TEXT)
    ax.set(xlabel=names[0], ylabel=names[1])
    ax.spines[:].set_visible(False)
    ax.tick_params(length=0)
