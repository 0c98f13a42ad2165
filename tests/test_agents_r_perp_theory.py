"""R-PERP: the length of its periods and the width of its bounds."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wgp_agents.algorithms.adaptive.r_perp import RPERP
from wgp_gym.kernels import Linear, SquaredExponential
from wgp_gym.problem import BanditProblem

DOMAIN = np.linspace(0.0, 1.0, 30)[:, None]
KERNEL = SquaredExponential(0.2)
PROBLEM = BanditProblem(KERNEL, DOMAIN, 150, 0.1, 1.5, 2.0)


@pytest.mark.parametrize(
    ("parameters", "period"),
    [
        ({"variation_budget": 2.0, "information_gain": 40.0}, 61),  # 3.42 (150 / 2)^{2/3} = 60.8
        ({"variation_budget": "known", "information_gain": 40.0}, 61),  # B_T = 2, k(x, x) = 1
        ({"information_gain": 5.0}, 49),  # V_T = 1: 1.71 x 28.23 = 48.3
        ({}, 83),  # log(150)^2 = 25.1: 2.93 x 28.23 = 82.7
        ({"variation_budget": 1e9}, 2),
        ({"variation_budget": 0.0}, 150),
        ({"restart_period": math.inf, "variation_budget": 9.0}, 150),
        ({"restart_period": 7}, 7),
    ],
)
def test_the_period(parameters: dict[str, Any], period: int) -> None:
    agent = RPERP(PROBLEM, **parameters)
    agent.reset(0)
    assert agent.restart_period.tolist() == [period]


def test_the_known_budget_is_that_of_the_largest_value() -> None:
    # |f(x)| <= ||f|| k(x, x)^{1/2}; x = (1, 0.5), (0, 1): k = 1.25 / 2 and 1 / 2
    points = np.array([[1.0, 0.5], [0.0, 1.0]])
    problem = BanditProblem(Linear(), points, 1_000, 0.1, 1.0, 4.0)
    largest = math.sqrt(Linear()(points, points).max())
    assert largest != 1
    agent = RPERP(problem, variation_budget="known", information_gain=8.0)
    agent.reset(0)
    assert agent.restart_period[0] == math.ceil(2 * (1_000 / (4 * largest)) ** (2 / 3))


def test_the_width() -> None:
    # H = 16: batches of 4, 8 and 4; T = 150: 10 periods. n = 30, B = 1.5, R^2 = lambda = 0.01.
    tests = math.sqrt(2 * math.log(2 * 30 * 3 * 10 / 0.1))
    for name, budget, moved in [
        ("heuristic", 2.0, 0.0),
        ("theory", 2.0, 2.0),
        ("theory", "known", 2.0),
        ("theory", 50.0, 3.0),  # two functions of norm 1.5 are no further apart
        ("theory", "unknown", 3.0),
    ]:
        given: Any = budget
        agent = RPERP(PROBLEM, restart_period=16, confidence_width=name, variation_budget=given)
        agent.reset(0)
        assert agent.width[0] == pytest.approx(1.5 + math.hypot(0.1, moved) / 0.1 * tests)


def test_the_width_of_theory_covers_a_drift_within_a_batch() -> None:
    # f_t = t / (N - 1) g, g = 3 k(x, 0.5) of norm 3: after a batch the mean of the f_t is within
    # beta std of the posterior's everywhere, with probability 0.9 at least. "heuristic" leaves
    # out what moves: it failed somewhere in all of 300 learners, "theory" in none (the largest
    # ratio was 0.17).
    learners, size = 300, 13  # N_1 of H = 150
    problem = replace(
        PROBLEM, noise_scale=1e-3, norm_bound=np.full(learners, 3.0), variation_budget=None
    )
    g = 3 * KERNEL(DOMAIN, np.array([[0.5]]))[:, 0]
    for name, most, least in [("theory", 0, 0), ("heuristic", 300, 250)]:
        agent = RPERP(problem, restart_period=150, confidence_width=name, variation_budget=3.0)
        agent.reset(0)
        for t in range(size):
            arms = agent.act()
            agent.observe(arms, g[arms] * t / (size - 1))
        mean, std = agent.posterior()
        wrong = np.abs(mean - g / 2) > agent.width[:, None] * std
        assert least <= int(wrong.any(axis=1).sum()) <= most
