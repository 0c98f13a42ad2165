"""Checkpoints, other random streams, and what a choice changes, for all registered agents."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import LEARNERS, by_kind, field, fits
from numpy.typing import NDArray
from small_model import SMALL, TASK, small_model

import wgp_agents
from wgp_agents.base import Agent
from wgp_agents.core.checkpoint import Checkpoint
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates.weighted import RestartSurrogate
from wgp_agents.registry import AGENTS, agent_class, agent_parameters

TRAINED = [name for name in wgp_agents.names() if "model" in agent_parameters(name)]
every_agent = pytest.mark.parametrize("name", by_kind(wgp_agents.names(), "random", "oracle"))
OPTIONS: dict[str, Any] = {"window": 6, "restart_period": 7, "block_length": 9, "hidden": 8}
SHOWN = ("arms", "allowed", "_unanswered", "action_set", "model.action_set")
FREE = tuple(f"agent.{name}" for name in ("_streams", *SHOWN))  # may change with any choice


def made(name: str, batch: int | None = None, task: str | None = None) -> tuple[Agent, Any]:
    """Return an agent in its environment."""
    task = task or field(name)
    if batch is None:
        env: Any = gymnasium.make(task, horizon=120)
    else:
        mode = "vector_entry_point"
        env = gymnasium.make_vec(task, num_envs=batch, vectorization_mode=mode, horizon=120)
    options = {key: value for key, value in OPTIONS.items() if key in agent_parameters(name)}
    env.reset(seed=1)
    agent = wgp_agents.make(name, env, **options)
    agent.reset(1)
    return agent, env


def same(state: dict[str, Any], other: dict[str, Any], but: tuple[str, ...] = ()) -> None:
    """Check that two states are one, bit for bit."""
    for key in sorted({*state, *other}):
        if not key.startswith(but or ("?",)):
            assert key in state, key
            assert key in other, key
            one, two = np.asarray(state[key]), np.asarray(other[key])
            assert one.dtype == two.dtype, key
            assert one.tobytes() == two.tobytes(), key


def play(agent: Agent, env: Any, observation: Any, steps: int) -> Any:
    for _ in range(steps):
        action = agent.act(observation)
        observation, reward, *_ = env.step(action)
        agent.observe(action, reward)
    return observation


@every_agent
@pytest.mark.parametrize("batch", [None, 3])
def test_nothing_between_a_checkpoint_and_its_restoration_leaves_a_trace(
    name: str, batch: int | None
) -> None:
    if name in TRAINED:
        pytest.skip("see the test of a small model")
    agent, env = made(name, batch)
    observation, _ = env.reset(seed=1)
    agent.reset(1)
    observation = play(agent, env, observation, 15)
    before, checkpoint = agent.state_dict(), Checkpoint(agent)
    ahead = np.asarray(agent.act(observation))
    for seed in range(2):
        action = agent.act(observation)
        agent.hallucinate(action)
        if agent.takes_elapsed:
            agent.elapse(2.5)
            agent.observe(action, np.ones(batch) if batch else 1.0, elapsed=0.5)
        if not AGENTS[name].reference:
            for step in range(7):
                action = agent.act(observation)
                reward = np.random.default_rng(step).normal(size=batch)
                agent.observe(action, reward, arms=agent.arms)
        agent.reseed(seed)
        if seed:
            agent.reset(seed)
            agent.act(observation)
        checkpoint.restore()
        same(agent.state_dict(), before)
        assert np.array_equal(agent.act(observation), ahead)
        checkpoint.restore()
    play(agent, env, observation, 5)  # and it goes on


@pytest.mark.slow
@pytest.mark.parametrize("algo", ["ppo", "recurrent-ppo"])
def test_a_trained_agent_comes_back_too(algo: str, tmp_path: Path) -> None:
    env: Any = gymnasium.make(TASK, **(SMALL | {"horizon": 60}))
    observation, _ = env.reset(seed=3)
    agent = wgp_agents.make(algo, env, model=str(small_model(algo, tmp_path)))
    agent.reset(5)
    observation = play(agent, env, observation, 10)
    before, checkpoint = agent.state_dict(), Checkpoint(agent)
    first = [agent.act(observation) for _ in range(5)]
    agent.observe(0, 1.0)
    checkpoint.restore()
    same(agent.state_dict(), before)
    assert [agent.act(observation) for _ in range(5)] == first


class Own(RestartSurrogate):
    """A surrogate that keeps what it likes."""

    def __init__(self, action_set: Any) -> None:
        super().__init__(action_set)
        self.log: list[Any] = [np.zeros(2), {"a": [1]}]
        self.rng = np.random.default_rng(0)

    def update(self, plays: Any, rewards: Any, active: Any, elapsed: Any = None) -> None:
        super().update(plays, rewards, active, elapsed)
        self.log[0] += self.rng.random()
        self.log[1]["a"].append(float(rewards[0]))
        self.log.append((rewards.copy(), self.log[0]))
        self.late = np.zeros(3)


def test_parts_of_ones_own_and_views_come_back() -> None:
    agent = GPAgent(gymnasium.make("WGPBandit-Abrupt-v0"), surrogate=Own, norm_bound=1.0)
    agent.reset(0)
    agent.observe(3, 1.0)
    before, checkpoint = agent.state_dict(), Checkpoint(agent)
    del agent.surrogate.late  # type: ignore[attr-defined]
    agent.observe(4, 2.0)
    agent.surrogate.new = 3  # type: ignore[attr-defined]
    agent.surrogate.held = agent.surrogate.held + 7
    checkpoint.restore()
    same(agent.state_dict(), before)
    assert not hasattr(agent.surrogate, "new")
    # The array of means is still the posterior's own.
    agent.observe(4, 2.0)
    assert isinstance(agent.surrogate, Own)
    assert np.array_equal(agent.posterior().mean, agent.surrogate.mean[0])
    assert agent.posterior().mean[4] > 0


@every_agent
def test_a_choice_changes_nothing_but_what_an_agent_says(name: str) -> None:
    if name in TRAINED:
        pytest.skip("its network is no part of a state")
    learns = False
    for batch, task in itertools.product((None, 3), {field(name), "WGPBandit-LinearContextual-v0"}):
        if task != field(name) and not fits(name, task):
            continue
        agent, env = made(name, batch, task)
        observation, _ = env.reset(seed=1)
        agent.reset(1)
        for _ in range(25):
            observation = play(agent, env, observation, 1)
            before = agent.state_dict()
            agent.act(observation)
            learns |= differs(before, agent.state_dict())
        assert agent.learns_by_acting == agent_class(name).learns_by_acting
        assert agent.takes_elapsed == agent_class(name).takes_elapsed
    assert learns == agent_class(name).learns_by_acting or name in AT_FIRST


AT_FIRST = ("oracle-discount",)  # only its first choice changes it


def differs(state: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two states differ in what is not free."""
    try:
        same(state, other, FREE)
    except AssertionError:
        return True
    return False


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in TRAINED])
def test_reseeded_agents_that_know_the_same_play_the_same(name: str) -> None:
    (one, env), (other, _) = made(name, 3), made(name, 3)
    observation, _ = env.reset(seed=1)
    if not one.learns_by_acting:
        for _ in range(5):  # so that its streams are elsewhere
            other.act(observation)
    rewards = np.random.default_rng(0).normal(size=(10, 3))
    for reward in rewards:
        action = one.act(observation)
        for agent in (one, other):
            if one.learns_by_acting and agent is other:
                agent.act(observation)
            agent.observe(action, reward, arms=one.arms)

    def _plays(agent: Agent, seed: Any, learners: Any = None) -> NDArray[Any]:
        agent.reseed(seed, learners=learners)
        return np.array([agent.act(observation) for _ in range(270)])

    checkpoint = Checkpoint(one)
    played = _plays(one, 9)
    assert np.array_equal(_plays(other, 9), played)
    checkpoint.restore()
    assert np.array_equal(_plays(one, [9, 10, 11]), played)
    checkpoint.restore()
    some = _plays(one, 9, [True, False, True])
    assert np.array_equal(some[:, [0, 2]], played[:, [0, 2]])


def test_streams_do_change() -> None:
    agent, env = made("thompson")
    observation, _ = env.reset(seed=1)
    agent.observe(0, 1.0)
    checkpoint, drawn = Checkpoint(agent), []
    for seed in (1, 2, None, None):
        checkpoint.restore()
        agent.reseed(seed)
        drawn.append(tuple(agent.act(observation) for _ in range(60)))
    assert len(set(drawn)) == 4


def test_reseeding_asks_for_streams() -> None:
    agent = wgp_agents.make("wgp-ucb", gymnasium.make("WGPBandit-Abrupt-v0"))
    with pytest.raises(RuntimeError, match="reset"):
        agent.reseed(1)
