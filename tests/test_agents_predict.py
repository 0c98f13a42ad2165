"""`predict`: learning from observations alone, and starting anew where an episode does."""

from __future__ import annotations

import copy
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import GAUSSIAN_PROCESSES, kinds, takers
from numpy.typing import NDArray
from stable_baselines3.common.vec_env import DummyVecEnv

import wgp_agents
from wgp_agents.gp.agent import GPAgent

ENV_SEED, SEED, STEPS = 7, 40, 30

every_gp = pytest.mark.parametrize("name", [*GAUSSIAN_PROCESSES, "oracle-restart"])


def make_env() -> Any:
    return gymnasium.make("WGPBandit-Abrupt-v0", horizon=STEPS)


@pytest.mark.parametrize(
    ("name", "by_chance"), [("random", True), ("wgp-ucb", True), ("oracle", False)]
)
def test_without_a_seed_predict_begins_by_itself(name: str, by_chance: bool) -> None:
    env = make_env()
    observation, _ = env.reset(seed=0)
    agents = [wgp_agents.make(name, env) for _ in range(12)]
    first = {int(agent.predict(observation)[0]) for agent in agents}
    assert first <= set(range(100))
    assert (len(first) > 1) == by_chance  # fresh entropy, not one fixed seed


@pytest.mark.parametrize("name", [*kinds(), "random", "oracle"])
def test_shapes(name: str) -> None:
    env = make_env()
    observation, _ = env.reset(seed=0)
    agent = wgp_agents.make(name, env)
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
    agent = wgp_agents.make(name, env)
    agent.reset(SEED)
    for _ in range(6):  # no period or block ends with the next play
        observation = np.asarray(env.step(agent.predict(observation)[0])[0])
    assert isinstance(agent, GPAgent)
    prior = wgp_agents.make(name, env)
    assert isinstance(prior, GPAgent)
    prior.reset(0)
    begun = observation.copy()
    begun[1] = [0.0, 0.0, 0.0, 0.0]  # as an environment shows the beginning by itself
    nowhere = [False, False, False]
    for shown, start in ((observation, [False, True, False]), (begun, None), (begun, nowhere)):
        partly, on = copy.deepcopy(agent), copy.deepcopy(agent)
        partly.predict(shown, episode_start=start)
        on.predict(observation, episode_start=nowhere)
        for ours, went_on, fresh in zip(
            partly.posterior(), on.posterior(), prior.posterior(), strict=True
        ):
            np.testing.assert_array_equal(ours[[0, 2]], went_on[[0, 2]])
            np.testing.assert_array_equal(ours[1], fresh[1])
            assert not np.array_equal(went_on[1], fresh[1])


@pytest.mark.parametrize("name", takers("norm_bound", among=GAUSSIAN_PROCESSES))
def test_a_restarted_learner_reads_its_own_bounds_and_no_others(name: str) -> None:
    env = DummyVecEnv([make_env] * 3)
    env.seed(ENV_SEED)
    observation = np.asarray(env.reset())
    agent = wgp_agents.make(name, env)
    agent.reset(SEED)
    assert isinstance(agent, GPAgent)
    before = agent.width.norm_bound.values.copy()
    env.reset()  # three other episodes, of which the agent is told one
    observation[:, 1] = 1.0  # a last action is shown
    agent.predict(observation, episode_start=[False, True, False])
    now = [problem.norm_bound for problem in env.get_attr("problem")]
    np.testing.assert_array_equal(agent.width.norm_bound.values, [before[0], now[1], before[2]])
    assert before[1] != now[1]


@pytest.mark.parametrize(
    ("name", "parameter"),
    [("wgp-ucb", "discount"), ("sw-gp-ucb", "window"), ("r-gp-ucb", "restart_period")],
)
def test_a_restarted_learner_forgets_as_its_own_episode_asks(name: str, parameter: str) -> None:
    env = DummyVecEnv([make_env] * 3)
    env.seed(ENV_SEED)
    observation = np.asarray(env.reset())

    def budgets() -> NDArray[Any]:
        return np.array([problem.variation_budget for problem in env.get_attr("problem")])

    theory = wgp_agents.make(name, env, variation_budget="known", information_gain=4_000.0)
    theory.reset(SEED)
    before = budgets()
    env.reset()
    budget = np.where([False, True, False], budgets(), before)
    rate = 4_000**-0.25 * np.sqrt(budget / STEPS)
    assert (rate < 0.5).all()
    own: dict[str, Any] = {parameter: 1 - rate if name == "wgp-ucb" else np.ceil(1 / rate)}
    given = wgp_agents.make(name, env, **own)
    given.reset(SEED)
    rng = np.random.default_rng(0)
    for t in range(25):
        observation[:, 1:] = np.column_stack(
            [np.ones(3), rng.integers(100, size=3) / 99, rng.standard_normal(3)]
        )
        for agent in (theory, given):
            agent.predict(observation, episode_start=[False, t == 3, False])
    assert isinstance(theory, GPAgent)
    assert isinstance(given, GPAgent)
    np.testing.assert_allclose(theory.posterior(), given.posterior(), rtol=0, atol=1e-12)


def test_where_an_episode_begins_the_reward_of_another_does_not_count() -> None:
    agent = wgp_agents.make("wgp-ucb", make_env(), norm_bound=1.0)
    assert isinstance(agent, GPAgent)
    agent.reset(SEED)
    agent.predict([0.5, 1.0, 0.0, 3.0], episode_start=[False])
    agent.predict([0.5, 1.0, 0.0, np.nan], episode_start=[True])
    assert not agent.posterior().mean.any()
