"""A scorer's view of a moment: f_t, its optimum, and the arms played so far with their rewards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wgp_gym.drawing import new_figure
from wgp_gym.types import Array
from wgp_gym.validation import check_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from wgp_gym.envs.dynamics import Dynamics

__all__ = ["RENDER_MODES", "Picture", "View", "checked_mode", "render", "view"]

Picture = NDArray[np.uint8] | str
RENDER_MODES = ("rgb_array", "ansi")
TEXT_WIDTH, TEXT_HEIGHT = 80, 12
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"  # Okabe and Ito's colour-blind-safe set
LABELS = 30  # of arms, that fit side by side under a picture
MARGIN = (-0.03, 1.03)  # the axes of [0, 1]^2, so that what lies on its edge is shown whole
AS_IT_IS: dict[str, Any] = {"parse_math": False}  # of names, in which "$" has no meaning
RECENT = 30  # plays after which a dot has faded to its faintest


@dataclass(frozen=True)
class View:
    """What a picture shows, of one episode.

    Attributes:
        t: Steps played.
        horizon: T.
        domain: The arms' places, `(n, d)`.
        names: The arms' names, or None where they have coordinates.
        rewards: The function that the next action meets, on the domain, `(n,)`.
        best: Where it is largest, `(d,)`.
        best_reward: How large it is there.
        drawn_anew: Whether the arms are others at each step.
        continuous: Whether any point may be played; the domain then is a grid.
        played: The places played so far, `(t, d)`.
        paid: Their rewards, `(t,)`.
        cumulative_regret: The regret up to now.
    """

    t: int
    horizon: int
    domain: Array
    names: list[str] | None
    rewards: Array
    best: Array
    best_reward: float
    drawn_anew: bool
    continuous: bool
    played: Array
    paid: Array
    cumulative_regret: float


def checked_mode(mode: str | None, owner: str) -> str | None:
    """Return a render mode; None stays None; else raise ValueError."""
    return None if mode is None else check_choice("render_mode", mode, owner, RENDER_MODES)


def view(dynamics: Dynamics, i: int) -> View:
    """Return the view of episode i of a batch that records its history."""
    task, history = dynamics.task, dynamics.history or []
    best, arms = dynamics.optimal_actions()[i], dynamics.arms()[i].astype(float)
    played = np.array([places[i] for places, _ in history], float)
    return View(
        t=dynamics.t,
        horizon=task.horizon,
        domain=arms,
        names=task.arm_names,
        rewards=dynamics.expected_rewards()[i],
        best=best if task.continuous else arms[best],
        best_reward=dynamics.optimal_reward(i),
        drawn_anew=task.contextual,
        continuous=task.continuous,
        played=played.reshape(-1, arms.shape[1]),
        paid=np.array([paid[i] for _, paid in history]),
        cumulative_regret=float(dynamics.info()["cumulative_regret"][i]),
    )


def render(seen: View, mode: str) -> Picture:
    """Return a picture `(height, width, 3)` of uint8 for "rgb_array", a text for "ansi"."""
    return picture(seen) if mode == "rgb_array" else text(seen)


def title(seen: View) -> str:
    """Return the line above a picture."""
    last = f", last reward {seen.paid[-1]:.2f}" if len(seen.paid) else ""
    if last and seen.names:
        last += f" from {seen.names[int(np.rint(seen.played[-1, 0] * (len(seen.names) - 1)))]}"
    return f"step {seen.t} of {seen.horizon}{last}, regret so far {seen.cumulative_regret:.1f}"


def draw(figure: Figure, seen: View) -> Axes:
    """Draw the view on an empty figure; return its axes."""
    axes = figure.add_subplot()
    axes.set_title(title(seen), **AS_IT_IS)
    (draw_map if seen.domain.shape[1] == 2 else draw_line)(figure, axes, seen)
    return axes


def has_plays(seen: View) -> bool:
    """Return whether past plays have a place on one axis: not on one that counts today's arms."""
    return not seen.drawn_anew or seen.domain.shape[1] == 1


def plays(seen: View) -> tuple[Array, Array]:
    """Return where the plays that have a place on one axis stand, and what they were paid."""
    if has_plays(seen):
        return positions(seen, seen.played), seen.paid
    return np.zeros(0), np.zeros(0)


def positions(seen: View, points: Array) -> Array:
    """Return where `points` `(p, d)` stand on one axis: their coordinate, or the nearest arm."""
    if seen.domain.shape[1] == 1:
        return points[:, 0]
    distances = np.sum((points[:, None] - seen.domain) ** 2, axis=2)
    nearest: Array = distances.argmin(axis=1).astype(float)
    return nearest


def arm_positions(seen: View) -> Array:
    """Return where the arms themselves stand on that axis, `(n,)`."""
    if seen.domain.shape[1] == 1:
        return seen.domain[:, 0]
    return np.arange(len(seen.domain), dtype=float)


def picture(seen: View) -> NDArray[np.uint8]:
    """Draw the view with matplotlib, without its global state."""
    figure = new_figure(figsize=(8, 4.5), dpi=100, layout="constrained")
    draw(figure, seen)
    canvas: Any = figure.canvas
    canvas.draw()
    pixels: NDArray[np.uint8] = np.array(canvas.buffer_rgba())
    return pixels[:, :, :3].copy()


def in_order(seen: View) -> bool:
    """Return whether a line from arm to arm says something: there is one coordinate."""
    return seen.names is None and seen.domain.shape[1] == 1


def fading(seen: View, colour: str) -> Any:
    """Return each play's colour with its opacity, `(t, 4)`: the newer, the stronger."""
    from matplotlib.colors import to_rgba_array

    age = np.arange(len(seen.paid))[::-1]
    opacity = np.clip(1 - age / RECENT, 0.15, 1.0)
    return to_rgba_array([(colour, float(alpha)) for alpha in opacity])


def draw_line(figure: Figure, axes: Axes, seen: View) -> None:
    """Draw f_t over one axis, the plays as dots at their rewards."""
    del figure
    where = arm_positions(seen)
    style: dict[str, Any] = {} if in_order(seen) else {"marker": "o", "linestyle": "none"}
    axes.plot(where, seen.rewards, color=BLUE, linewidth=2, label="expected reward", **style)
    peak = positions(seen, seen.best[None])
    axes.plot(peak, seen.best_reward, "*", color=ORANGE, markersize=16, label="its optimum")
    place, paid = plays(seen)
    if len(paid):
        shades = fading(seen, GREEN)
        axes.scatter(place, paid, s=22, c=shades, label="rewards, newest darkest")
        axes.axvline(place[-1], color=GREEN, linewidth=1, linestyle=":", label="last action")
    if seen.names:
        every = -(-len(seen.names) // LABELS)
        axes.set_xticks(where[::every], seen.names[::every], rotation=90, fontsize=8, **AS_IT_IS)
    counted = "nearest point of the grid" if seen.continuous else "arm"
    axes.set_xlabel("x" if in_order(seen) else counted)
    axes.set_ylabel("reward")
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)


def draw_map(figure: Figure, axes: Axes, seen: View) -> None:
    """Draw f_t as colour over a plane, or of arms that are no grid, the plays as dots."""
    x, y = seen.domain.T
    colours: Any
    if len(np.unique(x)) * len(np.unique(y)) == len(x):
        colours = axes.tricontourf(x, y, seen.rewards, levels=40)
    else:
        colours = axes.scatter(x, y, s=120, c=seen.rewards)
    figure.colorbar(colours, label="expected reward")
    axes.plot(*seen.best, "*", color=ORANGE, markersize=18, label="its optimum")
    if len(seen.paid):
        shades = fading(seen, "white")
        across, up = seen.played.T
        axes.scatter(
            across, up, s=30, c=shades, edgecolors="grey", label="actions, newest brightest"
        )
        axes.plot(*seen.played[-1], "kx", markersize=10, label="last action")
    axes.set(xlabel="$x_1$", ylabel="$x_2$", aspect="equal", xlim=MARGIN, ylim=MARGIN)
    figure.legend(loc="outside left upper", frameon=False)


def text(seen: View) -> str:
    """Draw the view in characters: `-` is f_t, `*` its optimum, `o` past and `X` last reward."""
    where, (place, paid) = arm_positions(seen), plays(seen)
    low_x, high_x = where.min(), where.max()
    heights = np.concatenate([seen.rewards, paid, [seen.best_reward]])
    low_y, high_y = heights.min(), heights.max()
    canvas = np.full((TEXT_HEIGHT, TEXT_WIDTH), " ")

    def _mark(x: Array, y: Array, sign: str) -> None:
        column = np.rint((x - low_x) / (high_x - low_x) * (TEXT_WIDTH - 1)).astype(int)
        row = np.rint((high_y - y) / max(high_y - low_y, 1e-300) * (TEXT_HEIGHT - 1)).astype(int)
        canvas[row, column] = sign

    if in_order(seen):
        between, order = np.linspace(low_x, high_x, TEXT_WIDTH), np.argsort(where, kind="stable")
        _mark(between, np.interp(between, where[order], seen.rewards[order]), "-")
    else:
        _mark(where, seen.rewards, "-")
    _mark(place, paid, "o")
    _mark(place[-1:], paid[-1:], "X")
    _mark(positions(seen, seen.best[None]), np.array([seen.best_reward]), "*")
    labels = [f"{high_y:8.2f} |"] + [" " * 8 + " |"] * (TEXT_HEIGHT - 2) + [f"{low_y:8.2f} |"]
    lines = [label + "".join(row) for label, row in zip(labels, canvas, strict=True)]
    key = "-: expected reward   *: its optimum"
    if has_plays(seen):
        key += "   o: rewards so far   X: the last"
    return "\n".join([title(seen), *lines, " " * 10 + key])
