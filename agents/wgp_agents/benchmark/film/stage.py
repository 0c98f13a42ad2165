"""The figure of a film: what stays is drawn once, what moves for every frame."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.film.clip import Clip
from wgp_agents.benchmark.film.panels import Arms, Line, Map, Panel, Strip
from wgp_gym.drawing import new_figure

__all__ = ["DPI", "Stage"]

SIZE, DPI = (8.0, 5.0), 120  # 960 x 600 pixels, both even as MP4 wants them
TITLE = 13  # points


class Stage:
    """The figure of a clip; `show` makes `screen` show a frame.

    What does not move is drawn once and kept as a picture, so that a frame costs little.
    """

    def __init__(self, clip: Clip) -> None:
        self.clip = clip
        figure = new_figure(figsize=SIZE, dpi=DPI, layout="constrained")
        canvas: Any = figure.canvas
        self.canvas = canvas
        columns = clip.domain.shape[1]
        grid = figure.add_gridspec(2, columns, height_ratios=[3.6, 1])
        above = [figure.add_subplot(grid[0, column]) for column in range(columns)]
        kind: type[Panel] = Map if columns == 2 else Arms if clip.names else Line
        self.panels: list[Panel] = [
            kind(clip, above),
            Strip(clip, [figure.add_subplot(grid[1, :])]),
        ]
        title = figure.suptitle(clip.title, x=0.02, ha="left", fontsize=TITLE)
        self._step = figure.text(0.985, 1.0, "", ha="right", va="top", fontsize=TITLE)
        for panel in self.panels:
            panel.show(0)  # so that the layout has something to go by
        moving = [artist for panel in self.panels for artist in panel.moving]
        self.moving = sorted([*moving, self._step], key=lambda artist: artist.get_zorder())
        for artist in self.moving:
            artist.set_animated(True)
        self.canvas.draw()
        self._step.set_y(title.get_position()[1])  # where the layout has put it
        self._still = self.canvas.copy_from_bbox(figure.bbox)
        self.screen = new_figure(figsize=SIZE, dpi=DPI)
        self._picture = self.screen.figimage(self._pixels())

    def _pixels(self) -> NDArray[np.uint8]:
        return np.array(self.canvas.buffer_rgba())

    def show(self, frame: int) -> None:
        """Draw a frame; `screen` is the figure that holds it."""
        self._step.set_text(f"step {self.clip.shown[frame] + 1}")
        for panel in self.panels:
            panel.show(frame)
        self.canvas.restore_region(self._still)
        for artist in self.moving:
            artist.draw(self.canvas.get_renderer())
        self._picture.set_data(self._pixels())
