"""Numbers at the edge: every parameter names its range, and both ends of it can be played."""

import math
import re
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest

import wgp_agents
from wgp_agents.registry import AGENTS, ARMS, LINEAR, agent_parameters
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

TASKS = {LINEAR: "WGPBandit-LinearSlow-v0", ARMS: "WGPBandit-ArmsAbrupt-v0"}
WORDS = {  # no numbers, or ranges of another kind
    *("weights", "width_form", "confidence", "gain", "features", "tuning", "model", "rewards"),
    *("prior", "candidates", "restart", "constants", "threshold", "reward_range", "play", "gate"),
}
COUNTS = {"updates", "memory", "hidden"}  # their upper ends take too long
LISTS = {"drifts", "noise_ratios", "lengthscales", "discounts", "values", "windows"}
RANGE = re.compile(r"(float|numbers?|int) in ([\[(])(\S+), (\S+)([\])])")
NOT_FINITE = r"posterior is not finite.*'regularization'"

DOMAIN = np.linspace(0.0, 1.0, 20)[:, None]
PROBLEM = BanditProblem(SquaredExponential(0.2), DOMAIN, 100, 0.1, 1.0, 1.0)


def sample_categorical(name: str) -> Any:
    """Return an environment that suits an agent, in its first episode."""
    env = gymnasium.make(TASKS.get(AGENTS[name].family, "WGPBandit-Abrupt-v0"), horizon=40)
    env.reset(seed=0)
    return env


def play(name: str, steps: int = 30, **parameters: Any) -> None:
    env = sample_categorical(name)
    agent: Any = wgp_agents.make(name, env, **parameters)
    agent.reset(0)
    for _ in range(steps):
        action = agent.act()
        assert env.action_space.contains(action)
        agent.observe(action, float(env.step(action)[1]))
        if hasattr(agent, "posterior"):
            agent.posterior()  # refuses what is not finite


def numeric(name: str) -> list[str]:
    """List an agent's parameters that are numbers."""
    words = {("wgp-ucb", "width"), ("qff-wgp-ucb", "width"), ("glr-ucb", "exploration")}
    keys = agent_parameters(name)
    return [key for key in keys if (name, key) not in words and key not in WORDS]


every_agent = pytest.mark.parametrize(
    "name", [name for name in wgp_agents.names() if numeric(name)]
)


@every_agent
def test_every_number_is_checked(name: str) -> None:
    env = sample_categorical(name)
    for parameter in numeric(name):
        for value in (-1e300, math.nan):
            given = {parameter: [value] if parameter in LISTS else value}
            with pytest.raises(ValueError, match=f"^The '{parameter}' parameter of "):
                wgp_agents.make(name, env, **given).reset(0)


@pytest.mark.slow
@every_agent
def test_both_ends_of_all_ranges_can_be_played(name: str) -> None:
    for parameter in numeric(name):
        check_ends(name, parameter)


def check_ends(name: str, parameter: str) -> None:
    """Check that both ends of a range can be played, and nothing beyond them."""

    def given(value: float) -> dict[str, Any]:
        return {parameter: [value] if parameter in LISTS else value}

    with pytest.raises(ValueError, match=f"^The '{parameter}' parameter of ") as refused:
        play(name, 0, **given(-1e300))
    rule = str(refused.value)
    found = RANGE.search(rule.replace("whole number", "number"))
    assert found, rule
    kind, left, low, high, right = found.groups()
    ends = [float(low), float(high)]
    outside = [math.nextafter(ends[0], -math.inf), math.nextafter(ends[1], math.inf), math.nan]
    inside = [ends[0] if left == "[" else 5e-324]
    if ends[0] == 0 and kind != "int" and "whole" not in rule:
        inside.append(5e-324)
    if parameter not in COUNTS:
        inside.append(ends[1] if right == "]" else math.nextafter(ends[1], 0.0))
    for value in outside:
        if value != ends[1]:  # a range may reach to infinity itself
            with pytest.raises(ValueError, match=f"^The '{parameter}' parameter of "):
                play(name, 0, **given(value))
    for value in inside:
        play(name, **given(int(value) if kind == "int" else value))


RANGED = [name for name in wgp_agents.names() if "reward_range" in agent_parameters(name)]


@pytest.mark.slow
@pytest.mark.parametrize("name", RANGED)
def test_ranges_of_rewards_at_the_edge(name: str) -> None:
    for ends in ((0, 1e-10), (-1e30, 1e30), (0, 1e30), (1e9, 1e9 + 1e-2)):
        play(name, reward_range=ends)


TOO_CLOSE = [(0, 5e-324), (0, 9e-11), (0, 2e30), (-2e30, 0), (1e9, 1e9 + 1e-4)]


@pytest.mark.parametrize("ends", TOO_CLOSE, ids=str)
def test_ranges_that_tell_no_rewards_apart(ends: tuple[float, float]) -> None:
    rule = r"'reward_range' parameter of .* two numbers in \[-1e\+30, 1e\+30\], at least 1e-10"
    for name in ("ucb1", "opkb", "bob-wgp-ucb"):
        with pytest.raises(ValueError, match=rule):
            wgp_agents.make(name, PROBLEM, reward_range=ends)


@pytest.mark.parametrize(
    ("name", "number"),
    [
        *((name, "noise_scale") for name in ("wgp-ucb", "ucb1", "master", "r-perp")),
        *((name, "norm_bound") for name in ("ucb1", "opkb", "master", "d-glm-ucb")),
    ],
)
def test_a_problem_beyond_numbers(name: str, number: str) -> None:
    changed: Any = {number: 1e160 if number == "noise_scale" else 1e31}
    with pytest.raises(ValueError, match=f"'{number}' parameter of .* must be .*, 1e.30"):
        wgp_agents.make(name, replace(PROBLEM, **changed)).reset(0)


@pytest.mark.parametrize("value", [np.ma.masked, np.ma.array([0.5], mask=True)], ids=["one", "row"])
def test_a_missing_value_is_no_parameter(value: Any) -> None:
    with pytest.raises(ValueError, match="'noise_scale' parameter of WGPUCB must be a float"):
        wgp_agents.make("wgp-ucb", PROBLEM, noise_scale=value)


@pytest.mark.parametrize("name", ["wgp-ucb", "igp-ucb", "wgp-ts"])
def test_a_posterior_that_is_not_finite_is_never_played(name: str) -> None:
    def huge(X: Any) -> Any:
        return 1e154 * (1 + X)  # whose squares are hardly numbers

    problem = replace(PROBLEM, domain=DOMAIN / 10)
    agent: Any = wgp_agents.make(name, problem, features=huge, confidence_width=1.0)
    agent.reset(0)
    for _ in range(3):
        agent.observe(3, 1.0)
    for ask in (agent.posterior, agent.act):
        with pytest.raises(ValueError, match=NOT_FINITE):
            ask()
