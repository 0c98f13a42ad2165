"""The panels of a film's frames, which move from frame to frame."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wgp_agents.benchmark.figures.canvas import PLAIN_TEXT, Keywords
from wgp_agents.benchmark.film.clip import Clip

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

__all__ = ["Arms", "Line", "Map", "Panel", "Strip"]

BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"  # Okabe and Ito's
RECENT = 30  # plays after which a dot has faded
FAINTEST = 0.08
SHADES = 48  # of a map: a GIF has 256 colours, and the marks need some
MAP_TITLES = ("posterior mean (\u2716 the play)", "truth $f_t$ (\u2605 its optimum)")
NOTE = 9.5  # points, of legends


class Panel(ABC):
    """A part of the figure that shows a clip in some axes."""

    def __init__(self, clip: Clip, axes: Sequence[Axes]) -> None:
        self.clip = clip
        self.moving: list[Artist] = self.draw(axes)

    @abstractmethod
    def draw(self, axes: Sequence[Axes]) -> list[Artist]:
        """Draw what the frames share, and return what moves."""

    @abstractmethod
    def show(self, frame: int) -> None:
        """Move to a frame."""


class Line(Panel):
    """Mean, band and truth over the one coordinate of the arms."""

    def draw(self, axes: Sequence[Axes]) -> list[Artist]:
        """Draw the curves' first state."""
        (ax,) = axes
        self.x = self.clip.places
        band: Keywords = {"color": BLUE, "alpha": 0.18, "linewidth": 0}
        self.band = ax.fill_between(self.x, self.x, label="confidence band", **band)
        (mean,) = ax.plot(self.x, self.x, color=BLUE, linewidth=2, label="posterior mean")
        (truth,) = ax.plot(self.x, self.x, color=ORANGE, linewidth=2, label="truth $f_t$")
        self.marks = Marks(self.clip, ax, mean, truth)
        ax.set_xlabel("x")
        ax.set_xlim(self.x.min(), self.x.max())
        return [self.band, *self.marks.moving]

    def show(self, frame: int) -> None:
        """Move the curves and the plays."""
        low, high = self.clip.low[frame], self.clip.high[frame]
        edge = np.concatenate([np.stack([self.x, low], 1), np.stack([self.x, high], 1)[::-1]])
        self.band.set_verts([edge])
        self.marks.show(frame)


class Arms(Panel):
    """Mean, interval and truth of arms that have names, side by side."""

    def draw(self, axes: Sequence[Axes]) -> list[Artist]:
        """Draw the arms' first state."""
        (ax,) = axes
        self.x = self.clip.places
        width = min(9, 240 / len(self.x))
        wide: Keywords = {"color": BLUE, "alpha": 0.22, "linewidth": width}
        self.bars = ax.vlines(self.x, self.x, self.x + 1, label="confidence interval", **wide)
        dots: Keywords = {"linestyle": "none", "zorder": 3}
        dots |= {"markersize": 5, "color": BLUE}
        (mean,) = ax.plot(self.x, self.x, marker="o", label="posterior mean", **dots)
        dots |= {"markersize": min(14, 300 / len(self.x)), "color": ORANGE, "markeredgewidth": 2.5}
        (truth,) = ax.plot(self.x, self.x, marker="_", label="truth $f_t$", **dots)
        self.marks = Marks(self.clip, ax, mean, truth)
        ax.set_xticks(self.x, self.clip.names or [], rotation=90, fontsize=7.5, **PLAIN_TEXT)
        ax.set_xlim(-0.7, len(self.x) - 0.3)
        return [self.bars, *self.marks.moving]

    def show(self, frame: int) -> None:
        """Move the arms and the plays."""
        ends = np.stack([self.clip.low[frame], self.clip.high[frame]], axis=1)
        self.bars.set_segments(list(np.stack([np.stack([self.x, self.x], 1), ends], axis=2)))
        self.marks.show(frame)


class Marks:
    """Mean, truth and its optimum, and the plays at their rewards, the older the fainter."""

    def __init__(self, clip: Clip, ax: Axes, mean: Line2D, truth: Line2D) -> None:
        self.clip, self.mean, self.truth = clip, mean, truth
        self.past = ax.scatter([], [], s=24, color=GREEN, linewidths=0, zorder=4)
        now: Keywords = {"color": GREEN, "markersize": 9, "markeredgecolor": "white"}
        self.line = ax.axvline(0, color=GREEN, linestyle=":", linewidth=1.2, zorder=2)
        (self.last,) = ax.plot([0], [0], "o", label="reward", zorder=6, **now)
        star: Keywords = {"color": ORANGE, "markersize": 17, "markeredgecolor": "white"}
        (self.best,) = ax.plot([0], [0], "*", label="optimum", zorder=5, **star)
        plays: list[Artist] = [self.past, self.line, self.last, self.best]
        self.moving = [mean, truth, *plays]
        frame_of_rewards(ax, clip)

    def show(self, frame: int) -> None:
        """Move them."""
        clip, t = self.clip, self.clip.shown[frame]
        self.mean.set_ydata(clip.mean[frame])
        self.truth.set_ydata(clip.truth[frame])
        place = clip.played[t, 0]
        recent = slice(max(t - RECENT, 0), t)
        self.past.set_offsets(np.stack([clip.played[recent, 0], clip.paid[recent]], axis=1))
        self.past.set_facecolor(faded(GREEN, t - recent.start))
        self.line.set_xdata([place, place])
        self.last.set_data([place], [clip.paid[t]])
        self.best.set_data(clip.best[frame], [clip.truth[frame].max()])


class Map(Panel):
    """The mean beside the truth, as colour over a plane, with the plays."""

    def draw(self, axes: Sequence[Axes]) -> list[Artist]:
        """Draw the maps' first state."""
        from matplotlib import colormaps

        clip = self.clip
        side = round(len(clip.domain) ** 0.5)
        half = 0.5 / (side - 1)
        look: Keywords = {
            "cmap": colormaps["cividis"].resampled(SHADES),
            "origin": "lower",
            "extent": (-half, 1 + half, -half, 1 + half),
            "vmin": min(clip.truth.min(), clip.mean.min()),
            "vmax": max(clip.truth.max(), clip.mean.max()),
        }
        self.maps = [ax.imshow(np.zeros((side, side)), **look) for ax in axes]
        for ax, title in zip(axes, MAP_TITLES, strict=True):
            ax.set_title(title, fontsize=11)
            ax.set(xlabel="$x_1$", xticks=(0, 0.5, 1), yticks=(0, 0.5, 1))
            ax.spines[:].set_visible(False)
        axes[0].set_ylabel("$x_2$")
        figure: Any = axes[0].figure
        figure.colorbar(self.maps[1], ax=list(axes)).outline.set_visible(False)
        self.past = axes[0].scatter([], [], s=26, linewidths=0.6, zorder=3)
        cross: Keywords = {"color": "white", "markersize": 11, "markeredgecolor": "black"}
        self.last = [ax.plot([0], [0], "X", zorder=5, **cross)[0] for ax in axes]
        star: Keywords = {"color": ORANGE, "markersize": 17, "markeredgecolor": "white"}
        (self.best,) = axes[1].plot([0], [0], "*", zorder=4, **star)
        return [*self.maps, self.past, *self.last, self.best]

    def show(self, frame: int) -> None:
        """Move the maps and the plays."""
        clip, t = self.clip, self.clip.shown[frame]
        for image, values in zip(self.maps, (clip.mean[frame], clip.truth[frame]), strict=True):
            side = round(len(values) ** 0.5)
            image.set_data(values.reshape(side, side).T)  # the first coordinate goes to the right
        recent = slice(max(t - RECENT, 0), t)
        self.past.set_offsets(clip.played[recent])
        self.past.set_facecolor(faded("white", t - recent.start))
        self.past.set_edgecolor(faded("black", t - recent.start))
        for mark in self.last:
            mark.set_data(*clip.played[t][:, None])
        self.best.set_data(*clip.best[frame][:, None])


class Strip(Panel):
    """The cumulative regret up to now."""

    def draw(self, axes: Sequence[Axes]) -> list[Artist]:
        """Draw the axes, with the changes to come."""
        (ax,) = axes
        regret = self.clip.regret
        for change in self.clip.changes:
            ax.axvline(change, color=GREY, linestyle=(0, (4, 3)), linewidth=1)
        (self.line,) = ax.plot([], [], color="black", linewidth=2)
        (self.dot,) = ax.plot([], [], "o", color="black", markersize=5, clip_on=False)
        ax.set(xlabel="step t (dashed: the function changes)" if self.clip.changes else "step t")
        ax.set(ylabel="regret so far", xlim=(0, len(regret)), ylim=(0, 1.08 * regret.max() or 1))
        plain(ax)
        return [self.line, self.dot]

    def show(self, frame: int) -> None:
        """Extend the line."""
        t = self.clip.shown[frame] + 1
        self.line.set_data(np.arange(t + 1), np.append(0, self.clip.regret[:t]))
        self.dot.set_data([t], [self.clip.regret[t - 1]])


def faded(colour: str, plays: int) -> Any:
    """Return a colour for each of the plays before the last, older ones fainter, `(plays, 4)`."""
    from matplotlib.colors import to_rgba

    shades = np.tile(to_rgba(colour), (plays, 1))
    shades[:, 3] = np.linspace(1 - plays / RECENT, 1, plays) * (0.85 - FAINTEST) + FAINTEST
    return shades


def frame_of_rewards(ax: Axes, clip: Clip) -> None:
    """Fix the vertical axis, and put the legend above it."""
    ax.set_ylim(*clip.limits())
    ax.set_ylabel("reward")
    ax.legend(
        loc="lower center",
        bbox_to_anchor=(0.5, 1.0),
        ncols=5,
        frameon=False,
        fontsize=NOTE,
        borderaxespad=0.2,
        columnspacing=1.4,
    )
    plain(ax)


def plain(ax: Axes) -> None:
    """Draw no more of the axes than is needed."""
    ax.spines[["top", "right"]].set_visible(False)
