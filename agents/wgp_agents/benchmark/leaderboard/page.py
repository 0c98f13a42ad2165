"""The leaderboard as tables: CSV for programs, Markdown for people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from wgp_agents.benchmark.files import Row, write_csv, write_whole
from wgp_agents.benchmark.leaderboard.knowledge import Knowledge
from wgp_agents.benchmark.leaderboard.played import Board
from wgp_agents.benchmark.leaderboard.standings import Standing
from wgp_agents.benchmark.leaderboard.suites import DISCOUNTS, WIDTHS, Suite
from wgp_agents.benchmark.report.markdown import markdown_table

__all__ = ["markdown", "rows", "write_tables"]

Stands = Mapping[str, Sequence[Standing]]
"""Of each board, who stands where."""


def rows(boards: Sequence[Board], stands: Stands, told: Mapping[str, Knowledge]) -> list[Row]:
    """Return one row for each agent and task."""
    return [
        {
            **{"board": board.name, "agent": one.agent, "told": str(told[one.agent]), "task": task},
            "mean_regret": float(board.regrets[task][one.agent].mean()),
            "worst_regret": float(board.regrets[task][one.agent].max()),
            "hindsight": board.chosen[task],
            "hindsight_mean_regret": float(board.best[task].mean()),
            "ratio": one.ratios[task],
            **{"board_ratio": one.ratio.value, "low": one.ratio.low, "high": one.ratio.high},
            **{"rank": one.rank.value, "rank_low": one.rank.low, "rank_high": one.rank.high},
            "worst_over_hindsight": one.worst,
            "seconds_per_step": board.seconds[one.agent],
        }
        for board in boards
        for one in stands[board.name]
        for task in board.regrets
    ]


def markdown(
    suite: Suite, boards: Sequence[Board], stands: Stands, told: Mapping[str, Knowledge]
) -> str:
    """Return the tables, a board after the other."""
    discounts, widths = (", ".join(map(str, grid)) for grid in (DISCOUNTS, WIDTHS))
    parts = [
        f"`wgp-gym leaderboard --suite {suite.name}`: {suite.runs} runs of each agent in each "
        f"task, the same episodes for all, of at most {suite.longest} steps.",
        "**ratio**: mean regret over that of the best fixed parameters in hindsight, as a "
        "geometric mean over the board's tasks, with its 95 % bootstrap interval. In hindsight: "
        f"`wgp-ucb` with each discount of {discounts} and each constant width of {widths} times "
        "the noise's scale, the least mean regret in each task. **rank**: by the ratio, with the "
        "interval of the same resamples. **worst**: the largest regret of a run over the same. "
        "**goes by**: what an "
        "agent's plays depend on beside plays and rewards, found by telling it something else; who "
        "goes by more was told more. **µs**: microseconds of a step of one learner, environment "
        "and all, in the task where that was least. Then the ratio in each task.",
    ]
    for board in boards:
        parts += [f"## {board.name[0].upper()}{board.name[1:]}", table(board, stands, told)]
    return "\n\n".join(parts) + "\n"


def table(board: Board, stands: Stands, told: Mapping[str, Knowledge]) -> str:
    """Return the table of one board."""
    cells = [["", "agent", "ratio", "rank", "worst", "goes by", "µs", *board.regrets]]
    for one in stands[board.name]:
        low, high = one.ratio.low, one.ratio.high
        cells.append(
            [
                f"{one.rank.value:.0f}",
                one.agent,
                f"{short(one.ratio.value)} [{short(low)}, {short(high)}]",
                f"{one.rank.low:.0f} to {one.rank.high:.0f}",
                short(one.worst),
                str(told[one.agent]),
                f"{1e6 * board.seconds[one.agent]:.0f}",
                *(short(ratio) for ratio in one.ratios.values()),
            ]
        )
    return markdown_table(cells)


def short(ratio: float) -> str:
    """Return a ratio with two digits after the point, if it is small."""
    return f"{ratio:.2f}" if ratio < 10 else f"{ratio:.0f}"


def write_tables(made: list[Row], text: str, out: Path) -> None:
    """Write what `rows` and `markdown` have returned as leaderboard.csv and leaderboard.md."""
    write_csv(out / "leaderboard.csv", made)
    write_whole(out / "leaderboard.md", text.encode())
