"""The parameters of the Gaussian-process agents: defaults, and values that cannot be."""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import GAUSSIAN_PROCESSES, specimen, takers

import wgp_agents
from wgp_agents.gp.agent import GPAgent
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

DOMAIN = np.linspace(0.0, 1.0, 100)[:, None]
PROBLEM = BanditProblem(SquaredExponential(0.2), DOMAIN, 500, 0.1, 1.0, 20.0)
BATCH = replace(PROBLEM, norm_bound=np.ones(3), variation_budget=np.ones(3))


def ridge(name: str, problem: BanditProblem, **parameters: Any) -> Any:
    agent = wgp_agents.make(name, problem, **parameters)
    assert isinstance(agent, GPAgent)
    return agent.regularization


def models_the_noise(name: str) -> bool:
    """Tell whether lambda is the noise variance, unless given: in some papers it is a constant."""
    return bool(ridge(name, PROBLEM)[0] != ridge(name, PROBLEM, noise_scale=0.2)[0])


def interpolates(name: str) -> bool:
    """Tell whether an agent's features know every function of the kernel."""
    agent = specimen(name)
    assert isinstance(agent, GPAgent)
    return bool(agent.feature_error() < 0.01)


every_gp = pytest.mark.parametrize("name", GAUSSIAN_PROCESSES)


@pytest.mark.parametrize("name", [*filter(models_the_noise, GAUSSIAN_PROCESSES)])
def test_lambda_is_the_noise_variance(name: str) -> None:
    found, noises = functools.partial(ridge, name), [0.0, 1e-4, 0.01]
    np.testing.assert_allclose(found(PROBLEM), [0.01], rtol=1e-14)
    np.testing.assert_array_equal(found(replace(PROBLEM, noise_scale=0.0)), [1e-6])
    np.testing.assert_allclose(found(BATCH, noise_scale=noises), [1e-6, 1e-6, 1e-4], rtol=1e-14)


@every_gp
def test_a_given_lambda_is_taken(name: str) -> None:
    np.testing.assert_array_equal(ridge(name, PROBLEM, noise_scale=3.0, regularization=0.5), [0.5])


@pytest.mark.parametrize("name", [*filter(interpolates, GAUSSIAN_PROCESSES)])
def test_without_noise_an_agent_learns_exactly(name: str) -> None:
    env: Any = gymnasium.make("WGPBandit-Stationary-v0", noise_std=0.0)
    env.reset(seed=0)
    still = {"variation_budget": 0.0, "eps": 0.0, "injection": 0.0, "regularization": 1e-6}
    parameters = {key: value for key, value in still.items() if name in takers(key)}
    agent = wgp_agents.make(name, env, **parameters)
    assert isinstance(agent, GPAgent)
    agent.reset(0)
    for arm in range(0, 100, 3):
        agent.observe(arm, env.step(arm)[1])
    truth = env.unwrapped.expected_rewards()
    np.testing.assert_allclose(agent.posterior().mean, truth, atol=2e-3)


IN_UNIT = r"a float in \[1e-30, 1\], or one for each learner"
IN_OPEN = r"a float in \[1e-30, 1\), or one for each learner"
FROM_ZERO = r"a float in \[0, 1e\+30\], or one for each learner"
ABOVE_ZERO = r"a float in \[1e-30, 1e\+30\], or one for each learner"
NOISE = r"a float in \[1e-09, 1e\+60\], or one for each learner"
WHOLE = r"a whole number in \[1, inf\], or one for each learner"
HINT = r"'known', 'unknown' or a number in \[0, 1e\+30\]"
OWN: list[tuple[str, str, list[Any], str]] = [
    ("wgp-ucb", "discount", [0.0, -0.5, 1.01, math.nan, "0.9", True, [0.9, 0.0, 1.0]], IN_UNIT),
    ("sw-gp-ucb", "window", [0, -3, 0.5, 1.5, math.nan, "ten", [1, 2.5, 3]], WHOLE),
    ("r-gp-ucb", "restart_period", [0, 1.5, -math.inf, True, [1, 0, 1]], WHOLE),
]
COMMON: list[tuple[str, list[Any], str]] = [
    ("delta", [0.0, 1.0, -0.1, math.nan, [0.1, 1.0, 0.1]], IN_OPEN),
    ("regularization", [0.0, 1e-18, -1.0, math.inf, math.nan, "big"], NOISE),
    ("norm_bound", [-1.0, math.inf, math.nan, [1.0, -1.0, 1.0]], FROM_ZERO),
    ("noise_scale", [-0.1, math.inf, math.nan], FROM_ZERO),
]
THEORY: list[tuple[str, list[Any], str]] = [
    ("variation_budget", [-1.0, math.inf, math.nan, [1.0, -1.0, 1.0]], FROM_ZERO),
    ("variation_budget", ["knwon"], HINT),
    ("information_gain", [0.0, -1.0, math.inf, math.nan], ABOVE_ZERO),
]
BAD = [
    *OWN,
    *[(name, *row) for row in COMMON for name in takers(row[0], among=GAUSSIAN_PROCESSES)],
    *[(name, *row) for row in THEORY for name in takers(row[0], among=GAUSSIAN_PROCESSES)],
]


@pytest.mark.parametrize(
    ("name", "parameter", "value", "rule"),
    [
        pytest.param(name, parameter, value, rule, id=f"{name}-{parameter}={value}")
        for name, parameter, values, rule in BAD
        for value in values
    ],
)
def test_a_parameter_that_cannot_be(name: str, parameter: str, value: Any, rule: str) -> None:
    match = rf"^The '{parameter}' parameter of .* must be {rule}\. Got .* instead\.$"
    with pytest.raises(ValueError, match=match):
        wgp_agents.make(name, BATCH, **{parameter: value})


@pytest.mark.parametrize(
    "value", [[0.5, 0.5], [[0.5, 0.5, 0.5]], [], ["0.5"] * 3, [True] * 3, [0.5, [0.5]]], ids=str
)
@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        (name, parameter)
        for parameter in ("discount", *(row[0] for row in COMMON), THEORY[0][0], THEORY[2][0])
        for name in takers(parameter, among=GAUSSIAN_PROCESSES)
    ],
)
def test_there_is_a_number_for_each_learner(name: str, parameter: str, value: Any) -> None:
    match = rf"^The '{parameter}' parameter of .* must be .*(for each learner|of shape \(3,\))\."
    with pytest.raises(ValueError, match=match):
        wgp_agents.make(name, BATCH, **{parameter: value})
