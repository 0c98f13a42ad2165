"""D-GLM-UCB: what its parameters and the task make of it, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from test_agents_glm import POINTS, TASK, history, played, slope_of

from wgp_agents.algorithms.linear.d_glm_ucb import DGLMUCB
from wgp_gym.kernels import Linear, SquaredExponential
from wgp_gym.problem import BanditProblem


def test_a_task_without_the_link_is_scaled_to_it() -> None:
    arms, rewards = history(40, 2)
    plain = replace(TASK, link="identity", norm_bound=3.0)
    agent, given = DGLMUCB(plain), DGLMUCB(TASK, norm_bound=2.0)  # S = 4 * 3 / (3 + 3)
    played(agent, arms, 6 * rewards - 3)
    played(given, arms, rewards)
    np.testing.assert_array_equal(agent.state.parameter, given.state.parameter)
    wide = DGLMUCB(plain, reward_range=(1.0, 9.0), tuning="original", variation_budget="known")
    wide.reset(0)
    assert wide.numbers.radius[0] == pytest.approx(1.5)
    assert 1 - wide.numbers.discount[0] == pytest.approx((0.4 / 400) ** (2 / 3))
    curved = BanditProblem(SquaredExponential(), np.array([[0.0], [1.0]]), 10, 0.1, 1.0)
    np.testing.assert_array_equal(DGLMUCB(curved).features, [[0.0], [1.0]])
    unit = replace(TASK, kernel=Linear())
    np.testing.assert_allclose(DGLMUCB(unit).features, POINTS / np.sqrt(2))


def test_memory_and_width_by_hand() -> None:
    def rate(**chosen: Any) -> float:
        agent = DGLMUCB(TASK, **chosen)
        agent.reset(0)
        return float(1 - agent.numbers.discount[0])

    assert rate() == pytest.approx((1 / 400) ** (2 / 3))
    assert rate(variation_budget="known") == pytest.approx((0.8 / 400) ** (2 / 3))
    drift = rate(variation_budget=3, tuning="corrected")
    assert drift == pytest.approx((3 / (np.sqrt(2) * 200)) ** 0.4)
    assert rate(variation_budget=1e9) == 0.5
    assert rate(variation_budget=0) == 0
    agent = DGLMUCB(TASK, delta=0.1, confidence="union")  # delta / 200 at each step
    agent.reset(0)
    noise = np.sqrt(2 * np.log(2000)) / 2
    assert agent.widths()[0] == pytest.approx(0.5 * (1.5 + noise / slope_of(1.5)))
    steep = DGLMUCB(TASK, norm_bound=50.0, delta=0.1)
    steep.reset(0)
    assert steep.widths()[0] == pytest.approx(25 + 0.25e6 * np.sqrt(2 * np.log(10)))


@pytest.mark.parametrize(
    ("chosen", "message"),
    [
        ({"discount": 0.0}, "'discount' parameter of DGLMUCB must be a float in \\[1e-30, 1\\]"),
        ({"tuning": "corect"}, "'tuning' parameter of DGLMUCB must be one of 'original'"),
        ({"variation_budget": "guess"}, "'variation_budget' .* must be 'known', 'unknown' or"),
        ({"variation_budget": -1.0}, "'variation_budget' parameter of DGLMUCB must be a float"),
        (
            {"regularization": 0.0},
            "'regularization' parameter of DGLMUCB must be a float in .1e-09",
        ),
        ({"delta": 1.0}, "'delta' parameter of DGLMUCB must be a float in \\[1e-30, 1\\)"),
        ({"norm_bound": -0.1}, "'norm_bound' parameter of DGLMUCB must be a float in \\[0"),
        ({"confidence": "sure"}, "'confidence' parameter of DGLMUCB must be one of 'paper'"),
        ({"reward_range": (1, 0)}, "'reward_range' parameter of DGLMUCB must be None or two"),
    ],
)
def test_bad_parameters_are_refused(chosen: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        DGLMUCB(TASK, **chosen)


def test_tasks_that_it_cannot_play_are_refused() -> None:
    with pytest.raises(ValueError, match=r"DGLMUCB plays a fixed number of arms.*drawn anew"):
        DGLMUCB(replace(TASK, contextual=True))
    with pytest.raises(ValueError, match=r"DGLMUCB plays a fixed number of arms.*a box"):
        DGLMUCB(replace(TASK, continuous=True))
    with pytest.raises(RuntimeError, match=r"The norm bound is drawn .* a 'norm_bound'"):
        DGLMUCB(replace(TASK, norm_bound=None)).reset(0)
    unknown = replace(TASK, variation_budget=None)
    with pytest.raises(
        RuntimeError, match=r"The variation budget is drawn .* a 'variation_budget'"
    ):
        DGLMUCB(unknown, variation_budget="known").reset(0)
