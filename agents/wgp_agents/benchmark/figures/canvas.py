"""What all pictures share: axes, which agents, and a legend that covers nothing."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wgp_agents.benchmark.experiment import AgentSpec
from wgp_agents.benchmark.figures.styles import Style
from wgp_agents.benchmark.results import RANDOM, Results
from wgp_gym.drawing import new_figure
from wgp_gym.types import Array
from wgp_gym.validation import reject

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.container import Container

Entries = list[tuple["Artist | Container", str]]
"""What a legend shows, with the words beside each."""

Keywords = dict[str, Any]
"""What an artist of matplotlib is made with; each keyword has a type of its own."""

PLAIN_TEXT: Keywords = {"parse_math": False}
"""How names are written, in which "$" has no meaning."""

GREY = "#666666"
Z = 1.96  # standard errors on either side of a mean: 95 %
MARKS = 7  # along each curve
WIDE = 30.0  # of a range's ends, beyond which an axis is logarithmic
SMALL = 8.5  # points, of legends and notes
LETTER = 0.56  # mean width of a letter, in its font size
HANDLE = 7  # letters' room for a legend's line and gaps
LONG = 38  # letters, after which a label goes on in a second line
SHORT = 20  # letters that a line of the legend has at least
BELOW = 4.3  # from axes to legend, in its font size: room for ticks and their label
FILLED = 0.8  # of a figure's width, by axes that are not laid out yet: the legend may be wider
TITLE = 11  # points
FEW_MARKS = 30  # changes, from which on their lines are thinner


def axes_for(ax: Axes | None, width: float = 6.4, height: float = 4.2) -> Axes:
    """Return the axes given, or those of a new figure of a size in inches."""
    if ax is not None:
        return ax
    return new_figure(figsize=(width, height), layout="constrained").add_subplot()


def selected(results: Results, agents: Sequence[str] | None, owner: str) -> list[AgentSpec]:
    """Return the agents with the labels given, or all."""
    if agents is None:
        return list(results.experiment.agents)
    if isinstance(agents, str) or not agents:
        reject("agents", owner, "a list of labels, at least one", agents)
    return [results.agent(label) for label in agents]


def learners(agents: Sequence[AgentSpec]) -> list[AgentSpec]:
    """Return the agents that set the scale: neither references nor random play, if others are."""
    found = [one for one in agents if not one.reference and one.name != RANDOM]
    return found or list(agents)


def is_wide(values: Array, ratio: float = WIDE) -> bool:
    """Tell whether values are all positive and spread so far that logarithms show them better."""
    return bool(np.min(values) > 0 and np.max(values) > ratio * np.min(values))


def tidy(ax: Axes, grid: str = "y") -> None:
    """Draw no more of the axes than is needed; grid lines along "x", "y", "both" or "none"."""
    ax.spines[["top", "right"]].set_visible(False)
    if grid != "none":
        ax.grid(axis=grid, color="#DDDDDD", linewidth=0.6)  # type: ignore[arg-type]
    ax.set_axisbelow(True)


def plain_log(axis: Axis) -> None:
    """Put plain numbers on a logarithmic axis: 100, 200, 500, 1000."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def line_style(look: Style, place: float, points: int) -> Keywords:
    """Return how matplotlib draws a curve of so many points, its first marker at a share `place`.

    Markers of different curves then stand side by side, not on top of each other.
    """
    every = max(points // MARKS, 1)
    first = min(int(every * (0.25 + 0.75 * place)), points - 1)
    return {
        "color": look.colour,
        "linestyle": look.line,
        "linewidth": 1.6,
        "marker": look.marker,
        "markersize": 4.5,
        "markevery": (first, every),
    }


def mark_changes(ax: Axes, changes: Sequence[int]) -> Entries:
    """Draw a dashed line at the start of each step that is the first to meet a new function.

    Returns:
        The first of them for the legend, nothing where there is none.
    """
    width = max(0.9 * min(1.0, FEW_MARKS / max(len(changes), 1)), 0.35)
    style: Keywords = {"color": GREY, "linestyle": (0, (4, 3)), "linewidth": width}
    drawn = [ax.axvline(change, zorder=1, **style) for change in changes]
    return [(line, "the function changes") for line in drawn[:1]]


def legend_below(ax: Axes, entries: Entries, title: str = "", *, grow: bool) -> None:
    """Put a legend below the axes, in as many columns as have room there.

    With `grow` the figure is made higher by the legend's height, so that the axes keep theirs.
    Matplotlib would leave out labels that begin with "_", so they are not left to it.
    """
    figure: Any = ax.figure.figure  # that of a subfigure is the one it is part of
    width, height = figure.get_size_inches()
    letters = 72 * width * ax.get_position().width / FILLED / (SMALL * LETTER)
    labels = [wrapped(label, max(int(letters / 2) - HANDLE, SHORT)) for _, label in entries]
    longest = max(len(line) for label in labels for line in label.split("\n"))
    columns = max(1, min(len(labels), int(letters / (longest + HANDLE))))
    legend = ax.legend(
        [handle for handle, _ in entries],
        ["?"] * len(entries),
        title=title or None,
        ncols=columns,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        borderaxespad=BELOW,
        frameon=False,
        fontsize=SMALL,
        title_fontsize=SMALL,
        handlelength=2.8,
        columnspacing=1.4,
    )
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set(text=label, **PLAIN_TEXT)
    if grow:
        figure.set_size_inches(width, height + legend.get_window_extent().height / figure.dpi)


def wrapped(label: str, width: int = LONG) -> str:
    """Return a label in lines of at most so many letters, broken at spaces where there are any."""
    return "\n".join(textwrap.wrap(label, width)) or label
