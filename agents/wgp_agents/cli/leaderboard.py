"""The command that ranks all agents on a fixed suite of tasks."""

from __future__ import annotations

import argparse
from pathlib import Path
from shutil import copyfile

from wgp_agents.cli.experiments import ended
from wgp_agents.cli.terminal import drawn, refused, say

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Play a suite, print the boards, and write tables and picture; return the exit code."""
    from wgp_agents.benchmark.declaration import split_flag
    from wgp_agents.benchmark.figures.leaderboard import profiles
    from wgp_agents.benchmark.leaderboard import SUITES, play_suite
    from wgp_agents.benchmark.leaderboard.knowledge import knowledge
    from wgp_agents.benchmark.leaderboard.page import markdown, rows, write_tables
    from wgp_agents.benchmark.leaderboard.played import folder_of, read_boards
    from wgp_agents.benchmark.leaderboard.standings import standings
    from wgp_agents.benchmark.leaderboard.suites import RANDOM, named
    from wgp_agents.benchmark.parallel import LostWorker
    from wgp_agents.benchmark.report.markdown import fill_in

    suite = SUITES[options.suite]
    out = options.out or Path("results") / f"leaderboard-{suite.name}"
    try:
        own = [named(*split_flag("agent", flag)) for flag in options.agent]
        failed = play_suite(suite, own, options.jobs, out)
        boards = read_boards(out)
        stands = {board.name: standings(board.regrets, board.best, RANDOM) for board in boards}
        players = {agent.label: agent for board in boards for agent in board.agents}
        told = {label: knowledge(one.name, one.parameters) for label, one in players.items()}
        text = markdown(suite, boards, stands, told)
        write_tables(rows(boards, stands, told), text, out)
        page = out / "leaderboard.png"
        code = drawn("leaderboard", lambda: profiles(boards, stands, page), page)
        if options.into is not None:
            fill_in(options.into, "leaderboard", text)
            if code == 0:
                copyfile(page, options.into.with_name(page.name))
    except (ValueError, OSError, ImportError, LostWorker) as error:
        return refused("leaderboard", error)
    say(text)
    say(f"Written to {out}: leaderboard.md, leaderboard.csv, and a folder of results for each task")
    for unit in failed:
        say(f"{unit.agent.label} failed in {unit.task.name}, and is on no board with it.")
    return ended(failed, folder_of(failed[0].task.name, out)) if failed else code
