"""Agents that are told of rewards late, or of some never."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
import wgp_gym
from wgp_agents.benchmark.rollout import rollout
from wgp_agents.core.units import RewardUnits
from wgp_agents.late_rewards import LateRewards
from wgp_gym.wrappers import DelayedRewards, HistoryObservation, VectorDelayedRewards

ABRUPT, ARMS = "WGPBandit-Abrupt-v0", "WGPBandit-ArmsAbrupt-v0"
CONTEXTUAL = "WGPBandit-LinearContextual-v0"
GEOMETRIC: dict[str, Any] = {"delay": ["geometric", 3.0], "missing": 0.2}
TIMED = ["wgp-ucb", "sw-gp-ucb", "adaptive-wgp-ucb", "tv-gp-ucb"]  # they know elapsed time
TIMELESS = ["et-gp-ucb", "glr-ucb", "exp3"]


def single(name: str = ABRUPT, **law: Any) -> Any:
    wgp_gym.register()
    return DelayedRewards(gymnasium.make(name, horizon=40), **law)


def batched(name: str = ABRUPT, batch: int = 3, **law: Any) -> Any:
    mode: dict[str, Any] = {"vectorization_mode": "vector_entry_point"}
    return VectorDelayedRewards(gymnasium.make_vec(name, batch, horizon=40, **mode), **law)


def task_of(name: str) -> str:
    return ARMS if name in ("glr-ucb", "exp3") else ABRUPT


def by_hand(name: str, env: Any, seed: int) -> NDArray[Any]:
    """Play an episode, telling the agent of all that has arrived and of time; return the plays."""
    agent = wgp_agents.make(name, env)
    agent.told_on_arrival()
    observation, _ = env.reset(seed=seed)
    agent.reset(seed)
    actions: list[Any] = []
    infos: list[dict[str, Any]] = []
    for t in range(1, 41):
        actions.append(agent.act(observation))
        observation, _, _, _, info = env.step(actions[-1])
        infos.append(info)
        now = [s for s in range(t) if infos[s]["arrives"] == t]
        for s in now:
            steps = {} if not agent.takes_elapsed else {"elapsed": float(s == now[0])}
            agent.observe(actions[s], infos[s]["reward"], **steps)
        if not now and agent.takes_elapsed:
            agent.elapse(1)
    return np.array(actions)


@pytest.mark.parametrize("name", TIMED + TIMELESS)
def test_without_a_delay_nothing_changes(name: str) -> None:
    plain = gymnasium.make(task_of(name), horizon=40)
    env = single(task_of(name))
    expected = rollout(wgp_agents.make(name, plain), plain, 3)
    found = rollout(wgp_agents.make(name, env), env, 3)
    for key in ("action", "reward", "cumulative_regret"):
        np.testing.assert_array_equal(found[key], expected[key])


@pytest.mark.parametrize("law", [{"missing": 0.4}, {"delay": 5}, GEOMETRIC], ids=str)
@pytest.mark.parametrize("name", TIMED + TIMELESS)
def test_told_when_rewards_arrive(name: str, law: dict[str, Any]) -> None:
    plays = [by_hand(name, single(task_of(name), **law), seed) for seed in (5, 6, 7)]
    env = single(task_of(name), **law)
    alone = rollout(wgp_agents.make(name, env), env, 5)
    np.testing.assert_array_equal(alone["action"][0], plays[0])
    many = batched(task_of(name), **law)
    found = rollout(wgp_agents.make(name, many), many, 5)
    np.testing.assert_array_equal(found["action"], plays)
    np.testing.assert_array_equal(found["reward"][0], alone["reward"][0])


@pytest.mark.parametrize("law", [{"missing": 0.4}, {"delay": 3}], ids=str)
@pytest.mark.parametrize("name", TIMED)
def test_predict_learns_the_same_from_observations(name: str, law: dict[str, Any]) -> None:
    """Where at most one reward arrives at a step; all of them are shown."""
    env = batched(**law)
    expected = rollout(wgp_agents.make(name, env), env, 9)["action"]
    policy = wgp_agents.make(name, env)
    observation, _ = env.reset(seed=9)
    policy.reset(9)
    for t in range(40):
        action, _ = policy.predict(observation)
        np.testing.assert_array_equal(action, expected[:, t])
        observation = env.step(action)[0]


def test_evaluate_plays_so() -> None:
    env = batched(**GEOMETRIC)
    found = wgp_agents.evaluate("wgp-ucb", env, [5, 6, 7])
    played = rollout(wgp_agents.make("wgp-ucb", env), env, 5)
    np.testing.assert_array_equal(found.regrets, played["cumulative_regret"][:, -1])
    seen = played["reward"].sum(axis=1)
    assert (found.returns != seen).all()  # the sums of what was seen


def test_arms_that_change() -> None:
    """Some plays are never told of; the next feedback is about other arms, and says so."""
    for env in (single(CONTEXTUAL, missing=0.5), batched(CONTEXTUAL, missing=0.5)):
        for name in ("d-lin-ucb", "lin-ucb", "random"):
            found = rollout(wgp_agents.make(name, env), env, 1)
            assert found["action"].shape[1] == 40


def test_what_is_paid_is_not_told_as_this_plays_reward_unnoticed() -> None:
    """The loop of any other environment would teach the reward of an earlier play."""
    for env, reward in ((HistoryObservation(single(delay=2), 3), 0.0), (batched(), np.zeros(3))):
        for name in ("wgp-ucb", "adaptive-wgp-ucb"):
            env.reset(seed=1)
            agent: Any = wgp_agents.make(name, env)
            agent.reset(1)
            state = agent.state_dict()
            with pytest.warns(RewardUnits, match="DelayedRewards pays what has arrived") as caught:
                agent.observe(agent.act(), reward)
            assert caught[0].filename == __file__
            told = wgp_agents.make(name, env)
            told.told_on_arrival()  # which belongs to no state
            told.load_state_dict(state)
            with warnings.catch_warnings():
                warnings.simplefilter("error", RewardUnits)
                agent.observe(agent.act(), reward)  # it warns once in its life
                told.observe(told.act(), reward)


class Never(DelayedRewards):
    """A wrapper of somebody's own."""

    def __init__(self, env: Any) -> None:
        super().__init__(env, missing=1.0)


def test_a_wrapper_derived_from_it_is_noticed() -> None:
    agent = wgp_agents.make("igp-ucb", Never(gymnasium.make(ABRUPT, norm_bound=1.0, told="drawn")))
    agent.reset(1)
    with pytest.warns(RewardUnits, match="Never pays what has arrived"):
        agent.observe(agent.act(), 0.0)


@pytest.mark.parametrize("name", ["wgp-ucb", "adaptive-wgp-ucb", "glr-ucb", "random"])
def test_who_is_told_right_is_not_warned(name: str) -> None:
    env = single(task_of(name), delay=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RewardUnits)
        rollout(wgp_agents.make(name, env), env, 1)
        wgp_agents.evaluate(name, env, [1])
        policy = wgp_agents.make(name, env)
        observation, _ = env.reset(seed=1)
        for _ in range(5):
            observation = env.step(policy.predict(observation)[0])[0]


def test_nothing_at_all_is_told() -> None:
    env = batched(missing=1.0)
    agent = wgp_agents.make("wgp-ucb", env)
    rollout(agent, env, 1)
    std = agent.posterior().std
    np.testing.assert_allclose(std, std[0, 0])  # as before the first play


def test_a_point_of_a_box() -> None:
    env = DelayedRewards(gymnasium.make(ABRUPT, horizon=12, continuous=True), delay=2)
    agent = wgp_agents.make("wgp-ucb", env)
    assert rollout(agent, env, 1)["action"].shape == (1, 12, 1)


def test_any_other_environment_tells_at_once() -> None:
    env = gymnasium.make(ABRUPT, horizon=12)
    agent, twin = wgp_agents.make("wgp-ucb", env), wgp_agents.make("wgp-ucb", env)
    observation, _ = env.reset(seed=1)
    agent.reset(1)
    twin.reset(1)
    rewards = LateRewards(agent)
    for _ in range(12):
        action = agent.act(observation)
        assert twin.act(observation) == action
        observation, reward, _, _, info = env.step(action)
        rewards.observe(action, reward, info)
        twin.observe(action, reward)
