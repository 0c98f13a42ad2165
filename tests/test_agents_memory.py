"""When each memory forgets: at which step, which learner, and what is left."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates import posteriors
from wgp_gym.kernels import Kernel, Linear, Matern, SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

DOMAIN = np.linspace(0.0, 1.0, 100)[:, None]
KERNEL = SquaredExponential(0.2)
PROBLEM = BanditProblem(KERNEL, DOMAIN, 500, 0.1, 1.0, 1.0)


def make(name: str, problem: BanditProblem = PROBLEM, **parameters: Any) -> GPAgent:
    agent = wgp_agents.make(name, problem, **parameters)
    assert isinstance(agent, GPAgent)
    agent.reset(0)
    return agent


def plays(steps: int, n: int = 100) -> tuple[Ints, Floats]:
    rng = np.random.default_rng(0)
    return rng.integers(n, size=steps), rng.standard_normal(steps)


def stationary(arms: Ints, rewards: Floats) -> GPAgent:
    """Return the agent that never forgets, after these plays and no others."""
    agent = make("igp-ucb")
    for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
        agent.observe(arm, reward)
    return agent


def dense(
    problem: BanditProblem, arms: Ints, rewards: Floats, weights: Floats, regularization: float
) -> tuple[Floats, Floats]:
    """Return mean and variance on the domain by t x t matrices, weights up to 1."""
    X, root = problem.domain[arms], np.sqrt(weights)[:, None]
    M = root * problem.kernel(X, X) * root.T + regularization * np.eye(len(arms))
    k = root * problem.kernel(X, problem.domain)
    solved = np.linalg.solve(M, k)
    variance = problem.kernel.diagonal(problem.domain) - np.sum(k * solved, axis=0)
    return solved.T @ (root[:, 0] * rewards), variance


@pytest.mark.parametrize("period", [1, 2, 7])
def test_restart_forgets_everything_after_exactly_h_observations(period: int) -> None:
    arms, rewards = plays(23)
    agent = make("r-gp-ucb", restart_period=period)
    for t in range(23):
        agent.observe(int(arms[t]), float(rewards[t]))
        kept = (t + 1) % period
        fresh = stationary(arms[t + 1 - kept : t + 1], rewards[t + 1 - kept : t + 1])
        np.testing.assert_array_equal(agent.posterior(), fresh.posterior())
        assert agent.information_gain() == fresh.information_gain()
        if kept == 0:
            np.testing.assert_array_equal(agent.posterior().mean, np.zeros(100))
            np.testing.assert_allclose(agent.posterior().std, np.ones(100), atol=1e-9)
            assert agent.information_gain() == 0


@pytest.mark.slow
@pytest.mark.parametrize("window", [1, 2, 7])
def test_window_holds_exactly_the_last_w_observations(window: int) -> None:
    arms, rewards = plays(23)
    agent = make("sw-gp-ucb", window=window)
    for t in range(1, 24):
        agent.observe(int(arms[t - 1]), float(rewards[t - 1]))
        mean, std = agent.posterior()
        for size in {1, 2, 3, 6, 7, 8} | {t}:
            last = slice(max(t - size, 0), t)
            other = stationary(arms[last], rewards[last]).posterior()
            same = min(size, t) == min(window, t)
            assert np.allclose(mean, other.mean, rtol=0, atol=1e-9) == same
            assert np.allclose(std, other.std, rtol=0, atol=1e-9) == same


RESTARTS = {(13, 1), (29, 2), (50, 2), (61, 0), (61, 3)}  # step and learner

# For each agent, one parameter that differs between four learners, and the weight of a play
# that was followed by `age` others, `seen` plays having been seen since the learner began.
MIXTURES = [
    pytest.param("igp-ucb", {}, lambda i, age, seen: age >= 0, id="igp-ucb"),
    pytest.param(
        "wgp-ucb",
        {"discount": [0.5, 1.0, 0.9, 0.99]},
        lambda i, age, seen: np.array([0.5, 1.0, 0.9, 0.99])[i] ** age,
        id="wgp-ucb",
    ),
    pytest.param(
        "sw-gp-ucb",
        {"window": [1, 5, 40, math.inf]},
        lambda i, age, seen: age < [1, 5, 40, math.inf][i],
        id="sw-gp-ucb",
    ),
    pytest.param(
        "r-gp-ucb",
        {"restart_period": [1, 5, 40, math.inf]},
        lambda i, age, seen: age < math.fmod(seen, [1, 5, 40, math.inf][i]),
        id="r-gp-ucb",
    ),
]


@pytest.mark.parametrize(("name", "parameters", "weight"), MIXTURES)
def test_learners_forget_and_restart_each_on_their_own(
    name: str, parameters: dict[str, Any], weight: Any
) -> None:
    rng = np.random.default_rng(1)
    problem = BanditProblem(KERNEL, DOMAIN, 500, 0.1, np.ones(4), np.ones(4))
    ridge = [0.01, 1.0, 0.1, 0.01]
    agent = make(name, problem, regularization=ridge, **parameters)
    seen: list[list[tuple[int, float]]] = [[], [], [], []]
    for t in range(90):
        start = np.array([t == 0 or (t, i) in RESTARTS for i in range(4)])
        arms, rewards = rng.integers(100, size=4), rng.standard_normal(4)
        shown = np.column_stack([np.full(4, t / 500), np.ones(4), DOMAIN[arms, 0], rewards])
        agent.predict(shown, episode_start=start)
        for i in range(4):
            seen[i] = [] if start[i] else [*seen[i], (int(arms[i]), float(rewards[i]))]
        if t % 9 == 8:  # often: an error may be healed when an inverse is computed anew
            mean, std = agent.posterior()
            for i in range(4):
                count = len(seen[i])
                w = np.array([float(weight(i, age, count)) for age in range(count - 1, -1, -1)])
                x, y = (np.array(column) for column in zip(*seen[i], strict=True))
                expected = dense(problem, x[w > 0], y[w > 0], w[w > 0], ridge[i])
                np.testing.assert_allclose(mean[i], expected[0], rtol=0, atol=1e-8)
                np.testing.assert_allclose(std[i] ** 2, expected[1], rtol=0, atol=1e-9)


@pytest.mark.parametrize("window", [10**6, 10**18, 1e19, 1e300], ids=str)
@pytest.mark.parametrize(
    ("name", "parameter"), [("sw-gp-ucb", "window"), ("r-gp-ucb", "restart_period")]
)
def test_a_huge_memory_is_an_infinite_one(name: str, parameter: str, window: float) -> None:
    arms, rewards = plays(30)
    parameters: dict[str, Any] = {parameter: window}
    agent = make(name, **parameters)
    for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
        agent.observe(arm, reward)
    np.testing.assert_array_equal(agent.posterior(), stationary(arms, rewards).posterior())


def square(points_per_dim: int) -> Floats:
    axis = np.linspace(0.0, 1.0, points_per_dim)
    return np.stack([one.ravel() for one in np.meshgrid(axis, axis, indexing="ij")], axis=1)


@pytest.mark.parametrize(
    ("kernel", "domain", "many"),
    [
        pytest.param(Matern(0.2, 0.5), DOMAIN, True, id="matern-0.5"),
        pytest.param(Matern(0.2, 1.5), DOMAIN, True, id="matern-1.5"),
        pytest.param(SquaredExponential(0.2), square(12), True, id="square-12x12"),
        pytest.param(Linear(), square(9), False, id="linear"),
    ],
)
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("wgp-ucb", {"discount": 0.9}),
        ("sw-gp-ucb", {"window": 12}),
        ("igp-ucb", {}),
    ],
    ids=["wgp-ucb", "sw-gp-ucb", "igp-ucb"],
)
def test_any_kernel_and_any_number_of_features(
    kernel: Kernel,
    domain: Floats,
    many: bool,
    name: str,
    parameters: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = BanditProblem(kernel, domain, 500, 0.1, 1.0, 1.0)
    arms, rewards = plays(30, len(domain))
    agent = make(name, problem, **parameters)
    monkeypatch.setattr(posteriors, "MANY_FEATURES", math.inf)
    plain = make(name, problem, **parameters)
    for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
        agent.observe(arm, reward)
        plain.observe(arm, reward)
    w = parameters.get("discount", 1.0) ** np.arange(29, -1, -1.0)
    kept = slice(30 - parameters.get("window", 30), None)
    mean, variance = dense(problem, arms[kept], rewards[kept], w[kept], 0.01)
    for one in (agent, plain):
        np.testing.assert_allclose(one.posterior().mean, mean, rtol=0, atol=1e-8)
        np.testing.assert_allclose(one.posterior().std ** 2, variance, rtol=0, atol=1e-9)
    if name == "wgp-ucb":  # the rounding tells that these are two programs, where they should be
        equal = np.array_equal(agent.posterior(), plain.posterior())
        assert equal != many


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("wgp-ucb", {"discount": 0.99}),
        ("sw-gp-ucb", {"window": 60}),
        ("sw-gp-ucb", {"window": math.inf}),
        ("r-gp-ucb", {"restart_period": 70}),
        ("igp-ucb", {}),
    ],
    ids=["wgp-ucb", "sw-gp-ucb", "sw-gp-ucb-inf", "r-gp-ucb", "igp-ucb"],
)
def test_memory_use_does_not_grow(name: str, parameters: dict[str, Any]) -> None:
    arms, rewards = plays(6_000)
    agent = make(name, **parameters)

    def run(first: int, last: int) -> None:
        for t in range(first, last):
            agent.act()
            agent.observe(int(arms[t]), float(rewards[t]))

    tracemalloc.start()
    try:
        run(0, 3_000)  # until all code that is called now and then was loaded
        before = tracemalloc.get_traced_memory()[0]
        run(3_000, 6_000)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert grown < 20_000  # bytes: an arm and a reward kept for each step would be 48,000


def test_a_huge_reward_leaves_no_trace_when_it_leaves_the_window() -> None:
    agent, fresh = make("sw-gp-ucb", window=3), make("sw-gp-ucb", window=3)
    last = [0.5, 0.25, 0.125]
    for reward in [1e12, *[1.0] * 200, *last]:
        agent.observe(3, reward)
    for reward in last:
        fresh.observe(3, reward)
    np.testing.assert_allclose(agent.posterior().mean, fresh.posterior().mean, atol=1e-8)
