"""Weights of one's own, in the paper's literal form, and what they may not be."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.gain import gain_bound
from wgp_agents.gp.spectrum import mercer_spectrum
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

T = 40
DOMAIN = np.linspace(0.0, 1.0, 100)[:, None]
PROBLEM = BanditProblem(SquaredExponential(0.2), DOMAIN, T, 0.1, 1.0, 1.0)
BOX = BanditProblem(SquaredExponential(0.2), DOMAIN, T, 0.1, 1.0, 1.0, continuous=True)

WEIGHTS: dict[str, Callable[[int], float]] = {
    "square": lambda t: t**2,
    "polynomial": lambda t: 1 + 0.3 * t + 0.01 * t**3,
    "steps": lambda t: 2.0 ** (t // 9),
    "equal": lambda t: 7,
    "exponential": lambda t: 0.8**-t,
    "jump": lambda t: 1.0 if t < 20 else 1e6,
    "falling": lambda t: 1 / t,
    "up-and-down": lambda t: 1 + 0.95 * math.sin(t),
    "drop": lambda t: 30.0 if 9 < t < 20 else 2.0,
}

every_weight = pytest.mark.parametrize("form", WEIGHTS)


def make(problem: BanditProblem = PROBLEM, **parameters: Any) -> GPAgent:
    agent = wgp_agents.make("wgp-ucb", problem, **parameters)
    assert isinstance(agent, GPAgent)
    agent.reset(0)
    return agent


def plays(steps: int = T) -> tuple[Ints, Floats]:
    rng = np.random.default_rng(0)
    return rng.integers(100, size=steps), rng.standard_normal(steps)


def printed(
    X: Floats, y: Floats, w: Floats, ridge: float, points: Floats
) -> tuple[Floats, Floats, float]:
    """Return mean, std and gain as [Deng22] prints them: lambda_t = lambda w_t, no rescaling.

    K~ = W^{1/2} K W^{1/2}, k~ = W^{1/2} k; for the gain W K W / (lambda w_t^2).
    """
    kernel, root = PROBLEM.kernel, np.diag(np.sqrt(w))
    K = kernel(X, X)
    inverse = np.linalg.inv(root @ K @ root + ridge * w[-1] * np.eye(len(w)))
    k = root @ kernel(X, points)
    variance = kernel.diagonal(points) - np.einsum("ia,ij,ja->a", k, inverse, k)
    double = np.eye(len(w)) + np.diag(w) @ K @ np.diag(w) / (ridge * w[-1] ** 2)
    return k.T @ inverse @ (root @ y), np.sqrt(variance), float(np.linalg.slogdet(double)[1]) / 2


@pytest.mark.parametrize("given", ["array", "list", "function"])
@pytest.mark.parametrize("discount", [0.5, 0.9, 1.0])
def test_exponential_weights_are_a_discount(discount: float, given: str) -> None:
    w = discount ** -np.arange(1.0, T + 1)
    forms: dict[str, Any] = {
        "array": 3.7 * w,  # the scale does not matter
        "list": w.tolist(),
        "function": lambda t: discount**-t,
    }
    ours, theirs = make(weights=forms[given]), make(discount=discount)
    arms, rewards = plays()
    for arm, reward in zip(arms.tolist(), rewards.tolist(), strict=True):
        for agent in (ours, theirs):
            agent.observe(arm, reward)
        np.testing.assert_allclose(ours.posterior(), theirs.posterior(), rtol=0, atol=1e-10)
        assert ours.information_gain() == pytest.approx(theirs.information_gain(), abs=1e-10)
        assert ours.act() == theirs.act()


@pytest.mark.parametrize("ridge", [1e-3, 0.01, 1.0])
@every_weight
def test_the_papers_literal_form(form: str, ridge: float) -> None:
    agent = make(weights=WEIGHTS[form], regularization=ridge)
    arms, y = plays()
    w = np.array([float(WEIGHTS[form](t)) for t in range(1, T + 1)])
    for t in range(1, T + 1):
        agent.observe(int(arms[t - 1]), float(y[t - 1]))
        if t in (1, 2, 8, 9, 10, 19, 20, 21, T):
            mean, std, gain = printed(DOMAIN[arms[:t]], y[:t], w[:t], ridge, DOMAIN)
            np.testing.assert_allclose(agent.posterior().mean, mean, rtol=0, atol=1e-7)
            np.testing.assert_allclose(agent.posterior().std, std, rtol=0, atol=1e-7)
            assert agent.information_gain() == pytest.approx(gain, abs=1e-7)


@every_weight
def test_the_width_takes_the_double_weighted_gain(form: str) -> None:
    agent = make(weights=WEIGHTS[form], regularization=0.04)
    arms, y = plays(25)
    for arm, reward in zip(arms.tolist(), y.tolist(), strict=True):
        agent.observe(arm, reward)
    w = np.array([float(WEIGHTS[form](t)) for t in range(1, 26)])
    mean, std, gain = printed(DOMAIN[arms], y, w, 0.04, DOMAIN)
    beta = 1 + 0.1 / 0.2 * math.sqrt(2 * math.log(10) + 2 * gain)
    np.testing.assert_allclose(agent.beta(), [beta], rtol=0, atol=1e-7)
    bound = mean + beta * std
    assert bound[agent.act()] >= bound.max() - 1e-6


@every_weight
def test_weights_on_a_box(form: str) -> None:
    agent, rng = make(BOX, weights=WEIGHTS[form]), np.random.default_rng(3)
    X, y = rng.random((T, 1)), rng.standard_normal(T)
    for point, reward in zip(X, y, strict=True):
        agent.observe(point, reward)
    w = np.array([float(WEIGHTS[form](t)) for t in range(1, T + 1)])
    mean, std, gain = printed(X, y, w, 0.01, DOMAIN)
    # The features of a box are right to 3e-9 in k(x, x); errors were at worst 4e-7, 2e-8, 2e-7,
    # and of the mean 4e-6 where weights fall.
    slack = 3e-6 if (np.diff(w) >= 0).all() else 3e-5
    np.testing.assert_allclose(agent.posterior().mean, mean, rtol=0, atol=slack)
    np.testing.assert_allclose(agent.posterior().std, std, rtol=0, atol=1e-6)
    assert agent.information_gain() == pytest.approx(gain, abs=3e-6)


def test_each_learner_counts_its_own_steps() -> None:
    w = np.array([1.0, 1.0, 5.0, 6.0, 50.0, *range(51, T + 46)])
    batch = BanditProblem(SquaredExponential(0.2), DOMAIN, T, 0.1, np.ones(2), np.ones(2))
    agent = make(batch, weights=w)
    shown = np.array([[0.1, 1.0, 0.0, 1.0], [0.1, 1.0, 1.0, -1.0]])
    for t in range(6):
        shown[:, 2] = np.array([3 * t, 99 - 5 * t]) / 99
        agent.predict(shown, episode_start=[False, t == 2])  # the second begins anew at t = 2
    first = printed(DOMAIN[3 * np.arange(6)], np.ones(6), w[:6], 0.01, DOMAIN)
    second = printed(DOMAIN[99 - 5 * np.arange(3, 6)], -np.ones(3), w[:3], 0.01, DOMAIN)
    for i, expected in enumerate((first, second)):
        np.testing.assert_allclose(agent.posterior().mean[i], expected[0], rtol=0, atol=1e-8)
        np.testing.assert_allclose(agent.posterior().std[i], expected[1], rtol=0, atol=1e-8)
        np.testing.assert_allclose(agent.information_gain()[i], expected[2], rtol=0, atol=1e-8)


def test_beyond_the_horizon_the_last_ratio_goes_on() -> None:
    agent = make(weights=lambda t: t**2)
    arms, y = plays(T + 8)
    for arm, reward in zip(arms.tolist(), y.tolist(), strict=True):
        agent.observe(arm, reward)
    w = np.arange(1.0, T + 9) ** 2
    w[T:] = T**2 * (T / (T - 1)) ** (2.0 * np.arange(1, 9))
    mean, std, _ = printed(DOMAIN[arms], y, w, 0.01, DOMAIN)
    np.testing.assert_allclose(agent.posterior(), [mean, std], rtol=0, atol=1e-8)


def test_beyond_the_horizon_weights_fall_no_further() -> None:
    agent = make(weights=lambda t: 1 / t)
    arms, y = plays(T + 8)
    for arm, reward in zip(arms.tolist(), y.tolist(), strict=True):
        agent.observe(arm, reward)
    w = 1 / np.minimum(np.arange(1.0, T + 9), T)
    mean, std, _ = printed(DOMAIN[arms], y, w, 0.01, DOMAIN)
    np.testing.assert_allclose(agent.posterior(), [mean, std], rtol=0, atol=1e-7)


def test_where_weights_fall_the_guarantee_is_the_tight_one() -> None:
    # An arm that pays B = 1 on average, noise R = 0.1, lambda = R^2, weights 1 / t: at t = 40 the
    # bound with sigma~ fails in more than delta = 0.1 of all runs, 18.7 % (the normal law of the
    # weighted mean), that of Theorem 2 in none.
    each, runs = np.ones(400), {}
    source = BanditProblem(SquaredExponential(0.2), DOMAIN[:1], T, 0.1, each, each)
    y = 1 + 0.1 * np.random.default_rng(0).standard_normal((T, 400))
    for width in ("standard", "tight"):
        agent = make(source, weights=lambda t: 1 / t, width=width)
        for row in y:
            agent.observe(np.zeros(400, int), row)
        lower, upper = agent.confidence_interval()
        runs[width] = np.mean((lower[:, 0] > 1) | (upper[:, 0] < 1))
    assert runs["standard"] > 0.12
    assert runs["tight"] == 0.0


@every_weight
def test_the_bound_of_the_gain_follows_the_weights(form: str) -> None:
    agent = make(weights=WEIGHTS[form], gain="bound")
    spectrum = mercer_spectrum(PROBLEM.kernel, DOMAIN)
    arms, y = plays()
    w = np.array([float(WEIGHTS[form](t)) for t in range(1, T + 1)])
    for t in range(1, T + 1):
        agent.observe(int(arms[t - 1]), float(y[t - 1]))
        total = float(np.sum((w[:t] / w[t - 1]) ** 2))
        gain = float(gain_bound(spectrum, total, 0.01).value)
        np.testing.assert_allclose(
            agent.beta(), [1 + math.sqrt(2 * math.log(10) + 2 * gain)], rtol=1e-12
        )
        assert agent.information_gain() <= gain


UPWARD = np.arange(1.0, T + 1)
RULE = (
    r"'weights' parameter of WGPUCB must be positive and finite, none above 10000 times a later "
    rf"one, one for each of {T} steps"
)


def changed(index: int, value: float) -> Floats:
    w = UPWARD.copy()
    w[index] = value
    return w


@pytest.mark.parametrize(
    "weights",
    [
        pytest.param(0.78 ** -UPWARD[::-1], id="falls-too-far"),
        pytest.param(changed(-1, 0.0038), id="falls-too-far-at-once"),
        pytest.param(changed(0, 0.0), id="zero"),
        pytest.param(UPWARD - 5, id="negative"),
        pytest.param(changed(-1, math.inf), id="inf"),
        pytest.param(changed(3, math.nan), id="nan"),
        pytest.param(UPWARD[:-1], id="short"),
        pytest.param(np.append(UPWARD, T + 1), id="long"),
        pytest.param(UPWARD[None], id="two-axes"),
        pytest.param(3.0, id="scalar"),
        pytest.param([[1.0], [1.0, 2.0]], id="ragged"),
        pytest.param(["a"] * T, id="text"),
        pytest.param(np.ones(T, bool), id="bool"),
        pytest.param(lambda t: t**-2.6, id="function-falls-too-far"),
        pytest.param(lambda t: t - 1, id="function-zero"),
        pytest.param(lambda t: "a", id="function-text"),
    ],
)
def test_what_is_no_weights(weights: Any) -> None:
    with pytest.raises(ValueError, match=RULE):
        make(weights=weights)


def test_what_does_not_go_together_with_weights() -> None:
    match = "'discount' parameter of WGPUCB must be None where weights are given. Got 0.9"
    with pytest.raises(ValueError, match=match):
        make(weights=UPWARD, discount=0.9)
    match = "'gain' parameter of WGPUCB must be 'realised' or 'bound' where weights are given"
    with pytest.raises(ValueError, match=match):
        make(weights=UPWARD, gain="greedy")


def test_what_flat_weights_gathered_fades_when_they_grow() -> None:
    # What rounding lost while nothing faded must fade, too.
    problem = BanditProblem(SquaredExponential(0.2), DOMAIN, 100, 0.1, 1.0, 1.0)
    weights = [1.0] * 50 + [1e30] * 50
    agent, fresh = make(problem, weights=weights), make(problem, weights=weights)
    arms, rewards = plays(70)
    for t, (arm, reward) in enumerate(zip(arms.tolist(), rewards, strict=True)):
        agent.observe(arm, 1e15 * reward if t < 50 else 1.0)
        fresh.observe(arm, 0.0 if t < 50 else 1.0)
    np.testing.assert_allclose(agent.posterior().mean, fresh.posterior().mean, rtol=0, atol=1e-9)
