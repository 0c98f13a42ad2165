"""The posteriors against dense ones: t x t matrices, 40 digits, the paper's own weights."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF

import wgp_agents
from wgp_agents.gp.agent import GPAgent
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DOMAIN = np.linspace(0.0, 1.0, 100)[:, None]
PROBLEM = BanditProblem(SquaredExponential(0.2), DOMAIN, 500, 0.1, 1.0, 1.0)
QUERY = np.array([0, 1, 13, 37, 50, 62, 77, 98, 99])
STEPS = 50

# One choice of each memory: the agent, its parameter, and what it remembers of STEPS plays.
MEMORIES = [
    pytest.param("wgp-ucb", {"discount": 0.5}, STEPS, 0.5, id="discount-0.5"),
    pytest.param("wgp-ucb", {"discount": 0.9}, STEPS, 0.9, id="discount-0.9"),
    pytest.param("wgp-ucb", {"discount": 0.99}, STEPS, 0.99, id="discount-0.99"),
    pytest.param("wgp-ucb", {"discount": 1.0}, STEPS, 1.0, id="discount-1"),
    pytest.param("sw-gp-ucb", {"window": 20}, 20, 1.0, id="window-20"),
    pytest.param("r-gp-ucb", {"restart_period": 19}, STEPS - 2 * 19, 1.0, id="restart-19"),
    pytest.param("igp-ucb", {}, STEPS, 1.0, id="all"),
]


def plays(steps: int, seed: int = 0) -> tuple[Ints, Floats]:
    """Return arms and rewards of a run: two clusters, repeats, and the whole domain."""
    rng = np.random.default_rng(seed)
    near = rng.choice([20, 70], steps) + rng.integers(-3, 4, steps)
    arms = np.where(rng.random(steps) < 0.5, near, rng.integers(100, size=steps))
    return arms, np.sin(5 * arms / 99) + 0.1 * rng.standard_normal(steps)


def learn(name: str, arms: Ints, rewards: Floats, **parameters: Any) -> GPAgent:
    """Return an agent that was shown these plays, and made no choice itself."""
    agent = wgp_agents.make(name, PROBLEM, **parameters)
    assert isinstance(agent, GPAgent)
    agent.reset(0)
    for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
        agent.observe(arm, reward)
    return agent


def factor(matrix: NDArray[Any]) -> NDArray[Any]:
    """Return the lower Cholesky factor of a matrix of mpmath numbers."""
    L = matrix.copy()
    for j in range(len(L)):
        L[j, j] = mpmath.sqrt(L[j, j])
        L[j + 1 :, j] /= L[j, j]
        for k in range(j + 1, len(L)):
            L[k:, k] -= L[k:, j] * L[k, j]
    return L


def forward(L: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """Return L^{-1} right for a matrix of mpmath numbers."""
    solution = right.copy()
    for i in range(len(L)):
        solution[i] /= L[i, i]
        solution[i + 1 :] -= L[i + 1 :, i, None] * solution[i]
    return solution


def paper(
    arms: Ints, rewards: Floats, discount: float, regularization: float
) -> tuple[Floats, Floats, float]:
    """Return mean and std at QUERY by Eq. (3) and (4) as printed, and the gain of these plays.

    Weights w_s = eta^{-s}, regulariser lambda_t = lambda w_t, alpha_t = lambda w_t^2.
    """
    with mpmath.workdps(40):
        table = [mpmath.exp(-((mpmath.mpf(i) / 99) ** 2) / mpmath.mpf("0.08")) for i in range(100)]
        kernel = np.array(table, dtype=object)
        K = kernel[np.abs(arms[:, None] - arms)]
        k = kernel[np.abs(arms[:, None] - QUERY)]
        t = len(arms)
        w = np.array([mpmath.mpf(discount) ** -s for s in range(1, t + 1)], dtype=object)
        root = np.array([mpmath.sqrt(one) for one in w], dtype=object)[:, None]
        y = np.array([mpmath.mpf(one) for one in rewards], dtype=object)[:, None]
        lambda_t, alpha_t = regularization * w[-1], regularization * w[-1] ** 2
        identity = np.array([[mpmath.mpf(int(i == j)) for j in range(t)] for i in range(t)])

        L = factor(root * K * root.T + lambda_t * identity)
        solved = forward(L, np.hstack([root * k, root * y]))
        z, target = solved[:, :-1], solved[:, -1:]
        mean, variance = (z * target).sum(axis=0), 1 - (z * z).sum(axis=0)
        double = factor(identity + w[:, None] * K * w / alpha_t)
        gain = mpmath.fsum(mpmath.log(double[i, i]) for i in range(t))
    return mean.astype(float), np.sqrt(variance.astype(float)), float(gain)


def close(agent: GPAgent, expected: tuple[Floats, Floats, float]) -> None:
    """Check an agent's posterior at QUERY and its gain, to 1e-8."""
    mean, std = agent.posterior()
    np.testing.assert_allclose(mean[QUERY], expected[0], rtol=0, atol=1e-8)
    np.testing.assert_allclose(std[QUERY], expected[1], rtol=0, atol=1e-8)
    assert agent.information_gain() == pytest.approx(expected[2], rel=0, abs=1e-8)


@pytest.mark.parametrize("regularization", [1e-6, 1e-3, 1.0, 100.0])
@pytest.mark.parametrize(("name", "parameters", "kept", "discount"), MEMORIES)
def test_equations_3_and_4_in_the_papers_own_weights(
    name: str, parameters: dict[str, Any], kept: int, discount: float, regularization: float
) -> None:
    arms, rewards = plays(STEPS)
    agent = learn(name, arms, rewards, regularization=regularization, **parameters)
    close(agent, paper(arms[-kept:], rewards[-kept:], discount, regularization))


@pytest.mark.parametrize(("name", "parameters", "kept", "discount"), MEMORIES)
def test_scikit_learn_agrees(
    name: str, parameters: dict[str, Any], kept: int, discount: float
) -> None:
    arms, rewards = plays(STEPS, seed=1)
    agent = learn(name, arms, rewards, regularization=0.01, **parameters)
    weights = discount ** np.arange(kept - 1, -1, -1.0)
    model = GaussianProcessRegressor(RBF(0.2, "fixed"), alpha=0.01 / weights, optimizer=None)
    model.fit(DOMAIN[arms[-kept:]], rewards[-kept:])
    mean, std = model.predict(DOMAIN, return_std=True)
    np.testing.assert_allclose(agent.posterior().mean, mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(agent.posterior().std, std, rtol=0, atol=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize(
    "regularization", [1e-6, *(pytest.param(lam, marks=pytest.mark.slow) for lam in (0.01, 1.0))]
)
def test_a_window_is_right_after_5000_steps(regularization: float) -> None:
    arms, rewards = plays(5_000)
    agent = learn("sw-gp-ucb", arms, rewards, window=100, regularization=regularization)
    close(agent, paper(arms[-100:], rewards[-100:], 1.0, regularization))


@pytest.mark.slow
def test_a_restart_is_right_after_5000_steps() -> None:
    arms, rewards = plays(5_000)
    agent = learn("r-gp-ucb", arms, rewards, restart_period=130, regularization=0.01)
    kept = 5_000 % 130
    close(agent, paper(arms[-kept:], rewards[-kept:], 1.0, 0.01))


def dense(arms: Ints, rewards: Floats, weights: Floats, regularization: float) -> list[Floats]:
    """Return mean, std and gain by t x t matrices in double precision, weights up to 1."""
    K, k = PROBLEM.kernel(DOMAIN[arms], DOMAIN[arms]), PROBLEM.kernel(DOMAIN[arms], DOMAIN)
    root = np.sqrt(weights)[:, None]
    M = root * K * root.T + regularization * np.eye(len(arms))
    mean = (root * k).T @ np.linalg.solve(M, root[:, 0] * rewards)
    variance = 1 - np.sum(root * k * np.linalg.solve(M, root * k), axis=0)
    double = np.eye(len(arms)) + weights[:, None] * K * weights / regularization
    return [mean, np.sqrt(variance), np.linalg.slogdet(double)[1] / 2]


@pytest.mark.slow
def test_discount_0_9_is_right_after_10000_steps() -> None:
    # eta^{-10,000} is 10^457, beyond a double; 0.9^400 is 5e-19, so older plays do not matter.
    arms, rewards = plays(10_000)
    agent = learn("wgp-ucb", arms, rewards, discount=0.9, regularization=0.01)
    mean, std, gain = dense(arms[-400:], rewards[-400:], 0.9 ** np.arange(399, -1, -1.0), 0.01)
    np.testing.assert_allclose(agent.posterior().mean, mean, rtol=0, atol=1e-8)
    np.testing.assert_allclose(agent.posterior().std, std, rtol=0, atol=1e-8)
    np.testing.assert_allclose(agent.information_gain(), gain, rtol=0, atol=1e-8)


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("wgp-ucb", {"discount": 1.0}),
        ("sw-gp-ucb", {"window": math.inf}),
        ("sw-gp-ucb", {"window": 300}),
        ("r-gp-ucb", {"restart_period": math.inf}),
        ("r-gp-ucb", {"restart_period": 301}),
    ],
    ids=lambda value: value if isinstance(value, str) else str(*value.values()),
)
def test_without_forgetting_every_agent_is_igp_ucb(name: str, parameters: dict[str, Any]) -> None:
    arms, rewards = plays(300)
    stationary = learn("igp-ucb", arms, rewards)
    agent = learn(name, arms, rewards, **parameters)
    np.testing.assert_allclose(agent.posterior(), stationary.posterior(), rtol=0, atol=1e-9)
    assert agent.information_gain() == pytest.approx(stationary.information_gain(), abs=1e-9)
    assert agent.act() == stationary.act()
