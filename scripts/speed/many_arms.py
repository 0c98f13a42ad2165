"""A step on thousands of arms of the plane, beside the variances of all arms by a solve."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable

import numpy as np
from scipy.linalg import cholesky, solve_triangular

import wgp_agents
from scripts.speed.rows import Row, times
from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import AdaptiveWGPUCB
from wgp_agents.base import Agent
from wgp_agents.gp.agent import GPAgent
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

WARM = 60  # steps, after which the memory is full of what it will hold


def plane(side: int) -> BanditProblem:
    """Return a problem on a grid of the unit square, in noise 0.1."""
    line = np.linspace(0.0, 1.0, side)
    places = np.stack(np.meshgrid(line, line, indexing="ij"), axis=-1).reshape(-1, 2)
    return BanditProblem(SquaredExponential(0.2), places, 1_000, 0.1, 3.0, 10.0)


def paid(problem: BanditProblem) -> Array:
    """Return what each arm pays: waves."""
    x, y = problem.domain.T
    rewards: Array = np.sin(7.0 * x) + np.cos(9.0 * y)
    return rewards


def solve(m: int, n: int) -> float:
    """Return the seconds of n columns' solve with a triangular factor of m x m."""
    rng = np.random.default_rng(0)
    A = rng.normal(size=(m, m))
    L = cholesky(A @ A.T + m * np.eye(m), lower=True)
    columns = np.asfortranarray(rng.normal(size=(m, n)))
    return float(times(lambda: solve_triangular(L, columns, lower=True), 3).min())


def step_of(agent: Agent, rewards: Array) -> Callable[[], None]:
    """Return a step of an agent whose arms pay these rewards, and noise."""
    rng = np.random.default_rng(0)

    def _step() -> None:
        arm = int(agent.act())
        agent.observe(arm, float(rewards[arm] + 0.1 * rng.normal()))

    return _step


def features_of(agent: Agent) -> int:
    """Return how many features an agent has; of a bank, those of the model that it plays."""
    if isinstance(agent, AdaptiveWGPUCB):
        return int(agent.bank.models.rank[agent.bank.block[0]])
    assert isinstance(agent, GPAgent)
    return len(agent.surrogate.basis.phi)


def on_plane(side: int, name: str, **kept: float) -> list[Row]:
    """Measure an agent on a grid: the median of its steps, and how long it takes to make."""
    problem = plane(side)
    start = time.perf_counter()
    agent = wgp_agents.make(name, problem, **kept)
    agent.reset(0)
    made = time.perf_counter() - start
    step = step_of(agent, paid(problem))
    times(step, WARM)
    spent = 1e3 * float(np.median(times(step, 40 if side < 500 else 10)))
    n, m = side * side, features_of(agent)
    told, most = f"`{name}`, {n:,} arms in d = 2, m = {m}", min(n, 100_000)
    theirs = 1e3 * solve(m, most) * n / most
    return [
        Row(f"{told}, a step", spent, "ms", "variances by a triangular solve alone", theirs),
        Row(f"{told}, to make it", made, "s"),
    ]


def measure(quick: bool) -> list[Row]:
    """Measure steps on 10,000 arms to a million."""
    rows = []
    for side in (100,) if quick else (100, 316, 1_000):
        rows += on_plane(side, "wgp-ucb", discount=0.97) + on_plane(side, "igp-ucb")
        if side == 100:
            rows += on_plane(side, "tv-gp-ucb") + on_plane(side, "adaptive-wgp-ucb")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    return [*rows, Row("largest memory of the process", peak, "GiB")]
