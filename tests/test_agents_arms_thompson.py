"""Thompson sampling, kept and discounted, beside a textbook that has the same uniform draws."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri

import wgp_agents
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.kernels import Empirical
from wgp_gym.problem import BanditProblem

ARMS, STEPS, LOW, WIDTH = 4, 300, -1.0, 4.0
BITS = 2**64 - 1


def split_mix(draw: float) -> Iterator[float]:
    """Yield the uniform numbers of a SplitMix64 sequence that a draw seeds."""

    def _mixed(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & BITS
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & BITS
        return z ^ (z >> 31)

    step = 0x9E3779B97F4A7C15
    state = _mixed((int(draw * 2**53) + step) & BITS)
    while True:
        state = (state + step) & BITS
        yield ((_mixed(state) >> 12) + 0.5) / 2**52


def beta_variate(first: float, second: float, numbers: Iterator[float]) -> float:
    """Return a variate of Beta(first, second) by Cheng's algorithm BB, as printed in 1978."""
    a, b = min(first, second), max(first, second)
    total = a + b
    beta = math.sqrt((total - 2) / (2 * a * b - total)) if total > 2 else 1.0
    gamma = a + 1 / beta
    while True:
        u, v = next(numbers), next(numbers)
        V = beta * math.log(u / (1 - u))
        W, Z = a * math.exp(V), u * u * v
        R = gamma * V - 1.3862944
        if R + total * math.log(total / (b + W)) >= math.log(Z):
            return W / (b + W) if first == a else b / (b + W)


class Textbook:
    """One learner with its whole history; gamma is 1 for Thompson sampling without forgetting."""

    def __init__(self, prior: str, gamma: float, noise: float, seed: int) -> None:
        self.prior, self.gamma, self.noise = prior, gamma, noise
        self.uniform = UniformStreams([seed])
        self.arms: list[int] = []
        self.rewards: list[float] = []

    def next(self) -> float:
        return float(self.uniform.draw()[0])

    def sums(self, arm: int) -> tuple[float, float]:
        """Return the weight of an arm's plays, and of their rewards."""
        ages = range(len(self.arms) - 1, -1, -1)
        rows = [
            (self.gamma**age, y)
            for age, a, y in zip(ages, self.arms, self.rewards, strict=True)
            if a == arm
        ]
        return sum(w for w, _ in rows), sum(w * y for w, y in rows)

    def act(self) -> int:
        if self.prior == "beta":
            self.coin = self.next()
        numbers, drawn = split_mix(self.next()), []
        for arm in range(ARMS):
            n, s = self.sums(arm)
            if self.prior == "beta":
                drawn.append(beta_variate(1 + s, 1 + max(n - s, 0.0), numbers))
            else:
                variance = self.noise**2 / (n + self.noise**2)
                mean = s / (n + self.noise**2)
                drawn.append(mean + math.sqrt(variance) * float(ndtri(next(numbers))))
        self.next()  # breaks ties, which there are none
        return int(np.argmax(drawn))

    def learn(self, arm: int, reward: float) -> None:
        self.arms.append(arm)
        # A reward between 0 and 1 is put to a trial.
        self.rewards.append(float(self.coin < reward) if self.prior == "beta" else reward)


@pytest.mark.parametrize("prior", ["beta", "gaussian"])
@pytest.mark.parametrize(("name", "gammas"), [("thompson", [1.0, 1.0]), ("d-ts", [0.97, 0.7])])
def test_decisions_are_the_textbooks(name: str, gammas: list[float], prior: str) -> None:
    noise = np.array([2.0, 0.6])
    domain = np.linspace(0, 1, ARMS)[:, None]
    problem = BanditProblem(
        Empirical(np.eye(ARMS)),
        domain,
        STEPS,
        noise,
        np.full(2, 3.0),
        reward_range=(LOW, LOW + WIDTH),
    )
    given: dict[str, Any] = {} if name == "thompson" else {"discount": gammas}
    agent = wgp_agents.make(name, problem, prior=prior, **given)
    agent.reset(20)
    books = [Textbook(prior, gammas[i], noise[i] / WIDTH, 20 + i) for i in range(2)]
    rng, played = np.random.default_rng(1), set()
    for t in range(STEPS):
        arms = agent.act()
        assert arms.tolist() == [book.act() for book in books]
        best = np.roll([0.0, 0.5, 1.0, 2.5], t // 100)
        rewards = best[arms] + 0.3 * rng.standard_normal(2)
        agent.observe(arms, rewards)
        for book, arm, reward in zip(books, arms.tolist(), rewards, strict=True):
            book.learn(arm, (float(reward) - LOW) / WIDTH)
        played |= {*arms.tolist()}
    assert played == {*range(ARMS)}
