"""Pictures of how final regrets spread over runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

import wgp_agents.benchmark.figures.canvas as canvas
from wgp_agents.benchmark.experiment import AgentSpec
from wgp_agents.benchmark.figures.styles import styles
from wgp_agents.benchmark.results import Results, relative_regrets
from wgp_agents.benchmark.statistics import profile_shares
from wgp_gym.types import Array
from wgp_gym.validation import check_bool, reject

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["final_regret", "performance_profile"]

HALF = 0.27  # of a box's height, in the distance of two rows
POINTS = 500  # of tau


def final_regret(
    results: Results, task: str, *, agents: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the regrets of whole runs: points, a box from quartile to quartile, median and mean.

    The lowest mean stands at the top. The axis is logarithmic where the regrets span more than
    a factor of 30. Reference agents, whose regret is 0, are drawn only when asked for.

    Args:
        results: The results.
        task: The task's name.
        agents: The labels of the agents to draw, by default all but references.
        ax: Where to draw, by default in a new figure.

    Raises:
        ValueError: If there is no such task or agent.
    """
    players = drawn(results, agents, "final_regret")
    found = {agent.label: results.final_regret(task, agent.label) for agent in players}
    order = sorted(found, key=lambda label: float(found[label].mean()))
    rows = [canvas.wrapped(label) for label in order]
    lines = max(row.count("\n") + 1 for row in rows)
    ax = canvas.axes_for(ax, 7.0, 1.0 + (0.2 + 0.14 * lines) * len(rows))
    looks = styles(results.experiment.agents)
    for row, label in enumerate(order):
        draw_row(ax, row, found[label], looks[label].colour)
    ax.set_yticks(range(len(rows)), rows, **canvas.PLAIN_TEXT)
    ax.tick_params(axis="y", length=0, labelsize=canvas.SMALL)
    ax.set_ylim(len(order) - 0.5, -0.5)
    ax.set(xlabel="final regret (diamond: mean; box: quartiles and median)")
    ax.set_title(results.task(task).name, fontsize=canvas.TITLE, **canvas.PLAIN_TEXT)
    set_scale(ax, np.concatenate(list(found.values())))
    canvas.tidy(ax, "x")
    ax.spines["left"].set_visible(False)
    return ax


def draw_row(ax: Axes, row: int, values: Array, colour: str) -> None:
    """Draw the spread of `(runs,)` in one row: points, quartiles, median and mean."""
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    shift = np.random.default_rng(0).uniform(-0.8 * HALF, 0.8 * HALF, len(values))
    dots: canvas.Keywords = {"color": colour, "s": 9, "alpha": 0.35, "linewidths": 0}
    ax.scatter(values, row + shift, zorder=2, **dots)
    box: canvas.Keywords = {"facecolor": "none", "edgecolor": colour, "linewidth": 1.3}
    ax.barh(row, high - low, 2 * HALF, left=low, zorder=3, **box)
    ax.vlines(middle, row - HALF, row + HALF, color=colour, linewidth=2, zorder=3)
    mean: canvas.Keywords = {"color": "white", "markeredgecolor": "black", "markersize": 5.5}
    ax.plot(values.mean(), row, "D", zorder=4, **mean)


def performance_profile(
    results: Results,
    *,
    bands: bool = False,
    agents: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the share of runs with a regret of at most tau, the mean over tasks; higher is better.

    Regrets are shares of random play's mean in their task; without random play, of the mean of
    all learners there. Tasks in which that is 0 are left out. tau is on a logarithmic axis where
    it spans more than a factor of 30.

    Args:
        results: The results.
        bands: Whether to shade 1.96 standard errors on either side (95 %).
        agents: The labels of the agents to draw, by default all but references.
        ax: Where to draw, by default in a new figure.

    Raises:
        ValueError: If there is no such agent, `bands` is neither True nor False, or there is no
            task with regrets to be shares of.
    """
    players = drawn(results, agents, "performance_profile")
    check_bool("bands", bands, "performance_profile")
    every = relative_regrets(results)
    regrets = {agent.label: every[agent.label] for agent in players}
    pooled = [task for tasks in regrets.values() for task in tasks]
    if not pooled:
        rule = "with a task in which random play, or a learner, has regret"
        reject("results", "performance_profile", rule, results.tasks)
    axes = canvas.axes_for(ax)
    shown = draw_profiles(axes, results, regrets, bands)
    of = "the learners' mean" if results.random() is None else "random play's mean"
    axes.set(xlabel=rf"$\tau$: regret as a share of {of}", ylabel=r"share of runs at most $\tau$")
    axes.set_ylim(0, 1.02)
    canvas.tidy(axes)
    canvas.legend_below(axes, shown, grow=ax is None)
    return axes


def draw_profiles(
    ax: Axes, results: Results, regrets: Mapping[str, Sequence[Array]], bands: bool
) -> canvas.Entries:
    """Draw the profile of each label's relative regrets, `(runs,)` per task.

    Returns:
        The curves for the legend, the lowest mean first.
    """
    pooled = np.concatenate([task for tasks in regrets.values() for task in tasks])
    wide = canvas.is_wide(pooled)
    low, high = (float(pooled.min()) if wide else 0.0), 1.02 * float(pooled.max()) or 1.0
    taus = np.geomspace(low, high, POINTS) if wide else np.linspace(low, high, POINTS)
    looks = styles(results.experiment.agents)
    order = sorted(regrets, key=lambda label: float(np.mean([t.mean() for t in regrets[label]])))
    shown: canvas.Entries = []
    for place, label in enumerate(order):
        share, error = profile_shares(regrets[label], taus)
        line = canvas.line_style(looks[label], place / len(order), POINTS)
        shown += [(ax.plot(taus, share, label=label, **line)[0], label)]
        if bands:
            ends = np.clip([share - canvas.Z * error, share + canvas.Z * error], 0, 1)
            ax.fill_between(taus, *ends, color=looks[label].colour, alpha=0.15, linewidth=0)
    set_scale(ax, pooled)
    ax.set_xlim(low, high)
    return shown


def drawn(results: Results, agents: Sequence[str] | None, owner: str) -> list[AgentSpec]:
    """Return the agents asked for, by default all that are no references (unless all are)."""
    found = canvas.selected(results, agents, owner)
    learners = [agent for agent in found if not agent.reference]
    return found if agents is not None else learners or found


def set_scale(ax: Axes, values: Array) -> None:
    """Make the horizontal axis fit the values: logarithmic where they are far apart."""
    if not canvas.is_wide(values):
        ax.set_xlim(left=0)
        return
    ax.set_xscale("log")
    canvas.plain_log(ax.xaxis)
