"""`rollout` keeps what was played, labelled by run and step."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest

import wgp_agents
import wgp_gym
from wgp_agents.benchmark.rollout import RECORDED, rollout

HORIZON = 40


def make_env(num_envs: int | None = None, **kwargs: Any) -> Any:
    wgp_gym.register()
    if num_envs is None:
        return gymnasium.make("WGPBandit-Abrupt-v0", horizon=HORIZON, **kwargs)
    mode = "vector_entry_point"
    return gymnasium.make_vec(
        "WGPBandit-Abrupt-v0", num_envs, vectorization_mode=mode, horizon=HORIZON, **kwargs
    )


def by_hand(seed: int) -> tuple[list[int], list[float], list[float]]:
    env = make_env()
    agent = wgp_agents.make("wgp-ucb", env)
    observation, _ = env.reset(seed=seed)
    agent.reset(seed)
    actions, rewards, regrets = [], [], []
    for _ in range(HORIZON):
        action = agent.act(observation)
        observation, reward, _, _, info = env.step(action)
        agent.observe(action, reward)
        actions.append(action)
        rewards.append(reward)
        regrets.append(info["cumulative_regret"])
    return actions, rewards, regrets


def test_a_single_environment_is_a_batch_of_one() -> None:
    env = make_env()
    played = rollout(wgp_agents.make("wgp-ucb", env), env, seed=3)
    actions, rewards, regrets = by_hand(3)
    np.testing.assert_array_equal(played["action"], [actions])
    np.testing.assert_array_equal(played["reward"], [rewards])
    np.testing.assert_array_equal(played["cumulative_regret"], [regrets])


def test_run_i_of_a_batch_is_the_single_run_with_its_seed() -> None:
    env = make_env(3)
    played = rollout(wgp_agents.make("wgp-ucb", env), env, seed=3)
    assert played.seeds == [3, 4, 5]
    for i in range(3):
        actions, rewards, regrets = by_hand(3 + i)
        np.testing.assert_array_equal(played["action"][i], actions)
        np.testing.assert_array_equal(played["reward"][i], rewards)
        np.testing.assert_array_equal(played["cumulative_regret"][i], regrets)


def test_labels_and_shapes() -> None:
    env = make_env(2)
    played = rollout(wgp_agents.make("random", env), env, seed=[11, 7])
    assert (played.agent, played.environment) == ("Random", "WGPBandit-Abrupt-v0")
    assert played.seeds == [11, 7]
    assert set(played.steps) == {"action", "reward", *RECORDED}
    assert all(values.shape == (2, HORIZON) for values in played.steps.values())
    np.testing.assert_array_equal(played.norm_bounds, env.unwrapped.problem.norm_bound)
    np.testing.assert_array_equal(played.variation_budgets, env.unwrapped.problem.variation_budget)
    np.testing.assert_allclose(played["variation"][:, -1], played.variation_budgets)


def test_points_of_a_box_keep_their_coordinates() -> None:
    env = make_env(2, continuous=True, dim=2, points_per_dim=8)
    played = rollout(wgp_agents.make("random", env), env, seed=0)
    assert played["action"].shape == (2, HORIZON, 2)


@pytest.mark.parametrize("asked", [{}, {"norm_bound": 2.0}], ids=["drawn", "asked"])
def test_amounts_are_the_truth_also_where_learners_are_not_told(asked: dict[str, Any]) -> None:
    kwargs = {"change_points": "random", "change_rate": 0.1, **asked}
    known = rollout(wgp_agents.make("random", env := make_env(3, **kwargs)), env, 4)
    assert len(set(known.variation_budgets)) == 3
    one = make_env(None, told="law", **kwargs)
    alone = gymnasium.vector.SyncVectorEnv([lambda: make_env(None, told="law", **kwargs)] * 3)
    for env, count in ((make_env(3, told="law", **kwargs), 3), (alone, 3), (one, 1)):
        agent = wgp_agents.make("random", env)
        hidden = rollout(agent, env, 4)
        assert agent.problem.variation_budget is None
        np.testing.assert_array_equal(hidden.norm_bounds, known.norm_bounds[:count])
        np.testing.assert_array_equal(hidden.variation_budgets, known.variation_budgets[:count])


@pytest.mark.parametrize("num_envs", [None, 2])
def test_environment_and_agent_have_seeds_of_their_own(num_envs: int | None) -> None:
    env = make_env(num_envs)
    agent = wgp_agents.make("random", env)
    first = rollout(agent, env, seed=1, agent_seed=5)
    other = rollout(agent, env, seed=1, agent_seed=9)
    np.testing.assert_array_equal(first["optimal_reward"], other["optimal_reward"])
    assert not np.array_equal(first["action"], other["action"])


def test_a_time_limit_ends_the_rollout() -> None:
    whole, env = make_env(), gymnasium.wrappers.TimeLimit(make_env(), 12)
    played = rollout(wgp_agents.make("wgp-ucb", env), env, seed=3)
    expected = rollout(wgp_agents.make("wgp-ucb", whole), whole, seed=3)
    for name in ("action", "reward", "regret", "cumulative_regret"):
        np.testing.assert_array_equal(played[name], expected[name][:, :12])


class Ended(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Ends its episodes after 5 steps: they terminate."""

    def step(self, action: Any) -> Any:
        observation, reward, _, truncated, info = self.env.step(action)
        return observation, reward, info["t"] == 5, truncated, info


def test_a_wrapper_that_terminates_ends_the_rollout() -> None:
    env = Ended(make_env())
    assert rollout(wgp_agents.make("random", env), env, seed=3)["regret"].shape == (1, 5)


@pytest.mark.parametrize("mode", ["NextStep", "SameStep", "Disabled"])
def test_in_every_autoreset_mode_the_last_step_is_of_the_same_episode(mode: str) -> None:
    chosen = gymnasium.vector.AutoresetMode(mode)
    env = gymnasium.vector.SyncVectorEnv([make_env, make_env], autoreset_mode=chosen)
    played = rollout(wgp_agents.make("wgp-ucb", env), env, seed=3)
    native = make_env(2)
    expected = rollout(wgp_agents.make("wgp-ucb", native), native, seed=3)
    for name in ("action", "reward", "regret", "cumulative_regret", "optimal_action"):
        np.testing.assert_array_equal(played[name], expected[name])


def test_sub_environments_that_end_apart_are_refused() -> None:
    env = gymnasium.vector.SyncVectorEnv([make_env, lambda: Ended(make_env())])
    with pytest.raises(ValueError, match=r"end at the same step\. Here 1 of 2 did"):
        rollout(wgp_agents.make("random", env), env, seed=3)


class Longer(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Goes on beyond the T of its problem."""

    def step(self, action: Any) -> Any:
        observation, reward, terminated, _, info = self.env.step(action)
        return observation, reward, terminated, False, info


class Poor(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Tells the regret alone."""

    def step(self, action: Any) -> Any:
        *step, info = self.env.step(action)
        return *step, {"regret": info["regret"], "cumulative_regret": info["cumulative_regret"]}


def test_an_episode_longer_than_its_problem_is_refused() -> None:
    env = Longer(make_env())
    with pytest.raises(ValueError, match=r"'env' .* end by the 40 steps that its problem tells"):
        rollout(wgp_agents.make("random", env), env, seed=3)


def test_an_info_without_what_is_recorded_is_refused() -> None:
    env = Poor(make_env())
    with pytest.raises(
        ValueError, match=r"'info' .* a dict with expected_reward, .*Got \['action', "
    ):
        rollout(wgp_agents.make("random", env), env, seed=3)
