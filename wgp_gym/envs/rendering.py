"""What an environment renders: a scorer's view of a moment, as a picture or as a text."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wgp_gym.envs.picture import picture
from wgp_gym.envs.view import (
    View,
    arm_positions,
    has_plays,
    in_order,
    plays,
    positions,
    title,
    view,
)
from wgp_gym.types import Array
from wgp_gym.validation import check_choice

__all__ = ["RENDER_MODES", "Picture", "View", "checked_mode", "render", "view"]

Picture = NDArray[np.uint8] | str
RENDER_MODES = ("rgb_array", "ansi")
TEXT_WIDTH, TEXT_HEIGHT = 80, 12


def checked_mode(mode: str | None, owner: str) -> str | None:
    """Return a render mode; None stays None; else raise ValueError."""
    return None if mode is None else check_choice("render_mode", mode, owner, RENDER_MODES)


def render(seen: View, mode: str) -> Picture:
    """Return a picture `(height, width, 3)` of uint8 for "rgb_array", a text for "ansi"."""
    return picture(seen) if mode == "rgb_array" else text(seen)


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
