"""Rewards in another unit than an agent's parameters: one warning, where there is reason."""

from __future__ import annotations

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from conftest import shortened, tasks_of

import wgp_agents
from wgp_agents.base import Agent
from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.core.units import RewardUnits
from wgp_gym.kernels import CentredLinear, SquaredExponential
from wgp_gym.problem import BanditProblem

DOMAIN = np.linspace(0.0, 1.0, 20)[:, None]
RESTS_ON_B = ["wgp-ucb", "gp-ts", "lin-ucb", "master", "r-perp", "dal-gp-ucb", "bob-wgp-ucb"]
RESTS_ON_RANGE = ["ucb1", "exp3", "opkb", "d-glm-ucb"]
LEARNS = ["adaptive-wgp-ucb", "neural-greedy", "neural-ucb", "random"]
KNOWS_NO_B = ["gp-ucb", "tv-gp-ucb", "et-gp-ucb", "pe-gp-ucb", "w-dbo"]


def make(name: str, batch: int | None = None, noise: float = 0.1, **parameters: Any) -> Agent:
    each: Any = 1.0 if batch is None else np.ones(batch)
    problem = BanditProblem(SquaredExponential(0.2), DOMAIN, 500, noise, 2 * each, each)
    agent = wgp_agents.make(name, problem, **parameters)
    agent.reset(0)
    return agent


def warned(agent: Agent, *rewards: Any) -> list[str]:
    """Return what is warned of when arm 0 pays these rewards in turn."""
    action = np.zeros(agent.num_learners, int) if agent.batched else 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for reward in rewards:
            agent.observe(action, reward)
    assert all(one.category is RewardUnits and one.filename == __file__ for one in caught)
    return [str(one.message) for one in caught]


@pytest.mark.parametrize("name", RESTS_ON_B + RESTS_ON_RANGE)
def test_one_warning_of_rewards_near_40(name: str) -> None:
    agent = make(name)
    assert warned(agent, 2.5, -2.5) == []  # B = 2 and a deviation of 5 R
    (text,) = warned(agent, 40.25, 39.0, -40.0)
    parameter = "'norm_bound' B and 'noise_scale' R" if name in RESTS_ON_B else "'reward_range'"
    for part in ("a reward of 40.25", parameter, "[-2, 2]", "0.1", "'adaptive-wgp-ucb'"):
        assert part in text
    agent.reset(1)
    assert warned(agent, 40.0) == []  # once in its life, not in each of a thousand episodes
    assert len(text) < 400


def test_the_largest_reward_that_noise_may_bring() -> None:
    # |y| <= B + R sqrt(2 log(2 T / 1e-9)) = 2 + 0.1 sqrt(2 log(1e12)), T = 500, by hand: 2.7434.
    assert warned(make("wgp-ucb"), 2.743, -2.743) == []
    assert len(warned(make("wgp-ucb"), 2.744)) == 1


@pytest.mark.parametrize("name", LEARNS)
def test_no_warning_where_the_unit_is_learned(name: str) -> None:
    assert warned(make(name), 40.0, -4e6) == []


@pytest.mark.parametrize("name", KNOWS_NO_B)
def test_an_agent_that_knows_no_b_looks_at_the_problems(name: str) -> None:
    (text,) = warned(make(name), 2.5, 40.0)
    assert "beyond what the problem's 'norm_bound' B and 'noise_scale' R allow" in text
    silent = wgp_agents.make(name, BanditProblem(SquaredExponential(0.2), DOMAIN, 500, 0.1))
    silent.reset(0)
    assert warned(silent, 40.0) == []


@pytest.mark.parametrize("name", ["wgp-ucb", "lin-ucb", "r-perp"])
def test_so_does_one_whose_width_is_a_number(name: str) -> None:
    assert len(warned(make(name, confidence_width=3.0), 40.0)) == 1
    assert warned(make(name, confidence_width=3.0, norm_bound=50.0), 40.0) == []


def test_the_agents_own_parameters_count() -> None:
    assert warned(make("wgp-ucb", norm_bound=50.0), 40.0) == []
    assert warned(make("wgp-ucb", noise_scale=10.0), 40.0) == []
    assert warned(make("ucb1", reward_range=(30.0, 50.0)), 40.0) == []
    assert "in [30, 50]" in warned(make("ucb1", reward_range=(30.0, 50.0)), 1.0)[0]
    assert "in [-50, 50]" in warned(make("wgp-ucb", norm_bound=50.0), 90.0)[0]


def test_without_noise_rounding_is_forgiven() -> None:
    agent = make("wgp-ucb", noise=0.0)
    assert warned(agent, np.float32(2.0) * (1 + 2e-7)) == []
    assert len(warned(agent, 2.001)) == 1


def test_a_batch_has_one_warning_that_counts() -> None:
    agent = make("wgp-ucb", 100)
    rewards = np.where(np.arange(100) % 10 == 7, 40.0, 0.5)
    (text,) = warned(agent, np.zeros(100), rewards, np.full(100, 40.0))
    assert text.startswith("10 of the 100 learners of WGPUCB (the first: learner 7) met a reward")


def test_each_learner_has_its_own_bounds() -> None:
    agent = make("wgp-ucb", 3, norm_bound=[1.0, 50.0, 1.0])
    assert warned(agent, np.array([1.0, 40.0, 1.0])) == []
    (text,) = warned(agent, np.array([1.0, 40.0, 40.0]))
    assert "(the first: learner 2)" in text


def test_predict_warns_too_but_not_of_learners_that_begin() -> None:
    agent = make("wgp-ucb")
    shown = [0.1, 1.0, 0.0, 40.0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        agent.predict(shown, episode_start=[True])
    with pytest.warns(RewardUnits, match="a reward of 40"):
        agent.predict(shown, episode_start=[False])


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))])
def test_a_copy_knows_what_was_warned_of(duplicate: Any) -> None:
    agent = make("wgp-ucb")
    assert len(warned(duplicate(agent), 40.0)) == len(warned(agent, 40.0)) == 1
    assert warned(duplicate(agent), 40.0) == []


def test_where_warnings_are_errors_the_agent_is_as_it_was() -> None:
    agent: Any = make("wgp-ucb")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RewardUnits):
            agent.observe(0, 40.0)
    assert not agent.posterior().mean.any()


def test_a_logistic_reward_is_one_of_0_to_1_whatever_b_is() -> None:
    problem = BanditProblem(CentredLinear(), DOMAIN, 500, 0.5, 0.1, 1.0, link="logistic")
    agent = wgp_agents.make("lin-ucb", problem, noise_scale=0.01)
    agent.reset(0)
    assert warned(agent, 1.0, 0.0) == []


def test_long_features_earn_larger_rewards() -> None:
    problem = BanditProblem(SquaredExponential(0.2), DOMAIN, 500, 0.1, 2.0, 1.0)
    agent = wgp_agents.make("wgp-ucb", problem, features=lambda X: 30.0 * X)
    agent.reset(0)
    assert warned(agent, 40.0) == []
    assert len(warned(agent, 90.0)) == 1


@pytest.mark.parametrize(
    "name", [pytest.param("wgp-ucb", marks=pytest.mark.slow), "ucb1", "lin-ucb"]
)
def test_honest_rewards_earn_none(name: str) -> None:
    for env_id in tasks_of(name):
        env = make_vector(env_id, 8, **shortened(env_id, {}, 400))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            rollout(wgp_agents.make(name, env), env, seed=100)
