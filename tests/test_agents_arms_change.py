"""Agents that watch their arms: against plain loops over all rewards since the last restart."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import rel_entr

from wgp_agents.algorithms.arms.cusum_ucb import CUSUMUCB
from wgp_agents.algorithms.arms.glr_ucb import GLRUCB
from wgp_agents.algorithms.arms.m_ucb import MUCB
from wgp_agents.algorithms.arms.pht_ucb import PHTUCB
from wgp_agents.base import Agent
from wgp_agents.core.argmax import TIE
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.kernels import Empirical
from wgp_gym.problem import BanditProblem

K, T = 4, 500
AGENTS: list[Any] = [CUSUMUCB, PHTUCB, MUCB, GLRUCB]
SEEDS = [11, 12, 13]
FEW = {"num_samples": 30, "epsilon": 0.1, "threshold": 6.0, "alpha": 0.1}
History = list[list[float]]


def problem(batch: int | None = None, noise: float = 0.5, horizon: int = T) -> BanditProblem:
    scale: Any = noise if batch is None else np.full(batch, noise)
    given = {"noise_scale": scale, "norm_bound": K**0.5, "variation_budget": 1.0}
    domain = np.linspace(0, 1, K)[:, None]
    return BanditProblem(Empirical(np.eye(K)), domain, horizon, **given, reward_range=(0.0, 1.0))


class Cusum:
    """CUSUM-UCB with M = 30, epsilon = 0.1, h = 6, alpha = 0.1."""

    def __init__(self) -> None:
        self.past: History = [[] for _ in range(K)]

    def act(self, draw: Callable[[], float]) -> list[float]:
        explores, anyone = draw() < 0.1, int(draw() * K)
        if explores:
            return [math.inf if k == anyone else 0.0 for k in range(K)]
        n = sum(map(len, self.past))
        padding = [math.sqrt(math.log(n) / len(p)) if p else math.inf for p in self.past]
        return [float(np.mean(p or [0])) + c for p, c in zip(self.past, padding, strict=True)]

    def learn(self, arm: int, reward: float) -> bool:
        past = self.past[arm]
        past.append(reward)
        u, up, down = float(np.mean(past[:30])), 0.0, 0.0
        for y in past[30:]:
            up, down = max(0.0, up + y - u - 0.1), max(0.0, down + u - y - 0.1)
        if max(up, down) >= 6.0:
            past.clear()
            return True
        return False


class PageHinkleyBook(Cusum):
    """PHT-UCB with epsilon = 0.15, h = 6, alpha = 0.1."""

    def learn(self, arm: int, reward: float) -> bool:
        past = self.past[arm]
        past.append(reward)
        up = down = 0.0
        for k, y in enumerate(past, 1):
            u = sum(past[:k]) / k
            up, down = max(0.0, up + y - u - 0.15), max(0.0, down + u - y - 0.15)
        if max(up, down) >= 6.0:
            past.clear()
            return True
        return False


class Monitored:
    """M-UCB with w = 30, b = 9, gamma = 0.25."""

    def __init__(self) -> None:
        self.past: History = [[] for _ in range(K)]
        self.tau = self.t = 0

    def act(self, draw: Callable[[], float]) -> list[float]:
        turn = (self.t + 1 - self.tau) % math.floor(K / 0.25)
        if 1 <= turn <= K:
            return [math.inf if k == turn - 1 else 0.0 for k in range(K)]
        logarithm = math.log(self.t + 1 - self.tau)
        return [float(np.mean(p)) + math.sqrt(2 * logarithm / len(p)) for p in self.past]

    def learn(self, arm: int, reward: float) -> bool:
        self.t += 1
        self.past[arm].append(reward)
        last = self.past[arm][-30:]
        if len(last) == 30 and abs(sum(last[15:]) - sum(last[:15])) > 9.0:
            self.past, self.tau = [[] for _ in range(K)], self.t
            return True
        return False


class Ratio:
    """GLR-UCB with its own defaults, and all splits."""

    def __init__(self, restart: str, bernoulli: bool, sigma: float) -> None:
        self.past: History = [[] for _ in range(K)]
        self.tau, self.t, self.episode = [0] * K, 0, 1
        self.restart, self.bernoulli, self.sigma = restart, bernoulli, sigma

    def divergence(self, x: Any, y: Any) -> Any:
        if self.bernoulli:
            return rel_entr(x, y) + rel_entr(1 - x, 1 - y)
        return (x - y) ** 2 / (2 * self.sigma**2)

    def bound(self, past: list[float], age: int) -> float:
        if not past:
            return math.inf
        mean = float(np.mean(past))
        level = max(math.log(age) + 3 * math.log(math.log(age)), 0.0) if age > 1 else 0.0
        far = 1.0 if self.bernoulli else mean + 100
        if level == 0 or mean >= far:
            return mean

        def _excess(q: float) -> float:
            return float(len(past) * self.divergence(mean, q) - level)

        return float(brentq(_excess, mean, far - 1e-15, xtol=1e-14)) if _excess(far) > 0 else far

    def act(self, draw: Callable[[], float]) -> list[float]:
        alpha = min(math.sqrt(K * math.log(T) / T) * math.sqrt(self.episode), 1.0)
        turn = (self.t + 1) % max(math.floor(K / alpha), K + 1)
        if 1 <= turn <= K:
            return [math.inf if k == turn - 1 else 0.0 for k in range(K)]
        return [self.bound(p, self.t + 1 - tau) for p, tau in zip(self.past, self.tau, strict=True)]

    def learn(self, arm: int, reward: float) -> bool:
        self.t += 1
        past = self.past[arm]
        past.append(reward)
        n, sums, s = len(past), np.cumsum(past), np.arange(1, len(past))
        mean, first = sums[-1] / n, sums[:-1] / s
        rest = (sums[-1] - sums[:-1]) / (n - s)
        found = s * self.divergence(first, mean) + (n - s) * self.divergence(rest, mean)
        if n < 2 or found.max() < math.log(3 * n**1.5 * math.sqrt(T)):
            return False
        self.episode += 1
        for k in [arm] if self.restart == "local" else range(K):
            self.past[k], self.tau[k] = [], self.t
        return True


CASES: list[Any] = [
    (CUSUMUCB, FEW, 0.5, Cusum),
    (PHTUCB, {"epsilon": 0.15, "threshold": 6.0, "alpha": 0.1}, 0.5, PageHinkleyBook),
    (MUCB, {"window": 30, "threshold": 9.0, "gamma": 0.25}, 0.5, Monitored),
    (GLRUCB, {"resolution": T}, 0.5, lambda: Ratio("local", True, 1.0)),
    (GLRUCB, {"resolution": T, "restart": "global"}, 0.5, lambda: Ratio("global", True, 1.0)),
    (GLRUCB, {"resolution": T}, 0.3, lambda: Ratio("local", False, 0.3)),
]


def chosen(index: list[float], uniform: float) -> int:
    best = max(index)
    tied = [k for k, value in enumerate(index) if value >= best - TIE or value == best]
    return tied[min(int(uniform * len(tied)), len(tied) - 1)]


@pytest.mark.parametrize(("make", "parameters", "noise", "textbook"), CASES)
def test_decisions_are_the_textbooks(
    make: Any, parameters: dict[str, Any], noise: float, textbook: Any
) -> None:
    agent = make(problem(3, noise), **parameters)
    agent.reset(SEEDS)
    books, streams = [textbook() for _ in SEEDS], [UniformStreams([seed]) for seed in SEEDS]
    rng = np.random.default_rng(5)
    restarts = np.zeros((2, 3), int)
    for t in range(450):
        arms = agent.act()
        for i, book in enumerate(books):

            def _draw(i: int = i) -> float:
                return float(streams[i].draw()[0])

            index = book.act(_draw)
            assert arms[i] == chosen(index, _draw())
        means = np.array([0.9, 0.5, 0.3, 0.2] if t < 250 else [0.1, 0.5, 0.3, 0.9])[arms]
        rewards = (rng.random(3) < means).astype(float)
        if noise != 0.5:
            rewards = means + noise * rng.normal(size=3)
        agent.observe(arms, rewards)
        restarts[int(t >= 250)] += [
            book.learn(int(arm), reward)
            for book, arm, reward in zip(books, arms, rewards, strict=True)
        ]
    assert restarts[0].max() <= 1  # rarely before the change
    assert restarts[1].min() >= 1  # after it


def play(agent: Agent, steps: int, rewards: Any) -> list[Any]:
    actions = []
    for t in range(steps):
        actions.append(agent.act())
        agent.observe(actions[-1], rewards(t, actions[-1]))
    return actions


def noisy(t: int, arms: Any) -> Any:
    """Return rewards of 0 or 1 that depend on the step and the arm alone."""
    return ((t * 7 + arms * 13) % 10 < (8 - 2 * arms if t < 60 else 2 + 2 * arms)) * 1.0


@pytest.mark.parametrize("make", AGENTS)
@pytest.mark.parametrize("batch", [2, 3, 100])
def test_a_learner_does_not_depend_on_the_batch(make: Any, batch: int) -> None:
    many, one = make(problem(batch)), make(problem())
    many.reset(3)
    together = np.array(play(many, 120, noisy))
    for i in (0, batch - 1):
        one.reset(3 + i)
        assert play(one, 120, noisy) == together[:, i].tolist()


@pytest.mark.parametrize("make", AGENTS)
def test_copies_huge_rewards_and_short_horizons(make: Any) -> None:
    for horizon in (1, 2, T):
        agent = make(problem(2, horizon=horizon))
        agent.reset(0)
        play(agent, 60, noisy)
    twins = copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))

    def _huge(t: int, arms: Any) -> Any:
        return np.where(arms == 1, 1e30, -1e30)

    actions = np.array(play(agent, 60, _huge))
    for twin in twins:
        np.testing.assert_array_equal(np.array(play(twin, 60, _huge)), actions)
