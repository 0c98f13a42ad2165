"""A summary of an experiment that was never played, for the tests of the report's page."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.figures.styles import STYLES
from wgp_agents.benchmark.report.summarise import band
from wgp_agents.benchmark.report.summary import (
    Agent,
    AgentShare,
    Cost,
    Growth,
    GrowthLine,
    Missing,
    ParameterLine,
    ParameterMap,
    Played,
    Profiles,
    Reproduction,
    Row,
    Sensitivity,
    Summary,
    Task,
)
from wgp_agents.benchmark.statistics import Difference, Interval

NAMES = ("wgp-ucb", "sw-gp-ucb", "r-gp-ucb", "igp-ucb", "random", "oracle", "a2c", "dqn")
STEPS = 500


def made_up(
    agents: int = 12,
    tasks: int = 2,
    runs: int = 20,
    points: int = 100,
    words: Callable[[str], str] = str,
) -> Summary:
    """Return a summary in which agent k has about 100 (k + 1) of regret, the oracle none.

    Args:
        agents: Number of agents; the sixth of every eight is a reference.
        tasks: Number of tasks.
        runs: Number of runs.
        points: Number of steps at which curves are given.
        words: What becomes of every text that a user may choose.
    """
    rng = np.random.default_rng(7)
    players = [made_up_agent(k, words) for k in range(agents)]
    labels = [agent.label for agent in players]
    rivals = [agent.label for agent in players if not agent.reference]
    steps = np.unique(np.linspace(1, STEPS, points).round().astype(int))
    names = [words(f"task {i}") for i in range(tasks)]
    scale = {agent.label: 0.0 if agent.reference else k + 1.0 for k, agent in enumerate(players)}
    played = {
        (name, label): made_up_plays(rng, 100 * scale[label] * (1 + i / 10), steps, runs)
        for i, name in enumerate(names)
        for label in labels
    }
    rows = {place: made_up_row(*place, one.final) for place, one in played.items()}
    pair = [around(100.0), around(50.0)]
    return Summary(
        title=words("Made up"),
        description=words("Nobody played this"),
        agents=players,
        tasks=[
            Task(name, "WGPBandit-Abrupt-v0", {"lengthscale": 0.2}, STEPS, runs, 0, [170], steps)
            for name in names
        ],
        rows=rows,
        played=played,
        differences={
            name: [
                Difference(rivals[0], rival, -100.0 * k, -110.0 * k, -90.0 * k, "")
                for k, rival in enumerate(rivals[1:], 1)
            ]
            for name in names
        },
        aggregate=[
            AgentShare(label, tasks, around(scale[label] / 5), scale[label] / 5, None)
            for label in labels
        ],
        leader=rivals[0],
        chance=None,
        profiles=Profiles(np.linspace(0, 2, 9), {label: np.linspace(0, 1, 9) for label in labels}),
        improvement=[
            [None if i == j else (0.9 if i < j else 0.1) for j in range(len(rivals))]
            for i in range(len(rivals))
        ],
        sensitivity=[
            Sensitivity(name, "window", [ParameterLine(words("W"), labels[0], [5.0, 9.0], pair)])
            for name in names
        ],
        maps=[
            ParameterMap(
                name, "wgp-ucb", "a", "b", [1.0, 2.0], [3.0, 4.0], [[3.0, 2.0], [1.0, 4.0]]
            )
            for name in names
        ],
        growth=[
            Growth(words("growth"), "horizon", [10.0, 20.0], [GrowthLine(labels[0], pair, None)])
        ],
        costs=[Cost(labels[0], 12.5, 90.0)],
        missing=Missing([words("one in a task, run 3 on")], [], []),
        reproduction=Reproduction(
            command="wgp-gym run experiment.toml --out results/again",
            experiment=words('title = "Made up"'),
            root_seed=2022,
            versions={"numpy": "2.3.1"},
            units=24,
            seconds=754.2,
        ),
        runs=[],
    )


def made_up_agent(k: int, words: Callable[[str], str]) -> Agent:
    """Return the agent of a number."""
    name = NAMES[k % len(NAMES)]
    parameters = {"note": words("a"), "window": k}
    label = words(f"agent {k}")
    return Agent(label, name, words("Acts."), parameters, name == "oracle", STYLES[name])


def made_up_plays(
    rng: np.random.Generator, regret: float, steps: NDArray[np.int64], runs: int
) -> Played:
    """Return runs of about so much regret."""
    curves = regret * np.sqrt(steps / STEPS) * rng.gamma(30, 1 / 30, (runs, 1))
    actions = rng.integers(0, 100, len(steps)).astype(float)
    best = np.full(len(steps), 40.0)
    return Played(curves[:, -1], band(curves), band(curves / STEPS), actions, best)


def made_up_row(task: str, agent: str, final: NDArray[np.float64]) -> Row:
    """Return the row of such runs."""
    mean, median = around(float(final.mean())), around(float(np.median(final)))
    return Row(task, agent, len(final), mean, 1.0, median, float(final.mean()) / 500, None)


def around(value: float) -> Interval:
    """Return a value with an interval of 5 % on either side."""
    return Interval(value, 0.95 * value, 1.05 * value)
