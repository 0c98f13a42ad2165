"""Batches of learners, on one thread and on all of this process."""

from __future__ import annotations

import numpy as np

import wgp_agents
from scripts.speed.rows import Row, times
from wgp_agents.benchmark.rollout import make_vector

SIZES = {"wgp-ucb": 1_000, "igp-ucb": 1_000, "tv-gp-ucb": 1_000, "adaptive-wgp-ucb": 200}


def learner_steps(name: str, batch: int, threads: int, count: int) -> float:
    """Return the microseconds of act and observe for each learner of a batch, the median step."""
    env = make_vector("WGPBandit-Abrupt-v0", batch)
    env.reset(seed=0)
    wgp_agents.set_threads(threads)
    agent = wgp_agents.make(name, env)
    agent.reset(0)
    rng = np.random.default_rng(0)
    paid = iter(rng.normal(size=(count + 20, batch)))
    spent = times(lambda: agent.observe(agent.act(), next(paid)), count + 20)
    wgp_agents.set_threads(1)
    return 1e6 * float(np.median(spent[20:])) / batch


def measure(quick: bool) -> list[Row]:
    """Measure a step of each learner, on as many threads as there are cores, beside one."""
    wgp_agents.set_threads(None)
    cores, rows = wgp_agents.get_threads(), []
    for name, batch in SIZES.items():
        count = 20 if quick else 100
        ours, alone = (learner_steps(name, batch, n, count) for n in (cores, 1))
        told = f"`{name}`, {batch:,} learners, a step of each on {cores} threads"
        rows.append(Row(told, ours, "µs", "on one thread", alone))
    return rows
