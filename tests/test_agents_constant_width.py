"""The width that a known or fitted drift gives: one for all t."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

from wgp_agents.algorithms.kernelized.tv_gp_ucb import TVGPUCB
from wgp_agents.gp.bayes_width import ConstantWidth
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

LINE = np.linspace(0.0, 1.0, 40)[:, None]
CUBE = np.random.default_rng(0).random((30, 3))
PROBLEM = BanditProblem(SquaredExponential(0.2), LINE, 200, 0.1)
SPACE = BanditProblem(SquaredExponential(0.2), CUBE, 200, 0.1)

# 2 log 6 = 3.583519, log 10 = 2.302585, log 200 = 5.298317
VALUES = [
    (PROBLEM, 0.1, 8.188689),  # 3.583519 + 2 * 2.302585
    (PROBLEM, 0.01, 12.793859),
    (SPACE, 0.01, 22.004200),  # 3.583519 + 4 * 4.605170
    (PROBLEM, 1.0, 3.583519),
    (PROBLEM, 0.001, 14.180153),  # 3.583519 + 2 * 5.298317: at most T steps
    (PROBLEM, 0.0, 14.180153),
]


def agent_of(problem: BanditProblem = PROBLEM, **parameters: Any) -> TVGPUCB:
    agent = TVGPUCB(problem, confidence_width="constant", **parameters)
    agent.reset(0)
    return agent


@pytest.mark.parametrize(("problem", "eps", "square"), VALUES)
def test_the_width_of_a_known_drift(problem: BanditProblem, eps: float, square: float) -> None:
    agent = agent_of(problem, eps=eps)
    for _ in range(3):
        assert agent.beta() == pytest.approx(math.sqrt(square), rel=1e-7)
        agent.observe(agent.act(), 0.5)


def test_each_learner_has_the_width_of_its_own_drift() -> None:
    width = ConstantWidth(lambda: np.array([0.1, 0.0, 1.0]), 1, 200)
    expected = np.sqrt([8.188689, 14.180153, 3.583519])
    assert width(np.zeros(3, np.int64)) == pytest.approx(expected, rel=1e-7)
    assert width(np.full(3, 10**6)) == pytest.approx(expected, rel=1e-7)


def test_alpha_weighs_the_logarithm() -> None:
    width = ConstantWidth(lambda: 0.01, 2, 500, alpha=0.5)
    assert width(np.zeros(2, np.int64)) ** 2 == pytest.approx(3.583519 + 1.5 * 4.605170, rel=1e-7)


def test_the_width_follows_the_drift_that_is_fitted() -> None:
    agent, found = agent_of(eps="fit"), set()
    assert agent.drift() == pytest.approx(0.01)
    for t in range(120):  # still at first, then at random
        eps = agent.drift()
        square = 3.583519 + 2 * math.log(min(200.0, 1 / eps if eps else math.inf))
        assert agent.beta() == pytest.approx(math.sqrt(square), rel=1e-7)
        found.add(eps)
        arm = agent.act()
        agent.observe(arm, math.sin(5 * LINE[arm, 0] + (2.0 * t if t > 60 else 0.0)))
    assert min(found) < 0.001
    assert max(found) > 0.1


def test_a_copy_follows_its_own_drift() -> None:
    agent = agent_of(eps="fit")
    for twin in (copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))):
        for t in range(40):
            twin.observe(t % 40, float(3 * (-1) ** t))
        assert twin.drift() > 0.1
        assert twin.beta() < agent.beta()
    assert agent.drift() == pytest.approx(0.01)


def test_the_width_is_what_is_played() -> None:
    agent, twin = agent_of(eps=0.02), agent_of(eps=0.02)
    for t in range(50):
        mean, std = agent.posterior()
        arm = agent.act()
        bound = mean + math.sqrt(2 * math.log(6) + 2 * math.log(50)) * std
        assert bound[arm] >= bound.max() - 1e-8
        assert twin.act() == arm
        for one in (agent, twin):
            one.observe(arm, math.sin(5 * LINE[arm, 0] + t / 9))


def test_drift_asks_for_a_reset() -> None:
    with pytest.raises(RuntimeError, match=r"Call TVGPUCB\.reset"):
        TVGPUCB(PROBLEM).drift()


ERRORS: list[tuple[dict[str, Any], str]] = [
    ({"dim": 0}, "'dim' parameter of ConstantWidth must be"),
    ({"horizon": 0}, "'horizon' parameter of ConstantWidth must be"),
    ({"alpha": -1.0}, "'alpha' parameter of ConstantWidth must be"),
]


@pytest.mark.parametrize(("given", "rule"), ERRORS)
def test_bad_parameters_are_refused(given: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        ConstantWidth(lambda: 0.1, **({"dim": 1, "horizon": 10} | given))


def test_the_error_names_the_width() -> None:
    with pytest.raises(ValueError, match="'theory', 'heuristic', 'constant', a number"):
        TVGPUCB(PROBLEM, confidence_width="flat")
