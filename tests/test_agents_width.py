"""The confidence widths: numbers by hand, forms that a user may give, and what they promise."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from conftest import GAUSSIAN_PROCESSES, forced, gp_specimen
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.gp.acquisition import UpperBound
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate
from wgp_agents.gp.width import chowdhury_width, deng_width
from wgp_gym.kernels import SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

DOMAIN = np.linspace(0.0, 1.0, 100)[:, None]


def by_bound(name: str) -> bool:
    """Tell whether an agent plays the largest mean + a multiple of the std, and draws no f."""
    return isinstance(gp_specimen(name).acquisition, UpperBound) and not forced(name)


every_gp = pytest.mark.parametrize("name", GAUSSIAN_PROCESSES)
every_bound = pytest.mark.parametrize("name", [*filter(by_bound, GAUSSIAN_PROCESSES)])


def problem(batch: int | None = None) -> BanditProblem:
    each = 1.0 if batch is None else np.ones(batch)
    return BanditProblem(SquaredExponential(0.2), DOMAIN, 500, 0.1, each, each)


def column(*numbers: float) -> Floats:
    return np.array(numbers)


def test_width_of_deng_and_others() -> None:
    # Algorithm 1 with delta = e^-2: 2 + 0.3 / sqrt(0.25) sqrt(2 * 2 + 2 * 6) = 2 + 0.6 * 4
    got = deng_width(column(2.0), column(0.3), column(0.25), column(math.exp(-2)), column(6.0))
    np.testing.assert_allclose(got, [4.4], rtol=1e-14)
    # B + R / sqrt(lambda) sqrt(2 log 10) where nothing is known yet; no noise, no second term
    got = deng_width(
        column(1.0, 3.0), column(0.1, 0.0), column(0.01, 1e-6), column(0.1, 0.1), column(0.0, 9.0)
    )
    np.testing.assert_allclose(got, [3.145966026289347, 3.0], rtol=1e-14)


def test_width_of_chowdhury_and_gopalan() -> None:
    # Their Theorem 2: 1 + 0.5 sqrt(2 (5 + 1 + 2)) = 1 + 0.5 * 4, 0 + 2 sqrt(2 (0 + 1 + 1)) = 4
    delta = column(math.exp(-2), math.exp(-1))
    got = chowdhury_width(
        column(1.0, 0.0), column(0.5, 2.0), column(1.0, 9.0), delta, column(5.0, 0.0)
    )
    np.testing.assert_allclose(got, [3.0, 4.0], rtol=1e-14)


def test_chowdhury_and_gopalan_have_their_own_lambda() -> None:
    def ridge(**parameters: Any) -> Any:
        agent = wgp_agents.make("igp-ucb", problem(), **parameters)
        assert isinstance(agent, GPAgent)
        return agent.regularization

    np.testing.assert_array_equal(ridge(width_form="chowdhury"), [1 + 2 / 500])
    np.testing.assert_array_equal(ridge(width_form="chowdhury", regularization=0.3), [0.3])
    np.testing.assert_allclose(ridge(width_form="deng"), [0.01], rtol=1e-14)
    with pytest.raises(ValueError, match=r"'width_form'.*did you mean 'chowdhury'\?"):
        ridge(width_form="chowdhuri")


@every_bound
def test_a_number_or_an_array(name: str) -> None:
    agent = wgp_agents.make(name, problem(2), confidence_width=[0.0, 1e6])
    agent.reset(0)
    agent.act()  # what comes before a window is drawn does not count
    for arm in (20, 50, 80):
        agent.observe([arm, arm], [1.0 - abs(arm - 50) / 100] * 2)
    assert isinstance(agent, GPAgent)
    mean, std = agent.posterior()
    np.testing.assert_array_equal(agent.act(), [mean[0].argmax(), std[1].argmax()])


@every_gp
def test_a_schedule_sees_the_number_of_observations_of_each_learner(name: str) -> None:
    seen: list[list[int]] = []

    def schedule(steps: NDArray[np.int64]) -> float:
        seen.append(steps.tolist())
        steps[:] = -7  # it may keep and change what it was given
        return 1.0

    agent = wgp_agents.make(name, problem(2), confidence_width=schedule)
    agent.reset(0)
    shown = np.array([[0.1, 1.0, 0.0, 1.0], [0.1, 1.0, 1.0, 1.0]])
    agent.act()
    agent.observe([1, 2], [0.0, 0.0])
    agent.act()
    agent.predict(shown)
    agent.predict(shown, episode_start=[False, True])
    agent.act()
    assert seen == [[0, 0], [1, 1], [2, 2], [3, 0], [3, 0]]


@every_bound
def test_a_schedule_may_give_each_learner_its_own(name: str) -> None:
    agent = wgp_agents.make(name, problem(2), confidence_width=lambda t: [0.0, 1e6])
    agent.reset(0)
    agent.act()
    agent.observe([50, 50], [1.0, 1.0])
    assert isinstance(agent, GPAgent)
    mean, std = agent.posterior()
    np.testing.assert_array_equal(agent.act(), [mean[0].argmax(), std[1].argmax()])


@pytest.mark.parametrize(
    ("value", "match"),
    [
        (-1.0, r"'confidence_width' parameter of WGPUCB must be a float in \[0, 1e.30\]"),
        (math.inf, r"a float in \[0, 1e.30\]"),
        (math.nan, r"a float in \[0, 1e.30\]"),
        ("theoretical", "'theory', a number or a function. Got 'theoretical'"),
        ([1.0, 2.0, 3.0], r"a scalar or of shape \(2,\)"),
        (None, r"a float in \[0, 1e.30\]"),
    ],
    ids=str,
)
def test_widths_that_are_none(value: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        wgp_agents.make("wgp-ucb", problem(2), confidence_width=value)


@pytest.mark.parametrize("value", [-1.0, math.nan, [1.0, 2.0, 3.0]], ids=str)
def test_a_schedule_that_fails_changes_nothing(value: Any) -> None:
    wrong = True
    agent, twin = (
        wgp_agents.make("wgp-ucb", problem(2), confidence_width=lambda t: value if wrong else 1.0)
        for _ in range(2)
    )
    for one in (agent, twin):
        one.reset(0)
    with pytest.raises(ValueError, match=r"'confidence_width' parameter of .* must be"):
        agent.act()
    wrong = False
    for _ in range(3):
        np.testing.assert_array_equal(agent.act(), twin.act())


RUNS, STEPS = 400, 120


@pytest.mark.parametrize(
    ("discount", "regularization"), [(0.9, 0.01), (0.9, 1.0), (0.99, 0.01), (1.0, 1.0)]
)
def test_the_bound_holds_as_often_as_it_promises(discount: float, regularization: float) -> None:
    """Theorem 3 for functions that never change, of norm exactly 1, played at random."""
    env: Any = gymnasium.make_vec(
        "WGPBandit-Stationary-v0",
        num_envs=RUNS,
        vectorization_mode="vector_entry_point",
        norm_bound=1.0,
        horizon=STEPS,
    )
    env.reset(seed=0)
    agent = wgp_agents.make("wgp-ucb", env, discount=discount, regularization=regularization)
    assert isinstance(agent, GPAgent)
    agent.reset(0)
    rng = np.random.default_rng(0)
    for _ in range(STEPS):
        arms = rng.integers(100, size=RUNS)
        agent.observe(arms, env.step(arms)[1])
    mean, std = agent.posterior()
    error = (np.abs(env.unwrapped.expected_rewards() - mean) / std).max(axis=1)
    for delta in (0.01, 0.1, 0.5):
        gain = np.asarray(agent.information_gain())
        each = np.ones(RUNS)
        beta = deng_width(each, 0.1 * each, regularization * each, delta * each, gain)
        assert np.mean(error > beta) <= delta
        # The promise is kept with room to spare (it is for every t at once, and the worst f and
        # noise); that a tenth of the bound fails in most runs shows that the scale is right.
        assert np.mean(error > beta / 10) > 0.8


@pytest.mark.parametrize("batch", [None, 3])
def test_a_form_of_one_s_own_plays_as_ours_does(batch: int | None) -> None:
    def own(B: Floats, R: Floats, lam: Floats, delta: Floats, gain: Floats) -> Floats:
        return B + R * np.sqrt((2.0 * gain - 2.0 * np.log(delta)) / lam)

    forms: list[Any] = [deng_width, own]
    plays = []
    for form in forms:
        agent = GPAgent(problem(batch), surrogate=DiscountSurrogate, width_form=form)
        agent.reset(0)
        rewards, played = np.random.default_rng(1), []
        for _ in range(30):
            action = agent.act()
            agent.observe(action, np.sin(np.asarray(action)) + 0.1 * rewards.normal(size=batch))
            played.append([np.asarray(action).tolist(), agent.beta()])
        plays.append(played)
    for ours, theirs in zip(*plays, strict=True):
        assert ours[0] == theirs[0]
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-14)
