"""stable-baselines3's `evaluate_policy` measures what our own rollout measures."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import GAUSSIAN_PROCESSES, bare, kinds, tasks_of
from numpy.typing import NDArray
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor

import wgp_agents
from wgp_agents.arms.agent import ArmsAgent
from wgp_agents.base import Agent
from wgp_agents.benchmark.rollout import Rollout, rollout
from wgp_agents.registry import agent_class, agent_parameters

ENV_SEED, SEED, STEPS, EPISODES = 7, 40, 12, 3
OPTIONS: dict[str, Any] = {  # so that they forget within 12 steps, and work little
    "discount": 0.8,
    "window": 4,
    "restart_period": 5,
    "discounts": (0.8, 1.0),
    "hidden": 8,
}

REFERENCES = ("oracle", "oracle-restart", "oracle-discount")  # they read the environment

every_kind = pytest.mark.parametrize("name", [*kinds(), *REFERENCES])
some_agents = pytest.mark.parametrize("name", ["wgp-ucb", "ucb1", *REFERENCES])


class Counting(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Counts what is asked of an environment."""

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        super().__init__(env)
        self.steps = self.resets = 0

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        self.steps += 1
        return super().step(action)

    def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
        self.resets += 1
        return super().reset(**kwargs)


def make_env(env_id: str, **kwargs: Any) -> Counting:
    return Counting(gymnasium.make(env_id, horizon=STEPS, **kwargs))


def make_agent(name: str, env: Any) -> Agent:
    accepted = agent_parameters(name)
    options = {key: value for key, value in OPTIONS.items() if key in accepted}
    return wgp_agents.make(name, env, **options)


def ours(
    name: str, env_id: str, seed: int, agent_seed: int, episodes: int = EPISODES, **kwargs: Any
) -> list[Rollout]:
    """Return our own episodes after the first reset, each with a learner that starts anew."""
    env = make_env(env_id, **kwargs)
    env.reset(seed=seed)
    agent = make_agent(name, env)
    return [rollout(agent, env, None, None if k else agent_seed) for k in range(episodes)]


@dataclass
class Measured:
    """What `evaluate_policy` saw: returns and lengths by episode, the rest by step."""

    returns: list[float]
    lengths: list[int]
    steps: dict[str, list[Any]] = field(default_factory=dict)
    owners: list[int] = field(default_factory=list)

    def of(self, key: str, i: int = 0) -> NDArray[Any]:
        pairs = zip(self.steps[key], self.owners, strict=True)
        return np.array([value for value, owner in pairs if owner == i])


def evaluate(agent: Agent, env: Any, episodes: int = EPISODES, warn: bool = True) -> Measured:
    steps: dict[str, list[Any]] = {"action": [], "reward": [], "regret": [], "t": []}
    owners: list[int] = []

    def record(local: dict[str, Any], _: dict[str, Any]) -> None:
        i = local["i"]
        owners.append(i)
        seen = {"action": local["actions"][i], "reward": local["reward"]} | local["info"]
        for key, values in steps.items():
            values.append(seen[key])

    policy: Any = agent
    returns, lengths = evaluate_policy(
        policy, env, episodes, callback=record, return_episode_rewards=True, warn=warn
    )
    assert isinstance(returns, list)
    assert isinstance(lengths, list)
    return Measured(returns, lengths, steps, owners)


def check(measured: Measured, expected: list[Rollout], tolerance: float, i: int = 0) -> None:
    """Compare the steps of sub-environment i exactly, and, where it is alone, the returns."""
    for key in ("action", "reward", "regret"):
        wanted = np.concatenate([played[key][0] for played in expected])
        np.testing.assert_array_equal(measured.of(key, i), wanted)
    assert measured.of("t", i).tolist() == [*range(1, STEPS + 1)] * len(expected)
    if set(measured.owners) == {i}:
        totals = [sum(played["reward"][0].tolist()) for played in expected]
        assert measured.lengths == [STEPS] * len(expected)
        np.testing.assert_allclose(measured.returns, totals, rtol=tolerance, atol=tolerance)
        runs = {played[key].tobytes() for played in expected for key in ("action", "reward")}
        assert len(runs) > len(expected)  # other episodes; rewards of 0 and 1 may well agree


def without_mask(name: str) -> list[str]:
    """List the tasks of an agent that show all in the observation: `predict` sees no infos."""
    return [one for one in tasks_of(name) if not bare(one).task.masked]


@every_kind
def test_a_bare_environment(name: str) -> None:
    for env_id in without_mask(name):
        env = make_env(env_id)
        env.reset(seed=ENV_SEED)
        agent = make_agent(name, env)
        agent.reset(SEED)
        with pytest.warns(UserWarning, match="not wrapped with a ``Monitor`` wrapper"):
            measured = evaluate(agent, env)
        check(measured, ours(name, env_id, ENV_SEED, SEED), tolerance=0.0)
        assert env.steps == EPISODES * STEPS
        assert env.resets == 1 + 1 + EPISODES  # here, at the start, and after each episode
        if name == "oracle":
            assert not any(measured.steps["regret"])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["wgp-ucb", "oracle"])
def test_monitor(name: str) -> None:
    for env_id in without_mask(name):
        counting = make_env(env_id)
        env = Monitor(counting)
        env.reset(seed=ENV_SEED)
        agent = make_agent(name, env)
        agent.reset(SEED)
        measured = evaluate(agent, env)
        check(measured, ours(name, env_id, ENV_SEED, SEED), tolerance=1e-6)  # it rounds to 6 digits
        assert counting.steps == EPISODES * STEPS == env.get_total_steps()
        assert env.get_episode_lengths() == [STEPS] * EPISODES


def dummy(make: Any) -> Any:
    return DummyVecEnv([make])


def monitor_inside(make: Any) -> Any:
    return DummyVecEnv([lambda: Monitor(make())])


def monitor_outside(make: Any) -> Any:
    return VecMonitor(DummyVecEnv([make]))


def monitor_below_a_wrapper(make: Any) -> Any:
    return DummyVecEnv([lambda: gymnasium.wrappers.TransformReward(Monitor(make()), float)])


def monitor_above_a_wrapper(make: Any) -> Any:
    return DummyVecEnv([lambda: Monitor(gymnasium.wrappers.TransformReward(make(), float))])


def both_monitors(make: Any) -> Any:
    with pytest.warns(UserWarning, match="already wrapped with a `Monitor`"):
        return VecMonitor(DummyVecEnv([lambda: Monitor(make())]))


FORMS = [dummy, monitor_inside, monitor_outside, monitor_below_a_wrapper,
         monitor_above_a_wrapper, both_monitors]  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@some_agents
def test_one_sub_environment(name: str, form: Any) -> None:
    env_id = "WGPBandit-Slow-v0"
    counting = make_env(env_id)
    env = form(lambda: counting)
    env.seed(ENV_SEED)
    env.reset()
    agent = make_agent(name, env)
    agent.reset(SEED)
    measured = evaluate(agent, env, warn=form is not dummy)
    tolerance = 1e-5 if form is not dummy else 0.0  # VecMonitor adds in single precision
    check(measured, ours(name, env_id, ENV_SEED, SEED), tolerance)
    assert counting.steps == EPISODES * STEPS


@pytest.mark.parametrize(
    "name", [n for n in wgp_agents.names() if not issubclass(agent_class(n), ArmsAgent)]
)
def test_points_of_a_box(name: str) -> None:
    env = make_env("WGPBandit-Abrupt-v0", continuous=True)
    env.reset(seed=ENV_SEED)
    agent = make_agent(name, env)
    agent.reset(SEED)
    measured = evaluate(agent, env, 2, warn=False)
    expected = ours(name, "WGPBandit-Abrupt-v0", ENV_SEED, SEED, 2, continuous=True)
    check(measured, expected, tolerance=0.0)


def fixed_tasks(name: str) -> list[str]:
    return [env_id for env_id in tasks_of(name) if not bare(env_id).problem.contextual]


@pytest.mark.parametrize(
    "name",
    [name for name in GAUSSIAN_PROCESSES if not name.startswith("bob-")],  # they draw at a choice
)
def test_every_episode_has_a_new_learner(name: str) -> None:
    for env_id in fixed_tasks(name):
        check_new_learners(name, env_id)


def check_new_learners(name: str, env_id: str) -> None:
    """Check that after two episodes and a part of a third an agent knows that part alone."""
    env = make_env(env_id)
    env.reset(seed=ENV_SEED)
    agent: Any = make_agent(name, env)
    agent.reset(SEED)
    measured = evaluate(agent, env, warn=False)
    fresh: Any = make_agent(name, agent.problem)
    fresh.reset(0)
    last = slice((EPISODES - 1) * STEPS, -1)  # of the last reward no observation told it
    for action, reward in zip(
        measured.of("action")[last], measured.of("reward")[last], strict=True
    ):
        fresh.observe(action, float(reward))
    found, expected = agent.posterior(), fresh.posterior()
    np.testing.assert_array_equal(found.mean, expected.mean)
    np.testing.assert_array_equal(found.std, expected.std)


def test_two_evaluations_from_the_same_seeds_agree() -> None:
    env = DummyVecEnv([functools.partial(make_env, "WGPBandit-Stock-v0")] * 2)
    agent = make_agent("random", env)
    found = []
    for seed in (SEED, SEED, SEED + 5):
        env.seed(ENV_SEED)
        env.reset()
        agent.reset(seed)
        found.append(evaluate(agent, env, 4, warn=False))
    assert found[0].returns == found[1].returns
    assert found[0].returns != found[2].returns


@pytest.fixture(scope="module")
def processes() -> Iterator[SubprocVecEnv]:
    # A spawned process has imported nothing: "wgp_gym:" says where the id is registered.
    make = functools.partial(gymnasium.make, "wgp_gym:WGPBandit-Abrupt-v0", horizon=STEPS)
    env = SubprocVecEnv([make, make], start_method="spawn")
    yield env
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("monitored", [False, True], ids=["bare", "VecMonitor"])
@some_agents
def test_processes(name: str, processes: SubprocVecEnv, monitored: bool) -> None:
    env = VecMonitor(processes) if monitored else processes
    env.seed(ENV_SEED)
    env.reset()
    agent = make_agent(name, env)
    agent.reset(SEED)
    measured = evaluate(agent, env, 3, warn=monitored)
    assert measured.lengths == [STEPS] * 3
    # Of three episodes, one goes to the first environment and two to the second.
    for i, episodes in enumerate((1, 2)):
        expected = ours(name, "WGPBandit-Abrupt-v0", ENV_SEED + i, SEED + i, episodes)
        check(measured, expected, 0.0, i)
    totals = sorted(
        sum(played["reward"][0].tolist())
        for i in range(2)
        for played in ours(name, "WGPBandit-Abrupt-v0", ENV_SEED + i, SEED + i, 1 + i)
    )
    np.testing.assert_allclose(sorted(measured.returns), totals, rtol=1e-5, atol=1e-5)
