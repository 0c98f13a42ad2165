"""Under stable-baselines3 an agent plays what it plays by hand."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import by_kind, kinds
from numpy.typing import NDArray
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

import wgp_agents
from wgp_agents.base import Agent
from wgp_agents.registry import agent_parameters

ENV_SEED, SEED, STEPS = 7, 40, 20
OPTIONS: dict[str, Any] = {  # with the defaults little is forgotten in 20 steps
    "variation_budget": "known",
    "window": 6,
    "restart_period": 7,
    "discounts": (0.8, 1.0),
    "hidden": 8,
}

every_agent = pytest.mark.parametrize("name", by_kind(wgp_agents.names(), "random", "oracle"))

Runs = tuple[list[float], NDArray[Any]]


def make_env(**kwargs: Any) -> Any:
    return gymnasium.make("WGPBandit-Abrupt-v0", **({"horizon": STEPS} | kwargs))


def make_agent(name: str, env: Any) -> Agent:
    accepted = agent_parameters(name)
    options = {key: value for key, value in OPTIONS.items() if key in accepted}
    return wgp_agents.make(name, env, **options)


def by_hand(name: str, env: Any, env_seed: int, seed: int, episodes: int) -> Runs:
    """Return the rewards of each episode after the first, and all actions."""
    env.reset(seed=env_seed)
    agent = make_agent(name, env)
    totals, actions = [], []
    for episode in range(episodes):
        env.reset()
        agent.reset(None if episode else seed)
        total, over = 0.0, False
        while not over:
            actions.append(agent.act())
            _, reward, _, over, _ = env.step(actions[-1])
            agent.observe(actions[-1], reward)
            total += reward
        totals.append(total)
    return totals, np.array(actions)


def evaluated(agent: Agent, env: Any, episodes: int) -> Runs:
    """Return the same from `evaluate_policy`, the actions `(steps, B)`."""
    actions: list[Any] = []

    def record(local: dict[str, Any], _: dict[str, Any]) -> None:
        if not actions or actions[-1] is not local["actions"]:  # once a step, not once for each i
            actions.append(local["actions"])

    policy: Any = agent
    rewards, lengths = evaluate_policy(
        policy, env, episodes, callback=record, return_episode_rewards=True, warn=False
    )
    assert lengths == [STEPS] * episodes
    assert isinstance(rewards, list)
    return rewards, np.array(actions)


@pytest.mark.parametrize(
    ("name", "kwargs"),
    [
        *[pytest.param(name, {}, id=name) for name in wgp_agents.names()],
        *[pytest.param(n, {"dim": 2, "points_per_dim": 6}, id=f"{n}-square") for n in kinds()],
    ],
)
def test_a_bare_environment(name: str, kwargs: dict[str, Any]) -> None:
    totals, actions = by_hand(name, make_env(**kwargs), ENV_SEED, SEED, episodes=3)
    env = make_env(**kwargs)
    env.reset(seed=ENV_SEED)
    agent = make_agent(name, env)
    agent.reset(SEED)
    rewards, played = evaluated(agent, env, episodes=3)
    np.testing.assert_array_equal(played, actions[:, None])
    assert rewards == totals
    assert len(set(totals)) == 3


@every_agent
def test_a_vector_environment_of_stable_baselines(name: str) -> None:
    # Four episodes go to three environments as 1, 1 and 2: from the second on, two learners are
    # started anew at every step, and the third is not to notice.
    env = DummyVecEnv([make_env] * 3)
    env.seed(ENV_SEED)
    env.reset()
    agent = make_agent(name, env)
    agent.reset(SEED)
    rewards, played = evaluated(agent, env, episodes=4)
    hand = [by_hand(name, make_env(), ENV_SEED + i, SEED + i, episodes=2) for i in range(3)]
    assert rewards == [hand[0][0][0], hand[1][0][0], *hand[2][0]]
    for i in range(3):
        length = STEPS if i < 2 else 2 * STEPS
        np.testing.assert_array_equal(played[:length, i], hand[i][1][:length])


@every_agent
def test_the_native_vector_environment(name: str) -> None:
    env = gymnasium.make_vec(
        "WGPBandit-Abrupt-v0",
        num_envs=3,
        vectorization_mode="vector_entry_point",
        horizon=STEPS,
    )
    env.reset(seed=ENV_SEED)
    env = gymnasium.wrappers.vector.RecordEpisodeStatistics(env)
    observation, _ = env.reset()
    agents = [make_agent(name, env) for _ in range(2)]  # one for `act`, one for `predict`
    for agent in agents:
        agent.reset(SEED)
    totals, actions = np.zeros(3), []
    for _ in range(STEPS):
        action = agents[0].act(observation)
        predicted, state = agents[1].predict(observation)
        assert state is None
        np.testing.assert_array_equal(predicted, action)
        observation, reward, *_ = env.step(action)
        agents[0].observe(action, reward)
        totals += reward
        actions.append(action)
    for i in range(3):
        rewards, alone = by_hand(name, make_env(), ENV_SEED + i, SEED + i, episodes=1)
        np.testing.assert_array_equal(np.array(actions)[:, i], alone)
        assert totals[i] == rewards[0]


@pytest.mark.parametrize("name", [*kinds(), "oracle", "oracle-discount"])
def test_wrappers_are_looked_through(name: str) -> None:
    env: Any = Monitor(gymnasium.wrappers.TransformReward(make_env(), lambda reward: reward))
    env.reset(seed=ENV_SEED)
    agent = make_agent(name, env)
    agent.reset(SEED)
    rewards, _ = evaluated(agent, env, episodes=1)
    expected, _ = by_hand(name, make_env(), ENV_SEED, SEED, episodes=1)
    np.testing.assert_allclose(rewards, expected, atol=1e-5)  # Monitor rounds to 6 digits
