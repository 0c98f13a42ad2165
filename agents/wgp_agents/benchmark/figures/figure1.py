"""Figure 1 of [Deng22], drawn from the results of the experiment of that name."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Literal

from wgp_agents.benchmark.figures.compare import draw_curves
from wgp_agents.benchmark.results import Results
from wgp_gym.drawing import new_figure
from wgp_gym.types import Array

__all__ = ["COMPETITORS", "PANELS", "Panel", "curves", "pictures"]

COMPETITORS = ("igp-ucb", "r-gp-ucb", "sw-gp-ucb", "wgp-ucb")
TUNING = {"known": "tuned for the known $B_T$", "unknown": "tuned without knowing $B_T$"}


@dataclass(frozen=True)
class Panel:
    """One picture of the figure."""

    task: str  # the task's name in the experiment
    title: str  # what stands above it
    variation_budget: Literal["known", "unknown"]  # how the memories are tuned
    step: str = "step t"  # what one step is, for the axis


PANELS = (
    Panel("abrupt", "Abruptly changing", "known"),
    Panel("slow", "Slowly varying", "known"),
    Panel("stock", "Stock prices, standardised", "unknown", "trading day t"),
)


def curves(results: Results, panel: Panel) -> dict[str, Array]:
    """Return the cumulative regrets `(runs, T)` of a panel, by the agent's name."""
    shown = {}
    for agent in results.experiment.agents:
        tuned = agent.parameters.get("variation_budget", panel.variation_budget)
        default = set(agent.parameters) <= {"variation_budget"}
        if agent.name in COMPETITORS and tuned == panel.variation_budget and default:
            shown[agent.name] = results.cumulative_regret(panel.task, agent.label)
    return shown


def pictures(results: Results) -> dict[str, bytes]:
    """Return the figure of benchmarks/figure1.toml's results, as figure1.png and figure1.pdf."""
    figure = new_figure(figsize=(12, 4.4), layout="constrained")
    for axes, panel in zip(figure.subplots(1, len(PANELS)), PANELS, strict=True):
        draw_curves(axes, curves(results, panel))
        axes.set_title(f"{panel.title}\n({TUNING[panel.variation_budget]})", fontsize=11)
        axes.set_xlabel(panel.step)
    figure.axes[0].set_ylabel("cumulative regret (units of reward)")
    runs = len(results.runs(PANELS[0].task))
    title = f"mean of {runs} runs, bars: one standard error"
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False, title=title)
    # The files hold no date, so that the same results give the same bytes.
    found = {}
    for ending, metadata in (("png", {}), ("pdf", {"CreationDate": None})):
        file = io.BytesIO()
        figure.savefig(file, format=ending, dpi=200, metadata=metadata)
        found[f"figure1.{ending}"] = file.getvalue()
    return found
