"""Whole runs of WGP-UCB beside Algorithm 1 of [Deng22] as printed, for every option.

t x t matrices, weights w_t = eta^{-t} and the regulariser lambda_t = lambda w_t as they are: mean,
deviation, width and the arm played.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.gp.agent import GPAgent
from wgp_gym.kernels import Empirical, SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

T, STEPS, LENGTHSCALE = 30, 24, 0.2
# Irregular, so that no two arms are alike once one is played.
X = np.sort(np.random.default_rng(4).random(25))[:, None]
B, R, B_T, DELTA = 1.3, 0.1, 2.0, 0.1
SMOOTH = BanditProblem(SquaredExponential(LENGTHSCALE), X, T, R, B, B_T)
GIVEN = {"norm_bound": 1.7, "noise_scale": 0.3, "regularization": 0.05, "delta": 0.02}


def se(x: Floats, y: Floats) -> Floats:
    gaps: Floats = np.exp(-((x[:, None, 0] - y[None, :, 0]) ** 2) / (2 * LENGTHSCALE**2))
    return gaps


# Uneven, so that a greedy search meets no tie at its first play either.
SCALE = np.random.default_rng(6).uniform(0.6, 1.0, len(X))
K = SCALE[:, None] * se(X, X) * SCALE
UNEVEN = BanditProblem(Empirical(K), np.linspace(0, 1, len(X))[:, None], T, R, B, B_T)


def exponential(rate: float) -> Callable[[int], float]:
    """Return the weights of eta = 1 - rate, t = 1, 2, ..."""
    return lambda t: (1 - rate) ** -t


def corollary_5(gamma: float, budget: float) -> Callable[[int], float]:
    return exponential(min(gamma**-0.25 * math.sqrt(budget / T), 0.5))


def greedy(gram: Floats, weights: Floats, ridge: float) -> Floats:
    """Return the gains of 0, 1, ... plays, each the best next; weights are newest first."""
    chosen: list[int] = []
    gains = [0.0]
    for t in range(1, len(weights) + 1):
        root = np.sqrt(weights[:t])[:, None]
        found = []
        for arm in range(len(gram)):
            rows = [*chosen, arm]
            found.append(log_det(np.eye(t) + root * gram[np.ix_(rows, rows)] * root.T / ridge) / 2)
        chosen.append(int(np.argmax(found)))
        gains.append(max(found))
    return np.array(gains)


def log_det(matrix: Floats) -> float:
    return float(np.linalg.slogdet(matrix)[1])


@functools.cache
def computed_gain() -> float:
    """Return gamma_T of T greedy plays without weights; lambda = R^2."""
    return float(greedy(K, np.ones(T), R**2)[-1])


MEMORIES: dict[str, tuple[dict[str, Any], Callable[[], Callable[[int], float]]]] = {
    "discount": ({"discount": 0.9}, lambda: exponential(0.1)),
    "nothing forgotten": ({"discount": 1.0}, lambda: exponential(0.0)),
    "unknown": ({}, lambda: corollary_5(math.log(T) ** 2, 1.0)),
    "known": ({"variation_budget": "known"}, lambda: corollary_5(math.log(T) ** 2, B_T)),
    "a budget": ({"variation_budget": 0.3}, lambda: corollary_5(math.log(T) ** 2, 0.3)),
    "a gain": ({"information_gain": 3.0}, lambda: corollary_5(3.0, 1.0)),
    "computed": ({"information_gain": "computed"}, lambda: corollary_5(computed_gain(), 1.0)),
    "weights": ({"weights": lambda t: t**1.5}, lambda: lambda t: t**1.5),
    "falling": ({"weights": lambda t: 1 / t}, lambda: lambda t: 1 / t),
}


class AlgorithmOne:
    """Algorithm 1 on a history: everything from all plays, anew at each step."""

    def __init__(
        self, gram: Floats, weight: Callable[[int], float], chosen: dict[str, Any]
    ) -> None:
        self.gram, self.weight, self.chosen = gram, weight, chosen
        self.R = chosen.get("noise_scale", R)
        self.ridge = chosen.get("regularization", self.R**2)
        self.arms: list[int] = []
        self.y: list[float] = []

    def posterior(self) -> tuple[Floats, Floats, Floats]:
        """Return mean, standard deviation, and the one that the bound uses, of all arms."""
        t, prior = len(self.arms), self.gram.diagonal()
        if t == 0:
            return np.zeros(len(prior)), np.sqrt(prior), np.sqrt(prior)
        w = np.array([self.weight(s) for s in range(1, t + 1)])
        root, ridge = np.sqrt(w), self.ridge * w[-1]  # W; lambda_t = lambda w_t
        plays, cross = self.gram[np.ix_(self.arms, self.arms)], self.gram[self.arms]
        M = np.linalg.inv(root[:, None] * plays * root + ridge * np.eye(t))
        k = root[:, None] * cross
        mean = k.T @ M @ (root * np.array(self.y))  # Eq. (3)
        variance = prior - np.sum(k * (M @ k), axis=0)  # Eq. (4)
        bound = variance
        if self.chosen.get("width") == "tight":
            # Theorem 2: lambda ||phi||^2 in the norm of V^{-1} V~ V^{-1}, by
            # V^{-1} = (I - Phi^T W M W Phi) / lambda_t, V~ = sum of w^2 phi phi^T + alpha_t I.
            a = root[:, None] * (M @ k)
            u = (cross - plays @ a) / ridge  # phi_s^T V^{-1} phi
            square = (prior - 2 * np.sum(a * cross, axis=0) + np.sum(a * (plays @ a), axis=0)) / (
                ridge**2
            )  # ||V^{-1} phi||^2
            bound = self.ridge * (w**2 @ u**2 + self.ridge * w[-1] ** 2 * square)
        return mean, np.sqrt(variance), np.sqrt(np.maximum(bound, 0.0))

    def gain(self) -> float:
        """Return gamma-bar, in the form that was chosen."""
        t, kind = len(self.arms), self.chosen.get("gain", "realised")
        if t == 0:
            return 0.0
        w = np.array([self.weight(s) for s in range(1, t + 1)])
        alpha = self.ridge * w[-1] ** 2
        if kind == "realised":
            plays = self.gram[np.ix_(self.arms, self.arms)]
            return log_det(np.eye(t) + w[:, None] * plays * w / alpha) / 2
        if kind == "greedy":
            return float(greedy_gains(self)[t])
        total, n = float(np.sum((w / w[-1]) ** 2)), len(self.gram)
        if kind == "determinant":
            m = int(np.linalg.matrix_rank(self.gram))
            longest = max(1.0, self.gram.diagonal().max())
            return m / 2 * math.log(1 + longest * total / (self.ridge * m))
        # Theorems 6 and 7: the least of N / 2 log(1 + k S / (lambda N)) + S delta_N / (2 lambda)
        c, phi = np.linalg.eigh(self.gram / n)
        c, psi = np.maximum(c[::-1], 0.0), math.sqrt(n) * np.abs(phi[:, c > 1e-14 * c[-1]]).max()
        bounds = [
            N / 2 * math.log(1 + self.gram.max() * total / (self.ridge * max(N, 1)))
            + total * psi**2 * c[N:].sum() / (2 * self.ridge)
            for N in range(n)
        ]
        return float(min(bounds))

    def beta(self) -> float:
        t = max(len(self.arms), 1)
        confidence, delta = self.chosen.get("confidence", "paper"), self.chosen.get("delta", DELTA)
        delta /= {"paper": 1, "union": T, "anytime": 2 * t * (1 + math.log(t)) ** 2}[confidence]
        root = math.sqrt(2 * math.log(1 / delta) + 2 * self.gain())
        return float(self.chosen.get("norm_bound", B) + self.R / math.sqrt(self.ridge) * root)


CACHE: dict[tuple[float, float], Floats] = {}


def greedy_gains(run: AlgorithmOne) -> Floats:
    """Return the greedy gains of a discount, kept."""
    eta = run.weight(1) / run.weight(2)
    if (eta, run.ridge) not in CACHE:
        CACHE[eta, run.ridge] = greedy(
            run.gram, np.power(eta, 2.0 * np.arange(STEPS)).astype(float), run.ridge
        )
    return CACHE[eta, run.ridge]


def compare(
    problem: BanditProblem,
    parameters: dict[str, Any],
    run: AlgorithmOne,
    beta: Callable[[AlgorithmOne], float] = AlgorithmOne.beta,
    atol: float = 1e-7,
) -> None:
    """Play a whole run, and compare all of it."""
    agent = wgp_agents.make("wgp-ucb", problem, **parameters)
    assert isinstance(agent, GPAgent)
    agent.reset(0)
    noise = 0.1 * np.random.default_rng(5).standard_normal(STEPS)
    for t in range(STEPS):
        mean, std, bound_std = run.posterior()
        width = beta(run)
        np.testing.assert_allclose(agent.posterior().mean, mean, rtol=0, atol=atol)
        np.testing.assert_allclose(agent.posterior().std, std, rtol=0, atol=atol)
        assert agent.beta() == pytest.approx(width, abs=atol)
        upper = mean + width * bound_std
        np.testing.assert_allclose(agent.confidence_interval().upper, upper, rtol=0, atol=9 * atol)
        arm = agent.act()
        assert upper[arm] >= upper.max() - 20 * atol
        run.arms.append(int(arm))
        run.y.append(float(np.sin(5 * X[arm, 0] + t / 8) + noise[t]))
        agent.observe(arm, run.y[-1])
    assert len({*run.arms}) > 1  # a linear function has its top at an end


@pytest.mark.parametrize("width", ["standard", "tight"])
@pytest.mark.parametrize("memory", MEMORIES)
def test_a_run_is_that_of_algorithm_1(memory: str, width: str) -> None:
    given, weight = MEMORIES[memory]
    for confidence in ("paper", "union", "anytime"):
        for gain in ("realised", "greedy", "bound"):
            if gain == "greedy" and "weights" in given:
                continue
            own = GIVEN if confidence == "union" and memory != "computed" else {}
            chosen = {"width": width, "confidence": confidence, "gain": gain, **own}
            compare(UNEVEN, {**given, **chosen}, AlgorithmOne(K, weight(), chosen))


def waves(points: Floats) -> Floats:
    """Return three features of one's own."""
    x = points[:, 0]
    return np.stack([np.ones(len(x)), np.cos(3 * x), np.sin(4 * x)], axis=1) / 2


def quadrature(points: Floats) -> Floats:
    """Return Section 5's features: m-bar = log_{4/e}(T^3 gamma^{3/2}) nodes of Gauss and Hermite.

    The spectral density of the kernel is normal, of standard deviation 1 / l.
    """
    degree = math.ceil(math.log(T**3 * math.log(T) ** 3) / math.log(4 / math.e))
    nodes, weights = np.polynomial.hermite.hermgauss(degree)
    phase = points * (math.sqrt(2) * nodes / LENGTHSCALE)
    root = np.sqrt(weights / math.sqrt(math.pi))
    found: Floats = np.hstack([root * np.cos(phase), root * np.sin(phase)])
    return found


def random(points: Floats) -> Floats:
    """Return the agent's own random features: how they are drawn, others test."""
    agent = wgp_agents.make("wgp-ucb", SMOOTH, features="random")
    assert isinstance(agent, GPAgent)
    source: Any = agent.model.source
    found: Floats = source(points)
    return found


FEATURES: dict[str, tuple[Any, Callable[[Floats], Floats]]] = {
    "quadrature": ("quadrature", quadrature),
    "linear": ("linear", lambda points: points),
    "own": (waves, waves),
    "random": ("random", random),
}


@pytest.mark.parametrize("gain", ["realised", "greedy", "bound", "determinant"])
@pytest.mark.parametrize("name", FEATURES)
def test_with_features_it_is_algorithm_1_with_their_kernel(name: str, gain: str) -> None:
    given, table = FEATURES[name][0], FEATURES[name][1](X)
    if name in ("quadrature", "random") and gain in ("greedy", "determinant"):
        return  # rounding alone breaks the first tie, and says how many features are kept
    CACHE.clear()
    for width in ("standard", "tight"):
        chosen: dict[str, Any] = {"width": width, "gain": gain, "regularization": 0.04}
        run = AlgorithmOne(table @ table.T, exponential(0.07), chosen)
        compare(SMOOTH, {"discount": 0.93, "features": given, **chosen}, run)
    CACHE.clear()


@pytest.mark.parametrize(
    ("given", "beta"),
    [(0.7, lambda run: 0.7), (lambda t: 1 + np.sqrt(t), lambda run: 1 + math.sqrt(len(run.arms)))],
    ids=["number", "schedule"],
)
def test_a_width_of_ones_own(given: Any, beta: Callable[[AlgorithmOne], float]) -> None:
    for width in ("standard", "tight"):
        chosen: dict[str, Any] = {"width": width, "confidence_width": given}
        compare(
            UNEVEN, {"discount": 0.8, **chosen}, AlgorithmOne(K, exponential(0.2), chosen), beta
        )
