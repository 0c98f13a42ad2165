"""Pictures of regret curves, and of trained policies beside learners."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wgp_agents.benchmark.figures.styles import STYLES, Style, base_style
from wgp_agents.benchmark.statistics import estimate
from wgp_agents.registry import agent_entry
from wgp_gym.drawing import new_figure
from wgp_gym.types import Array, Floats32

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["comparison", "draw_curves", "label", "look"]

ERROR_BARS = 9  # along each curve


def draw_curves(axes: Axes, curves: Mapping[str, Array | Floats32]) -> None:
    """Draw mean regret against the step, with standard errors.

    There is one curve for each agent, or "agent/note", from its cumulative regrets `(runs, T)`.
    """
    for place, (name, runs) in enumerate(curves.items()):
        mean, error = estimate(runs.astype(float))
        colour, marker, line, _ = look(name)
        steps = np.arange(1, len(mean) + 1)
        every = max(len(steps) // ERROR_BARS, 1)
        # Bars of different agents stand side by side, not on top of each other.
        first = every // 2 + place * every // (2 * len(curves))
        axes.errorbar(
            steps,
            mean,
            yerr=error,
            errorevery=(min(first, len(steps) - 1), every),
            markevery=(min(first, len(steps) - 1), every),
            color=colour,
            marker=marker,
            linestyle=line,
            markersize=5,
            linewidth=1.6,
            capsize=3,
            label=label(name).replace("B_T", "$B_T$"),
        )
    tidy(axes)


def label(name: str) -> str:
    """Return how an agent, or "agent/note", is written."""
    agent, _, note = name.partition("/")
    return agent_entry(agent).title + (f" ({note})" if note else "")


def look(name: str) -> Style:
    """Return the style of an agent, or of "agent/note"."""
    return STYLES.get(name) or base_style(name.partition("/")[0])


def tidy(axes: Axes) -> None:
    """Let the axes begin at zero, and draw no more than is needed."""
    axes.set_xlim(0, None)
    axes.set_ylim(0, None)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)


def comparison(
    curves: dict[str, dict[str, list[Array]]],
    learning: dict[str, dict[str, list[Array]]],
    path: Path,
) -> None:
    """Draw trained agents beside learners: their episodes above, their training below.

    Args:
        curves: Cumulative regrets `(episodes, T)` by task and "agent/note", for each training; the
            mean over trainings is drawn, over a band from the lowest mean to the highest.
        learning: Likewise steps of training, and final regret over random play's, `(2, n)`; each
            training is a line.
        path: The picture's file.
    """
    figure = new_figure(figsize=(11, 8.4), layout="constrained")
    above, below = figure.subplots(2, len(curves), sharey="row")
    highest = 0.0
    for top, bottom, (task, runs) in zip(above, below, curves.items(), strict=True):
        shown = {name: np.mean(each, axis=0) for name, each in runs.items() if name != "oracle"}
        ends = {name: float(regrets[:, -1].mean()) for name, regrets in shown.items()}
        draw_curves(top, shown)
        draw_spread(top, runs)
        top.set_title(f"{task}: fresh episodes", fontsize=11)
        top.text(0.5, 0.93, f"random play ends at {ends['random']:.0f}", transform=top.transAxes)
        top.set_xlabel("step t")
        draw_learning(bottom, learning[task], ends)
        bottom.set_title(f"{task}: training, on other episodes", fontsize=11)
        bottom.set_xlabel("steps of training (levels: all others, on the fresh episodes)")
        # Random play's end would leave the others no room.
        highest = max(highest, *(end for name, end in ends.items() if name != "random"))
    above[0].set_ylim(0, 1.15 * highest)
    above[0].set_ylabel("cumulative regret (units of reward)")
    below[0].set_ylabel("final regret, as a share of random play's")
    episodes, trainings = len(shown["random"]), max(map(len, runs.values()))
    title = f"mean of {episodes} episodes, bars: one standard error; the oracle's regret is 0"
    if trainings > 1:
        title += (
            f"\nof what was trained, the mean of {trainings} trainings; bands: from the lowest "
        )
        title += "training's mean to the highest; below, a line for each"
    handles, labels = above[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, title=title)
    figure.savefig(path, dpi=150)


def draw_spread(axes: Axes, runs: Mapping[str, list[Array]]) -> None:
    """Draw bands from the lowest mean of several trainings to the highest."""
    for name, trainings in runs.items():
        if len(trainings) > 1:
            means = [regrets.mean(axis=0) for regrets in trainings]
            low, high = np.min(means, axis=0), np.max(means, axis=0)
            steps = np.arange(1, len(low) + 1)
            axes.fill_between(steps, low, high, color=look(name)[0], alpha=0.15, linewidth=0)


def draw_learning(axes: Axes, learning: dict[str, list[Array]], ends: dict[str, float]) -> None:
    """Draw the final regret against the steps of training, and untrained agents' as levels."""
    for name, end in ends.items():
        colour, marker, line, _ = look(name)
        for steps, share in learning.get(name, []):
            axes.plot(steps, share, color=colour, marker=marker, linestyle=line, markersize=4)
        if name not in learning:
            axes.axhline(end / ends["random"], color=colour, linestyle=line, linewidth=1.6)
    tidy(axes)
    steps = np.concatenate([curve[0] for curves in learning.values() for curve in curves])
    axes.set_xlim(0.8 * steps.min(), 1.2 * steps.max())
    axes.set_xscale("log")
