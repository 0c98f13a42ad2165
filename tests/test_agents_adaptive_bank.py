"""The bank of models of the adaptive agent: one model, few features, outliers, new arms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from test_agents_adaptive_dense import LINE, ROUGH, jumps

from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import NOISE_RATIOS, AdaptiveWGPUCB
from wgp_agents.algorithms.kernelized.tv_gp_ucb import TVGPUCB
from wgp_agents.gp.action_sets import ChangingArms
from wgp_agents.gp.surrogates import bank as banks
from wgp_agents.gp.surrogates.bank import CUT, ModelBank
from wgp_agents.gp.surrogates.kernel_features import (
    LEVEL,
    ChangingFeatures,
)
from wgp_gym.kernels import Empirical, Linear, Matern
from wgp_gym.problem import BanditProblem


def test_before_the_first_reward_all_arms_are_alike_and_then_the_level_is_known() -> None:
    agent = AdaptiveWGPUCB(BanditProblem(ROUGH, LINE, 80, 0.1))
    agent.reset(0)
    mean, variance, _ = agent.bank.standardised(agent.action_set.candidates)
    assert not mean.any()
    assert variance == pytest.approx(1.3)  # k(x, x) + level
    agent.observe(3, 7.0)
    _, variance, _ = agent.bank.standardised(agent.action_set.candidates)
    row = ROUGH(LINE, LINE[3:4])[:, 0] + 0.3
    assert variance[0] == pytest.approx(1.3 - row**2 / 1.301)
    assert agent.posterior().mean == pytest.approx(7.0, abs=0)
    assert agent.belief() == (0.0, 1, 1e-3, 1.0, 0.0)


def test_a_learner_that_restarts_keeps_nothing() -> None:
    problem = BanditProblem(ROUGH, LINE, 80, np.full(2, 0.1))
    new, used = AdaptiveWGPUCB(problem), AdaptiveWGPUCB(problem)
    new.reset(0)
    used.reset(0)
    for t in range(60):
        used.observe(np.array([t % 7, t % 5]), np.array([math.sin(t), 3.0 * (t > 30)]))
    other = [array[0].copy() for array in used.bank.kept]
    assert used.bank.kept.lead.all()
    used.reset(learners=[False, True])
    for name, fresh, array, kept in zip(
        used.bank.kept._fields, new.bank.kept, used.bank.kept, other, strict=True
    ):
        assert np.array_equal(array[1], fresh[1]), name
        assert np.array_equal(array[0], kept), name


@pytest.mark.parametrize("noise", NOISE_RATIOS)
def test_what_a_block_leaves_out_hardly_shows(
    noise: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    # over three seeds means were off by at most 0.22 standard deviations, and these by -0.02 to
    # 0.10; with 0.25 of the function's variance left out, by 2.6 at the largest noise
    found = []
    for cut in (CUT, 0.0):
        monkeypatch.setattr(banks, "CUT", cut)
        problem = BanditProblem(Matern(0.2, 2.5), np.linspace(0.0, 1.0, 20)[:, None], 500, 0.1)
        options: dict[str, Any] = {"drifts": [0.0125], "lengthscales": [1.0]}
        agent = AdaptiveWGPUCB(problem, noise_ratios=[noise], **options)
        agent.reset(0)
        rng = np.random.default_rng(0)
        for arm in rng.integers(20, size=150).tolist():
            agent.observe(arm, math.sin(0.3 * arm) + math.sqrt(noise) * rng.normal())
        found.append(agent.bank.standardised(agent.action_set.candidates))
    scale = agent.bank.scale[0]
    (mean, variance, _), (exact, whole, _) = found
    assert (np.abs(mean - exact) < 0.4 * scale * np.sqrt(whole)).all()
    assert np.sqrt(variance / whole) == pytest.approx(1.0, abs=0.2)


@pytest.mark.parametrize("eps", [0.0, 0.01, 1.0])
def test_a_single_model_is_the_drifting_model_of_tv_gp_ucb(eps: float) -> None:
    # with the level as a constant in the kernel, and rewards counted from the first
    problem = BanditProblem(ROUGH, LINE, 80, 0.1)
    lone = AdaptiveWGPUCB(problem, drifts=(eps,), noise_ratios=(0.01,), lengthscales=(1.0,))
    matrix = (ROUGH(LINE, LINE) + LEVEL) / (1 + LEVEL)
    twin = TVGPUCB(
        BanditProblem(Empirical(matrix), LINE, 80, 0.1), eps=eps, regularization=0.01 / 1.3
    )
    lone.reset(0)
    twin.reset(0)
    arms = np.random.default_rng(1).integers(12, size=60).tolist()
    paid = [jumps(arm, t % 25) for t, arm in enumerate(arms)]  # nothing odd
    for arm, reward in zip(arms, paid, strict=True):
        lone.observe(arm, reward)
        twin.observe(arm, reward - paid[0])
    mean, std = twin.posterior()
    assert lone.posterior().mean == pytest.approx(paid[0] + mean, abs=1e-7)
    scale = lone.belief().scale * math.sqrt(1.3)
    assert lone.posterior().std == pytest.approx(scale * std, abs=1e-7)
    assert lone.belief().drift == eps
    assert lone.belief().memory == (min(60, 2 / eps) if eps else 60)


NEAR = [0.0, 0.1, 0.3, 0.4, 0.6, 0.8, 0.9, 1.0]  # 20 ranges end at 21 and -20


@pytest.mark.parametrize(
    ("rest", "moved"),
    [
        ([20.9, -19.9], [20.9, -19.9]),
        ([21.1, -19.9], [2.0, -19.9]),
        ([20.9, -20.1], [20.9, -1.0]),
        ([1e4, -1e100], [2.0, -1.0]),
        ([50.0, 51.0], [2.0, 2.0]),
        ([-50.0, -1e140], [-1.0, -1.0]),
    ],
)
def test_a_reward_of_the_first_ten_that_is_far_from_most_is_moved(
    rest: list[float], moved: list[float]
) -> None:
    rewards = np.array([[*rest, *NEAR], [*NEAR, *rest]])
    assert banks.clip_outliers(rewards).tolist() == [[*moved, *NEAR], [*NEAR, *moved]]


@pytest.mark.parametrize("ones", [0, 1, 2])
def test_a_few_ones_among_noughts_are_believed(ones: int) -> None:
    rewards = np.array([[1.0] * ones + [0.0] * (10 - ones)])
    assert np.array_equal(banks.clip_outliers(rewards), rewards)


def test_arms_that_are_shown_are_taken_in_again_at_the_places_of_then() -> None:
    # told the rewards as they are moved to, a bank holds the same without looking back
    rng = np.random.default_rng(1)
    points = rng.random((30, 2, 3))
    paid = points.sum(axis=2) + 0.1 * rng.normal(size=(30, 2))
    paid[3, 1] -= 1e4
    moved = paid.copy()
    moved[:10] = banks.clip_outliers(paid[:10].T).T
    assert (moved != paid).sum() == 1
    action_set = ChangingArms(Linear(), points[0], np.ones(2))
    features = ChangingFeatures(Linear(), points[0])
    both = [ModelBank(action_set, features, (0.0, 0.02), (0.1,)) for _ in "ab"]
    for bank, rewards in zip(both, (paid, moved), strict=True):
        bank.restart(np.ones(2, bool))
        for place, reward in zip(points, rewards, strict=True):
            bank.update(action_set.embed(place), reward, np.ones(2, bool))
    for one, other in zip(both[0].kept, both[1].kept, strict=True):
        assert np.array_equal(one, other)
