"""Figure 1 of [Deng22] as data: panels, agents and settings, and how they are run."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from wgp_agents.benchmark.parallel import run_in_order
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.registry import make
from wgp_gym.kernels import Array

__all__ = [
    "COMPETITORS",
    "PANELS",
    "SETTINGS",
    "Panel",
    "Setting",
    "Unit",
    "UnitResult",
    "check_horizon",
    "run",
    "units",
]

COMPETITORS = ("igp-ucb", "r-gp-ucb", "sw-gp-ucb", "wgp-ucb")
UNTUNED = ("igp-ucb",)  # it has no memory to tune: the same under either budget
CHUNK = 100  # runs in one batch


@dataclass(frozen=True)
class Setting:
    """What an agent is told and given.

    Attributes:
        variation_budget: "known" or "unknown": how the memories are tuned.
        regularization: lambda; None is the default, R^2.
    """

    variation_budget: str
    regularization: float | None = None

    @property
    def regularization_name(self) -> float | str:
        """How lambda is written in files and tables."""
        return "R^2" if self.regularization is None else self.regularization


SETTINGS = tuple(
    Setting(budget, regularization)
    for regularization in (None, 1.0)
    for budget in ("known", "unknown")
)


@dataclass(frozen=True)
class Panel:
    """One picture of the figure.

    Attributes:
        name: A short name for files.
        title: What stands above it.
        environment: The environment's id.
        setting: What the figure shows; the other settings go into the second table.
        step: What one step is, for the axis.
    """

    name: str
    title: str
    environment: str
    setting: Setting
    step: str = "step t"


PANELS = (
    Panel("abrupt", "Abruptly changing", "WGPBandit-Abrupt-v0", Setting("known")),
    Panel("slow", "Slowly varying", "WGPBandit-Slow-v0", Setting("known")),
    Panel("stock", "Stock prices", "WGPBandit-Stock-v0", Setting("unknown"), "trading day t"),
)


@dataclass(frozen=True)
class Unit:
    """One piece of work: a batch of runs of one agent in one panel and setting.

    Attributes:
        panel: The panel.
        setting: What the agent is told.
        agent: The agent's name.
        runs: The runs' numbers.
        root_seed: The seed that all others follow from.
        horizon: T, or None for the environment's own.
    """

    panel: Panel
    setting: Setting
    agent: str
    runs: range
    root_seed: int
    horizon: int | None = None


@dataclass(frozen=True, eq=False)
class UnitResult:
    """What is kept of a unit.

    Attributes:
        unit: The unit.
        seeds: The seeds of environment and agent of each run, `(runs, 2)`.
        norm_bounds: B of each run, `(runs,)`.
        variation_budgets: B_T of each run, `(runs,)`.
        cumulative_regret: `(runs, T)`.
    """

    unit: Unit
    seeds: Array
    norm_bounds: Array
    variation_budgets: Array
    cumulative_regret: Array


def units(runs: int, root_seed: int, horizon: int | None = None) -> list[Unit]:
    """Return all work: every panel in every setting, the figure's own settings first.

    Args:
        runs: The runs of each agent.
        root_seed: The seed that all others follow from.
        horizon: T, or None for the environments' own.
    """

    def _batches(panel: Panel, setting: Setting) -> Iterator[Unit]:
        for agent in COMPETITORS:
            for start in range(0, runs, CHUNK):
                part = range(start, min(start + CHUNK, runs))
                yield Unit(panel, setting, agent, part, root_seed, horizon)

    pairs = [(panel, setting) for panel in PANELS for setting in SETTINGS]
    pairs.sort(key=lambda pair: pair[1] != pair[0].setting)
    return [unit for pair in pairs for unit in _batches(*pair)]


def run_seeds(root_seed: int, panel: str, run: int) -> tuple[int, int]:
    """Return the seeds of environment and agent: the same for every agent and setting."""
    key = (zlib.crc32(panel.encode()), run)
    state = np.random.SeedSequence(root_seed, spawn_key=key).generate_state(2)
    return int(state[0]), int(state[1])


def env_kwargs(horizon: int | None) -> dict[str, Any]:
    """Return what an environment is made with; None leaves it its own horizon."""
    return {} if horizon is None else {"horizon": horizon}


def run_unit(unit: Unit) -> UnitResult:
    """Play the runs of a unit in one batch."""
    env = make_vector(unit.panel.environment, len(unit.runs), **env_kwargs(unit.horizon))
    parameters: dict[str, Any] = {"regularization": unit.setting.regularization}
    if unit.agent not in UNTUNED:
        parameters["variation_budget"] = unit.setting.variation_budget
    seeds = np.array([run_seeds(unit.root_seed, unit.panel.name, run) for run in unit.runs])
    agent = make(unit.agent, env, **parameters)
    played = rollout(agent, env, seeds[:, 0].tolist(), seeds[:, 1].tolist())
    return UnitResult(
        unit,
        seeds,
        played.norm_bounds,
        played.variation_budgets,
        played["cumulative_regret"],
    )


def check_horizon(horizon: int | None) -> None:
    """Check that every panel can be played for so many steps, before any is.

    Raises:
        ValueError: If one cannot.
    """
    for panel in PANELS:
        gymnasium.make(panel.environment, **env_kwargs(horizon)).close()


def run(work: list[Unit], jobs: int) -> list[UnitResult]:
    """Run all units, in the order given, with a progress bar.

    Args:
        work: The units.
        jobs: Processes; 1 runs everything in this one.
    """
    return list(run_in_order(run_unit, work, jobs, "batch", "running"))
