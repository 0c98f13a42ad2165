"""Every bad call is answered with its remedy, and leaves the agent as it was."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import GAUSSIAN_PROCESSES, LEARNERS, kinds, takers

import wgp_agents
from wgp_agents.base import Agent
from wgp_agents.gp.agent import GPAgent
from wgp_agents.registry import agent_class
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

DOMAIN = np.linspace(0.0, 1.0, 100)[:, None]

every_agent = pytest.mark.parametrize("name", wgp_agents.names())
every_kind = pytest.mark.parametrize("name", kinds())  # the checks are those of the base class
every_learner = pytest.mark.parametrize("name", LEARNERS)
every_gp = pytest.mark.parametrize("name", GAUSSIAN_PROCESSES)


def problem(batch: int | None) -> BanditProblem:
    each = 1.0 if batch is None else np.ones(batch)
    return BanditProblem(SquaredExponential(0.2), DOMAIN, 500, 0.1, each, each)


def played(name: str, batch: int | None = None) -> Agent:
    """Return an agent in the middle of a run."""
    agent = wgp_agents.make(name, problem(batch))
    agent.reset(3)
    for t in range(7):
        action = agent.act()
        agent.observe(action, math.sin(t) if batch is None else np.sin(t + np.arange(batch)))
    return agent


def check_unchanged(agent: Agent, before: Agent) -> None:
    """Check that two agents know the same and go on in the same way."""
    for _ in range(5):
        if isinstance(agent, GPAgent) and isinstance(before, GPAgent):
            np.testing.assert_array_equal(agent.posterior(), before.posterior())
            np.testing.assert_array_equal(agent.information_gain(), before.information_gain())
        action = agent.act()
        np.testing.assert_array_equal(action, before.act())
        for one in (agent, before):
            one.observe(action, np.cos(action))


def check_refused(agent: Agent, call: Callable[[], Any], match: str) -> None:
    before = copy.deepcopy(agent)
    with pytest.raises(ValueError, match=match):
        call()
    check_unchanged(agent, before)


@every_agent
def test_nothing_goes_before_reset(name: str) -> None:
    env = gymnasium.make("WGPBandit-Abrupt-v0", horizon=15)
    env.reset(seed=0)
    agent = wgp_agents.make(name, env)
    calls: list[Callable[[], Any]] = [agent.act, lambda: agent.observe(0, 1.0)]
    if isinstance(agent, GPAgent):
        calls.append(agent.posterior)
    for call in calls:
        message = rf"Call {agent_class(name).__name__}\.reset\(\) before it plays\."
        with pytest.raises(RuntimeError, match=message):
            call()
    agent.reset(0)
    assert agent.act() in range(100)


@every_kind
@pytest.mark.parametrize(
    "action", [-1, 100, 1.0, 2.5, math.nan, True, None, "3", [3], [], np.zeros(2, int)], ids=repr
)
def test_an_action_that_does_not_fit(name: str, action: Any) -> None:
    agent = played(name)
    match = r"Each action must be an int in \[0, 99\]\. Got .* instead\."
    check_refused(agent, lambda: agent.observe(action, 1.0), match)


@every_kind
@pytest.mark.parametrize(
    "actions",
    [[0, 1, 100], [-1, 0, 0], [0, 1], 3, [0.0, 1.0, 2.0], [[0, 1, 2]], [True, False, True]],
    ids=repr,
)
def test_actions_that_do_not_fit(name: str, actions: Any) -> None:
    agent = played(name, batch=3)
    match = r"Each action must be an int in \[0, 99\], in an array \(3,\)\. Got .* instead\."
    check_refused(agent, lambda: agent.observe(actions, np.ones(3)), match)


@every_kind
@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf, np.float32("nan")], ids=repr)
def test_a_reward_that_is_not_finite(name: str, reward: float) -> None:
    agent, batch = played(name), played(name, batch=3)
    match = r"A reward must be finite\. Got .* instead\."
    check_refused(agent, lambda: agent.observe(0, reward), match)
    check_refused(batch, lambda: batch.observe(np.arange(3), [0.0, reward, 1.0]), match)


@every_kind
@pytest.mark.parametrize("reward", [math.nan, math.inf], ids=repr)
def test_a_reward_that_is_not_finite_in_an_observation(name: str, reward: float) -> None:
    agent, batch = played(name), played(name, batch=3)
    shown = np.array([0.1, 1.0, 0.5, reward], np.float32)
    rows = np.array([[0.1, 1.0, 0.5, 0.0], shown, [0.1, 1.0, 0.5, 0.0]], np.float32)
    match = r"A reward must be finite\. Got .* instead\."
    check_refused(agent, lambda: agent.predict(shown), match)
    check_refused(batch, lambda: batch.predict(rows), match)
    check_refused(batch, lambda: batch.predict(rows, episode_start=[True, False, False]), match)


@every_kind
def test_rewards_of_another_shape(name: str) -> None:
    agent, batch = played(name), played(name, batch=3)
    match = r"There must be one reward for each learner\. Got (?s:.*) instead\."
    for reward in ([1.0], [1.0, 2.0], np.zeros((1, 1))):
        check_refused(agent, lambda reward=reward: agent.observe(0, reward), match)  # type: ignore[misc]
    for rewards in (1.0, [1.0, 2.0], np.zeros((3, 1))):
        check_refused(batch, lambda rewards=rewards: batch.observe([0, 1, 2], rewards), match)  # type: ignore[misc]


@every_kind
def test_observations_of_another_shape(name: str) -> None:
    agent, batch = played(name), played(name, batch=3)
    match = r"There must be 1 observations\. Got 2 instead\."
    check_refused(agent, lambda: agent.predict(np.zeros((2, 4))), match)
    match = r"There must be 3 observations\. Got 1 instead\."
    check_refused(batch, lambda: batch.predict(np.zeros(4)), match)


@pytest.mark.parametrize(
    "action", [[0.5], [0.5, 1.1], [-0.1, 0.5], [0.5, math.nan], 0.5, ["a", "b"]], ids=repr
)
def test_a_point_that_does_not_fit(action: Any) -> None:
    agent = wgp_agents.make("random", gymnasium.make("WGPBandit-Slow-v0", continuous=True, dim=2))
    agent.reset(0)
    match = r"Each action must be in \[0, 1\], in an array \(2,\)\. Got .* instead\."
    before = copy.deepcopy(agent)
    with pytest.raises(ValueError, match=match):
        agent.observe(action, 1.0)
    np.testing.assert_array_equal(agent.act(), before.act())


@every_learner
def test_a_reward_may_be_as_large_as_a_number_can_be(name: str) -> None:
    agent = played(name)
    for arm in range(8):
        agent.observe(arm, 1.7e308 * (-1) ** arm)
        assert agent.act() in range(100)
        says = getattr(agent, "posterior", lambda: 0.0)
        assert np.isfinite(says()).all()


@pytest.mark.parametrize(
    ("name", "parameters", "match"),
    [
        *[
            (name, {}, "norm bound is drawn with the episode")
            for name in [*takers("norm_bound"), *takers("reward_range")]
        ],
        *[
            (name, {"norm_bound": 1.0, "variation_budget": "known"}, "variation budget is drawn")
            for name in takers("norm_bound", "variation_budget", among=GAUSSIAN_PROCESSES)
        ],
    ],
    ids=lambda value: value if isinstance(value, str) else "-".join(value),
)
def test_an_episode_must_be_drawn_before_its_bounds_are_read(
    name: str, parameters: dict[str, Any], match: str
) -> None:
    env = gymnasium.make("WGPBandit-Abrupt-v0")
    agent = wgp_agents.make(name, env, **parameters)
    with pytest.raises(RuntimeError, match=f"{match}.*: reset the environment before the agent"):
        agent.reset(0)
    with pytest.raises(RuntimeError, match=r"\.reset\(\) before it plays"):
        agent.act()  # it never began
    env.reset(seed=0)
    agent.reset(0)
    assert agent.act() in range(100)


@every_gp
def test_with_a_width_of_its_own_an_agent_needs_no_bounds(name: str) -> None:
    env = gymnasium.make("WGPBandit-Abrupt-v0")
    agent = wgp_agents.make(name, env, confidence_width=2.0)
    agent.reset(0)
    agent.observe(agent.act(), 1.0)
    assert agent.act() in range(100)
