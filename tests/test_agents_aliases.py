"""Parameters that an agent keeps: what their owner does to the arrays later moves nothing."""

from typing import Any

import gymnasium
import numpy as np
import pytest

import wgp_agents
from wgp_agents.benchmark.rollout import rollout

KEPT: list[tuple[str, str, Any]] = [
    ("wgp-ucb", "discount", np.array([0.5, 0.9])),
    ("r-gp-ucb", "restart_period", [2, 5]),
    ("wgp-ucb", "variation_budget", np.array([1e-3, 9.0])),
    ("wgp-ucb", "information_gain", np.array([0.1, 50.0])),
    ("rexp3", "gamma", np.array([0.1, 1.0])),
    ("rexp3", "variation_budget", np.array([1e-3, 9.0])),
    ("d-glm-ucb", "variation_budget", np.array([1e-3, 9.0])),
    ("sw-glm-ucb", "variation_budget", np.array([1e-3, 9.0])),
    ("oracle-discount", "discounts", np.array([0.5, 0.99])),
    *[(name, "norm_bound", np.array([1.0, 20.0])) for name in ("wgp-ucb", "master", "r-perp")],
    ("oracle-discount", "norm_bound", np.array([1.0, 20.0])),
]


@pytest.mark.parametrize(("name", "parameter", "value"), KEPT, ids=lambda one: str(one)[:20])
def test_a_parameter_is_that_of_its_time(name: str, parameter: str, value: Any) -> None:
    plays = []
    for spoilt in (False, True):
        given = list(value) if isinstance(value, list) else value.copy()
        env = gymnasium.make_vec("WGPBandit-LinearAbrupt-v0", 2, horizon=12, num_arms=5)
        env.reset(seed=0)
        agent = wgp_agents.make(name, env, **{parameter: given})
        if spoilt:
            given[1] = given[0]
        plays.append(rollout(agent, env, seed=3)["action"])
    np.testing.assert_array_equal(plays[0], plays[1])
