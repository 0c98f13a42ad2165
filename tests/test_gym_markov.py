"""The Markov drift: its distribution over many seeds, and its norms by dense linear algebra."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from wgp_gym.envs import BanditEnv, BanditVectorEnv, MarkovTask
from wgp_gym.kernels import Kernel

Make = Callable[..., BanditEnv]
MARKOV = "WGPBandit-Markov-v0"
EPISODES, STEPS = 2000, 3
ROUGH: dict[str, Any] = {"kernel": "matern", "nu": 0.5, "points_per_dim": 12, "horizon": 15}
CHANGING: dict[str, Any] = {
    "kernel": "linear",
    "dim": 2,
    "points_per_dim": 3,
    "contextual": True,
}


def matrix(kernel: Kernel, X: NDArray[np.float64]) -> NDArray[np.float64]:
    return kernel(X, X)


def played(env: BanditEnv, seed: int = 0) -> NDArray[np.float64]:
    """Return the functions of an episode on the domain, `(T, n)`."""
    env.reset(seed=seed)
    rows = []
    for _ in range(env.task.horizon):
        rows.append(env.expected_rewards())
        env.step(env.action_space.sample())
    return np.array(rows)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("eps", "parameters"),
    [
        (0.3, {}),
        (0.3, {"kernel": "matern", "nu": 0.5}),
        (0.3, {"dim": 2, "points_per_dim": 2}),
        (0.3, {"kernel": "linear"}),
        (1.0, {}),
    ],
    ids=str,
)
def test_covariance(eps: float, parameters: dict[str, Any]) -> None:
    """Cov(f_t(x), f_s(y)) = (1 - eps)^{|t - s| / 2} k(x, y), within 5 standard errors."""
    task = MarkovTask(eps=eps, horizon=STEPS, **({"points_per_dim": 4} | parameters))
    env = BanditVectorEnv(EPISODES, task=task)
    env.reset(seed=7)
    functions = []
    for _ in range(STEPS):
        functions.append(env.expected_rewards())
        env.step(np.zeros(EPISODES, int))
    K = matrix(task.kernel, task.domain)
    k = K.diagonal()
    for t, now in enumerate(functions):
        for s, other in enumerate(functions):
            expected = (1 - eps) ** (abs(t - s) / 2) * K
            error = np.sqrt((np.outer(k, k) + expected**2) / EPISODES)  # of normal variables
            assert (np.abs(now.T @ other / EPISODES - expected) <= 5 * error + 1e-9).all()
            assert (np.abs(now.mean(axis=0)) <= 5 * np.sqrt(k / EPISODES) + 1e-9).all()


@pytest.mark.slow
def test_vectors_where_arms_change() -> None:
    eps, dim = 0.3, 2
    env = BanditVectorEnv(EPISODES, task=MarkovTask(eps=eps, horizon=STEPS, **CHANGING))
    env.reset(seed=3)
    theta = np.array([episode.coefficients for episode in env.dynamics.episodes])
    for t in range(STEPS):
        for s in range(STEPS):
            found = theta[:, t].T @ theta[:, s] / EPISODES
            expected = (1 - eps) ** (abs(t - s) / 2) * np.eye(dim)
            assert (np.abs(found - expected) <= 5 * np.sqrt(2 / EPISODES)).all()


def test_arms_that_change_are_uniform_and_paid(make_env: Make) -> None:
    env = make_env(MARKOV, horizon=200, noise_std=0.0, **CHANGING)
    observation, _ = env.reset(seed=1)
    theta = env.dynamics.episodes[0].coefficients
    seen = []
    for t in range(200):
        arms = observation[5:].reshape(9, 2).astype(float)
        seen.append(arms)
        rewards = arms @ theta[t] / np.sqrt(2)  # phi(x) = x / sqrt(d)
        np.testing.assert_allclose(env.expected_rewards(), rewards, rtol=1e-12, atol=1e-12)
        observation, reward, _, _, info = env.step(4)
        assert reward == pytest.approx(rewards[4], abs=1e-6)
        assert info["optimal_reward"] == pytest.approx(rewards.max(), abs=1e-12)
    assert stats.kstest(np.ravel(seen), "uniform").pvalue > 1e-3
    moves = np.linalg.norm(np.diff(theta, axis=0), axis=1)
    assert env.problem.variation_budget == pytest.approx(moves.sum())
    assert env.problem.norm_bound == pytest.approx(np.linalg.norm(theta, axis=1).max())


@pytest.mark.parametrize("wanted", [{}, {"norm_bound": 2.0}, {"variation_budget": 3.0}], ids=str)
@pytest.mark.parametrize("continuous", [False, True])
def test_norms_and_variation(make_env: Make, continuous: bool, wanted: dict[str, Any]) -> None:
    """||f||^2 = f^T K^{-1} f, where K can be inverted."""
    env = make_env(MARKOV, **ROUGH, continuous=continuous, **wanted)
    f = played(env)
    inverse = np.linalg.inv(matrix(env.task.kernel, env.task.domain))
    norms = np.sqrt(np.sum(f @ inverse * f, axis=1))
    moves = np.diff(f, axis=0)
    variation = np.sqrt(np.sum(moves @ inverse * moves, axis=1)).sum()
    assert env.problem.norm_bound == pytest.approx(norms.max(), rel=1e-9)
    assert env.problem.variation_budget == pytest.approx(variation, rel=1e-9)
    if wanted:
        (name,) = wanted
        assert getattr(env.problem, name) == pytest.approx(wanted[name])


def test_squared_norms_are_chi_squared(make_env: Make) -> None:
    """||g||^2 = ||z||^2 for m standard normal z, m the number of points of a rough kernel."""
    env = make_env(MARKOV, **(ROUGH | {"horizon": 1}))
    squares = []
    for seed in range(300):
        env.reset(seed=seed)
        squares.append(float(env.problem.norm_bound or 0) ** 2)
    assert stats.kstest(squares, stats.chi2(12).cdf).pvalue > 1e-3


def test_a_box_plays_the_interpolation(make_env: Make) -> None:
    env = make_env(MARKOV, **ROUGH, continuous=True)
    K = matrix(env.task.kernel, env.task.domain)
    f = played(env, seed=5)
    env.reset(seed=5)
    for t in range(15):
        point = env.action_space.sample()
        *_, info = env.step(point)
        k = env.task.kernel(np.asarray(point, float)[None], env.task.domain)[0]
        assert info["expected_reward"] == pytest.approx(k @ np.linalg.solve(K, f[t]), abs=1e-9)
        assert info["optimal_reward"] >= f[t].max() - 1e-6  # a kink, beside a number in float32


def test_no_drift_rests(make_env: Make) -> None:
    env = make_env(MARKOV, eps=0.0, horizon=20)
    f = played(env)
    assert (f == f[0]).all()
    assert f[0].std() > 0.1
    assert env.problem.variation_budget == 0
    with pytest.raises(ValueError, match=r"'variation_budget' .* None or 0"):
        make_env(MARKOV, eps=0.0, variation_budget=1.0).reset(seed=0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({"eps": -0.1}, r"'eps' parameter of MarkovTask must be a float in \[0, 1\]"),
        ({"eps": 1.1}, r"'eps' .* a float in \[0, 1\]"),
        ({"contextual": True}, "'contextual' .* False for the kernel SquaredExponential"),
        (CHANGING | {"continuous": True}, "'contextual' .* False on a box"),
        ({"dim": 7, "points_per_dim": 2, "continuous": True}, r"'dim' .* an int in \[1, 6\]"),
        ({"points_per_dim": 10**6}, "'points_per_dim' .* at most 100,000"),
        ({"horizon": 10**9}, "'horizon' .* at most 50,000,000"),
        (CHANGING | {"horizon": 10**7}, "'horizon' .* at most 50,000,000"),
        (
            {"kernel": "matern", "nu": 0.5, "points_per_dim": 50_000},
            "'lengthscale' .* at most 200 features",
        ),
    ],
    ids=str,
)
def test_refused(make_env: Make, given: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make_env(MARKOV, **given)
