"""The two ends of the scale: the oracle has no regret at all, and chance is uniform."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from scipy import stats

import wgp_agents
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.registration import ENVIRONMENTS

DOMAIN = np.linspace(0.0, 1.0, 100)[:, None]
STEPS = 120
PROBLEM = BanditProblem(SquaredExponential(0.2), DOMAIN, 500, 0.1, 2.0, 3.0)

every_id = pytest.mark.parametrize("env_id", [entry.id for entry in ENVIRONMENTS])


def make(env_id: str, mode: str, **kwargs: Any) -> Any:
    if mode == "single":
        return gymnasium.make(env_id, **kwargs)
    return gymnasium.make_vec(env_id, num_envs=3, vectorization_mode=mode, **kwargs)


@every_id
@pytest.mark.parametrize("mode", ["single", "vector_entry_point", "sync"])
def test_the_oracle_has_no_regret_and_chance_has(env_id: str, mode: str) -> None:
    env = make(env_id, mode, horizon=STEPS)
    for name in ("oracle", "random"):
        agent = wgp_agents.make(name, env)
        observation, _ = env.reset(seed=1)
        agent.reset(0)
        regrets = []
        over = False
        while not np.all(over):
            observation, _, _, over, info = env.step(agent.act(observation))
            regrets.append(info["regret"])
        assert len(regrets) == STEPS
        assert np.all(info["cumulative_regret"] == 0) == (name == "oracle")
        assert np.all(np.array(regrets) == 0) == (name == "oracle")


def test_the_oracle_needs_the_truth() -> None:
    with pytest.raises(TypeError, match="An oracle needs an environment, to read the truth from"):
        wgp_agents.make("oracle", PROBLEM)


def test_chance_is_uniform_over_the_arms_that_are_allowed() -> None:
    each = np.ones(3000)
    agent = wgp_agents.make("random", BanditProblem(PROBLEM.kernel, DOMAIN, 500, 0.1, each, each))
    agent.reset(0)
    there = np.zeros(100, bool)
    there[[3, 40, 41, 99]] = True
    counts = np.bincount(np.asarray(agent.act(allowed=there)), minlength=100)
    assert not counts[~there].any()
    assert stats.chisquare(counts[there]).pvalue > 1e-3


def test_chance_is_uniform_over_arms() -> None:
    each = np.ones(200)
    problem = BanditProblem(SquaredExponential(0.2), DOMAIN, 500, 0.1, each, each)
    agent = wgp_agents.make("random", problem)
    agent.reset(0)
    actions = np.array([agent.act() for _ in range(300)])
    for sample in (actions, actions[0::2] * 100 + actions[1::2]):  # single plays, and pairs
        cells = 100 if sample is actions else 10_000
        p = stats.chisquare(np.bincount(sample.ravel(), minlength=cells)).pvalue
        assert 1e-3 < p < 1 - 1e-3


@pytest.mark.parametrize("mode", ["single", "vector_entry_point", "sync"])
def test_in_a_box_both_play_points(mode: str) -> None:
    env = make("WGPBandit-Slow-v0", mode, continuous=True, dim=2, points_per_dim=8, horizon=30)
    for name in ("oracle", "random"):
        agent = wgp_agents.make(name, env)
        env.reset(seed=1)
        agent.reset(0)
        for _ in range(30):
            action = agent.act()
            assert action.shape == ((2,) if mode == "single" else (3, 2))
            assert env.action_space.contains(action)
            info = env.step(action)[-1]
            agent.observe(action, np.zeros(action.shape[:-1]))
        assert np.all(info["cumulative_regret"] < 1e-9) == (name == "oracle")


def test_chance_is_uniform_in_a_box() -> None:
    env = gymnasium.make("WGPBandit-Slow-v0", continuous=True, dim=2, points_per_dim=8)
    agent = wgp_agents.make("random", env)
    agent.reset(0)
    points = np.array([agent.act() for _ in range(2_000)])
    for sample in (*points.T, points.sum(axis=1) % 1):  # the last one, uniform if independent
        assert 1e-3 < stats.kstest(sample, "uniform").pvalue < 1 - 1e-3
