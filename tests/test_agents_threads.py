"""Several threads on one agent: every call is whole, copies have a lock of their own."""

from __future__ import annotations

import copy
import pickle
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import field, specimen

import wgp_agents
from wgp_agents.base import Agent
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.types import Mask

THREADS, CALLS = 6, 60


@pytest.mark.parametrize("name", wgp_agents.names())
def test_threads_do_not_meet_inside_an_agent(name: str) -> None:
    env = gymnasium.make(field(name), horizon=60)
    observation, _ = env.reset(seed=0)
    agent = wgp_agents.make(name, env)
    agent.reset(0)
    together = threading.Barrier(THREADS)
    says = getattr(agent, "posterior", lambda: 0.0)

    def hammer(number: int) -> None:
        rng = np.random.default_rng(number)
        together.wait()
        for call in range(CALLS):
            action = agent.act(observation)
            assert env.action_space.contains(action)
            agent.observe(action, rng.random())
            if call % 20 == number:
                agent.reset(number)
            elif call % 30 == 20 + number:
                agent.load_state_dict(agent.state_dict())
            elif call % 20 == 10 + number:
                agent.predict(observation)
            if call % 5 == 0:
                assert np.isfinite(says()).all()

    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(hammer, number) for number in range(THREADS)]:
            done.result(timeout=60)


class Alone(Agent):
    """Notes whether two calls are ever inside it at once."""

    inside, met = 0, False

    def visit(self) -> None:
        self.inside += 1
        time.sleep(1e-4)
        self.met |= self.inside > 1
        self.inside -= 1

    def _restart(self, mask: Mask) -> None:
        self.visit()

    def _choose(self, uniform: UniformStreams) -> Any:
        self.visit()
        return np.zeros(1, np.int64)

    def _learn(self, actions: Any, rewards: Any, active: Mask) -> None:
        self.visit()


def test_no_two_calls_are_inside_an_agent_at_once() -> None:
    env = gymnasium.make("WGPBandit-Abrupt-v0")
    observation, _ = env.reset(seed=0)
    agent = Alone(env)
    agent.reset(0)
    calls: list[Any] = [
        agent.act,
        lambda: agent.observe(0, 1.0),
        lambda: agent.predict(observation),
        lambda: agent.reset(1),
    ]
    with ThreadPoolExecutor(THREADS) as pool:
        for done in [pool.submit(calls[i % len(calls)]) for i in range(200)]:
            done.result(timeout=60)
    assert not agent.met


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda a: pickle.loads(pickle.dumps(a))]
)
def test_a_copy_is_not_held_up_by_its_original(copied: Any) -> None:
    agent = copy.deepcopy(specimen("wgp-ucb"))
    other = copied(agent)
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with agent._lock:
            held.set()
            free.wait(10)

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(10)
    try:
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(other.act).result(timeout=5) in range(100)
    finally:
        free.set()
        holder.join()
