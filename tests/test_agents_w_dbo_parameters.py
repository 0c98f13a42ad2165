"""W-DBO: its plays at random, its batches, its box, and what it refuses."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from test_agents_w_dbo import DOMAIN, KERNEL, NOISE, PROBLEM, Floats, kept, matern

import wgp_gym  # noqa: F401  (registers the ids)
from wgp_agents.algorithms.adaptive.w_dbo import WDBO
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

ABRUPT = "WGPBandit-Abrupt-v0"


def test_initial_plays_are_uniform() -> None:
    problem = BanditProblem(KERNEL, DOMAIN, 200, np.full(200, NOISE))
    agent = WDBO(problem, initial_plays=15)
    agent.reset(0)
    counts = np.zeros(len(DOMAIN))
    for _ in range(15):
        arms = agent.act()
        counts += np.bincount(arms, minlength=len(DOMAIN))
        agent.observe(arms, np.ones(200))
    assert np.abs(counts - 250).max() < 70  # their deviation is 15


def test_a_learner_does_not_depend_on_the_batch() -> None:
    def _trace(batch: int) -> list[Floats]:
        mode = "vector_entry_point"
        env: Any = gymnasium.make_vec(ABRUPT, num_envs=batch, vectorization_mode=mode)
        agent = WDBO(env, max_observations=30)
        env.reset(seed=5)
        agent.reset(5)
        rows = []
        for _ in range(60):
            action = agent.act()
            paid = env.step(action)[1]
            agent.observe(action, paid)
            rows.append(np.column_stack([action, agent.posterior().mean, agent.posterior().std]))
        return rows

    most = _trace(100)
    for batch in (1, 2, 3):
        for few, many in zip(_trace(batch), most, strict=True):
            np.testing.assert_array_equal(few, many[:batch])


def test_on_a_box_it_holds_points() -> None:
    kernel = SquaredExponential(0.3)
    problem = BanditProblem(kernel, DOMAIN, 80, NOISE, continuous=True)
    agent = WDBO(problem, time_lengthscale=9.0, initial_plays=15)
    agent.reset(0)
    points, rewards = [], []
    for t in range(40):
        points.append(agent.act())
        rewards.append(math.sin(5 * points[-1][0] + t / 9))
        agent.observe(points[-1], rewards[-1])
    assert len(np.unique(np.array(points[:15]))) == 15
    steps = kept(agent).kept.times[0, : kept(agent).held[0]].astype(int)
    X = np.array(points, float)[steps]
    M = kernel(X, X) * matern(steps[:, None] - steps, 9.0) + NOISE**2 * np.eye(len(X))
    k = kernel(X, DOMAIN) * matern(40 - steps, 9.0)[:, None]
    mean, std = agent.posterior()
    np.testing.assert_allclose(mean, k.T @ np.linalg.solve(M, np.array(rewards)[steps]), atol=1e-5)
    left = 1 - np.sum(k * np.linalg.solve(M, k), axis=0)
    np.testing.assert_allclose(std**2, left, atol=1e-5)


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"time_lengthscale": "guess"}, "'time_lengthscale' .* must be 'fit' or a float in"),
        ({"time_lengthscale": 0.0}, "'time_lengthscale' parameter of WDBO must be a float in"),
        ({"signal_variance": 0.0}, "'signal_variance' parameter of WDBO must be a float in"),
        ({"alpha": -0.1}, "'alpha' parameter of WDBO must be a float in"),
        ({"initial_plays": -1}, "'initial_plays' parameter of WDBO must be an int in"),
        ({"max_observations": 1}, "'max_observations' .* must be an int in .2, 10000"),
        ({"confidence_width": "theory"}, "'confidence_width' .* must be 'paper', a number or"),
        ({"norm_bound": 1.0}, "WDBO has no parameter 'norm_bound'"),
    ],
)
def test_what_it_refuses(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        WDBO(PROBLEM, **chosen)


def test_it_refuses_arms_that_are_drawn_anew() -> None:
    with pytest.raises(ValueError, match="'env' parameter of WDBO must be a task whose arms stay"):
        WDBO(gymnasium.make("WGPBandit-LinearContextual-v0"))
