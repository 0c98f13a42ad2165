"""The picture of the leaderboard: performance profiles, board by board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from wgp_agents.benchmark.figures import canvas
from wgp_agents.benchmark.figures.styles import styles
from wgp_agents.benchmark.leaderboard.played import Board
from wgp_agents.benchmark.leaderboard.standings import Standing
from wgp_agents.benchmark.statistics import profile_shares
from wgp_gym.drawing import new_figure

__all__ = ["profiles"]

SHOWN, POINTS = 8, 200
LOW, HIGH = 0.3, 10.0


def profiles(boards: Sequence[Board], stands: Mapping[str, Sequence[Standing]], path: Path) -> None:
    """Draw for the first eight of each board the share of runs with a ratio of at most tau.

    Args:
        boards: The boards as they were played.
        stands: Of each, who stands where.
        path: The picture's file.
    """
    figure = new_figure(figsize=(11, 4.6 * ((len(boards) + 1) // 2)), layout="constrained")
    panels = np.ravel(figure.subplots((len(boards) + 1) // 2, 2))
    taus = np.geomspace(LOW, HIGH, POINTS)
    for ax, board in zip(panels, boards, strict=False):
        leading = [one.agent for one in stands[board.name][:SHOWN]]
        looks = styles([agent for agent in board.agents if agent.label in leading])
        for place, label in enumerate(leading):
            runs = [
                of_agents[label] / max(float(board.best[task].mean()), 1e-12)
                for task, of_agents in board.regrets.items()
            ]
            share, _ = profile_shares(runs, taus)
            line = canvas.line_style(looks[label], place / SHOWN, POINTS)
            ax.plot(taus, share, label=label, **line)
        ax.set_xscale("log")
        canvas.plain_log(ax.xaxis)
        ax.set(title=board.name, xlim=(LOW, HIGH), ylim=(0, 1.02))
        ax.set(xlabel="regret over the best in hindsight", ylabel="share of runs with at most that")
        canvas.tidy(ax)
        ax.legend(fontsize=8, frameon=False, loc="lower right")
    for ax in panels[len(boards) :]:
        ax.set_visible(False)
    figure.savefig(path, dpi=130)
