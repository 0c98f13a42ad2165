"""The adaptive agent where arms change with each decision, under kernels of every kind."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_agents import AdaptiveWGPUCB
from wgp_agents.core.observation import observation_of
from wgp_gym.kernels import (
    Categorical,
    CentredLinear,
    Empirical,
    Kernel,
    Linear,
    Matern,
    ModifiedMatern,
    OnColumns,
    SquaredExponential,
    Sum,
)
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

SE = SquaredExponential
EPS, NOISE, LEVEL, STEPS = 0.05, 0.01, 0.3, 30
SHARES = Empirical(np.array([[1.0, 0.5, 0.2], [0.5, 1.0, 0.3], [0.2, 0.3, 1.0]]))
KERNELS: dict[str, Kernel] = {
    "se": SE(0.5),
    "of each dimension": SE((0.3, 0.9)),
    "matern": Matern(2.0, 2.5),
    "modified matern": ModifiedMatern(2.0, 2.5),
    "linear": Linear(),
    "product": OnColumns(SE(0.4), 0) * OnColumns(Matern(1.0, 2.5), 1),
    "product of lines": Linear() * CentredLinear(),
    "sum": OnColumns(SE(0.4), 0) + OnColumns(Linear(), 1),
    "weighted sum": Sum((SE(0.5), Linear()), (0.3, 0.2)),
    "one column": OnColumns(SE(0.3), 1),
    "categories": OnColumns(SE(0.3), 0) * OnColumns(Categorical(0.5), 1),
    "shares": OnColumns(SE(0.3), 0) * OnColumns(SHARES, 1),
    "shares and a line": OnColumns(Linear(), 0) + OnColumns(SHARES, 1),
}
every_kernel = pytest.mark.parametrize("name", KERNELS)


@pytest.fixture(autouse=True)
def all_features(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every block have all features: what noise hides is compared elsewhere."""
    monkeypatch.setattr("wgp_agents.gp.surrogates.bank.CUT", 0.0)


# Coordinate 1 is a code in all of them, so that one set of points suits every kernel.
SPREAD: Floats = np.stack(np.meshgrid(np.linspace(0, 1, 24), [0.0, 0.5, 1.0]), -1).reshape(-1, 2)


def task(name: str, batch: int | None = None) -> BanditProblem:
    kernel = KERNELS[name]
    return BanditProblem(
        kernel, SPREAD[:5], STEPS, contextual=True, stand_ins=SPREAD, episodes=batch
    )


def shown(rng: np.random.Generator, *batch: int) -> Floats:
    """Return arms between the stand-ins, `(*batch, 5, 2)`."""
    arms = rng.random((*batch, 5, 2))
    arms[..., 1] = np.floor(3 * arms[..., 1]) / 2
    return arms


@every_kernel
def test_equals_a_dense_posterior(name: str) -> None:
    one: dict[str, Any] = {"drifts": (EPS,), "noise_ratios": (NOISE,), "lengthscales": (1.0,)}
    agent, kernel, rng = AdaptiveWGPUCB(task(name), **one), KERNELS[name], np.random.default_rng(1)
    agent.reset(0)
    kappa, level = 0.9 * math.sqrt(-math.log(EPS)), LEVEL * kernel.diagonal(SPREAD).mean()
    plays: list[Floats] = []
    rewards: list[float] = []
    for t in range(STEPS):
        arms = shown(rng)
        arm = agent.act(observation_of(arms))
        if t > 3 and t % 5 == 0:
            X, y, age = np.array(plays), np.array(rewards), np.arange(t)
            M = (kernel(X, X) + level) * (1 - EPS) ** (np.abs(age - age[:, None]) / 2)
            k = (kernel(X, arms) + level) * (1 - EPS) ** ((t - age[:, None]) / 2)
            solved = np.linalg.solve(M + NOISE * np.eye(t), k)
            mean = y[0] + (y - y[0]) @ solved
            variance = kernel.diagonal(arms) + level - np.sum(k * solved, axis=0)
            std, told = agent.belief().scale * np.sqrt(variance), agent.posterior()
            assert told.mean == pytest.approx(mean, abs=2e-3)
            assert told.std == pytest.approx(std, abs=2e-3)
            bound = mean + kappa * math.sqrt(1.0 + 1.0 / agent.bank.informed[0]) * std
            assert bound[int(arm)] >= bound.max() - 1e-2
        plays.append(arms[int(arm)])
        rewards.append(float(np.sin(4 * plays[-1][0]) + plays[-1][1] + 0.1 * math.cos(9 * t)))
        agent.observe(arm, rewards[-1])


@every_kernel
def test_all_models_play_arms_that_are_there(name: str) -> None:
    agents = [AdaptiveWGPUCB(task(name, batch), exploration=0.1) for batch in (2, None)]
    for agent, seed in zip(agents, (3, 4), strict=True):
        agent.reset(seed)
    for t in range(12):
        rng = np.random.default_rng(t)
        arms, allowed = shown(rng, 2), rng.random((2, 5)) < 0.6
        allowed[:, t % 5] = True
        rows = np.stack([observation_of(own) for own in arms])
        both, alone = (
            agents[0].act(rows, allowed=allowed),
            agents[1].act(rows[1], allowed=allowed[1]),
        )
        assert allowed[[0, 1], both].all()
        assert both[1] == alone
        chances = agents[0].propensities()
        assert chances is not None
        assert not chances[~allowed].any()
        for agent, played, paid in ((agents[0], both, [0.0, t % 4]), (agents[1], alone, t % 4)):
            agent.hallucinate(played)
            agent.observe(played, np.asarray(paid, float) if agent.batched else float(t % 4),
                          elapsed=2.0)  # fmt: skip
            agent.elapse(0.5)
    told = [np.stack([*agent.posterior(), agent.bands().std, agent.bounds()]) for agent in agents]
    assert np.array_equal(told[0][:, 1], told[1])
    assert np.isfinite(told[1]).all()
