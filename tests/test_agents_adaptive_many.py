"""The adaptive agent on many arms: variances of arms that cannot be the best are not computed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from test_agents_bands import of_model

from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import AdaptiveWGPUCB
from wgp_agents.core.checkpoint import Checkpoint
from wgp_agents.gp.surrogates import lazy_bank
from wgp_agents.gp.surrogates.lazy_bank import LazyBank
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

AXIS = np.linspace(0.0, 1.0, 20)
GRID: Floats = np.stack(np.meshgrid(AXIS, AXIS), -1).reshape(-1, 2)


def made(batch: int | None, lazy: bool, monkeypatch: pytest.MonkeyPatch) -> AdaptiveWGPUCB:
    monkeypatch.setattr(lazy_bank, "LEAST_WORK", 0 if lazy else 2**62)
    problem = BanditProblem(SquaredExponential(0.3), GRID, 500, 0.1, 1.0, 2.0, episodes=batch)
    agent = AdaptiveWGPUCB(problem)
    agent.reset(5)
    assert isinstance(agent.bank, LazyBank) == agent.learns_by_acting == lazy
    return agent


def paid(t: int, arms: NDArray[np.int64]) -> Floats:
    """Return rewards of waves that drift and, every 40 steps, are others."""
    x, y = GRID[arms].T
    phase = 0.02 * t + 2.0 * (t // 40) + np.arange(len(arms))
    noise = np.random.default_rng(t).normal(size=len(arms))
    found: Floats = np.sin(7 * x + phase) + np.cos(5 * y - phase) + 0.2 * noise
    return found


def variances(bank: LazyBank, i: int, q: int) -> Floats:
    """Return phi^T P phi of all arms by a model, and what the features leave out."""
    P, _ = of_model(bank, i, q)
    table = int(bank.models.table[q // len(bank.models.drift)])
    phi = bank.features.features[table, : len(P)]  # type: ignore[attr-defined]
    left = bank.features.residual[table]  # type: ignore[attr-defined]
    found: Floats = np.sum(phi * (P @ phi), axis=0) + left
    return found


@pytest.mark.slow
def test_plays_are_those_of_a_bank_that_computes_every_variance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With masks, rests, uneven steps, a restart; and upper bounds are what they say."""
    ours, whole = made(3, True, monkeypatch), made(3, False, monkeypatch)
    bank, rng, right = ours.bank, np.random.default_rng(3), []
    assert isinstance(bank, LazyBank)
    for t in range(130):
        allowed = rng.random((3, len(GRID))) < 0.7 if t % 3 else None
        arms = np.asarray(ours.act(allowed=allowed))
        np.testing.assert_array_equal(arms, whole.act(allowed=allowed))
        for i, place in np.argwhere(bank.model >= 0).tolist():
            exact = variances(bank, i, int(bank.model[i, place]))
            assert (bank.above[i, place] > exact - 1e-13).all()
            if bank.model[i, place] == bank.kept.chosen[i]:
                right.append(np.mean(bank.above[i, place] < exact + 1e-13))
        active, rewards = rng.random(3) < 0.9, paid(t, arms)
        elapsed = rng.choice([0.0, 1.0, 2.5], 3) if t % 4 == 0 else np.ones(3)
        for agent in (ours, whole):
            if t == 70:
                agent.reset(learners=[False, True, False])
            if t % 10 == 9:
                agent.hallucinate(arms, active=active)
                agent.elapse(1.5, active=active)
            else:
                agent.observe(arms, rewards, active=active, elapsed=elapsed)
    assert np.mean(right) < 0.7  # else nothing was saved
    np.testing.assert_array_equal(ours.posterior().mean, whole.posterior().mean)
    np.testing.assert_array_equal(ours.posterior().std, whole.posterior().std)
    np.testing.assert_array_equal(ours.bounds(), whole.bounds())


def played(agent: AdaptiveWGPUCB, steps: range) -> list[int]:
    """Play one learner; return its arms."""
    found = []
    for t in steps:
        arm = int(agent.act())
        agent.observe(arm, float(paid(t, np.array([arm]))[0]))
        found.append(arm)
    return found


@pytest.mark.slow
def test_saving_and_going_back_change_no_play(monkeypatch: pytest.MonkeyPatch) -> None:
    agent, plain = made(None, True, monkeypatch), made(None, False, monkeypatch)
    assert played(agent, range(30)) == played(plain, range(30))
    kept, state = Checkpoint(agent), agent.state_dict()
    there = played(plain, range(30, 60))
    assert played(agent, range(30, 60)) == there
    kept.restore()
    assert played(agent, range(30, 60)) == there
    agent.load_state_dict(state)
    assert played(agent, range(30, 60)) == there
    state["agent.bank.model"] = np.full((1, lazy_bank.MODELS), 10_000)
    with pytest.raises(ValueError, match=r"LazyBank\.model"):
        agent.load_state_dict(state)
