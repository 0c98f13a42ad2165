"""Pictures over time: regret step by step, and the arms that were played."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import gymnasium
import numpy as np

import wgp_agents.benchmark.figures.canvas as canvas
from wgp_agents.benchmark.experiment import AgentSpec, TaskSpec
from wgp_agents.benchmark.figures.styles import Style, styles
from wgp_agents.benchmark.results import RANDOM, WINDOW, Results
from wgp_agents.benchmark.statistics import Estimate, estimate, smoothed
from wgp_gym.types import Array
from wgp_gym.validation import check_int, reject

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

__all__ = ["plays", "regret_around_changes", "regret_curves"]

HEADROOM = 1.1  # above the highest band
OPTIMUM = "#D55E00"


def regret_curves(
    results: Results, task: str, *, agents: Sequence[str] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the mean cumulative regret, with bands of 1.96 standard errors on either side (95 %).

    Random play is drawn as far as the others' scale reaches, and where it ends is written down.

    Args:
        results: The results.
        task: The task's name.
        agents: The labels of the agents to draw, all by default.
        ax: Where to draw, by default in a new figure.

    Raises:
        ValueError: If there is no such task or agent.
    """
    players, axes = canvas.selected(results, agents, "regret_curves"), canvas.axes_for(ax)
    shown = draw_means(axes, results, players, lambda label: results.means(task, label).cumulative)
    axes.set(xlabel="step t", ylabel="cumulative regret")
    axes.set_title(results.task(task).name, fontsize=canvas.TITLE, **canvas.PLAIN_TEXT)
    canvas.legend_below(axes, shown, grow=ax is None)
    return axes


def regret_around_changes(
    results: Results,
    task: str,
    *,
    window: int = WINDOW,
    agents: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the mean regret per step, with bands of 1.96 standard errors on either side (95 %).

    Dashed lines stand where all runs meet a new function. Random play as in `regret_curves`.

    Args:
        results: The results.
        task: The task's name.
        window: The number of steps, at least 1, of the trailing mean that each run is smoothed by.
        agents: The labels of the agents to draw, all by default.
        ax: Where to draw, by default in a new figure.

    Raises:
        ValueError: If there is no such task or agent, or the window is no such number.
    """
    players = canvas.selected(results, agents, "regret_around_changes")
    window = check_int("window", window, "regret_around_changes", 1)
    axes = canvas.axes_for(ax)

    def _per_step(label: str) -> Estimate:
        if window == WINDOW:
            return results.means(task, label).per_step
        return estimate(smoothed(results.regret(task, label), window))

    shown = draw_means(axes, results, players, _per_step)
    shown += canvas.mark_changes(axes, results.changes(task))
    unit = f"regret per step, mean of last {window}" if window > 1 else "regret per step"
    axes.set(xlabel="step t", ylabel=unit)
    axes.set_title(results.task(task).name, fontsize=canvas.TITLE, **canvas.PLAIN_TEXT)
    canvas.legend_below(axes, shown, grow=ax is None)
    return axes


def draw_means(
    ax: Axes, results: Results, agents: Sequence[AgentSpec], means: Callable[[str], Estimate]
) -> canvas.Entries:
    """Draw the means over runs `means(label)`, `(T,)`.

    The vertical scale is that of the learners; random play may leave it.

    Returns:
        The curves for the legend, the lowest end first.
    """
    found = {agent.label: means(agent.label) for agent in agents}
    looks = styles(results.experiment.agents)
    order = sorted(agents, key=lambda one: found[one.label].mean[-1])
    shown = [
        (draw_mean(ax, agent, found[agent.label], looks[agent.label], place / len(order)), agent)
        for place, agent in enumerate(order)
    ]
    tops = [upper(found[agent.label]).max() for agent in canvas.learners(agents)]
    top = HEADROOM * max(tops) or 1.0  # the oracle alone has no regret at all
    ax.set_xlim(0, max(len(one.mean) for one in found.values()))
    ax.set_ylim(0, top)
    canvas.tidy(ax)
    for agent in agents:
        if agent.name == RANDOM and found[agent.label].mean.max() > top:
            note_end(ax, found[agent.label].mean, top, agent.label)
    return [(curve, agent.label) for curve, agent in shown]


def draw_mean(ax: Axes, agent: AgentSpec, found: Estimate, look: Style, place: float) -> Artist:
    """Draw one mean with its band; markers start at a share `place` of their distance."""
    steps = np.arange(1, len(found.mean) + 1)
    if agent.reference:
        line: canvas.Keywords = {"color": canvas.GREY, "linestyle": look.line, "linewidth": 1.0}
        return ax.plot(steps, found.mean, label=agent.label, zorder=2, **line)[0]
    line = canvas.line_style(look, place, len(steps))
    (curve,) = ax.plot(steps, found.mean, label=agent.label, zorder=3, **line)
    if np.isfinite(found.standard_error).all():
        low = found.mean - canvas.Z * found.standard_error
        ax.fill_between(steps, low, upper(found), color=look.colour, alpha=0.15, linewidth=0)
    return curve


def upper(found: Estimate) -> Array:
    """Return the upper end of a band, the mean itself where a single run has none."""
    return np.asarray(found.mean + canvas.Z * np.nan_to_num(found.standard_error))


def note_end(ax: Axes, mean: Array, top: float, label: str) -> None:
    """Write where a curve ends that leaves the axes at their top, beside where it leaves them."""
    leaves = int(np.argmax(mean > top)) + 1
    early = leaves < 0.7 * len(mean)
    ax.annotate(
        f"{label} ends at {mean[-1]:,.3g}"
        if mean[-1] < 1000
        else f"{label} ends at {mean[-1]:,.0f}",
        (leaves, top),
        xytext=(6 if early else -24, -3),
        textcoords="offset points",
        ha="left" if early else "right",
        va="top",
        fontsize=canvas.SMALL,
        color=canvas.GREY,
        **canvas.PLAIN_TEXT,
    )


def plays(results: Results, task: str, agent: str, *, run: int = 0, ax: Axes | None = None) -> Axes:
    """Draw what one run has played, as points, against the true optimum, a line.

    Args:
        results: The results.
        task: The task's name.
        agent: The agent's label.
        run: The run's number.
        ax: Where to draw, by default in a new figure.

    Raises:
        ValueError: If there is no such task, agent or run, or the places played have more than
            one coordinate.
    """
    spec, look = results.task(task), styles(results.experiment.agents)[results.agent(agent).label]
    runs = results.runs(task).tolist()
    if run not in runs:
        reject("run", "plays", f"the number of a run, {runs[0]} to {runs[-1]}", run)
    stored, axes = results.read(task, agent), canvas.axes_for(ax)
    row = runs.index(run)
    played, best, names, what = places(spec, stored["action"][row], stored["optimal_action"][row])
    steps = np.arange(1, len(played) + 1)
    shown = canvas.mark_changes(axes, results.changes(task))
    line: canvas.Keywords = {"color": OPTIMUM, "linewidth": 1.8, "drawstyle": "steps-mid"}
    shown += [(axes.plot(steps, best, label="the optimum", zorder=2, **line)[0], "the optimum")]
    dots: canvas.Keywords = {"color": look.colour, "s": 13, "alpha": 0.65, "linewidths": 0}
    label = f"played by {agent}"
    shown += [(axes.scatter(steps, played, label=label, zorder=3, **dots), label)]
    if names:
        axes.set_yticks(range(len(names)), names, fontsize=6, **canvas.PLAIN_TEXT)
    axes.set(xlabel="step t", ylabel=what, xlim=(0, len(steps) + 1))
    axes.set_title(f"{spec.name}, run {run}", **canvas.PLAIN_TEXT)
    canvas.tidy(axes, "none")
    canvas.legend_below(axes, shown, grow=ax is None)
    return axes


def places(
    task: TaskSpec, played: Array, best: Array
) -> tuple[Array, Array, list[str] | None, str]:
    """Return actions and optima on one axis, `(T,)` each, names of its ticks, and what it shows."""
    if played.ndim == 2:
        if played.shape[1] > 1:
            rule = "one whose points have a single coordinate"
            reject("task", "plays", rule, f"{task.name}, of {played.shape[1]} dimensions")
        return played[:, 0], best[:, 0], None, "x"
    kwargs: dict[str, Any] = {**task.kwargs}
    inner: Any = gymnasium.make(task.id, **kwargs).unwrapped
    domain, names = inner.task.domain, inner.task.arm_names
    if names is None and domain.shape[1] == 1:
        return domain[played, 0], domain[best, 0], None, "x"
    return played, best, names, "arm"
