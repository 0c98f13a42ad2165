"""Under stable-baselines3 an agent plays what it plays by hand."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import DummyVecEnv

import wgp_agents
from wgp_agents.base import Agent
from wgp_agents.gp.agent import GPAgent
from wgp_agents.registry import agent_class

ENV_SEED, SEED, STEPS = 7, 40, 30
OPTIONS: dict[str, dict[str, Any]] = {  # with the defaults little is forgotten in 30 steps
    "wgp-ucb": {"variation_budget": "known", "information_gain": 40.0},
    "sw-gp-ucb": {"window": 6},
    "r-gp-ucb": {"restart_period": 7},
}
GAUSSIAN_PROCESSES = [name for name in wgp_agents.names() if issubclass(agent_class(name), GPAgent)]

every_agent = pytest.mark.parametrize("name", wgp_agents.names())
every_gp = pytest.mark.parametrize("name", GAUSSIAN_PROCESSES)

Runs = tuple[list[float], NDArray[Any]]


def make_env(**kwargs: Any) -> Any:
    return gymnasium.make("WGPBandit-Abrupt-v0", **({"horizon": STEPS} | kwargs))


def make_agent(name: str, env: Any) -> Agent:
    return wgp_agents.make(name, env, **OPTIONS.get(name, {}))


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


@pytest.mark.parametrize("kwargs", [{}, {"dim": 2, "points_per_dim": 6}], ids=["line", "square"])
@every_agent
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


@every_agent
def test_wrappers_are_looked_through(name: str) -> None:
    env: Any = Monitor(gymnasium.wrappers.TransformReward(make_env(), lambda reward: reward))
    env.reset(seed=ENV_SEED)
    agent = make_agent(name, env)
    agent.reset(SEED)
    rewards, _ = evaluated(agent, env, episodes=1)
    expected, _ = by_hand(name, make_env(), ENV_SEED, SEED, episodes=1)
    np.testing.assert_allclose(rewards, expected, atol=1e-5)  # Monitor rounds to 6 digits


@every_agent
def test_without_a_seed_predict_begins_by_itself(name: str) -> None:
    env = make_env()
    observation, _ = env.reset(seed=0)
    agents = [make_agent(name, env) for _ in range(12)]
    first = {int(agent.predict(observation)[0]) for agent in agents}
    assert first <= set(range(100))
    assert (len(first) > 1) == (name != "oracle")  # fresh entropy, not one fixed seed


@every_agent
def test_shapes(name: str) -> None:
    env = make_env()
    observation, _ = env.reset(seed=0)
    agent = make_agent(name, env)
    agent.reset(0)
    assert observation.shape == (4,)
    action, state = agent.predict(observation, state="anything", deterministic=False)
    assert (np.shape(action), state) == ((), None)
    assert env.action_space.contains(action)
    observation, *_ = env.step(action)
    action, state = agent.predict(observation[None], episode_start=np.array([False]))
    assert (np.shape(action), state) == ((1,), None)
    assert np.asarray(action).dtype == np.int64


@every_gp
def test_a_learner_restarts_where_its_episode_does_and_only_there(name: str) -> None:
    env = DummyVecEnv([make_env] * 3)
    env.seed(ENV_SEED)
    observation = np.asarray(env.reset())
    agent = make_agent(name, env)
    agent.reset(SEED)
    for _ in range(10):
        observation = np.asarray(env.step(agent.predict(observation)[0])[0])
    assert isinstance(agent, GPAgent)
    prior = make_agent(name, env)
    assert isinstance(prior, GPAgent)
    prior.reset(0)
    begun = observation.copy()
    begun[1] = [0.0, 0.0, 0.0, 0.0]  # as an environment shows the beginning by itself
    for shown, start in ((observation, [False, True, False]), (begun, None)):
        partly, on = copy.deepcopy(agent), copy.deepcopy(agent)
        partly.predict(shown, episode_start=start)
        on.predict(observation, episode_start=[False, False, False])
        for ours, went_on, fresh in zip(
            partly.posterior(), on.posterior(), prior.posterior(), strict=True
        ):
            np.testing.assert_array_equal(ours[[0, 2]], went_on[[0, 2]])
            np.testing.assert_array_equal(ours[1], fresh[1])
            assert not np.array_equal(went_on[1], fresh[1])


@every_gp
def test_a_restarted_learner_reads_its_own_bounds_and_no_others(name: str) -> None:
    env = DummyVecEnv([make_env] * 3)
    env.seed(ENV_SEED)
    observation = np.asarray(env.reset())
    agent = make_agent(name, env)
    agent.reset(SEED)
    assert isinstance(agent, GPAgent)
    before = agent.norm_bound.copy()
    env.reset()  # three other episodes, of which the agent is told one
    observation[:, 1] = 1.0  # a last action is shown
    agent.predict(observation, episode_start=[False, True, False])
    now = [problem.norm_bound for problem in env.get_attr("problem")]
    np.testing.assert_array_equal(agent.norm_bound, [before[0], now[1], before[2]])
    assert before[1] != now[1]
