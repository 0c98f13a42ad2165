"""The page of plots: what was measured beside what the paper says of it."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wgp_agents.benchmark.figures.canvas import Keywords
from wgp_agents.theory.verify.row import Curve
from wgp_gym.drawing import new_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["draw_page", "load_curves"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vP*"


@dataclass(frozen=True)
class Panel:
    """One picture of the page."""

    name: str  # the name of its curves
    title: str  # what stands above it
    x: str  # what runs along
    y: str  # what runs up
    scales: tuple[str, str] = ("linear", "linear")  # "linear" or "log", along and up
    line: tuple[float, str] | None = None  # a horizontal line and its name, or None
    bottom: float | None = None  # where the y axis begins, or None


PANELS = (
    Panel(
        "coverage",
        "Theorem 2 for all t at once: false as printed,\nrepaired (union and anytime: 0)",
        "horizon T",
        "share of runs in which the bound fails\nat some t <= T (one arm, eta = 0.5)",
        ("log", "linear"),
        (0.1, "allowed: delta"),
    ),
    Panel(
        "quadrature",
        "Lemma 14: the error of quadrature features\nstays below its bound eps_m (SE, l = 0.2)",
        "nodes along each axis",
        "largest |k(x, y) - phi(x)' phi(y)|",
        ("linear", "log"),
    ),
    Panel(
        "deviation",
        "Lemma 15: how far features of error eps are off\n(sigma~: kernel, sigma-breve: features)",
        "eps",
        "largest |sigma~ - sigma-breve|",
        ("log", "log"),
        bottom=1e-16,
    ),
    Panel(
        "sums",
        "Lemma 16: the sum of standard deviations\n(T = 10, widest plays, eta = 0.99)",
        "lambda",
        "sum over its bound (above 1: it fails)",
        ("log", "linear"),
        (1.0, "the bound"),
    ),
    Panel(
        "gains",
        "Theorems 6 and 7: information gains\n(SE, l = 0.2, 100 arms, lambda = 0.01)",
        "t",
        "information gain",
        ("log", "linear"),
    ),
    Panel(
        "growth",
        "Corollary 5: regret at a fixed B_T = 10\n(known B_T; in brackets: fitted exponent of T)",
        "horizon T",
        "regret R_T (95 % intervals)",
        ("log", "log"),
    ),
)


def load_curves(path: Path) -> list[Curve]:
    """Return the curves of a curves.csv."""
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    curves = []
    for (panel, label), group in groupby(lines, key=lambda line: (line["panel"], line["label"])):
        points = list(group)
        columns = [np.array([float(p[name]) for p in points]) for name in ("x", "y", "low", "high")]
        curves.append(Curve(panel, label, *columns))
    return curves


def draw_page(curves: list[Curve], path: Path) -> None:
    """Draw all panels on one page."""
    figure = new_figure(figsize=(15, 9), layout="constrained")
    for axes, panel in zip(figure.subplots(2, 3).flat, PANELS, strict=True):
        draw_panel(axes, panel, [curve for curve in curves if curve.panel == panel.name])
    figure.savefig(path, dpi=130)


def draw_panel(axes: Axes, panel: Panel, curves: list[Curve]) -> None:
    """Draw the curves of one panel; leave its place empty where its check has not run."""
    if not curves:
        axes.set_axis_off()
        return
    for place, curve in enumerate(curves):
        claimed = any(word in curve.label for word in ("bound", "eps_m", "Theorem"))
        marker = "" if len(curve.x) > 40 else MARKERS[place % len(MARKERS)]
        style: Keywords = {"color": COLOURS[place % len(COLOURS)]}
        style["linestyle"] = "--" if claimed else "-"
        style |= {"marker": marker, "markersize": 4, "linewidth": 1.5, "label": curve.label}
        if curve.low is None or curve.high is None or np.isnan(curve.low).all():
            axes.plot(curve.x, curve.y, **style)
        else:
            errors = np.abs([curve.y - curve.low, curve.high - curve.y])
            axes.errorbar(curve.x, curve.y, yerr=errors, capsize=3, **style)
    if panel.name == "growth":
        x, y = curves[0].x, curves[0].y
        axes.plot(x, 2.5 * y[0] * (x / x[0]) ** 0.75, "k:", label="slope 3/4")
    axes.set_xscale(panel.scales[0])
    axes.set_yscale(panel.scales[1])
    if panel.line is not None:
        axes.axhline(panel.line[0], color="black", linestyle=":", linewidth=1, label=panel.line[1])
    axes.set_ylim(bottom=panel.bottom)
    axes.set(title=panel.title, xlabel=panel.x, ylabel=panel.y)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    axes.legend(fontsize=8, frameon=False)
