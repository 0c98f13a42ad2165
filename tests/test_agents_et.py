"""ET-GP-UCB: its events, against t x t matrices of the data since the last one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_agents.algorithms.adaptive.et_gp_ucb import ETGPUCB
from wgp_agents.core.observation import observation_of
from wgp_gym.kernels import CentredLinear, Kernel, SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

DOMAIN = np.linspace(0.0, 1.0, 50)[:, None]
KERNEL = SquaredExponential(0.2)
NOISE, RIDGE, DELTA = 0.1, 0.01, 0.2


class Naive:
    """The posterior of a dataset by one matrix, and the trigger as printed."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.clock, self.events = kernel, 1, 0
        self.places: list[Floats] = []
        self.rewards: list[float] = []

    def posterior(self, X: Floats) -> tuple[Floats, Floats]:
        if not self.places:
            return np.zeros(len(X)), self.kernel.diagonal(X)
        A = np.stack(self.places)
        k = self.kernel(A, X)
        solved = np.linalg.solve(self.kernel(A, A) + RIDGE * np.eye(len(A)), k)
        variance = self.kernel.diagonal(X) - np.sum(k * solved, axis=0)
        return solved.T @ np.array(self.rewards), np.maximum(variance, 0.0)

    def observe(self, x: Floats, y: float) -> None:
        mean, variance = (float(part[0]) for part in self.posterior(x[None]))
        pi_t = math.pi**2 * self.clock**2 / 6
        rho, w = 2 * math.log(2 * pi_t / DELTA), math.sqrt(2 * RIDGE * math.log(2 * pi_t / DELTA))
        self.clock += 1
        if abs(y - mean) > math.sqrt(rho * variance) + w:
            self.places, self.rewards, self.clock = [], [], 1
            self.events += 1
        self.places.append(x)
        self.rewards.append(y)


def truth(x: Floats, t: int) -> float:
    """Return a function that jumps after every 17 steps."""
    return math.sin(4 * float(x.sum()) + 2.5 * (t // 17))


@pytest.mark.parametrize("kind", ["arms", "box", "contexts"])
def test_it_forgets_where_a_naive_trigger_fires(kind: str) -> None:
    rng = np.random.default_rng(2)
    kernel: Kernel = CentredLinear() if kind == "contexts" else KERNEL
    domain = np.zeros((8, 3)) if kind == "contexts" else DOMAIN
    problem = BanditProblem(
        kernel, domain, 70, NOISE, continuous=kind == "box", contextual=kind == "contexts"
    )
    agent, naive = ETGPUCB(problem, alarm_delta=DELTA), Naive(kernel)
    agent.reset(0)
    for t in range(70):
        shown = rng.random((8, 3))
        action: Any = agent.act(observation_of(shown) if kind == "contexts" else None)
        X = shown if kind == "contexts" else DOMAIN
        x = np.array(action if kind == "box" else X[action], np.float64)
        mean, variance = naive.posterior(X)
        np.testing.assert_allclose(agent.posterior().mean, mean, atol=1e-5)
        np.testing.assert_allclose(agent.posterior().std ** 2, variance, atol=1e-6)
        assert agent.beta() == pytest.approx(math.sqrt(0.8 * math.log(4 * (t + 1))))
        y = truth(x, t) + NOISE * float(rng.standard_normal())
        agent.observe(action, y)
        naive.observe(x, y)
        assert agent.resets.tolist() == [naive.events]
    assert naive.events >= 3


@pytest.mark.parametrize("tests", [1, 4])
def test_an_event_is_beyond_the_bound(tests: int) -> None:
    agent = ETGPUCB(BanditProblem(KERNEL, DOMAIN, 60, np.full(2, NOISE)), alarm_delta=DELTA)
    agent.reset(0)
    for _ in range(tests - 1):
        agent.observe([0, 0], [0.0, 0.0])
    t = tests - 1
    std = 1.0 if t == 0 else math.sqrt(1 - t / (t + RIDGE))
    rho = 2 * math.log(2 * math.pi**2 * tests**2 / (6 * DELTA))
    bound = math.sqrt(rho) * (std + NOISE)
    agent.observe([0, 0], [-bound * (1 - 1e-9), -bound * (1 + 1e-9)])
    assert agent.resets.tolist() == [0, 1]


def test_who_does_not_play_is_left_alone() -> None:
    agent = ETGPUCB(BanditProblem(KERNEL, DOMAIN, 60, np.full(3, NOISE)))
    agent.reset(0)
    agent.observe([4, 4, 4], [0.3, 0.3, 0.3])
    before = agent.posterior()
    agent.observe([4, 4, 4], [9.0, 9.0, 9.0], active=[False, True, False])
    assert agent.resets.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(agent.posterior().mean[[0, 2]], before.mean[[0, 2]])
    assert agent.restart_rule.clock.tolist() == [2, 1, 2]  # type: ignore[union-attr]


def test_each_episode_begins_alike() -> None:
    agent, runs = ETGPUCB(BanditProblem(KERNEL, DOMAIN, 60, NOISE)), []
    for _ in range(2):
        agent.reset(3)
        for t in range(5):
            agent.observe(0, 0.1 * t)
        runs.append((agent.resets.tolist(), agent.restart_rule.clock.tolist()))  # type: ignore[union-attr]
    assert runs == [([0], [6])] * 2


def draws(batch: int, seed: int) -> Floats:
    """Return functions drawn from the prior, `(B, n)`."""
    root = np.linalg.cholesky(KERNEL(DOMAIN, DOMAIN) + 1e-10 * np.eye(50))
    found: Floats = np.random.default_rng(seed).standard_normal((batch, 50)) @ root.T
    return found


def events(functions: Floats, steps: int, noise: float = NOISE, **words: Any) -> ETGPUCB:
    """Let learners play, each on a function of its own that stays."""
    batch = len(functions)
    rng, rows = np.random.default_rng(1), np.arange(batch)
    agent = ETGPUCB(BanditProblem(KERNEL, DOMAIN, steps, np.full(batch, NOISE)), **words)
    agent.reset(0)
    for _ in range(steps):
        arms = agent.act()
        agent.observe(arms, functions[rows, arms] + noise * rng.standard_normal(batch))
    return agent


@pytest.mark.slow
@pytest.mark.parametrize(("delta", "least", "most"), [(0.1, 0.0, 0.02), (0.9, 0.05, 0.15)])
def test_a_stationary_draw_gives_an_alarm_with_probability_at_most_delta(
    delta: float, least: float, most: float
) -> None:
    # delta bounds it from afar: tails are smaller than their bounds, and the two parts of the
    # error seldom are large together. Over 10 seeds 0.003 to 0.007, and 0.077 to 0.105.
    found = np.mean(events(draws(2_000, 0), 60, alarm_delta=delta).resets > 0)
    assert least <= found <= most <= delta


def test_noise_that_is_larger_than_modelled_gives_alarms() -> None:
    # Over 10 seeds 0.998 to 1, and 0 to 0.002 where the model knows of it.
    assert np.mean(events(draws(500, 0), 60, noise=4 * NOISE).resets > 0) > 0.9
    louder = events(draws(500, 0), 60, noise=4 * NOISE, regularization=16 * RIDGE)
    assert np.mean(louder.resets > 0) < 0.02


def test_a_jump_is_seen() -> None:
    batch, rng, rows = 300, np.random.default_rng(3), np.arange(300)
    before, after = draws(batch, 5), draws(batch, 6)
    agent = ETGPUCB(BanditProblem(KERNEL, DOMAIN, 60, np.full(batch, NOISE)))
    agent.reset(0)
    for t in range(60):
        arms = agent.act()
        function = before if t < 40 else after
        agent.observe(arms, function[rows, arms] + NOISE * rng.standard_normal(batch))
        if t == 39:
            assert np.mean(agent.resets > 0) < 0.03
    # Over 10 seeds 0 to 0.01 before, then 0.79 to 0.84: the arm played may pay as it did.
    assert np.mean(agent.resets > 0) > 0.7


def test_only_who_is_told_and_does_not_believe_it_forgets() -> None:
    agent = ETGPUCB(BanditProblem(KERNEL, DOMAIN, 60, np.full(3, NOISE)))
    agent.reset(0)
    shown = np.array([[0.1, 1.0, 0.0, 0.4]] * 3)
    for _ in range(5):
        agent.predict(shown, episode_start=[False] * 3)
    shown[:, 3] = [0.4, 9.0, 9.0]
    agent.predict(shown, episode_start=[False, False, True])
    assert agent.resets.tolist() == [0, 1, 0]
    mean = agent.posterior().mean[:, 0]
    assert mean == pytest.approx([6 * 0.4 / 6.01, 9.0 / 1.01, 0.0])
    agent.reset(0)
    assert agent.resets.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    ("words", "match"),
    [
        (
            {"alarm_delta": 0.0},
            r"'alarm_delta' parameter of ETGPUCB must be a float in",
        ),
        ({"alarm_delta": 1.0}, r"a float in \[1e-30, 1\)"),
        ({"alarm_delta": [0.1, 0.2]}, r"of shape \(1,\)"),
        ({"delta": 2.0}, r"'delta' parameter of ETGPUCB must be a float in \[1e-30, 1\)"),
        ({"confidence_width": "wide"}, "'confidence_width' parameter of ETGPUCB must be 'theory'"),
        ({"norm_bound": 1.0}, "ETGPUCB has no parameter 'norm_bound'"),
        ({"regularization": 0.0}, r"'regularization' parameter of ETGPUCB must be"),
    ],
    ids=str,
)
def test_bad_parameters(words: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ETGPUCB(BanditProblem(KERNEL, DOMAIN, 60, NOISE), **words)
