"""A picture of a moment, by matplotlib: the axes are drawn once, and what moves over them."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from wgp_gym.drawing import import_matplotlib, new_figure
from wgp_gym.envs.view import View, arm_positions, in_order, plays, positions, title
from wgp_gym.types import Array

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["draw", "picture"]

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"  # Okabe and Ito's colour-blind-safe set
LABELS = 30  # of arms, that fit side by side under a picture
MARGIN = (-0.03, 1.03)  # the axes of [0, 1]^2, so that what lies on its edge is shown whole
AS_IT_IS: dict[str, Any] = {"parse_math": False}  # of names, in which "$" has no meaning
PLAYS = "rewards, newest darkest", "actions, newest brightest", "last action"
ARMS = "_arms"  # without a place in the legend
MARGIN_UP = 0.03  # of the rewards' range, above and below
BACKDROPS = 16  # figures that are kept, of some MB each
LOCK = threading.Lock()  # one picture at a time is drawn on them
RECENT = 30  # plays after which a dot has faded to its faintest


def picture(seen: View) -> NDArray[np.uint8]:
    """Draw the view with matplotlib, without its global state.

    What is the same from step to step, the axes and the legend, is drawn once and kept.
    """
    with LOCK:
        return backdrop(Scene(seen)).shown(seen)


class Scene:
    """A view, equal to another where their pictures differ by no more than `update` draws anew."""

    def __init__(self, seen: View) -> None:
        self.view = seen
        kinds = seen.domain.shape, bool(len(spots(seen)[1])), seen.continuous, in_order(seen)
        # The colours of a grid are drawn once for a function: they are much to draw.
        drawn = seen.rewards.tobytes() if on_grid(seen) else limits(seen)
        where = b"" if seen.drawn_anew else seen.domain.tobytes()
        self._key = kinds, where, tuple(seen.names or ()), drawn

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Scene) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


class Backdrop:
    """A figure of which all that moves is drawn anew over the rest."""

    def __init__(self, seen: View) -> None:
        figure = new_figure(figsize=(8, 4.5), dpi=100, layout="constrained")
        self._canvas = cast("Any", figure.canvas)
        self._axes = draw(figure, seen)
        for moving in update(self._axes, seen):
            moving.set_animated(True)
        self._axes.title.set_text("of a step")  # as high as any title, so that none moves the axes
        self._canvas.draw()
        self._rest = self._canvas.copy_from_bbox(figure.bbox)

    def shown(self, seen: View) -> NDArray[np.uint8]:
        """Return the picture of a view of the same scene."""
        self._canvas.restore_region(self._rest)
        for moving in update(self._axes, seen):
            self._axes.draw_artist(moving)
        pixels: NDArray[np.uint8] = np.array(self._canvas.buffer_rgba())
        return pixels[:, :, :3].copy()


@lru_cache(BACKDROPS)
def backdrop(scene: Scene) -> Backdrop:
    """Return the figure that pictures of a scene share."""
    return Backdrop(scene.view)


def limits(seen: View) -> tuple[float, float]:
    """Return the ends of the axis of rewards, or of a map's colours."""
    if on_map(seen):
        return rounded(seen.rewards, 0.0)
    return rounded(np.concatenate([seen.rewards, plays(seen)[1], [seen.best_reward]]), MARGIN_UP)


def rounded(heights: Array, margin: float) -> tuple[float, float]:
    """Return round numbers around all of these, so that they seldom change from step to step."""
    import_matplotlib()
    from matplotlib.ticker import MaxNLocator

    low, high = float(heights.min()), float(heights.max())
    around = margin * (high - low) if high > low else MARGIN_UP * abs(high) or MARGIN_UP
    ticks = MaxNLocator(10, steps=[1, 2, 5, 10]).tick_values(low - around, high + around)
    return float(ticks[0]), float(ticks[-1])


def draw(figure: Figure, seen: View) -> Axes:
    """Draw the view on an empty figure; return its axes."""
    axes = figure.add_subplot()
    axes.set_title("step", **AS_IT_IS)
    (draw_map if on_map(seen) else draw_line)(figure, axes, seen)
    update(axes, seen)
    return axes


def update(axes: Axes, seen: View) -> list[Artist]:
    """Show on drawn axes what differs from step to step; return it, the lowest first."""
    shown: dict[str, Any] = {str(one.get_label()): one for one in (*axes.collections, *axes.lines)}
    best, played = spots(seen)
    if ARMS in shown:
        shown[ARMS].set_offsets(seen.domain)
        shown[ARMS].set_array(seen.rewards)
    if not on_map(seen):
        shown["expected reward"].set_data(arm_positions(seen), seen.rewards)
    shown["its optimum"].set_data(best[:1], best[1:])
    if len(played):
        dots, last = (one for label, one in shown.items() if label in PLAYS)
        dots.set_offsets(played)
        dots.set_facecolors(fading(seen, "white" if on_map(seen) else GREEN))
        last.set_data(*(played[-1:].T if on_map(seen) else (played[[-1, -1], 0], (0, 1))))
    axes.title.set_text(title(seen))
    moving = [one for label, one in shown.items() if label == ARMS or not label.startswith("_")]
    return [*moving, axes.title]


def on_map(seen: View) -> bool:
    """Return whether a picture shows a plane, and not one axis."""
    return bool(seen.domain.shape[1] == 2)


def on_grid(seen: View) -> bool:
    """Return whether the points of a plane are a grid, over which colours go on."""
    if not on_map(seen):
        return False
    x, y = seen.domain.T
    return int(len(np.unique(x)) * len(np.unique(y))) == len(seen.domain)


def spots(seen: View) -> tuple[Array, Array]:
    """Return where a picture shows the optimum, `(2,)`, and the plays, `(t, 2)`."""
    if on_map(seen):
        return seen.best, seen.played
    peak = np.append(positions(seen, seen.best[None]), seen.best_reward)
    return peak, np.stack(plays(seen), axis=1)


def fading(seen: View, colour: str) -> Any:
    """Return each play's colour with its opacity, `(t, 4)`: the newer, the stronger."""
    from matplotlib.colors import to_rgba_array

    age = np.arange(len(seen.paid))[::-1]
    opacity = np.clip(1 - age / RECENT, 0.15, 1.0)
    return to_rgba_array([(colour, float(alpha)) for alpha in opacity])


def draw_line(figure: Figure, axes: Axes, seen: View) -> None:
    """Draw the axes of f_t over one axis, and what `update` moves: the plays are dots."""
    del figure
    style: dict[str, Any] = {} if in_order(seen) else {"marker": "o", "linestyle": "none"}
    axes.plot([], [], color=BLUE, linewidth=2, label="expected reward", **style)
    axes.plot([], [], "*", color=ORANGE, markersize=16, label="its optimum")
    if len(spots(seen)[1]):
        axes.scatter([], [], s=22, c=GREEN, label=PLAYS[0])
        axes.axvline(0, color=GREEN, linewidth=1, linestyle=":", label="last action")
    if seen.names:
        every = -(-len(seen.names) // LABELS)
        where = arm_positions(seen)[::every]
        axes.set_xticks(where, seen.names[::every], rotation=90, fontsize=8, **AS_IT_IS)
    last = 1.0 if seen.domain.shape[1] == 1 else len(seen.domain) - 1.0
    axes.set(xlim=(-0.05 * last, 1.05 * last), ylim=limits(seen), ylabel="reward")
    counted = "nearest point of the grid" if seen.continuous else "arm"
    axes.set_xlabel("x" if in_order(seen) else counted)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def draw_map(figure: Figure, axes: Axes, seen: View) -> None:
    """Draw f_t as colour over a plane, or of arms that are no grid, and what `update` moves."""
    x, y = seen.domain.T
    colours: Any
    if on_grid(seen):
        colours = axes.tricontourf(x, y, seen.rewards, levels=40)
    else:
        low, high = limits(seen)
        colours = axes.scatter(x, y, s=120, c=seen.rewards, vmin=low, vmax=high, label=ARMS)
    figure.colorbar(colours, label="expected reward")
    axes.plot([], [], "*", color=ORANGE, markersize=18, label="its optimum")
    if len(seen.paid):
        axes.scatter([], [], s=30, c="white", edgecolors="grey", label=PLAYS[1])
        axes.plot([], [], "kx", markersize=10, label="last action")
    axes.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal", xlim=MARGIN, ylim=MARGIN)
    figure.legend(loc="outside left upper", frameon=False)
