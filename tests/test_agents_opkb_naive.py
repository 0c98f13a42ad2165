"""OPKB against one learner that is written as the algorithm reads: histories, kernels, scipy."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize

from wgp_agents.algorithms.adaptive.opkb import OPKB, OPKBConstants
from wgp_agents.core.randomness import UniformStreams
from wgp_gym.kernels import Matern
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

N, T, DELTA, RIDGE = 7, 300, 0.1, 2.0
SETTINGS = {
    "every order": OPKBConstants(0.01, 4.0, 0.4, 0.02, 0.25, 0.6, 0),
    "from order 1": OPKBConstants(0.01, 8.0, 0.4, 0.03, 0.25, 0.6, 1),
    "no mixture": OPKBConstants(0.01, 8.0, 0.4, 0.03, 0.0, 1.0, 1),
}
KERNEL, DOMAIN = Matern(0.25, 1.5), np.linspace(0.0, 1.0, N)[:, None]
PROBLEM = BanditProblem(KERNEL, DOMAIN, T, 0.1, norm_bound=2.0)
BITS = 2**64 - 1


def splitmix(draw: float, count: int) -> list[float]:
    """Return the first numbers of the SplitMix64 sequence that a uniform draw seeds."""

    def _mixed(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & BITS
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & BITS
        return z ^ (z >> 31)

    step = 0x9E3779B97F4A7C15
    state, numbers = _mixed((int(draw * 2**53) + step) & BITS), []
    for _ in range(count):
        state = (state + step) & BITS
        numbers.append(((_mixed(state) >> 12) + 0.5) / 2**52)
    return numbers


class Naive:
    """One learner with its whole history, features from a plain Cholesky factor, and scipy."""

    def __init__(self, constants: OPKBConstants, seed: int) -> None:
        self.constants = constants
        self.stream = UniformStreams([seed])
        self.Phi = np.linalg.cholesky(KERNEL(DOMAIN, DOMAIN))
        self.pi = self.op(np.zeros(N), 1.0, np.arange(N))
        gain = np.linalg.slogdet(np.eye(N) + T / RIDGE * (self.Phi.T * self.pi) @ self.Phi)[1] / 2
        logarithm = np.log(8 * N * T * np.log2(T) / DELTA)
        self.E = int(np.ceil(4 * gain * logarithm * constants.length))
        self.alpha, self.gain = RIDGE / (4 * logarithm), gain
        self.changes = self.replays = 0
        self.restart()

    def restart(self) -> None:
        self.p, self.gaps = [self.pi], list[Floats]()
        self.begin()

    def begin(self) -> None:
        self.history: list[tuple[int, int, float]] = []
        self.replayed: dict[tuple[int, int], bool] = {}

    def S(self, p: Floats) -> Floats:
        found: Floats = (self.Phi.T * p) @ self.Phi + RIDGE / T * np.eye(N)
        return found

    def op(self, gaps: Floats, beta: float, arms: NDArray[np.int64]) -> Floats:
        """Return OP(gaps, beta) on some arms by sequential quadratic programming."""

        def _spread(q: Floats) -> Floats:
            p = np.zeros(N)
            p[arms] = q
            return p

        def _value(q: Floats) -> tuple[float, Floats]:
            S = self.S(_spread(q))
            v = np.einsum("ai,ij,aj->a", self.Phi, np.linalg.inv(S), self.Phi)
            costs = beta / 2 * gaps[arms]
            return costs @ q - np.linalg.slogdet(S)[1], costs - v[arms]

        k = len(arms)
        found = minimize(
            _value,
            np.full(k, 1 / k),
            jac=True,
            method="SLSQP",
            bounds=[(0, 1)] * k,
            constraints={"type": "eq", "fun": lambda q: q.sum() - 1, "jac": lambda q: np.ones(k)},
            options={"ftol": 1e-13, "maxiter": 500},
        )
        q = np.clip(found.x, 0, 1)
        return _spread(q / q.sum())

    def epsilon(self, j: int) -> float:
        return float((40 + 16 * np.sqrt(self.alpha)) * 0.5 * 2 ** (-j / 2))

    def policy(self) -> int:
        """Return the order that plays: the smallest of those whose replay is going on."""
        t, m = len(self.history), len(self.p) - 1
        live = [j for j in range(m) if self.replayed.get((j, t // (self.E * 2**j)))]
        return min([*live, m])

    def act(self) -> int:
        t, m = len(self.history), len(self.p) - 1
        numbers = splitmix(float(self.stream.draw()[0]), m + 1)
        for j in range(self.constants.smallest_replay, m):
            if t % (self.E * 2**j) == 0:
                self.replayed[j, t // (self.E * 2**j)] = numbers[j + 1] < 2 ** ((j - m) / 2)
        return int(np.searchsorted(np.cumsum(self.p[self.policy()]), numbers[0], side="right"))

    def estimated_gaps(self, steps: list[tuple[int, int, float]]) -> Floats:
        weights = [np.linalg.solve(self.S(self.p[j]), self.Phi[a] * y) for j, a, y in steps]
        rewards = self.Phi @ np.mean(weights, axis=0)
        gaps: Floats = rewards.max() - rewards
        return gaps

    def change_is_detected(self) -> bool:
        t, m = len(self.history), len(self.p) - 1
        for (j, index), replayed in self.replayed.items():
            if not replayed or t != self.E * 2**j * (index + 1):
                continue
            self.replays += 1
            gaps = self.estimated_gaps(self.history[self.E * 2**j * index :])
            for k in range(self.constants.smallest_replay, m):
                excess = max((self.gaps[k] - 4 * gaps).max(), (gaps - 4 * self.gaps[k]).max())
                threshold = 4 * (self.epsilon(k) + self.epsilon(j)) / 2 * self.constants.threshold
                if excess > threshold:
                    return True
        return False

    def observe(self, arm: int, reward: float) -> None:
        self.history.append((self.policy(), arm, reward / 2.0))  # from [-B, B] to [-1, 1]
        m = len(self.p) - 1
        if self.change_is_detected():
            self.changes += 1
            self.restart()
        elif len(self.history) == self.E * 2**m:
            gaps = self.estimated_gaps(self.history)
            mu, epsilon = (
                0.5 * 2 ** (-(m + 1) / 2) * self.constants.exploration,
                self.epsilon(m + 1),
            )
            x = self.op(gaps, 2 * self.gain / epsilon * self.constants.beta, np.arange(N))
            near = np.flatnonzero(gaps <= self.alpha * epsilon * self.constants.nearness)
            among = self.op(np.zeros(N), 1.0, near)
            mixed = (1 - self.constants.mixture) * x + self.constants.mixture * among
            self.gaps.append(gaps)
            self.p.append((1 - mu) * mixed + mu * self.pi)
            self.begin()


def rewards_at(t: int, seed: int) -> Floats:
    """Return the rewards of all arms at step t: a bump that jumps after half of the steps."""
    rng = np.random.default_rng([seed, t])
    top = 0.2 if t < T // 2 else 0.9
    rewards: Floats = 2 * np.exp(-(((DOMAIN[:, 0] - top) / 0.3) ** 2)) - 1 + rng.normal(0, 0.1, N)
    return rewards


def naive_run(constants: OPKBConstants, seed: int) -> tuple[list[int], Naive]:
    """Return the plays of a run, and the learner after it."""
    learner, plays = Naive(constants, seed), list[int]()
    for t in range(T):
        plays.append(learner.act())
        learner.observe(plays[-1], rewards_at(t, seed)[plays[-1]])
    return plays, learner


@pytest.mark.slow
@pytest.mark.parametrize("setting", SETTINGS)
def test_it_plays_as_the_algorithm_reads(setting: str) -> None:
    constants, batch = SETTINGS[setting], 4
    problem = replace(PROBLEM, norm_bound=np.full(batch, 2.0))
    agent = OPKB(problem, constants=constants, regularization=RIDGE, delta=DELTA)
    agent.reset(0)
    plays: list[Any] = []
    for t in range(T):
        plays.append(agent.act())
        rewards = [rewards_at(t, seed)[plays[-1][seed]] for seed in range(batch)]
        agent.observe(plays[-1], np.array(rewards))
    for seed in range(batch):
        expected, learner = naive_run(constants, seed)
        assert agent.block_length[seed] == learner.E
        assert np.array(plays)[:, seed].tolist() == expected
        assert agent.changes[seed] == learner.changes >= 1  # or there is little to compare
        assert learner.replays > learner.changes + 5
        assert set(expected) == {*range(N)}
