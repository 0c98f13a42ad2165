"""The picture of a live bandit: its rewards, what it thinks of its arms, and its memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from wgp_agents.benchmark.figures.canvas import (
    GREY,
    PLAIN_TEXT,
    SMALL,
    TITLE,
    Keywords,
    is_wide,
    plain_log,
    tidy,
)
from wgp_agents.live.facts import Arm, Facts
from wgp_agents.live.words import labelled
from wgp_gym.drawing import new_figure
from wgp_gym.types import Array
from wgp_gym.validation import reject

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["BLUE", "GREEN", "ORANGE", "best_arms", "figure", "is_last", "places"]

BLUE, GREEN, ORANGE = "#0072B2", "#009E73", "#D55E00"
MOST_NAMES = 24  # arms with names that are drawn; the table has all
LONGEST = 28  # letters of a name
INCH = 0.22  # of height for each name
DAY = 86_400.0  # seconds


def figure(facts: Facts, axes: Sequence[Axes] | None = None) -> Figure:
    """Draw the three panels; see `Report.plot`."""
    if axes is None:
        names = 0 if facts.numeric else min(len(facts.arms), MOST_NAMES)
        heights = (2.9, max(2.6, 0.9 + INCH * names), 2.0)
        made = new_figure(figsize=(8.0, sum(heights)), layout="constrained")
        grid = made.add_gridspec(3, 1, height_ratios=heights)
        axes = [made.add_subplot(grid[k]) for k in range(3)]
        made.suptitle(f"{facts.name}: {facts.agent}", fontsize=TITLE, **PLAIN_TEXT)
    if len(axes) != 3:
        reject("axes", "plot", "three axes", len(axes))
    draw_rewards(facts, axes[0])
    draw_arms(facts, axes[1])
    draw_memory(facts, axes[2])
    found = axes[0].get_figure(root=True)
    assert found is not None
    return found


def places(facts: Facts) -> tuple[Array, Array, str]:
    """Return where decisions stand in time, and changes, and what that axis is called.

    Dates are seconds since 1970; without times, or where one is missing, it is their number.
    """
    history, changes = facts.history, facts.changes
    if facts.clock == "decisions" or not history.time or None in history.time:
        numbers = np.array(history.decision, float)
        return numbers, np.array([one.decision for one in changes], float), "decision"
    known = [one.time for one in changes if one.time is not None]
    name = "date (UTC)" if facts.clock == "dates" else "time"
    return floats(history.time), np.array(known, float), name


def floats(values: Sequence[float | None]) -> Array:
    """Return numbers, NaN where there is none."""
    return np.array([math.nan if one is None else one for one in values], float)


def best_arms(facts: Facts) -> list[Arm]:
    """Return the arms to draw: all numbers in order, or the best names and the last chosen."""
    known = [arm for arm in facts.arms if arm.mean is not None and math.isfinite(arm.mean)]
    if facts.numeric:
        return sorted(known, key=lambda arm: float(arm.label))
    sign = 1.0 if facts.minimize else -1.0
    order = sorted(known, key=lambda arm: (not arm.there, sign * (arm.mean or 0.0)))
    last = [arm for arm in order[MOST_NAMES:] if is_last(arm, facts)]
    return order[: MOST_NAMES - len(last)] + last


def is_last(arm: Arm, facts: Facts) -> bool:
    """Tell whether the last decision was for this arm."""
    return facts.choice is not None and arm.label == facts.choice.chosen.label


def draw_rewards(facts: Facts, ax: Axes) -> None:
    """Draw rewards, what the agent expected with its band, and the changes that it noticed."""
    x, changes = on_axis(facts, ax)
    history = facts.history
    low, expected, high = (floats(one) for one in (history.low, history.expected, history.high))
    ax.fill_between(x, low, high, color=BLUE, alpha=0.15, linewidth=0, label="95 % of rewards")
    ax.plot(x, floats(history.reward), ".", color=GREY, markersize=4, label="reward")
    ax.plot(x, expected, color=BLUE, linewidth=1.5, label="expected before")
    for k, place in enumerate(changes):
        words = "change noticed" if k == 0 else None
        ax.axvline(place, color=ORANGE, linestyle=(0, (4, 3)), linewidth=1.0, label=words)
    ax.set_title("Rewards, and what was expected", loc="left", fontsize=SMALL + 1)
    ax.set_ylabel("reward")
    if len(x):
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=SMALL)
    tidy(ax)


def draw_arms(facts: Facts, ax: Axes) -> None:
    """Draw the band of each arm: along an axis where they are numbers, else by name."""
    arms = best_arms(facts)
    means = floats([arm.mean for arm in arms])
    ends = np.array([[arm.low, arm.high] for arm in arms], float).reshape(-1, 2).T
    bars = np.abs(ends - means)
    there = np.array([arm.there for arm in arms], bool)
    spots = np.arange(len(arms), dtype=float)
    if facts.numeric:
        spots = np.array([float(arm.label) for arm in arms])
    for mask, colour, words in ((there, GREEN, "mean, 95 % band"), (~there, GREY, "removed")):
        if mask.any():
            x, y = (spots, means) if facts.numeric else (means, spots)
            bar = bars[:, mask]
            xerr, yerr = (None, bar) if facts.numeric else (bar, None)
            style: Keywords = {"fmt": "o", "markersize": 4, "color": colour, "label": words}
            ax.errorbar(x[mask], y[mask], yerr, xerr, **style)
    last = [k for k, arm in enumerate(arms) if is_last(arm, facts)]
    for k in last:
        spot = (spots[k], means[k]) if facts.numeric else (means[k], spots[k])
        ax.plot(*spot, "o", markersize=9, mfc="none", color=ORANGE, label="last decision")
    title = "What each arm is expected to earn"
    if len(arms) < len(facts.arms) and not facts.numeric:
        title += f" (the best {len(arms)} of {len(facts.arms)})"
    ax.set_title(title, loc="left", fontsize=SMALL + 1)
    if facts.numeric:
        ax.set(xlabel="arm", ylabel="reward")
        if arms and is_wide(spots):
            ax.set_xscale("log")
            plain_log(ax.xaxis)
    else:
        names = [labelled(arm.label) for arm in arms]
        names = [
            one if len(one) <= LONGEST else f"{one[: LONGEST - 1]}\N{HORIZONTAL ELLIPSIS}"
            for one in names
        ]
        ax.set_yticks(spots, names, **PLAIN_TEXT)
        ax.set_ylim(len(arms) - 0.4, -0.6)
        ax.set_xlabel("reward")
    if arms:
        ax.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=SMALL)
    tidy(ax, "y" if facts.numeric else "x")


def draw_memory(facts: Facts, ax: Axes) -> None:
    """Draw the memory over time on a logarithmic axis."""
    x, changes = on_axis(facts, ax)
    memory = floats(facts.history.memory)
    shown = np.where(np.isfinite(memory) & (memory > 0), memory, np.nan)
    ax.plot(x, shown, color=GREEN, linewidth=1.5)
    for place in changes:
        ax.axvline(place, color=ORANGE, linestyle=(0, (4, 3)), linewidth=1.0)
    ax.set_title("Memory: the past steps that it goes by", loc="left", fontsize=SMALL + 1)
    ax.set_ylabel("steps")
    if np.isfinite(shown).any():
        ax.set_yscale("log")
        plain_log(ax.yaxis)
    else:
        words = "it forgets nothing" if np.isinf(memory).any() else "not known"
        ax.text(0.5, 0.5, words, transform=ax.transAxes, ha="center", color=GREY)
        ax.set_xlim(*((x[0], x[-1]) if len(x) > 1 else (0, 1)))
        ax.set_yticks([])
    tidy(ax)


def on_axis(facts: Facts, ax: Axes) -> tuple[Array, Array]:
    """Return where decisions and changes stand on an axis of time, and name it."""
    x, changes, name = places(facts)
    ax.set_xlabel(name)
    if name.startswith("date"):  # matplotlib counts days
        ax.xaxis_date()
        x, changes = x / DAY, changes / DAY
    return x, changes
