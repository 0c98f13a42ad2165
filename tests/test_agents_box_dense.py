"""Agents on a box: what they know of the points that they played, and the bound of each play.

A belief is a covariance of the plays in time and a noise variance of each, in t x t matrices.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.box import Box
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

R, WIDTH, STEPS, LENGTHSCALE = 0.2, 2.0, 18, 0.3


class Belief(NamedTuple):
    """What an agent makes of t plays at its next choice, beside the kernel in space.

    Attributes:
        together: The covariance in time of plays, `(t, t)`.
        ahead: Of plays and the next step, `(t,)`.
        now: Of the next step.
        noise: The noise variance of each play, infinite where it is forgotten, `(t,)`.
    """

    together: Floats
    ahead: Floats
    now: float
    noise: Floats


def weighted(weights: Any) -> Belief:
    """Return a belief of weighted data, as printed: lambda w_t for all, the s-th play w_s times."""
    t, last = len(weights), weights[-1] if len(weights) else 1.0
    noise = np.divide(R**2 * last, weights, out=np.full(t, np.inf), where=weights > 0)
    return Belief(np.ones((t, t)), np.ones(t), 1.0, noise)


def drift(t: int, eps: float) -> Belief:
    """Return the belief of f_{t+1} = (1 - eps)^{1/2} f_t + eps^{1/2} g."""
    s = np.arange(float(t))
    together = (1 - eps) ** (np.abs(s[:, None] - s) / 2)
    return Belief(together, (1 - eps) ** ((t - s) / 2), 1.0, np.full(t, R**2))


def walk(t: int, injection: float) -> Belief:
    """Return the belief of f_{t+1} = f_t + sigma_w g."""
    s = np.arange(float(t))
    together = 1 + injection * np.minimum(s[:, None], s)
    return Belief(together, 1 + injection * s, 1 + injection * t, np.full(t, R**2))


def ages(t: int) -> Floats:
    return np.arange(t - 1.0, -1.0, -1.0)


AGENTS: dict[str, tuple[str, dict[str, Any], Callable[[int], Belief]]] = {
    "all": ("igp-ucb", {}, lambda t: weighted(np.ones(t))),
    "window": ("sw-gp-ucb", {"window": 6}, lambda t: weighted(1.0 * (ages(t) < 6))),
    "restart": ("r-gp-ucb", {"restart_period": 7}, lambda t: weighted(1.0 * (ages(t) < t % 7))),
    "discount": ("wgp-ucb", {"discount": 0.85}, lambda t: weighted(0.85 ** ages(t))),
    "falling": ("wgp-ucb", {"weights": lambda t: 1 / t}, lambda t: weighted(1 / (t - ages(t)))),
    "blocks": (
        "bob-wgp-ucb",
        {"block_length": 8, "discounts": [0.8]},
        lambda t: weighted(0.8 ** ages(t) * (ages(t) < t % 8)),
    ),
    "drift": ("tv-gp-ucb", {"eps": 0.05}, lambda t: drift(t, 0.05)),
    "restarts": ("tv-r-gp-ucb", {"restart_period": 5}, lambda t: weighted(1.0 * (ages(t) < t % 5))),
    "walk": ("ui-gp-ucb", {"injection": 0.04}, lambda t: walk(t, 0.04)),
}  # fmt: skip


def se(x: Floats, y: Floats) -> Floats:
    gaps = np.sum((x[:, None] - y[None]) ** 2, axis=-1)
    found: Floats = np.exp(-gaps / (2 * LENGTHSCALE**2))
    return found


def dense(belief: Belief, X: Floats, y: Floats, points: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance at points, from the plays that are not forgotten."""
    held = np.isfinite(belief.noise)
    X, y = X[held], y[held]
    M = se(X, X) * belief.together[np.ix_(held, held)] + np.diag(belief.noise[held])
    k = se(X, points) * belief.ahead[held, None]
    solved = np.linalg.solve(M, k)
    return solved.T @ y, belief.now - np.sum(k * solved, axis=0)


@functools.cache
def grid(dim: int) -> Floats:
    axis = np.linspace(0.0, 1.0, {1: 1_001, 2: 41}[dim])
    return np.stack([one.ravel() for one in np.meshgrid(*[axis] * dim, indexing="ij")], axis=1)


# How far a play may stay below the top in d = 2, in units of beta: see test_agents_box.py.
@pytest.mark.parametrize(("dim", "share"), [(1, 0.0), (2, 0.06)])
@pytest.mark.parametrize("kind", AGENTS)
def test_plays_and_what_is_known_of_them(kind: str, dim: int, share: float) -> None:
    name, parameters, belief_after = AGENTS[kind]
    domain = np.random.default_rng(9).random((20, dim))
    kernel = SquaredExponential(LENGTHSCALE)
    problem = BanditProblem(kernel, domain, 60, R, 1.0, 1.0, continuous=True)
    agent = wgp_agents.make(name, problem, confidence_width=WIDTH, **parameters)
    assert isinstance(agent, GPAgent)
    assert isinstance(agent.action_set, Box)
    agent.reset(0)
    X, y, rng = np.zeros((0, dim)), np.zeros(0), np.random.default_rng(2)
    slack = 1e-6 + 2_000 * float(agent.feature_error())
    for t in range(STEPS):
        point = np.asarray(agent.act(), float)[None]
        if t and t % 8:  # a block begins when it is asked for its first play
            belief = belief_after(t)
            mean, variance = dense(belief, X, y, np.concatenate([X, point, grid(dim)]))
            seen = agent.surrogate.predict(agent.action_set.at(X, 0), np.zeros(1, int))
            np.testing.assert_allclose(seen.mean[0], mean[:t], rtol=0, atol=slack)
            np.testing.assert_allclose(seen.variance[0], variance[:t], rtol=0, atol=slack)
            bound = mean + WIDTH * np.sqrt(np.maximum(variance, 0.0))
            assert bound[t] >= bound[t + 1 :].max() - share * WIDTH - slack
        reward = float(np.cos(4 * point.sum() + t / 9) + R * rng.standard_normal())
        agent.observe(point[0].astype(np.float32), reward)
        X, y = np.concatenate([X, point]), np.append(y, reward)
