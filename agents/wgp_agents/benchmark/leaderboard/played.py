"""Playing a suite of the leaderboard, and reading what was played, board by board."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from wgp_agents.benchmark.experiment import AgentSpec, Unit
from wgp_agents.benchmark.folder import TIMINGS, ResultsFolder, slug
from wgp_agents.benchmark.leaderboard.suites import (
    BOARDS,
    CONTESTS,
    FIXED,
    Contest,
    Suite,
    contestants,
    experiment,
    hindsight,
)
from wgp_agents.benchmark.parallel import Workers
from wgp_agents.benchmark.plan import faults_in
from wgp_agents.benchmark.results import Results, load_results
from wgp_agents.benchmark.run import run
from wgp_gym.types import Array

__all__ = ["Board", "folder_of", "play_suite", "read_boards"]


@dataclass(frozen=True, eq=False)
class Board:
    """One board as it was played.

    Attributes:
        name: The board's name.
        regrets: By task and label, the regret of each run, `(runs,)`, of those who play all tasks.
        best: By task, the same of the best fixed parameters in hindsight.
        chosen: By task, which they are.
        seconds: By label, seconds of one step of one learner, environment and all, at its fastest.
        agents: Those who play all of its tasks.
    """

    name: str
    regrets: dict[str, dict[str, Array]]
    best: dict[str, Array]
    chosen: dict[str, str]
    seconds: dict[str, float]
    agents: list[AgentSpec]


def play_suite(suite: Suite, own: Sequence[AgentSpec], jobs: int, out: Path) -> list[Unit]:
    """Play every agent in every task that it can play; return the units that failed.

    Each task has a folder of `wgp-gym run` in `out`, and what was played is not played again; who
    took part there before, beside the package's agents, still does.

    Raises:
        ValueError: As `wgp_agents.benchmark.run.run` does, if an agent can play no task, or one
            that took part before cannot be made any more.
    """
    failed: list[Unit] = []
    playing: set[str] = set()
    for contest in CONTESTS:
        folder = folder_of(contest.name, out)
        before = earlier(folder)
        new = [agent for agent in own if agent not in before]
        agents = fitting(contest, suite, contestants([*before, *new]))
        fit = {agent.label for agent in agents}
        check_still_there(before, fit, folder)
        playing |= fit
        failed += run(experiment(contest, suite, agents), folder, Workers(jobs), extend=True)
    for agent in own:
        if agent.label not in playing:
            raise ValueError(f"{agent.label} can play none of the leaderboard's tasks.")
    return failed


def folder_of(task: str, out: Path) -> Path:
    """Return where the results of a task stand, by its name."""
    return out / slug(task)


def earlier(folder: Path) -> list[AgentSpec]:
    """Return the agents of one's own that have played in a folder."""
    try:
        there = ResultsFolder.open(folder).experiment.agents
    except ValueError:
        return []
    ours = {agent.label for agent in contestants()}
    others = [agent for agent in there if agent.label not in ours]
    return [agent for agent in others if not agent.label.startswith(FIXED)]


def check_still_there(before: Sequence[AgentSpec], fit: Collection[str], folder: Path) -> None:
    """Check that those who took part before are among the labels of those who can play."""
    for agent in before:
        if agent.label not in fit:
            raise ValueError(
                f"{agent.label} ({agent.name}) has played in {folder} and cannot be made any more. "
                "Put its module on Python's path as it was then, or choose another folder."
            )


def fitting(contest: Contest, suite: Suite, agents: list[AgentSpec]) -> list[AgentSpec]:
    """Return those who can play a task, beside the grid of hindsight."""
    everybody = experiment(contest, suite, [*agents, *hindsight(contest)])
    refused = {label for label, _ in faults_in(everybody.tasks[0], everybody)}
    return [agent for agent in everybody.agents if agent.label not in refused]


def read_boards(out: Path) -> list[Board]:
    """Read what was played, one board after the other; an agent that failed is in none.

    Raises:
        ValueError: If nothing was played of a task.
    """
    results = {one: load_results(folder_of(one.name, out), partial=True) for one in CONTESTS}
    return [board_of(name, results) for name in BOARDS]


def board_of(name: str, results: dict[Contest, Results]) -> Board:
    """Return one board."""
    own = {contest: found for contest, found in results.items() if contest.board == name}
    present = [{agent.label for agent in found.experiment.agents} for found in own.values()]
    first = next(iter(own.values())).experiment.agents
    players = [agent for agent in first if not agent.label.startswith(FIXED)]
    agents = [agent for agent in players if all(agent.label in labels for labels in present)]
    regrets: dict[str, dict[str, Array]] = {}
    best, chosen = {}, {}
    for contest, found in own.items():
        task = contest.name
        regrets[task] = {a.label: found.final_regret(task, a.label) for a in agents}
        grid = [label for label in found.agents if label.startswith(FIXED)]
        fixed = {label: found.final_regret(task, label) for label in grid}
        chosen[task] = min(fixed, key=lambda label: fixed[label].mean())
        best[task] = fixed[chosen[task]]
    return Board(name, regrets, best, chosen, seconds_of(own, agents), agents)


def seconds_of(own: dict[Contest, Results], agents: list[AgentSpec]) -> dict[str, float]:
    """Return the seconds of one step of one learner, by label: the least of all units.

    In its first unit an agent's loops may be compiled.
    """
    least = dict.fromkeys((agent.label for agent in agents), math.inf)
    for contest, found in own.items():
        with (found.folder.path / TIMINGS).open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["agent"] in least:
                    steps = int(row["runs"]) * found.horizon(contest.name)
                    each = float(row["seconds"]) / steps
                    least[row["agent"]] = min(least[row["agent"]], each)
    return least
