"""Rewards that are 0 or 1: their frequencies, their pairs, and the kernels of linear functions."""

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest

from wgp_gym.envs import BanditEnv
from wgp_gym.envs.noise import BernoulliNoise, GaussianNoise, make_noise
from wgp_gym.kernels import CentredLinear, Linear

Make = Callable[..., BanditEnv]

MEANS = [[0.0, 0.2, 0.5, 0.9, 1.0]]


def paid(env: BanditEnv, arm: int, seed: int) -> list[float]:
    env.reset(seed=seed)
    return [env.step(arm)[1] for _ in range(env.problem.known_horizon("a test"))]


def constant(make_env: Make, horizon: int = 4000) -> BanditEnv:
    return make_env("WGPBandit-ArmsAbrupt-v0", means=MEANS, change_points=[], horizon=horizon)


def test_frequencies(make_env: Make) -> None:
    env = constant(make_env)
    for arm, mean in enumerate(MEANS[0]):
        rewards = np.array(paid(env, arm, seed=1))
        assert set(rewards) <= {0.0, 1.0}
        error = np.sqrt(mean * (1 - mean) / len(rewards))
        assert abs(rewards.mean() - mean) <= 4 * error
        lagged = np.mean((rewards[1:] - mean) * (rewards[:-1] - mean))
        assert abs(lagged) <= 4 * mean * (1 - mean) / np.sqrt(len(rewards))


def test_a_better_arm_pays_wherever_a_worse_one_does(make_env: Make) -> None:
    env = constant(make_env, 300)
    table = np.array([paid(env, arm, seed=2) for arm in range(5)])
    assert (np.diff(table, axis=0) >= 0).all()
    assert not table[0].any()
    assert table[4].all()


def test_the_uniforms_are_of_the_noise_stream_alone(make_env: Make) -> None:
    """Another way to draw the functions leaves the chance of every step as it is."""
    env = constant(make_env, 200)
    rewards = paid(env, 2, seed=3)
    twin = make_env("WGPBandit-ArmsAbrupt-v0", means=[[0.5] * 2], change_points=[], horizon=200)
    assert paid(twin, 0, seed=3) == rewards
    assert paid(twin, 0, seed=4) != rewards


def test_scales() -> None:
    assert BernoulliNoise().scale == 0.5
    assert GaussianNoise(0.3).scale == 0.3
    for name in ("ArmsAbrupt", "ArmsDrift"):
        env: Any = gymnasium.make(f"WGPBandit-{name}-v0").unwrapped
        assert env.problem.noise_scale == 0.5
        assert env.problem.reward_range == (0.0, 1.0)
        env = gymnasium.make(f"WGPBandit-{name}-v0", reward="gaussian", noise_std=0.2).unwrapped
        assert env.problem.noise_scale == 0.2


@pytest.mark.parametrize(
    ("reward", "noise_std", "match"),
    [
        ("poisson", 0.1, "'reward' parameter of X must be one of 'gaussian', 'bernoulli'"),
        ("gaussian", -1.0, r"'noise_std' parameter of X must be a float in \[0"),
        ("gaussian", 1e31, r"'noise_std' parameter of X must be a float in \[0, 1e\+30\]"),
        ("gaussian", None, r"'noise_std' parameter of X must be a float in \[0, 1e\+30\]"),
        ("bernoulli", 0.1, "'noise_std' parameter of X must be None where rewards are 0 or 1"),
    ],
)
def test_refused(reward: str, noise_std: float | None, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make_noise(reward, noise_std, "X")


@pytest.mark.parametrize(
    ("name", "more", "usual"),
    [
        ("ArmsAbrupt", {"reward": "gaussian"}, 0.1),
        ("ArmsDrift", {"reward": "gaussian"}, 0.1),
        ("LinearSlow", {}, 1.0),
    ],
)
def test_usual_noise(make_env: Make, name: str, more: dict[str, Any], usual: float) -> None:
    for given in ({}, {"noise_std": None}):
        assert make_env(f"WGPBandit-{name}-v0", **more, **given).problem.noise_scale == usual


def test_centred_kernel_by_hand() -> None:
    kernel = CentredLinear()
    points = np.array([[1.0, 0.5], [0.5, 0.5], [0.0, 1.0]])  # (1, 0), (0, 0) and (-1, 1)
    expected = [[1.0, 0.0, -1.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 2.0]]
    np.testing.assert_allclose(kernel(points, points), expected, atol=1e-15)
    np.testing.assert_allclose(kernel.diagonal(points), [1.0, 0.0, 2.0], atol=1e-15)
    assert kernel == CentredLinear()


@pytest.mark.parametrize("kernel", [Linear(), CentredLinear()])
@pytest.mark.parametrize("dim", [1, 3])
def test_features_make_the_kernel(kernel: Linear | CentredLinear, dim: int) -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.random((2, 5, dim)), rng.random((2, 4, dim))
    phi, psi = kernel.features(X), kernel.features(Y)
    assert phi.shape == X.shape
    np.testing.assert_allclose(phi @ psi.transpose(0, 2, 1), kernel(X, Y), atol=1e-14)
    np.testing.assert_allclose(np.sum(phi**2, axis=-1), kernel.diagonal(X), atol=1e-14)
