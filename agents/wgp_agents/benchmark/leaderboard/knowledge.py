"""What an agent goes by, of what a problem says: found by telling it something else."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from wgp_agents.benchmark.files import JSON
from wgp_agents.core.units import RewardUnits
from wgp_agents.registry import make
from wgp_gym.kernels import Empirical, Kernel, Linear, SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

__all__ = ["FACTS", "Knowledge", "knowledge"]

STEPS, SEEDS = (60, 600), (0, 1)  # the longer play where a short one says nothing
TOLD = 200, 0.2, 1.5, 2.0  # T, R, B and B_T
FACTS = ("kernel", "noise", "B", "B_T", "T", "unit", "zero")


class Knowledge(NamedTuple):
    """What an agent's plays depend on, beside its own plays and what they paid.

    Attributes:
        facts: Of `FACTS`: the kernel; the noise's scale; the bounds B and B_T; the horizon T; the
            unit of the rewards, and their zero. None where it could not be found out.
    """

    facts: tuple[str, ...] | None

    def __str__(self) -> str:
        """Return them as words."""
        return "?" if self.facts is None else ", ".join(self.facts) or "nothing"


class Trial(NamedTuple):
    """A small problem, with another kernel for it, and the mean rewards of its arms, `(n,)`."""

    problem: BanditProblem
    other: Kernel
    mean: Array


def trials() -> Iterator[Trial]:
    """Yield problems, of which every agent of fixed arms can play one."""
    grid = np.linspace(0.0, 1.0, 10)[:, None]
    wave = np.sin(5.0 * grid[:, 0])
    smooth, smoother = SquaredExponential(0.2), SquaredExponential(0.4)
    yield Trial(BanditProblem(smooth, grid, *TOLD), smoother, wave)
    turned = np.column_stack([np.cos(3.0 * grid[:, 0]), np.sin(3.0 * grid[:, 0])]) / 2 + 0.5
    yield Trial(BanditProblem(Linear(), turned, *TOLD), smoother, wave)
    logistic = BanditProblem(Linear(), turned, *TOLD, reward_range=(0.0, 1.0), link="logistic")
    yield Trial(logistic, smoother, 1.0 / (1.0 + np.exp(-3.0 * wave)))
    free = BanditProblem(Empirical(np.eye(10)), grid, *TOLD, reward_range=(0.0, 1.0))
    yield Trial(free, Empirical(0.5 + 0.5 * np.eye(10)), 0.5 + wave / 4)


def knowledge(name: str, parameters: Mapping[str, JSON]) -> Knowledge:
    """Find out what an agent goes by.

    It plays a small problem several times on the same draws: as it is, told another kernel, noise,
    B, B_T or T than the true one, and paid in another unit or from another zero. What changes
    its plays, or is refused, it goes by. A default that is the same for all problems, such as a
    prior variance of 1, shows as the unit that it takes rewards to have.

    Args:
        name: The agent's name, or "module:Class".
        parameters: What it is made with.
    """
    found: Knowledge | None = None
    for steps in STEPS:
        for trial in trials():
            made = Player(name, dict(parameters), trial, steps)
            usual = made.plays(trial.problem)
            if usual is not None:
                changed = dict(told(made, usual))
                found = Knowledge(tuple(fact for fact in FACTS if changed[fact]))
                if usual != made.plays(trial.problem, lambda reward: -reward):
                    return found  # rewards have moved it, so facts could have
    return Knowledge(None) if found is None else found


class Player(NamedTuple):
    """An agent that plays a trial.

    Attributes:
        name: Its name, or "module:Class".
        parameters: What it is made with.
        trial: The trial.
        steps: How long it plays.
    """

    name: str
    parameters: dict[str, JSON]
    trial: Trial
    steps: int

    def plays(
        self, problem: BanditProblem, paid: Callable[[float], float] = float
    ) -> list[int] | None:
        """Return what it plays, told a problem and paid in some way; None if it refuses."""
        found: list[int] = []
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RewardUnits)
                for seed in SEEDS:
                    found += self._play(seed, problem, paid)
        except Exception:  # whatever an agent of somebody's own raises
            return None
        return found

    def _play(
        self, seed: int, problem: BanditProblem, paid: Callable[[float], float]
    ) -> Iterator[int]:
        agent = make(self.name, problem, **self.parameters)
        agent.reset(seed)
        rng = np.random.default_rng(seed)
        noise, chance = rng.normal(0.0, 0.2, self.steps), rng.random(self.steps)
        for t in range(self.steps):
            arm = int(np.asarray(agent.act()))
            mean = float(self.trial.mean[arm])
            ones = self.trial.problem.reward_range is not None
            agent.observe(arm, paid(float(chance[t] < mean) if ones else mean + noise[t]))
            yield arm


def told(player: Player, usual: list[int]) -> Iterator[tuple[str, bool]]:
    """Yield each fact, and whether plays change with it."""
    problem = player.trial.problem
    others = {
        "kernel": replace(problem, kernel=player.trial.other),
        "noise": replace(problem, noise_scale=0.5),
        "B": replace(problem, norm_bound=4.0),
        "B_T": replace(problem, variation_budget=20.0),
        "T": replace(problem, horizon=5000),
    }
    for fact, other in others.items():
        yield fact, player.plays(other) != usual
    for fact, paid in (("unit", lambda y: 7.0 * y), ("zero", lambda y: y + 30.0)):
        yield fact, player.plays(problem, paid) != usual
