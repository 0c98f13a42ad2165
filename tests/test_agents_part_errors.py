"""What goes wrong between an agent and its parts, or its caller's arrays: an error, or no harm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import RescaleAction
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import AdaptiveWGPUCB
from wgp_agents.algorithms.adaptive.dal_gp_ucb import DALGPUCB
from wgp_agents.algorithms.adaptive.master import MASTER
from wgp_agents.algorithms.adaptive.pe_gp_ucb import PEGPUCB
from wgp_agents.algorithms.adaptive.w_dbo import WDBO
from wgp_agents.base import Agent
from wgp_agents.core.observation import observation_of
from wgp_agents.gp.acquisition import UpperBound
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.restart_rule import RestartRule
from wgp_agents.gp.surrogates.base import Prediction, Surrogate
from wgp_agents.gp.surrogates.weighted import RestartSurrogate
from wgp_gym.kernels import Linear, Matern, SquaredExponential
from wgp_gym.problem import BanditProblem

LINE = np.linspace(0.0, 1.0, 20)[:, None]
PROBLEM = BanditProblem(SquaredExponential(0.2), LINE, 50, noise_scale=0.1, norm_bound=2.0)
OFFERS = BanditProblem(
    Linear(), np.zeros((5, 2)), 50, noise_scale=0.1, norm_bound=1.0, contextual=True
)


class Short(Surrogate):
    """A surrogate that predicts fewer points than it is asked for."""

    def restart(self, mask: Any, forgetting: Any) -> None:
        pass

    def update(self, plays: Any, rewards: Any, active: Any) -> None:  # type: ignore[override]
        pass

    def predict(self, points: Any, learners: Any = None) -> Prediction:
        part = np.ones((1, 7))
        return Prediction(part, part, part)


class Narrow(UpperBound):
    """An acquisition that scores three points alone."""

    def score(self, points: Any, prediction: Any, width: Any, draw: Any) -> Any:
        return super().score(points, prediction, width, draw)[:, :3]


class Elsewhere(RestartRule):
    """A rule that forces arm 7."""

    def override_action(self, actions: Any, allowed: Any, uniform: Any) -> Any:
        return np.full_like(actions, 7)


def made(**parts: Any) -> GPAgent:
    defaults: dict[str, Any] = {"surrogate": RestartSurrogate, "confidence_width": 2.0}
    agent = GPAgent(PROBLEM, **defaults | parts)
    agent.reset(0)
    return agent


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"surrogate": Short}, r"Short.predict must return three arrays \(1, 20\)"),
        ({"acquisition": Narrow()}, r"Narrow.score must return an array \(1, 20\). Got \(1, 3\)"),
    ],
)
def test_arrays_of_a_wrong_shape_are_refused(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**parts).act()


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"acquisition": UpperBound}, "'acquisition' parameter of GPAgent must be an instance"),
        ({"restart_rule": RestartRule}, "'restart_rule' parameter of GPAgent must be an instance"),
        ({"surrogate": lambda _: {}}, "'surrogate' parameter of GPAgent must be a class of"),
        ({"surrogate": Short, "confidence_width": "theory"}, "Short computes no 'gain'"),
    ],
)
def test_what_is_no_part_is_refused_at_once(parts: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(**parts)


def test_a_rule_cannot_force_an_arm_that_is_not_there() -> None:
    agent = made(restart_rule=Elsewhere())
    assert agent.act() == 7
    with pytest.raises(ValueError, match=r"Elsewhere\.override_action must return arms"):
        agent.act(allowed=np.arange(20) == 3)


def test_a_mask_and_an_observation_are_copied() -> None:
    mask = np.arange(10) == 4
    env = gymnasium.make("WGPBandit-ArmsAbrupt-v0", horizon=20)
    env.reset(seed=0)
    agent, twin = wgp_agents.make("exp3", env), wgp_agents.make("exp3", env)
    for one in (agent, twin):
        one.reset(0)
        assert one.act(allowed=mask.copy() if one is twin else mask) == 4
    mask[:] = True
    for one in (agent, twin):
        one.observe(4, 1.0)
    assert agent.act() == twin.act()
    buffer = observation_of(np.full((5, 2), 0.25))
    offer = wgp_agents.make("lin-ucb", OFFERS)
    offer.reset(0)
    chosen = offer.act(buffer)
    buffer[:] = 0.75
    offer.observe(chosen, 1.0)
    assert offer.arms is not None
    assert (offer.arms == 0.25).all()


def test_a_refused_choice_shows_nothing() -> None:
    def features(X: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(X > 0.9, np.nan, X)

    agent: Agent = wgp_agents.make("wgp-ucb", OFFERS, features=features, confidence_width=1.0)
    agent.reset(0)
    chosen = agent.act(observation_of(np.full((5, 2), 0.25)))
    with pytest.raises(ValueError, match="finite numbers"):
        agent.act(observation_of(np.full((5, 2), 0.95)))
    agent.observe(chosen, 1.0)  # of the arms that were shown


def test_what_features_leave_out_has_the_variance_of_the_signal() -> None:
    domain = np.random.default_rng(0).random((30, 2))
    rough = BanditProblem(Matern(0.05, 0.5), domain, 50, noise_scale=0.1, continuous=True)
    agent = WDBO(rough, signal_variance=25.0)
    agent.reset(0)
    np.testing.assert_allclose(agent.posterior().std, 5.0, rtol=1e-9)


@pytest.mark.parametrize("ends", [(-1.0, 1.0), (0.0, 50.0), (10.0, 11.0)])
def test_tests_of_a_change_see_plays_that_a_wrapper_rescales(ends: tuple[float, float]) -> None:
    counts: list[list[int]] = []
    for wrapped in (False, True):
        env: Any = gymnasium.make("WGPBandit-Slow-v0", horizon=30, continuous=True)
        env = RescaleAction(env, *np.array(ends, np.float32)) if wrapped else env
        env.reset(seed=0)
        agent = DALGPUCB(env, exploration=3.0)
        agent.reset(0)
        for _ in range(20):
            action = agent.act()
            agent.observe(action, float(env.step(action)[1]))
        rule: Any = agent.restart_rule
        counts.append([*agent.resets.tolist(), *rule.detector.size.tolist()])
    assert counts[0] == counts[1]
    assert min(counts[0][1:]) > 0


def test_feedback_may_come_before_the_first_choice_where_arms_change() -> None:
    agent = PEGPUCB(OFFERS)
    agent.reset(0)
    agent.observe(2, 0.5, arms=np.full((5, 2), 0.3))
    agent.act(observation_of(np.full((5, 2), 0.4)))
    assert agent.posterior().mean.min() > 0


def test_a_mask_is_no_change() -> None:
    agent = MASTER(replace(PROBLEM, horizon=200), scale=3e-4)
    agent.reset(0)
    rewards, poor = 1.5 * np.cos(np.linspace(0.0, 3.0, 20)), np.arange(20) >= 15
    for t in range(120):  # the optimum of all arms, which pay 1.5 at most, says nothing of the poor
        arm = agent.act(allowed=poor if t >= 60 else np.ones(20, bool))
        agent.observe(arm, float(rewards[arm]))
    assert agent.fired == (0, 0, 0)


def test_the_bank_predicts_at_any_point_as_at_its_arms() -> None:
    agent = AdaptiveWGPUCB(PROBLEM)
    agent.reset(0)
    for t in range(12):
        agent.observe((7 * t) % 20, np.sin(t))
    candidates = agent.action_set.candidates
    known = agent.bank.predict(candidates)
    some = candidates._replace(places=LINE[None, 3:9], shared=False)
    found = agent.bank.predict(some)
    np.testing.assert_allclose(found.mean[0], known.mean[0, 3:9], atol=1e-6)
    np.testing.assert_allclose(found.variance[0], known.variance[0, 3:9], atol=1e-5)
    plays = agent.action_set.embed(np.array([5]))
    np.testing.assert_allclose(agent.bank.predict_plays(plays)[0], known.mean[:, 5], atol=1e-6)
    assert agent.bank.held.tolist() == [12]
