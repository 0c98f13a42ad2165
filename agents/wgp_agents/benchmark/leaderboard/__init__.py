"""The leaderboard: every agent that needs nothing beforehand, on a fixed suite of tasks."""

from wgp_agents.benchmark.leaderboard.knowledge import Knowledge, knowledge
from wgp_agents.benchmark.leaderboard.played import Board, play_suite
from wgp_agents.benchmark.leaderboard.standings import Standing, standings
from wgp_agents.benchmark.leaderboard.suites import SUITES, Contest, Suite

__all__ = [
    "SUITES",
    "Board",
    "Contest",
    "Knowledge",
    "Standing",
    "Suite",
    "knowledge",
    "play_suite",
    "standings",
]
