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
from wgp_agents.parameters import per_learner
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

# The arguments of `per_learner`, the rule in its message, and the nearest numbers on either side.
Row = tuple[tuple[float, float, str, bool], str, list[float], list[float]]
RANGES: list[Row] = [
    ((0.0, 1.0, "right", False), IN_UNIT, [0.0, -0.5, 9e-31, 1.01], [1e-30, 0.5, 1.0]),
    ((0.0, 1.0, "neither", False), IN_OPEN, [0.0, 1.0, -0.1], [1e-30, 0.5, 0.999]),
    ((0.0, math.inf, "left", False), FROM_ZERO, [-0.1, 1.1e30, math.inf], [0.0, 1.0, 1e30]),
    ((0.0, math.inf, "neither", False), ABOVE_ZERO, [0.0, -1.0, math.inf], [1e-30, 1.0, 1e30]),
    ((1e-9, 1e60, "both", False), NOISE, [0.0, 1e-18, -1.0, math.inf], [1e-9, 1.0, 1e60]),
    ((1, math.inf, "both", True), WHOLE, [0, -3, 0.5, 1.5, -math.inf], [1, 3, math.inf]),
]
NO_NUMBERS: list[Any] = [math.nan, "0.9", "ten", True, None]
SHAPES: list[Any] = [[[1, 1, 1]], [], ["1"] * 3, [True] * 3, [1, [1]]]


def refused(rule: str) -> Any:
    """Expect the error that says that `x` must be something else."""
    match = rf"^The 'x' parameter of Owner must be {rule}\. Got (?s:.*) instead\.$"
    return pytest.raises(ValueError, match=match)


@pytest.mark.parametrize(("numbers", "rule", "bad", "good"), RANGES, ids=[row[1] for row in RANGES])
def test_a_number_for_each_learner(
    numbers: tuple[float, float, str, bool], rule: str, bad: list[float], good: list[float]
) -> None:
    low, high, closed, whole = numbers

    def checked(value: Any) -> Any:
        return per_learner("Owner", "x", value, 3, low, high, closed, whole=whole)

    for value in [*bad, *NO_NUMBERS]:
        for given in (value, [good[0], value, good[1]]):
            with refused(rule):
                checked(given)
    for shape in SHAPES:
        with refused(rule):
            checked(shape)
    for length in (1, 2, 4):
        with refused(r"a scalar or of shape \(3,\)"):
            checked([good[0]] * length)
    for value in good:
        np.testing.assert_array_equal(checked(value), [value] * 3)
    np.testing.assert_array_equal(checked(good), good)


RULES = {
    "discount": IN_UNIT,
    "window": WHOLE,
    "restart_period": WHOLE,
    "delta": IN_OPEN,
    "regularization": NOISE,
    "norm_bound": FROM_ZERO,
    "noise_scale": FROM_ZERO,
    "variation_budget": FROM_ZERO,
    "information_gain": ABOVE_ZERO,
}


@every_gp
def test_every_parameter_is_checked(name: str) -> None:
    """Each has its range, and takes a number for each learner. The rest is `per_learner`'s."""
    for parameter, rule in RULES.items():
        if name not in takers(parameter, among=GAUSSIAN_PROCESSES):
            continue
        pair = [2, 2] if rule == WHOLE else [0.5, 0.5]
        for value, expected in ((-1.0, rule), (pair, r".*(for each learner|of shape \(3,\))")):
            match = rf"^The '{parameter}' parameter of .* must be {expected}\. Got .* instead\.$"
            with pytest.raises(ValueError, match=match):
                wgp_agents.make(name, BATCH, **{parameter: value})
    if name in takers("variation_budget", among=GAUSSIAN_PROCESSES):
        with pytest.raises(ValueError, match=rf"^The 'variation_budget' parameter .* be {HINT}\."):
            wgp_agents.make(name, BATCH, variation_budget="knwon")
