"""Every bad call is answered with its remedy, and leaves the agent as it was."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import GAUSSIAN_PROCESSES, LEARNERS, takers

import wgp_agents
from wgp_agents.base import Agent
from wgp_agents.gp.agent import GPAgent
from wgp_agents.registry import agent_class
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

DOMAIN = np.linspace(0.0, 1.0, 100)[:, None]

MASKED: Any = np.ma.masked  # numpy's mark of a missing value
MASKED_FLOATS: Any = np.ma.masked_equal([1.0, -9999.0, 1.0], -9999.0)
MASKED_INTS: Any = np.ma.masked_equal([1, 9, 1], 9)

every_agent = pytest.mark.parametrize("name", wgp_agents.names())
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


HUGE = 10**400  # no float
ONE, SHAPE = r"an int in \[0, 99\]", r"an int in \[0, 99\], in an array \(3,\)"
# The checks are those of the base class, before anything changes: one agent stands for all.
AGENT = "wgp-ucb"


@pytest.mark.parametrize(
    "action",
    [-1, 100, 1.0, math.nan, True, None, "3", [3], [], [[1], [1, 2]], HUGE, MASKED, b"1", 1j],
    ids=repr,
)
def test_an_action_that_does_not_fit(action: Any) -> None:
    agent = played(AGENT)
    match = rf"The 'action' parameter of observe must be {ONE}\. Got .* instead\."
    check_refused(agent, lambda: agent.observe(action, 1.0), match)


@pytest.mark.parametrize(
    "actions",
    [[0, 1, 100], [0, 1], 3, [0.0, 1.0, 2.0], [[0, 1, 2]], [True] * 3, [0, HUGE, 1], MASKED_INTS],
    ids=repr,
)
def test_actions_that_do_not_fit(actions: Any) -> None:
    agent = played(AGENT, batch=3)
    check_refused(agent, lambda: agent.observe(actions, np.ones(3)), rf"must be {SHAPE}\. Got")


@pytest.mark.parametrize(
    "reward",
    [math.nan, -math.inf, np.float32("inf"), None, "1.0", HUGE, MASKED, [1.0], np.zeros((1, 1))],
    ids=repr,
)
def test_a_reward_that_does_not_fit(reward: Any) -> None:
    agent = played(AGENT)
    match = r"The 'reward' parameter of observe must be a finite number\. Got (?s:.*) instead\."
    check_refused(agent, lambda: agent.observe(0, reward), match)


@pytest.mark.parametrize(
    "rewards",
    [
        [0.0, math.nan, 1.0],
        [0.0, None, 1.0],
        [1.0, HUGE, 1.0],
        MASKED_FLOATS,
        1.0,
        np.zeros((3, 1)),
    ],
    ids=repr,
)
def test_rewards_that_do_not_fit(rewards: Any) -> None:
    agent = played(AGENT, batch=3)
    match = r"'reward' .* must be finite numbers, in an array \(3,\)\. Got"
    check_refused(agent, lambda: agent.observe([0, 1, 2], rewards), match)


def test_a_truth_value_is_a_reward_of_0_or_1() -> None:
    clicked, paid = played(AGENT, batch=3), played(AGENT, batch=3)
    clicked.observe([0, 1, 2], [True, False, True])
    paid.observe([0, 1, 2], [1.0, 0.0, 1.0])
    check_unchanged(clicked, paid)


@pytest.mark.parametrize("start", [[False] * 4, [False] * 1000, [], [[False] * 3], [0, 2, 0], "no"])
def test_beginnings_that_are_not_one_for_each_learner(start: Any) -> None:
    agent = played(AGENT, batch=3)
    rows = np.tile([0.1, 1.0, 0.0, 0.5], (3, 1))
    match = r"'episode_start' parameter of predict must be True or False, in an array \(3,\)"
    check_refused(agent, lambda: agent.predict(rows, episode_start=start), match)


@pytest.mark.parametrize(
    ("number", "value", "match"),
    [
        (2, 1e300, "place of the last action, must be"),
        (2, -1e300, "place of the last action, must be"),
        (2, math.nan, "place of the last action, must be"),
        (2, 0.505, "at the place of an arm"),
        (3, math.nan, "finite last reward"),
        (3, math.inf, "finite last reward"),
    ],
)
def test_an_observation_that_the_task_cannot_show(number: int, value: float, match: str) -> None:
    agent, batch = played(AGENT), played(AGENT, batch=3)
    rows = np.tile([0.1, 1.0, 0.0, 0.5], (3, 1))
    rows[1, number] = value
    check_refused(agent, lambda: agent.predict(rows[1]), match)
    check_refused(batch, lambda: batch.predict(rows, episode_start=[True, False, False]), match)


def test_observations_of_another_shape() -> None:
    agent, batch = played(AGENT), played(AGENT, batch=3)
    match = r"There must be 1 observations\. Got 2 instead\."
    check_refused(agent, lambda: agent.predict(np.zeros((2, 4))), match)
    match = r"There must be 3 observations\. Got 1 instead\."
    check_refused(batch, lambda: batch.predict(np.zeros(4)), match)


@pytest.mark.parametrize(
    "action",
    [[0.5], [0.5, 1.1], [-0.1, 0.5], [0.5, math.nan], 0.5, ["a", "b"], [0.5, HUGE]],
    ids=repr,
)
def test_a_point_that_does_not_fit(action: Any) -> None:
    agent = wgp_agents.make("random", gymnasium.make("WGPBandit-Slow-v0", continuous=True, dim=2))
    agent.reset(0)
    match = r"must be in \[0, 1\], in an array \(2,\)\. Got .* instead\."
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
    with pytest.raises(RuntimeError, match=r"\.reset\(\) before it plays"):
        agent.act()
    agent.reset(0)
    for use in (agent.act, agent.state_dict, lambda: agent.observe(0, 1.0)):
        with pytest.raises(RuntimeError, match=f"{match}.*: reset the environment before"):
            use()  # it never began
    env.reset(seed=0)
    assert agent.act() in range(100)


@every_gp
def test_with_a_width_of_its_own_an_agent_needs_no_bounds(name: str) -> None:
    env = gymnasium.make("WGPBandit-Abrupt-v0")
    agent = wgp_agents.make(name, env, confidence_width=2.0)
    agent.reset(0)
    agent.observe(agent.act(), 1.0)
    assert agent.act() in range(100)
