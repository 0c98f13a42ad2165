"""Before anything runs: does every agent fit every task, and how long will it take?"""

from __future__ import annotations

import time
from typing import NamedTuple

from threadpoolctl import threadpool_limits

from wgp_agents.benchmark.experiment import Experiment, Unit
from wgp_agents.benchmark.layout import seeds_of
from wgp_agents.benchmark.play import prepare

__all__ = ["Estimate", "check", "estimate", "plan"]

MOST_FAULTS = 10  # that one message lists
PROBE_STEPS = 20


class Estimate(NamedTuple):
    """How long one agent takes in one task."""

    task: str
    agent: str  # the agent's label
    units: int
    seconds: float  # of computing on one core


def check(experiment: Experiment) -> None:
    """Make every agent in every task, for one learner and for two, and begin one episode.

    Raises:
        ValueError: With all that is wrong, if anything is.
    """
    found = (
        fault(Unit(task, agent, range(1), experiment.root_seed), min(2, experiment.seeds))
        for task in experiment.tasks
        for agent in experiment.agents
    )
    faults = [text for text in found if text]
    if faults:
        more = len(faults) - MOST_FAULTS
        shown = faults[:MOST_FAULTS] + ([f"... and {more} more"] if more > 0 else [])
        raise ValueError("\n".join(["The experiment cannot be run:", *shown]))


def fault(unit: Unit, learners: int) -> str:
    """Return what is wrong with an agent in a task, or nothing."""
    where = f"{unit.agent.label} in {unit.task.name}"
    try:
        prepare(unit, learners)
        env, player = prepare(unit, 1)
    except (ValueError, TypeError, OSError, ModuleNotFoundError) as error:
        return f"{where}: {error}"
    of_env, of_agent = seeds_of(unit)
    try:
        env.reset(seed=of_env)
        player.reset(of_agent)
    except (ValueError, RuntimeError) as error:
        return f"{where}, first episode: {error}"
    return ""


def estimate(experiment: Experiment) -> list[Estimate]:
    """Measure the first steps of every agent in every task, and reckon from them.

    The cost of a step does not grow with t.
    """
    found = []
    for task in experiment.tasks:
        for agent in experiment.agents:
            units = list(experiment.cell(task, agent))
            seconds = sum(len(unit.runs) for unit in units) / len(units[0].runs) * probe(units[0])
            found.append(Estimate(task.name, agent.label, len(units), seconds))
    return found


def probe(unit: Unit) -> float:
    """Return the seconds that a unit will take."""
    started = time.perf_counter()
    env, agent = prepare(unit, len(unit.runs))
    of_env, of_agent = seeds_of(unit)
    with threadpool_limits(limits=1):
        observation, _ = env.reset(seed=of_env)
        agent.reset(of_agent)
        ready = time.perf_counter() - started
        horizon = agent.problem.known_horizon("an experiment")
        steps = min(PROBE_STEPS, horizon)
        marks = []
        for _ in range(steps):
            action = agent.act(observation)
            observation, reward, *_ = env.step(action)
            agent.observe(action, reward)
            marks.append(time.perf_counter())
    # The first step may compile, or read what was compiled before.
    each = (marks[-1] - marks[0]) / max(steps - 1, 1)
    return ready + each * horizon


def plan(experiment: Experiment, jobs: int) -> str:
    """Return what an experiment will do and how long it will take, for people."""
    rows = estimate(experiment)
    wide = max(len(row.agent) for row in rows)
    total = sum(row.seconds for row in rows)
    units = sum(row.units for row in rows)
    lines = [
        f"{experiment.title}: {len(experiment.tasks)} tasks x {len(experiment.agents)} agents x "
        f"{experiment.seeds} runs, in {units} units of up to {experiment.batch} runs"
    ]
    for task in experiment.tasks:
        lines += ["", f"{task.name}: {task.id} {task.kwargs or ''}".rstrip()]
        of_task = [row for row in rows if row.task == task.name]
        lines += [f"  {row.agent:{wide}}  {readable(row.seconds):>10}" for row in of_task]
    shared = f"on {jobs} processes about {readable(total / min(jobs, units))}"
    return "\n".join([*lines, "", f"About {readable(total)} of computing, {shared}."])


def readable(seconds: float) -> str:
    """Return a duration for people."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"
