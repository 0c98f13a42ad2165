"""What the leaderboard plays: tasks in boards, in three sizes, and the grid of hindsight."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from wgp_agents.benchmark.experiment import AgentSpec, Experiment, TaskSpec
from wgp_agents.benchmark.files import JSON
from wgp_agents.benchmark.rollout import make_vector
from wgp_agents.registry import AGENTS, agent_entry
from wgp_gym.validation import reject

__all__ = [
    "BOARDS",
    "CONTESTS",
    "DISCOUNTS",
    "FIXED",
    "RANDOM",
    "SUITES",
    "WIDTHS",
    "Contest",
    "Suite",
    "contestants",
    "experiment",
    "hindsight",
    "named",
]

DISCOUNTS = (1.0, 0.99, 0.97, 0.95, 0.9, 0.8)
WIDTHS = (0.1, 1.0, 3.0, 10.0, 30.0)  # in units of R
FIXED = "fixed: "  # how the labels of the grid begin
RANDOM = agent_entry("random").title
NO_CONTESTANTS = ("policy",)  # it is whatever it is given


@dataclass(frozen=True)
class Contest:
    """One task of the leaderboard.

    Attributes:
        board: The table that it belongs to: agents are ranked among those that play all of it.
        name: What it is called.
        id: The environment's id.
        horizon: Its own number of steps, that a smaller suite cuts.
        kwargs: What it is made with, beside the horizon.
    """

    board: str
    name: str
    id: str
    horizon: int = 500
    kwargs: dict[str, JSON] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class Suite:
    """A size of the leaderboard.

    Attributes:
        name: What it is called.
        longest: The steps after which every task is cut off.
        runs: Runs of each agent in each task.
        time: About how long it takes on two processes.
    """

    name: str
    longest: int
    runs: int
    time: str


SUITES = {
    suite.name: suite
    for suite in (
        Suite("small", 100, 10, "2 minutes"),
        Suite("standard", 500, 30, "20 minutes"),
        Suite("full", 5000, 100, "hours"),
    )
}
ROOT_SEED = 25_2022

FUNCTIONS, LINES, NEW_ARMS, FREE_ARMS = BOARDS = ("functions", "linear", "new arms", "K arms")
CONTESTS = (
    Contest(FUNCTIONS, "abrupt", "WGPBandit-Abrupt-v0"),
    Contest(FUNCTIONS, "abrupt, noise 1", "WGPBandit-Abrupt-v0", kwargs={"noise_std": 1.0}),
    Contest(FUNCTIONS, "slow", "WGPBandit-Slow-v0"),
    Contest(FUNCTIONS, "stationary", "WGPBandit-Stationary-v0"),
    Contest(FUNCTIONS, "recurring", "WGPBandit-Recurring-v0"),
    Contest(FUNCTIONS, "hidden", "WGPBandit-Hidden-v0"),
    Contest(FUNCTIONS, "Markov", "WGPBandit-Markov-v0"),
    Contest(FUNCTIONS, "stocks", "WGPBandit-Stock-v0", 800),
    Contest(FUNCTIONS, "car parks", "WGPBandit-Parking-v0", 1000),
    Contest(FUNCTIONS, "pricing", "WGPBandit-Pricing-v0"),
    Contest(FUNCTIONS, "beams", "WGPBandit-Beam-v0"),
    Contest(FUNCTIONS, "sensors", "WGPBandit-Sensors-v0", 288),
    Contest(
        FUNCTIONS,
        "knobs",
        "WGPBandit-Knobs-v0",
        kwargs={"continuous": False, "points_per_dim": 5},
    ),
    Contest(FUNCTIONS, "needles", "WGPBandit-LowerBound-v0"),
    Contest(LINES, "linear, abrupt", "WGPBandit-LinearAbrupt-v0", 6000),
    Contest(LINES, "linear, slow", "WGPBandit-LinearSlow-v0", 6000),
    Contest(NEW_ARMS, "linear, new arms", "WGPBandit-LinearContextual-v0", 6000),
    Contest(FREE_ARMS, "arms, abrupt", "WGPBandit-ArmsAbrupt-v0", 5000),
    Contest(FREE_ARMS, "arms, drifting", "WGPBandit-ArmsDrift-v0", 5000),
    Contest(FREE_ARMS, "news", "WGPBandit-News-v0"),
)
NOT_PLAYED = {"WGPBandit-Table-v0": "bare it is WGPBandit-Parking-v0's table"}


@cache
def hindsight(contest: Contest) -> tuple[AgentSpec, ...]:
    """Return the grid of fixed parameters, of which the best in hindsight is the unit of a task.

    It is the same for all tasks: widths are in units of the noise's scale R, as lambda = R^2 is.
    """
    with closing(make_vector(contest.id, 1, **contest.kwargs)) as env:
        noise = float(np.max(env.unwrapped.problem.known_noise("the leaderboard")))
    return tuple(
        AgentSpec(
            f"{FIXED}discount {discount}, width {width} R",
            "wgp-ucb",
            {"discount": discount, "confidence_width": width * noise},
        )
        for discount in DISCOUNTS
        for width in WIDTHS
    )


def contestants(own: Sequence[AgentSpec] = ()) -> list[AgentSpec]:
    """Return the package's agents that need nothing beforehand, and somebody's own.

    References read the truth, and policies of stable-baselines3 were trained on two tasks alone.

    Raises:
        ValueError: If two have the same label.
    """
    ours = [
        AgentSpec(entry.title, entry.name)
        for entry in AGENTS.values()
        if not (entry.reference or entry.extra or entry.name in NO_CONTESTANTS)
    ]
    found = [*ours, *own]
    labels = [one.label for one in found]
    for label in labels:
        if labels.count(label) > 1 or label.startswith(FIXED):
            reject("agent", "the leaderboard", "one that does not take part already", label)
    return found


def named(name: str, parameters: dict[str, JSON]) -> AgentSpec:
    """Return how an agent of somebody's own takes part."""
    words = ", ".join(f"{key}={value}" for key, value in parameters.items())
    title = agent_entry(name).title
    return AgentSpec(f"{title} ({words})" if words else title, name, parameters)


def experiment(contest: Contest, suite: Suite, agents: Sequence[AgentSpec]) -> Experiment:
    """Return the experiment of one task."""
    title = f"Leaderboard, {suite.name}: {contest.name}"
    text = f"Of `wgp-gym leaderboard --suite {suite.name}`."
    kwargs = {**contest.kwargs, "horizon": min(contest.horizon, suite.longest)}
    return Experiment(
        title=title,
        description=text,
        tasks=(TaskSpec(contest.name, contest.id, kwargs, seed_name=contest.id),),
        agents=tuple(agents),
        seeds=suite.runs,
        root_seed=ROOT_SEED,
        source={"title": title, "description": text},
    )
