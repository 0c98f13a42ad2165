"""Before anything runs: does every agent fit every task, and how long will it take?"""

from __future__ import annotations

from collections.abc import Iterator

from wgp_agents.base import Agent
from wgp_agents.benchmark.cost import estimate
from wgp_agents.benchmark.experiment import Experiment, TaskSpec, Unit
from wgp_agents.benchmark.layout import seeds_of
from wgp_agents.benchmark.rollout import make_vector
from wgp_agents.core.access import problem_reader
from wgp_agents.registry import make

__all__ = ["check", "faults_in", "plan"]

MOST_FAULTS = 10  # that one message lists
MISFITS = (ValueError, TypeError, OSError, ModuleNotFoundError)  # of what cannot be made


def check(experiment: Experiment) -> None:
    """Make every agent in every task, and begin one episode.

    In the first task of an [[environment]] every agent is made for two learners as well: what does
    for one alone, as a list of one value, does so in all tasks.

    Raises:
        ValueError: With all that is wrong, if anything is.
    """
    faults = [text for task in experiment.tasks for _, text in faults_in(task, experiment)]
    if faults:
        more = len(faults) - MOST_FAULTS
        shown = faults[:MOST_FAULTS] + ([f"... and {more} more"] if more > 0 else [])
        raise ValueError("\n".join(["The experiment cannot be run:", *shown]))


def faults_in(task: TaskSpec, experiment: Experiment) -> Iterator[tuple[str, str]]:
    """Yield the label of each agent that does not fit a task, and why, with both named."""
    agents, begun = experiment.agents, ""
    of_env, of_agent = seeds_of(Unit(task, agents[0], range(1), experiment.root_seed))
    first = next(one for one in experiment.tasks if one.seed_name == task.seed_name)
    sizes = (1, 2) if task is first and experiment.seeds > 1 else (1,)
    try:
        envs = [make_vector(task.id, size, **task.kwargs) for size in sizes]
        problem_reader(envs[0])  # what is no bandit may not even take a seed for each episode
    except MISFITS as error:
        yield from ((one.label, f"{one.label} in {task.name}: {error}") for one in agents)
        return
    try:
        envs[0].reset(seed=of_env)
    except (ValueError, RuntimeError) as error:
        begun = str(error)
    for agent in agents:
        where = f"{agent.label} in {task.name}"
        try:
            player, *_ = [make(agent.name, env, **agent.parameters) for env in envs]
        except MISFITS as error:
            yield agent.label, f"{where}: {error}"
            continue
        if text := begun or fault_of_reset(player, of_agent):
            yield agent.label, f"{where}, first episode: {text}"


def fault_of_reset(agent: Agent, seeds: list[int]) -> str:
    """Return what keeps an agent from beginning an episode, or nothing."""
    try:
        agent.reset(seeds)
    except (ValueError, RuntimeError) as error:
        return str(error)
    return ""


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
    known = sum(row.measured for row in rows)
    if known < len(rows):
        rest = "the others are taken to cost as much a step as their like of the same entries"
        lines += ["", f"{known} of {len(rows)} pairs were measured; {rest}."]
    shared = f"on {jobs} processes about {readable(total / min(jobs, units))}"
    return "\n".join([*lines, "", f"About {readable(total)} of computing, {shared}."])


def readable(seconds: float) -> str:
    """Return a duration for people."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{seconds / 60:.1f} min"
    return f"{seconds / 3600:.1f} h"
