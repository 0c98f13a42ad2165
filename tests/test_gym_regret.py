"""Regret, change points and the spent variation, against the drawn functions worked by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from conftest import shortened
from numpy.typing import NDArray

from wgp_gym.envs import BanditEnv
from wgp_gym.envs.noise import BernoulliNoise

Variant = tuple[str, dict[str, Any]]
Make = Callable[..., BanditEnv]
Array = NDArray[np.float64]

ABRUPT, SLOW, STATIONARY = (f"WGPBandit-{name}-v0" for name in ("Abrupt", "Slow", "Stationary"))
LENGTHSCALE = 0.2


def se(x: Array, y: Array) -> Array:
    value: Array = np.exp(-((x[:, None] - y[None]) ** 2) / (2 * LENGTHSCALE**2))
    return value


def sample_categorical(env: BanditEnv) -> tuple[Array, Array]:
    """Return the drawn functions' coefficients, `(K, M)`, and their centres, `(M,)`."""
    (episode,) = env.dynamics.episodes
    return episode.coefficients, np.linspace(0, 1, 100)[episode.centres]


def knots(env: BanditEnv) -> Array:
    """Return the drawn functions at the 100 points of D, `(K, 100)`."""
    coefficients, centres = sample_categorical(env)
    values: Array = coefficients @ se(centres, np.linspace(0, 1, 100))
    return values


def norm(coefficients: Array, centres: Array) -> float:
    return float(np.sqrt(coefficients @ se(centres, centres) @ coefficients))


def slow_weights(t: int, horizon: int) -> Array:
    """Return the shares of f4, f5, f6 in f_t as the paper's two lines have it."""
    if t <= horizon / 2:
        return np.array([1 - 2 * t / horizon, 2 * t / horizon, 0.0])
    far = (2 * t - horizon) / horizon
    return np.array([0.0, 1 - far, far])


def abrupt_weights(t: int, changes: list[int]) -> Array:
    weights = np.zeros(len(changes) + 1)
    weights[sum(t >= change for change in changes)] = 1.0
    return weights


def check_episode(env: BanditEnv, weights: Callable[[int], Array]) -> None:
    """Play an episode and compare each step with f_t = sum of weights times drawn functions."""
    env.reset(seed=21)
    values, (coefficients, centres) = knots(env), sample_categorical(env)
    rng = np.random.default_rng(0)
    before, variation, sup_variation, norms = weights(1), 0.0, 0.0, []
    for t in range(1, env.problem.known_horizon("a test") + 1):
        now, arm = weights(t), int(rng.integers(100))
        f = now @ values
        np.testing.assert_allclose(env.expected_rewards(), f, atol=1e-12)
        _, reward, _, _, info = env.step(arm)
        moved = now - before
        variation += norm(moved @ coefficients, centres)
        sup_variation += np.abs(moved @ values).max()
        norms.append(norm(now @ coefficients, centres))
        assert info["expected_reward"] == pytest.approx(f[arm], abs=1e-12)
        assert info["optimal_reward"] == pytest.approx(f.max(), abs=1e-12)
        assert info["optimal_action"] == f.argmax()
        assert info["regret"] == pytest.approx(f.max() - f[arm], abs=1e-12)
        assert abs(reward - f[arm]) < 0.6  # six standard deviations of the noise
        assert info["variation"] == pytest.approx(variation, rel=1e-8)
        assert info["sup_variation"] == pytest.approx(sup_variation, rel=1e-9)
        assert info["changed"] == bool(moved.any())
        before = now
    np.testing.assert_allclose(env.expected_rewards(), f, atol=1e-12)  # f_T after the end
    assert env.problem.norm_bound == pytest.approx(max(norms), rel=1e-8)
    assert env.problem.variation_budget == pytest.approx(variation, rel=1e-8)


@pytest.mark.parametrize(
    ("parameters", "changes"),
    [
        ({}, [100, 200]),
        ({"horizon": 10}, [2, 4]),
        ({"horizon": 50}, [10, 20]),
        ({"horizon": 4}, [2]),
        ({"horizon": 3}, []),
        ({"horizon": 2}, []),
        ({"horizon": 1}, []),
        ({"horizon": 20, "change_points": [2, 3, 20]}, [2, 3, 20]),
        ({"horizon": 20, "change_points": []}, []),
        ({"horizon": 20, "change_points": (7, 8)}, [7, 8]),
    ],
    ids=str,
)
def test_abrupt(make_env: Make, parameters: dict[str, Any], changes: list[int]) -> None:
    check_episode(make_env(ABRUPT, **parameters), lambda t: abrupt_weights(t, changes))


@pytest.mark.parametrize("horizon", [1, 2, 3, 4, 5, 7, 61, 500, 501])
def test_slow(make_env: Make, horizon: int) -> None:
    check_episode(make_env(SLOW, horizon=horizon), lambda t: slow_weights(t, horizon))


@pytest.mark.parametrize("horizon", [1, 2, 3, 30])
def test_stationary(make_env: Make, horizon: int) -> None:
    check_episode(make_env(STATIONARY, horizon=horizon), lambda t: np.ones(1))


@pytest.mark.parametrize(("change", "knot"), [(100, 1), (200, 2)])
def test_the_change_step_itself(make_env: Make, change: int, knot: int) -> None:
    env = make_env(ABRUPT)
    env.reset(seed=4)
    old, new = knots(env)[knot - 1], knots(env)[knot]
    stale = int(old.argmax())  # the arm that was best before the change
    regret = {t: env.step(stale)[4]["regret"] for t in range(1, change + 2)}
    assert regret[change - 1] == pytest.approx(0.0, abs=1e-12)
    assert regret[change] == regret[change + 1] == pytest.approx(new.max() - new[stale], abs=1e-12)
    assert regret[change] > 0.1


def test_the_optimal_action_has_no_regret(variant: Variant, make_env: Make) -> None:
    name, parameters = variant
    env = make_env(name, **shortened(name, parameters))
    _, info = env.reset(seed=2)
    assert np.all(info["optimal_action"] == env.optimal_action())
    for _ in range(env.problem.known_horizon("a test")):
        best = env.optimal_action()
        *_, info = env.step(best)
        assert np.all(info["optimal_action"] == best)
        if env.task.continuous:
            assert 0 <= info["regret"] < 1e-10
            assert info["optimal_reward"] == pytest.approx(info["expected_reward"], abs=1e-10)
        else:
            assert info["regret"] == 0.0
            assert info["expected_reward"] == info["optimal_reward"]
    assert info["cumulative_regret"] < 1e-7


def test_regret_is_to_the_best_arm_at_the_same_step(variant: Variant, make_env: Make) -> None:
    name, parameters = variant
    env = make_env(name, **shortened(name, parameters))
    env.action_space.seed(3)
    env.reset(seed=3)
    positive = 0
    for _ in range(env.problem.known_horizon("a test")):
        truth = env.expected_rewards()
        action = env.action_space.sample()
        *_, info = env.step(action)
        gap = info["optimal_reward"] - info["expected_reward"]
        if env.task.continuous:  # the optimum is searched, and right to rounding
            assert info["optimal_reward"] >= truth.max() - (1e-10 if "Markov" in name else 1e-12)
            assert gap >= -1e-10
            assert info["regret"] == max(gap, 0.0)
        else:
            assert info["expected_reward"] == truth[action]
            assert info["optimal_reward"] == truth.max()
            assert info["regret"] == gap >= 0.0
        positive += info["regret"] > 0
    assert positive > env.problem.known_horizon("a test") / 2


@pytest.mark.parametrize("name", [ABRUPT, SLOW])
def test_norms_from_values_alone(make_env: Make, name: str) -> None:
    """Matern 0.5 has a kernel matrix good enough to solve: ||f||^2 = f^T K^-1 f."""
    env = make_env(name, kernel="matern", nu=0.5, horizon=31)
    env.reset(seed=6)
    x = np.linspace(0, 1, 100)
    K = np.exp(-np.abs(x[:, None] - x) / LENGTHSCALE)
    truth = []
    for _ in range(31):
        truth.append(env.expected_rewards())
        env.step(0)
    f = np.array(truth)
    norms = np.sqrt(np.sum(f * np.linalg.solve(K, f.T).T, axis=1))
    moves = np.diff(f, axis=0)
    distances = np.sqrt(np.sum(moves * np.linalg.solve(K, moves.T).T, axis=1))
    assert env.problem.norm_bound == pytest.approx(norms.max(), rel=1e-9)
    assert env.problem.variation_budget == pytest.approx(distances.sum(), rel=1e-9)


@pytest.mark.parametrize("noise_std", [0.1, 0.7])
@pytest.mark.parametrize("name", [STATIONARY, "WGPBandit-Table-v0"])
def test_noise(make_env: Make, name: str, noise_std: float) -> None:
    long = {"horizon": 1300}
    env = make_env(name, noise_std=noise_std, **long)
    noise = []
    for seed in range(6):
        env.reset(seed=seed)
        for _ in range(1300):
            _, reward, _, _, info = env.step(0)
            noise.append(reward - info["expected_reward"])
    z = np.array(noise) / noise_std  # 7,800 of them: four standard errors each
    assert env.problem.noise_scale == noise_std
    assert abs(z.mean()) < 4 / np.sqrt(len(z))
    assert abs(z.std() - 1) < 4 / np.sqrt(2 * len(z))
    assert abs(np.mean(z[1:] * z[:-1])) < 4 / np.sqrt(len(z))
    assert abs(np.mean(np.abs(z) < 1) - 0.6827) < 4 * np.sqrt(0.6827 * 0.3173 / len(z))


def test_no_noise(variant: Variant, make_env: Make) -> None:
    name, parameters = variant
    if isinstance(make_env(name, **parameters).task.noise, BernoulliNoise):
        rule = (
            "'noise_std' .* None where rewards are 0 or 1|unexpected keyword argument 'noise_std'"
        )
        with pytest.raises((ValueError, TypeError), match=rule):
            make_env(name, **parameters | {"noise_std": 0})
        return
    env = make_env(name, **parameters | {"noise_std": 0, "horizon": 5})
    env.reset(seed=1)
    _, reward, _, _, info = env.step(env.action_space.sample())
    assert reward == float(np.float32(info["expected_reward"]))
    assert env.problem.noise_scale == 0.0
