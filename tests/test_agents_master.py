"""MASTER against its pseudo code, played out one learner at a time on dense matrices."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.algorithms.adaptive.master import MASTER
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

T, R, B, DELTA, GAMMA = 100, 0.3, 1.5, 0.1, 6.0
LAMBDA = R**2
# Irregular, so that no two arms are alike once one is played: ties are then left to chance alike.
POINTS = np.sort(np.random.default_rng(8).uniform(0.0, 1.0, 12))[:, None]
KERNEL = SquaredExponential(0.3)
PROBLEM = BanditProblem(KERNEL, POINTS, T, R, B, 1.0)


class Instance:
    """IGP-UCB on the plays that it was given, anew from all of them each time."""

    def __init__(self, start: int, order: int) -> None:
        self.start, self.end, self.order = start, start + 2**order - 1, order
        self.arms: list[int] = []
        self.rewards: list[float] = []

    def bounds(self) -> Array:
        gram, cross = (
            KERNEL(POINTS[self.arms], POINTS[self.arms]),
            KERNEL(POINTS, POINTS[self.arms]),
        )
        noisy = gram + LAMBDA * np.eye(len(self.arms))
        mean = cross @ np.linalg.solve(noisy, np.array(self.rewards))
        variance = 1 - np.einsum("ij,ji->i", cross, np.linalg.solve(noisy, cross.T))
        gain = np.linalg.slogdet(noisy / LAMBDA)[1] / 2
        beta = B + R / math.sqrt(LAMBDA) * math.sqrt(2 * math.log(1 / DELTA) + 2 * gain)
        bounds: Array = mean + beta * np.sqrt(variance)
        return bounds


class Naive:
    """Algorithms 1 to 3 of Wei and Luo, line by line; times count from 0."""

    def __init__(self, seed: int, scale: float) -> None:
        self.uniform, self.scale = UniformStreams([seed]), scale
        self.t, self.fired = 0, [0, 0, 0]
        self.start_block(0)

    def start_block(self, n: int) -> None:
        self.n, self.began, self.drawn_for = n, self.t, -1
        self.instances: list[Instance] = []
        self.hopes: list[float] = []
        self.paid: list[float] = []

    def rho(self, t: int) -> float:
        beta = B + R / math.sqrt(LAMBDA) * math.sqrt(2 * math.log(1 / DELTA) + 2 * GAMMA)
        explored = 2 * beta * math.sqrt(2 * GAMMA * t / math.log(1 + 1 / LAMBDA))
        return (explored + R * math.sqrt(2 * t * math.log(1 / DELTA))) / t

    def rho_hat(self, t: int) -> float:
        return 6 * (math.log2(T) + 1) * math.log(T / DELTA) * self.rho(t)

    def schedule(self, draws: list[float]) -> None:
        if self.drawn_for == self.t:
            return
        self.drawn_for = self.t
        for m in range(self.n + 1):
            if (self.t - self.began) % 2**m == 0:
                chance = self.rho(2**self.n) / self.rho(2**m)
                if m == self.n or draws[m] < chance:
                    self.instances.append(Instance(self.t, m))

    def active(self) -> Instance:
        present = [one for one in self.instances if one.start <= self.t <= one.end]
        return min(present, key=lambda one: one.order)

    def act(self) -> int:
        draws = [self.uniform.draw()[0] for _ in range(int(math.log2(T)) + 1)]
        self.schedule(draws)
        bounds = self.active().bounds()
        tied = np.flatnonzero(bounds >= bounds.max() - 1e-9)
        return int(tied[int(self.uniform.draw()[0] * len(tied))])

    def observe(self, arm: int, reward: float) -> None:
        self.schedule([1.0] * 99)
        instance = self.active()
        self.hopes.append(float(np.clip(instance.bounds().max(), -B, B)))
        self.paid.append(reward)
        instance.arms.append(arm)
        instance.rewards.append(reward)
        first, second = self.test_1(), self.test_2()
        failed = [first, second, first or second]
        self.t += 1
        self.fired = [a + b for a, b in zip(self.fired, failed, strict=True)]
        if first or second:
            self.start_block(0)
        elif self.t == self.began + 2**self.n:
            self.start_block(min(self.n + 1, int(math.log2(T))))

    def test_1(self) -> bool:
        allowed = [
            np.mean(self.paid[one.start - self.began :])
            >= min(self.hopes) + 9 * self.scale * self.rho_hat(2**one.order)
            for one in self.instances
            if one.end == self.t
        ]
        return any(allowed)

    def test_2(self) -> bool:
        gaps = np.array(self.hopes) - np.array(self.paid)
        return bool(gaps.mean() >= 3 * self.scale * self.rho_hat(len(gaps)))


def truth(t: int, high: float) -> Array:
    """Return the function of step t: its peak moves, and rises, at each third of the run."""
    place, height = [(0.2, 0.2), (0.8, 1.4), (0.4, high)][min(3 * t // T, 2)]
    values: Array = height * np.exp(-(((POINTS[:, 0] - place) / 0.2) ** 2))
    return values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("scale", "high", "speak"),
    [  # whether Test 1 and Test 2 fail for one of the seeds
        (1.0, 1.4, (False, False)),
        (1e-4, 1.4, (False, True)),
        (3e-4, 9.0, (True, False)),  # more than B = 1.5 allows
        (0.0, 1.4, (True, True)),
    ],
)
def test_it_is_the_pseudo_code(scale: float, high: float, speak: tuple[bool, bool]) -> None:
    seen = np.zeros(3, int)
    for seed in range(4):
        agent, naive = MASTER(PROBLEM, scale=scale, information_gain=GAMMA), Naive(seed, scale)
        agent.reset(seed)
        noise = R * np.random.default_rng(seed).standard_normal(T + 50)
        for t in range(T + 50):  # beyond T too
            arm = 3
            if t % 11 != 5:  # else a play that was not asked for
                for _ in range(1 + (t % 7 == 2)):  # asking twice begins nothing anew
                    arm = naive.act()
                    assert agent.act() == arm
            arm = arm if t % 13 else 7  # or another than asked for
            for one in (agent, naive):
                one.observe(arm, float(truth(t, high)[arm] + noise[t]))
            assert list(agent.fired) == naive.fired
        seen += agent.fired
    assert (seen[0] > 0, seen[1] > 0) == speak


@pytest.mark.parametrize("task", [{}, {"continuous": True}], ids=["arms", "box"])
def test_learners_of_a_batch_restart_on_their_own(task: dict[str, Any]) -> None:
    scales, steps = [0.0, 1e-4, 1.0], 12 if task else 40
    options: dict[str, Any] = {"horizon": 40, **task}

    def run(env: Any, scale: Any, seed: int) -> tuple[NDArray[Any], Any]:
        env.reset(seed=seed)
        agent, actions = MASTER(env, scale=scale), []
        agent.reset(seed)
        for _ in range(steps):
            actions.append(agent.act())
            agent.observe(actions[-1], env.step(actions[-1])[1])
        return np.array(actions), agent.fired

    name = "WGPBandit-Abrupt-v0"
    batch = gymnasium.make_vec(name, num_envs=3, vectorization_mode="vector_entry_point", **options)
    actions, fired = run(batch, scales, 5)
    for i, scale in enumerate(scales):
        alone, counted = run(gymnasium.make(name, **options), scale, 5 + i)
        np.testing.assert_array_equal(actions[:, i], alone)
        assert counted == tuple(part[i] for part in fired)
    assert fired.restarts[0] > fired.restarts[1] > fired.restarts[2] == 0


def test_on_a_box_an_instance_is_igp_ucb() -> None:
    # Of plays that were not asked for the longest instance learns: the last 5 of 36. At the next
    # step another one begins with probability 2^{-5/2} = 0.18, which knows nothing.
    problem = BanditProblem(KERNEL, POINTS, 100, R, B, 1.0, continuous=True)
    agents = [MASTER(problem), wgp_agents.make("igp-ucb", problem)]
    places, alike = np.linspace(0.05, 0.9, 36)[:, None], 0
    for seed in range(10):
        chosen = []
        for agent, first in zip(agents, (0, 31), strict=True):
            agent.reset(seed)
            for place in places[first:]:
                agent.observe(place, float(np.sin(9 * place[0])))
            chosen.append(agent.act())
        assert chosen[0].dtype == np.float32
        assert chosen[0].shape == (1,)
        alike += np.array_equal(*chosen)
    assert 5 <= alike < 10


def test_how_much_the_tests_allow() -> None:
    # The first instance hopes for B, cut off; it ends after its first step.
    allowed = 1e-3 * Naive(0, 1e-3).rho_hat(1)
    for reward, expected in [
        (B + 9 * allowed, (1, 0, 1)),
        (B - 3 * allowed, (0, 1, 1)),
    ]:
        for inside in (False, True):
            agent = MASTER(PROBLEM, scale=1e-3, information_gain=GAMMA)
            agent.reset(0)
            agent.observe(0, B + (reward - B) * (1 - 1e-9 if inside else 1 + 1e-9))
            assert agent.fired == ((0, 0, 0) if inside else expected)


def test_a_learner_restarts_alone() -> None:
    problem = BanditProblem(KERNEL, POINTS, T, R, np.full(2, B), np.ones(2))
    agent = MASTER(problem, scale=0.0)
    agent.reset(0)
    rows = np.array([[0.1, 1.0, POINTS[3, 0], 5.0]] * 2)  # t / T, has_last, action, reward
    for fresh, counts in (([0, 0], [1, 1]), ([0, 1], [2, 0]), ([0, 0], [3, 1])):
        agent.predict(rows, episode_start=fresh)
        assert agent.fired.first.tolist() == counts


def test_reset_forgets_what_was_counted() -> None:
    agent = MASTER(PROBLEM, scale=0.0)
    runs = []
    for _ in range(2):
        agent.reset(3)
        assert agent.fired == (0, 0, 0)
        for _ in range(30):
            agent.observe(agent.act(), 1e30)
        runs.append(agent.fired)
    assert runs[0] == runs[1] == (30, 0, 30)
