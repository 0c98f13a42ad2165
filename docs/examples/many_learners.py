"""A million independent learners on a cluster: a worker holds a shard, and plays it as one batch.

Usage: python docs/examples/many_learners.py [--learners 100000] [--steps 20] [--workers 2]
    [--agent wgp-ucb] [--scheduler tcp://...]

Learner i of `reset(seed)` is the single learner of `reset(seed + i)`, whatever the batch. So a
shard that begins with learner a is an agent of its own, reset with seed + a: no worker knows of
another, and the choices are those of one machine. Rewards come from outside, as in a live system:
in each step the client sends every shard its actions and rewards, and gets the next actions.

Without --scheduler the cluster is this machine, with that many worker processes. Needs the extra
`dask`; with Ray, `Shard` is as well an actor: `ray.remote(Shard).remote(...)`.
"""

from __future__ import annotations

import argparse
import os
import resource
import socket
import sys
import time
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from distributed import Client, LocalCluster
from threadpoolctl import threadpool_limits

import wgp_agents
from wgp_agents.base import Agent
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Actions, Array

ARMS = 100
WARM = 3  # steps that are not timed: kernels are compiled
RAW = argparse.RawDescriptionHelpFormatter


class Played(NamedTuple):
    """What some steps gave.

    Attributes:
        actions: The choices after the last step, `(count,)`.
        paid: The mean reward.
        step: Seconds a step.
        computing: Of these, seconds in which the slowest worker computed.
        memory: Largest memory of the workers together, in MiB.
    """

    actions: Actions
    paid: float
    step: float
    computing: float
    memory: float


class Shard:
    """Some of the learners, on one worker.

    Args:
        name: The agent's name.
        first: The index of its first learner.
        count: How many they are.
        seed: Of learner 0.
    """

    def __init__(self, name: str, first: int, count: int, seed: int) -> None:
        self.agent = sharded(name, count)
        self.agent.reset(seed + first)

    def act(self) -> Actions:
        """Return the learners' first choices, `(count,)`."""
        return np.asarray(self.agent.act())

    def step(self, actions: Actions, rewards: Array) -> tuple[Actions, float]:
        """Learn from what was paid; return the next choices, `(count,)`, and the seconds taken."""
        start = time.perf_counter()
        with threadpool_limits(1):
            self.agent.observe(actions, rewards)
            chosen = np.asarray(self.agent.act())
        return chosen, time.perf_counter() - start

    def memory(self) -> tuple[str, float]:
        """Return which process this is, and its largest memory so far in MiB."""
        largest = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        unit = 2**20 if sys.platform == "darwin" else 2**10
        return f"{socket.gethostname()}:{os.getpid()}", largest / unit


def sharded(name: str, count: int) -> Agent:
    """Return an agent of `count` learners on 100 arms of a line, in noise 0.1."""
    places = np.linspace(0.0, 1.0, ARMS)[:, None]
    problem = BanditProblem(
        SquaredExponential(0.2), places, 1_000, 0.1, 2.0, variation_budget=10.0, episodes=count
    )
    return wgp_agents.make(name, problem)


class World:
    """What pays: each learner's best arm lies elsewhere, and moves.

    Args:
        count: The number of learners.
        seed: Of its draws.
    """

    def __init__(self, count: int, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.phase = self.rng.random(count)

    def pay(self, actions: Actions, t: int) -> Array:
        """Return the rewards of actions `(count,)` at step t."""
        there = np.cos(2 * np.pi * (actions / ARMS - self.phase - t / 1_000))
        rewards: Array = there + 0.1 * self.rng.normal(size=len(actions))
        return rewards


def play(client: Client, name: str, count: int, steps: int, shards: int, seed: int = 0) -> Played:
    """Play `count` learners for some steps, split evenly over the workers."""
    edges = np.linspace(0, count, shards + 1).astype(int)
    workers = sorted(client.scheduler_info()["workers"])
    held = [
        client.submit(Shard, name, a, b - a, seed, actor=True, workers=[workers[i % len(workers)]])
        for i, (a, b) in enumerate(pairwise(edges.tolist()))
    ]
    actors = client.gather(held)
    world, spent, paid = World(count, seed), 0.0, 0.0
    actions = np.concatenate([each.result() for each in [actor.act() for actor in actors]])
    start = time.perf_counter()
    for t in range(steps):
        if t == WARM:
            start, spent = time.perf_counter(), 0.0
        rewards = world.pay(actions, t)
        paid += float(rewards.mean()) / steps
        asked = [
            actor.step(actions[a:b], rewards[a:b])
            for actor, (a, b) in zip(actors, pairwise(edges.tolist()), strict=True)
        ]
        found = [each.result() for each in asked]
        actions = np.concatenate([chosen for chosen, _ in found])
        spent += max(seconds for _, seconds in found)
    seconds = time.perf_counter() - start
    memory = dict(each.result() for each in [actor.memory() for actor in actors])
    timed = steps - WARM
    return Played(actions, paid, seconds / timed, spent / timed, sum(memory.values()))


def main() -> None:
    """Play on a cluster, and say what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=RAW)
    parser.add_argument("--learners", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--agent", default="wgp-ucb")
    parser.add_argument("--scheduler", help="of a cluster that is running")
    given = parser.parse_args()
    if given.steps <= WARM or not 1 <= given.workers <= given.learners:
        parser.error(f"there must be more than {WARM} steps, and a learner for each worker")
    local = None
    if given.scheduler is None:
        local = LocalCluster(n_workers=given.workers, threads_per_worker=1, dashboard_address=None)
    with Client(local or given.scheduler) as client:
        played = play(client, given.agent, given.learners, given.steps, given.workers)
    if local is not None:
        local.close()
    rate, each = given.learners / played.step / 1e6, played.memory * 1024 / given.learners
    print(f"{given.learners:,} learners of {given.agent} on {given.workers} workers:")
    print(f"{rate:.3f} million learner-steps a second, {1e3 * played.step:.0f} ms a step,")
    print(f"of which the slowest worker computes {1e3 * played.computing:.0f} ms;")
    print(f"{24e-6 * given.learners:.1f} MB moved a step: actions and rewards there, actions back;")
    print(f"{played.memory / 1024:.2f} GiB in the workers, {each:.1f} KiB a learner;")
    print(f"mean reward {played.paid:.3f}")


if __name__ == "__main__":
    main()
