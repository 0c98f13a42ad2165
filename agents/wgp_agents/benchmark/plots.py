"""Pictures of results. Colours are Okabe and Ito's, with a grey and a wine red.

Colour-blind readers tell them apart.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.statistics import estimate
from wgp_agents.registry import AGENTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from wgp_agents.benchmark.experiment import Panel

__all__ = ["STYLES", "comparison", "draw_curves", "figure1"]

STYLES = {
    "igp-ucb": ("#999999", "s", ":"),
    "r-gp-ucb": ("#E69F00", "^", "-."),
    "sw-gp-ucb": ("#009E73", "D", "--"),
    "wgp-ucb": ("#0072B2", "o", "-"),
    "wgp-ucb/unknown B_T": ("#0072B2", "d", "--"),
    "random": ("#BBBBBB", "x", ":"),
    "dqn": ("#CC79A7", "X", "-."),
    "a2c": ("#56B4E9", "P", "--"),
    "recurrent-ppo": ("#882255", "<", "-."),
    "ppo": ("#D55E00", "s", "-"),
    "neural-greedy": ("#000000", "v", "-"),
    "oracle": ("#000000", "", ":"),
}
"""Colour, marker and line of an agent, everywhere; of "agent/note" where that has its own."""

ERROR_BARS = 9  # along each curve


def figure1(curves: dict[Panel, dict[str, NDArray[np.float32]]], folder: Path) -> None:
    """Draw the figure, as figure1.png and figure1.pdf.

    Args:
        curves: Cumulative regrets `(runs, T)` by panel, left to right, and agent.
        folder: Where the files go.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.4), layout="constrained")
    tuning = {"known": "tuned for the known $B_T$", "unknown": "tuned without knowing $B_T$"}
    for axes, (panel, shown) in zip(figure.subplots(1, len(curves)), curves.items(), strict=True):
        draw_curves(axes, shown)
        axes.set_title(f"{panel.title}\n({tuning[panel.setting.variation_budget]})", fontsize=11)
        axes.set_xlabel(panel.step)
    figure.axes[0].set_ylabel("cumulative regret (units of reward)")
    runs = len(next(iter(shown.values())))
    title = f"mean of {runs} runs, bars: one standard error"
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, title=title)
    for ending in ("png", "pdf"):
        figure.savefig(folder / f"figure1.{ending}", dpi=200)


def draw_curves(axes: Axes, curves: dict[str, NDArray[np.float32]]) -> None:
    """Draw mean regret against the step, with standard errors, one curve for each agent.

    Args:
        axes: Where to draw.
        curves: Cumulative regrets `(runs, T)` by agent, or by "agent/note".
    """
    for place, (name, runs) in enumerate(curves.items()):
        mean, error = estimate(runs.astype(float))
        colour, marker, line = look(name)
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
    return AGENTS[agent].title + (f" ({note})" if note else "")


def look(name: str) -> tuple[str, str, str]:
    """Return the style of an agent, or of "agent/note"."""
    return STYLES.get(name) or STYLES[name.partition("/")[0]]


def tidy(axes: Axes) -> None:
    """Let the axes begin at zero, and draw no more than is needed."""
    axes.set_xlim(0, None)
    axes.set_ylim(0, None)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)


def comparison(
    curves: dict[str, dict[str, NDArray[np.float32]]],
    learning: dict[str, dict[str, NDArray[np.float64]]],
    path: Path,
) -> None:
    """Draw trained policies beside learners: their episodes above, their training below.

    Args:
        curves: Cumulative regrets `(episodes, T)` by task and "agent/note".
        learning: Steps of training, and final regret as a share of random play's, `(2, n)`,
            likewise.
        path: The picture's file.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 8.4), layout="constrained")
    above, below = figure.subplots(2, len(curves), sharey="row")
    highest = 0.0
    for top, bottom, (task, runs) in zip(above, below, curves.items(), strict=True):
        shown = {name: regrets for name, regrets in runs.items() if name != "oracle"}
        ends = {name: float(regrets[:, -1].mean()) for name, regrets in shown.items()}
        draw_curves(top, shown)
        top.set_title(f"{task}: fresh episodes", fontsize=11)
        top.text(0.5, 0.93, f"random play ends at {ends['random']:.0f}", transform=top.transAxes)
        top.set_xlabel("step t")
        draw_learning(bottom, learning[task], ends)
        bottom.set_title(f"{task}: training, on other episodes", fontsize=11)
        bottom.set_xlabel("steps of training (levels: untrained agents, on the fresh episodes)")
        # Random play's end would leave the others no room.
        highest = max(highest, *(end for name, end in ends.items() if name != "random"))
    above[0].set_ylim(0, 1.15 * highest)
    above[0].set_ylabel("cumulative regret (units of reward)")
    below[0].set_ylabel("final regret, as a share of random play's")
    episodes = len(shown["random"])
    title = f"mean of {episodes} episodes, bars: one standard error; the oracle's regret is 0"
    handles, labels = above[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, title=title)
    figure.savefig(path, dpi=150)


def draw_learning(
    axes: Axes, learning: dict[str, NDArray[np.float64]], ends: dict[str, float]
) -> None:
    """Draw the final regret against the steps of training, and untrained agents' as levels."""
    for name, end in ends.items():
        colour, marker, line = look(name)
        if name in learning:
            steps, share = learning[name]
            axes.plot(steps, share, color=colour, marker=marker, linestyle=line, markersize=4)
        else:
            axes.axhline(end / ends["random"], color=colour, linestyle=line, linewidth=1.6)
    tidy(axes)
    steps = np.concatenate([curve[0] for curve in learning.values()])
    axes.set_xlim(0.8 * steps.min(), 1.2 * steps.max())
    axes.set_xscale("log")
