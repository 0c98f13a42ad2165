"""Pictures of results. Colours are Okabe and Ito's, which colour-blind readers tell apart."""

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

__all__ = ["STYLES", "draw_curves", "figure1"]

STYLES = {
    "igp-ucb": ("#999999", "s", ":"),
    "r-gp-ucb": ("#E69F00", "^", "-."),
    "sw-gp-ucb": ("#009E73", "D", "--"),
    "wgp-ucb": ("#0072B2", "o", "-"),
}
"""Colour, marker and line of each agent, everywhere."""

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
        curves: Cumulative regrets `(runs, T)` by agent.
    """
    for place, (agent, runs) in enumerate(curves.items()):
        mean, error = estimate(runs.astype(float))
        colour, marker, line = STYLES[agent]
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
            label=AGENTS[agent].title,
        )
    axes.set_xlim(0, None)
    axes.set_ylim(0, None)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.3)
