"""Surrogate lengths from theory: Corollary 5, by hand and as the agents use it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.tuning import Forgetting, forgetting_rate, gain_order, memory_length
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

DOMAIN = np.linspace(0.0, 1.0, 100)[:, None]
PROBLEM = BanditProblem(SquaredExponential(0.2), DOMAIN, 500, 0.1, 1.0, 20.0)
BATCH = replace(PROBLEM, norm_bound=np.ones(3), variation_budget=np.array([0.0, 20.0, 1e6]))
FORGETFUL = {"wgp-ucb": "discount", "sw-gp-ucb": "window", "r-gp-ucb": "restart_period"}

every_forgetful = pytest.mark.parametrize("name", FORGETFUL)


def column(*numbers: float) -> NDArray[np.float64]:
    return np.array(numbers)


@pytest.mark.parametrize(
    ("horizon", "dim", "order"),
    [
        (500, 1, 38.62135381697468),  # (log 500)^2, log 500 = 6.214608098422191
        (500, 2, 240.0165782029997),
        (2, 1, 1.0),  # log 2 < 1 would make the power fall with d
        (1, 3, 1.0),
    ],
)
def test_gain_order(horizon: int, dim: int, order: float) -> None:
    assert gain_order(horizon, dim) == pytest.approx(order, rel=1e-12)


def test_forgetting_rate_is_corollary_5() -> None:
    # 16^{-1/4} (4 / 400)^{1/2} = 0.5 * 0.1; 81^{-1/4} (9 / 400)^{1/2} = 0.15 / 3
    rate = forgetting_rate(400, column(16.0, 81.0), column(4.0, 9.0))
    np.testing.assert_allclose(rate, [0.05, 0.05], rtol=1e-14)
    # No variation: no forgetting. More than theory can serve: one half.
    rate = forgetting_rate(400, column(16.0, 16.0, 16.0), column(0.0, 400.0, 1e9))
    np.testing.assert_array_equal(rate, [0.0, 0.5, 0.5])


def test_memory_length() -> None:
    rate = column(0.05, 0.07, 0.5, 1 / 99, 0.01, 0.0)
    np.testing.assert_array_equal(memory_length(rate, 100), [20, 15, 2, 99, math.inf, math.inf])
    np.testing.assert_array_equal(memory_length(column(0.0, 0.5), 1), [math.inf, math.inf])


@pytest.mark.parametrize(
    ("tuning", "rates", "lengths"),
    [  # (log 500)^{-1/2} = 0.4011373735941373
        (("unknown",), [0.017939408713444405] * 3, [56, 56, 56]),  # x 500^{-1/2}
        (("known",), [0.0, 0.0802274747188275, 0.5], [math.inf, 13, 2]),  # x (20 / 500)^{1/2}
        ((20.0,), [0.0802274747188275] * 3, [13, 13, 13]),
        (([20.0, 0.0, 20.0],), [0.0802274747188275, 0.0, 0.0802274747188275], [13, math.inf, 13]),
        (("known", 16.0), [0.0, 0.1, 0.5], [math.inf, 10, 2]),
        ((20.0, [16.0, 81.0, 256.0]), [0.1, 0.2 / 3, 0.05], [10, 15, 20]),
    ],
    ids=["unknown", "known", "number", "array", "gain", "gains"],
)
def test_tuning(tuning: tuple[Any, ...], rates: list[float], lengths: list[float]) -> None:
    np.testing.assert_array_equal(Forgetting("window", None, *tuning)(BATCH, 3), lengths)
    theory = Forgetting("discount", None, *tuning)
    np.testing.assert_allclose(theory.rate(BATCH, 3), rates, rtol=1e-12)
    np.testing.assert_allclose(theory(BATCH, 3), 1 - np.array(rates), rtol=1e-12)


def posterior(name: str, problem: BanditProblem = PROBLEM, **parameters: Any) -> Any:
    """Return the posterior after 70 plays."""
    agent = wgp_agents.make(name, problem, **parameters)
    assert isinstance(agent, GPAgent)
    agent.reset(0)
    for t in range(70):
        agent.observe(37 * t % 100, math.sin(t))
    return agent.posterior()


@pytest.mark.parametrize(
    ("budget", "rate", "length"),
    [(None, 0.017939408713444405, 56), ("known", 0.0802274747188275, 13), (1e6, 0.5, 2)],
    ids=["default", "known", "number"],
)
@every_forgetful
def test_agents_forget_as_theory_says(name: str, budget: Any, rate: float, length: int) -> None:
    given = {} if budget is None else {"variation_budget": budget}
    own: dict[str, Any] = {FORGETFUL[name]: 1 - rate if name == "wgp-ucb" else length}
    near: dict[str, Any] = {FORGETFUL[name]: 1 - rate * 1.01 if name == "wgp-ucb" else length + 1}
    expected = posterior(name, **own)
    np.testing.assert_allclose(posterior(name, **given), expected, rtol=0, atol=1e-12)
    assert not np.allclose(posterior(name, **near), expected, rtol=0, atol=1e-4)


@every_forgetful
def test_without_variation_nothing_is_forgotten(name: str) -> None:
    still = replace(PROBLEM, variation_budget=0.0)
    got = posterior(name, still, variation_budget="known")
    np.testing.assert_allclose(got, posterior("igp-ucb", still), rtol=0, atol=1e-9)


def test_the_order_of_the_gain_is_a_number_in_any_dimension() -> None:
    assert gain_order(500, 1) == pytest.approx(math.log(500) ** 2, rel=1e-14)
    assert math.isfinite(gain_order(500, 400))  # (log 500)^401 is none
