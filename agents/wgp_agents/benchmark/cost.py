"""How long an experiment will take, from a few steps that are measured."""

from __future__ import annotations

import time
import warnings
from collections.abc import Hashable
from dataclasses import dataclass
from statistics import median

from threadpoolctl import threadpool_limits

from wgp_agents.benchmark.experiment import AgentSpec, Experiment, TaskSpec, Unit
from wgp_agents.benchmark.layout import seeds_of
from wgp_agents.benchmark.rollout import make_vector
from wgp_agents.core.access import problem_reader
from wgp_agents.registry import make

__all__ = ["Estimate", "estimate"]

LEARNERS = 20  # that are measured at most, beside a single one
LEAST, STEPS = 5, 20
LONGEST = 0.02  # seconds of one agent's steps, after which no further one is measured
MEASURING = 0.1  # seconds, after which only what is like nothing else is measured

# Arguments of a task that a step costs the same with; any other may change the number of arms, or
# the kernel.
NOT_OF_A_STEP = frozenset(
    ("horizon", "noise_std", "norm_bound", "variation_budget", "change_points")
)


@dataclass(frozen=True)
class Estimate:
    """How long one agent takes in one task."""

    task: str
    agent: str  # the agent's label
    units: int
    seconds: float  # of computing on one core
    measured: bool  # there; else a step is taken to cost what it costs its like


@dataclass(frozen=True)
class Episodes:
    """What the episodes of a task are like."""

    drawing: float  # seconds to draw one
    horizon: int  # the number of steps T


@dataclass(frozen=True)
class Cost:
    """What a unit costs beside the drawing of its episodes, in seconds."""

    ready: float  # until it plays
    step: float


def estimate(experiment: Experiment) -> list[Estimate]:
    """Measure the first steps of agents, and reckon from them.

    The cost of a step does not grow with t, and is much the same in all tasks of one environment
    that have the same arms and kernel, and for all agents of one [[agent]]. So of
    each such group one pair is always measured, in the task whose episodes are drawn fastest; of
    the others what there is time for.
    """
    with threadpool_limits(limits=1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # which are of no use before it is played
        episodes = {task.name: episodes_of(task, experiment.root_seed) for task in experiment.tasks}
        costs, alike = measured(experiment, episodes)
    found = []
    for task in experiment.tasks:
        its = episodes[task.name]
        for agent in experiment.agents:
            units, place = list(experiment.cell(task, agent)), (task.name, agent.label)
            cost = costs.get(place, alike[group(task, agent)])
            runs, first = sum(len(unit.runs) for unit in units), len(units[0].runs)
            seconds = runs * its.drawing + runs / first * (cost.ready + its.horizon * cost.step)
            found.append(Estimate(*place, len(units), seconds, place in costs))
    return found


def group(task: TaskSpec, agent: AgentSpec) -> Hashable:
    """Return what all pairs have in common whose steps cost much the same.

    That is all of an environment but what a step costs the same with, and one [[agent]].
    """
    sizes = sorted(f"{k}={v}" for k, v in task.settings.items() if k not in NOT_OF_A_STEP)
    same = {*agent.parameters} - {*agent.varied}
    fixed = sorted(f"{key}={agent.parameters[key]}" for key in same)
    return task.id, *sizes, agent.name, *fixed, *sorted(agent.varied)


def episodes_of(task: TaskSpec, root_seed: int) -> Episodes:
    """Draw one episode of a task."""
    env = make_vector(task.id, 1, **task.kwargs)
    seed = task.first_seed + root_seed % 2**31  # of any episode
    started = time.process_time()
    env.reset(seed=seed)
    drawing = time.process_time() - started
    return Episodes(drawing, problem_reader(env)().known_horizon("an experiment"))


def measured(
    experiment: Experiment, episodes: dict[str, Episodes]
) -> tuple[dict[tuple[str, str], Cost], dict[Hashable, Cost]]:
    """Return the costs that were measured, by task and agent, and the first one of each group."""
    costs, alike = dict[tuple[str, str], Cost](), dict[Hashable, Cost]()
    left = MEASURING
    for task in sorted(experiment.tasks, key=lambda task: episodes[task.name].drawing):
        probes: dict[int, Probe] = {}
        for agent in experiment.agents:
            unit = next(experiment.cell(task, agent))
            opening = 0.0 if probes else LEARNERS * episodes[task.name].drawing
            if group(task, agent) in alike and left <= opening:
                continue
            started = time.process_time()
            probes = probes or probes_of(unit, episodes[task.name].horizon)
            cost = costs[task.name, agent.label] = cost_of(unit, probes)
            alike.setdefault(group(task, agent), cost)
            left -= time.process_time() - started
    return costs, alike


class Probe:
    """So many learners after so many steps of a task, which agents are measured on.

    They are all shown the same step, whatever they choose: that costs as much. Processor time is
    taken: it is the same on a busy machine, and with several threads.
    """

    def __init__(self, unit: Unit, learners: int, steps: int) -> None:
        of_env, of_agent = seeds_of(unit)
        self._seeds = of_agent[:learners]
        started = time.process_time()
        self._env = make_vector(unit.task.id, learners, **unit.task.kwargs)
        self._made = time.process_time() - started
        self._env.reset(seed=of_env[:learners])
        started = time.process_time()
        for _ in range(steps):
            action = self._env.action_space.sample()
            self._observation, self._reward, *_ = self._env.step(action)
        self._step = (time.process_time() - started) / steps

    def cost(self, agent: AgentSpec) -> Cost:
        """Return what a unit of so many learners costs."""
        started = time.process_time()
        player = make(agent.name, self._env, **agent.parameters)
        player.reset(self._seeds)
        ready = time.process_time() - started
        taken = list[float]()
        while len(taken) < STEPS and (len(taken) < LEAST or sum(taken) < LONGEST):
            started = time.process_time()
            action = player.act(self._observation)
            player.observe(action, self._reward)
            taken.append(time.process_time() - started)
        # The median: the first steps may compile, or read what was compiled before.
        return Cost(self._made + ready, self._step + median(taken))


def probes_of(unit: Unit, horizon: int) -> dict[int, Probe]:
    """Return probes of a task by their numbers of learners: one, and some if a unit has more."""
    sizes, steps = {1, min(len(unit.runs), LEARNERS)}, min(LEAST, horizon)
    return {size: Probe(unit, size, steps) for size in sorted(sizes)}


def cost_of(unit: Unit, probes: dict[int, Probe]) -> Cost:
    """Return what a unit costs: what it costs without a learner, and as much for each."""
    few, many = min(probes), max(probes)
    one, some = probes[few].cost(unit.agent), probes[many].cost(unit.agent)
    beyond = (len(unit.runs) - many) / max(many - few, 1)
    return Cost(
        some.ready + beyond * max(some.ready - one.ready, 0.0),
        some.step + beyond * max(some.step - one.step, 0.0),
    )
