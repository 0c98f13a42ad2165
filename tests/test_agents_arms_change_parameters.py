"""CUSUM-UCB, PHT-UCB, M-UCB and GLR-UCB: their parameters, and the bounds of kl-UCB."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import rel_entr

from wgp_agents.algorithms.arms.cusum_ucb import CUSUMUCB
from wgp_agents.algorithms.arms.glr_ucb import GLRUCB
from wgp_agents.algorithms.arms.m_ucb import MUCB
from wgp_agents.algorithms.arms.pht_ucb import PHTUCB
from wgp_agents.arms.index import NOBODY, forced_exploration
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.kernels.kl_index import kl_upper
from wgp_gym.kernels import Empirical, SquaredExponential
from wgp_gym.problem import BanditProblem

K, T = 4, 500
AGENTS: list[Any] = [CUSUMUCB, MUCB, GLRUCB, PHTUCB]
CUSUM_TUNED = ("num_samples", "threshold", "alpha")


def problem(noise: float = 0.5, horizon: int = T) -> BanditProblem:
    given: dict[str, Any] = {"noise_scale": noise, "norm_bound": K**0.5, "variation_budget": 1.0}
    domain = np.linspace(0, 1, K)[:, None]
    return BanditProblem(Empirical(np.eye(K)), domain, horizon, **given, reward_range=(0.0, 1.0))


def test_defaults_are_theirs() -> None:
    cusum = CUSUMUCB(problem(), num_changes=2)
    assert cusum.threshold[0] == pytest.approx(math.log(250))
    assert cusum.alpha[0] == pytest.approx(math.sqrt(2 * math.log(250) / 500))
    assert (cusum.num_samples[0], CUSUMUCB(problem(horizon=10**5)).num_samples[0]) == (41, 150)
    long = problem(horizon=10**6)
    roots = math.sqrt(math.log(2 * K * 10**12)) + math.sqrt(math.log(2 * 10**6))
    m_ucb = MUCB(long, smallest_change=0.5)
    assert 0 <= m_ucb.window[0] - 16 * roots**2 < 2
    assert m_ucb.threshold[0] == pytest.approx(math.sqrt(m_ucb.window[0] * math.log(8e12) / 2))
    delay = 2 * m_ucb.threshold[0] + 3 * math.sqrt(m_ucb.window[0])
    assert m_ucb.gamma[0] == pytest.approx(math.sqrt(K * delay / 2e6))
    assert (MUCB(problem()).window[0], MUCB(problem()).gamma[0]) == (126, 0.5)  # cut
    glr = GLRUCB(problem())
    assert glr.delta[0] == pytest.approx(500**-0.5)
    assert glr.alpha[0] == pytest.approx(math.sqrt(K * math.log(500) / 500))


def test_the_two_shares_of_forced_plays_of_m_ucb() -> None:
    # w = 1600, b = 100: 2 * 100 + 3 * 40 = 320; min(800, ceil(100 / 0.3) + 120 = 454); with a
    # change of 0.1 w / 2 is the smaller one.
    given: dict[str, Any] = {"window": 1600, "threshold": 100.0, "num_changes": 3}
    delays: list[Any] = [
        ({}, 320),
        ({"smallest_change": 0.3, "tuning": "experiments"}, 320),
        ({"smallest_change": 0.3, "tuning": "theorem"}, 454),
        ({"smallest_change": 0.1, "tuning": "theorem"}, 800),
        ({"smallest_change": 1e-30, "tuning": "theorem"}, 800),
    ]
    for chosen, delay in delays:
        agent = MUCB(problem(horizon=10**5), **given, **chosen)
        assert agent.gamma[0] == pytest.approx(math.sqrt(3 * K * delay / 2e5))


def test_the_number_of_alarms_raises_the_share_of_forced_plays() -> None:
    cases: list[Any] = [("constant", 20), ("rising", 10)]
    for exploration, period in cases:
        agent = GLRUCB(problem(), exploration=exploration, alpha=0.2)
        agent.reset(0)
        agent.statistics.alarms[:] = 3  # the fourth episode: twice the rate
        for step in range(45):
            agent.statistics.steps[:] = step
            forced = np.isinf(agent.index(UniformStreams([0]))[0])
            turn = (step + 1) % period
            wanted = np.arange(1, K + 1) == turn if 1 <= turn <= K else np.ones(K, bool)
            np.testing.assert_array_equal(forced, wanted)


def test_more_noise_widens_what_it_must() -> None:
    usual, noisy_one = (make_all(noise) for noise in (0.5, 1.5))
    assert noisy_one[0].detector.threshold[0, 0] == 9 * usual[0].detector.threshold[0, 0]
    assert noisy_one[1].detector.threshold[0, 0] == 3 * usual[1].detector.threshold[0, 0]
    assert usual[2].bernoulli[0]
    assert not noisy_one[2].bernoulli[0]
    assert noisy_one[2].detector.sigma[0, 0] == 1.5


def test_more_noise_takes_more_samples_for_the_same_chance_of_a_wrong_mean() -> None:
    for noise, scale in ((0.1, 1.0), (0.5, 1.0), (1.5, 3.0)):
        agent = CUSUMUCB(problem(noise, 10**6), epsilon=0.05)
        agent.reset(0)
        samples = agent.detector.samples[0, 0]
        assert samples == agent.num_samples[0]
        # The second term of the bound on false alarms, in `CUSUM`.
        wrong = 2 * math.exp(-samples * 0.05**2 / (2 * scale**2))
        assert wrong == pytest.approx(2 * math.exp(-math.log(20) / 4), rel=0.002)  # M is whole
    given, capped = CUSUMUCB(problem(1.5), num_samples=7), CUSUMUCB(problem(1.5), num_changes=4)
    for agent, samples in ((given, 7), (capped, T // (5 * K))):
        agent.reset(0)
        np.testing.assert_array_equal(agent.num_samples, samples)
        np.testing.assert_array_equal(agent.detector.samples, samples)


@pytest.mark.parametrize("make", [CUSUMUCB, MUCB])
def test_no_change_counts_as_one(make: Any) -> None:
    none, one = make(problem(), num_changes=0), make(problem(), num_changes=1)
    for name in CUSUM_TUNED if make is CUSUMUCB else ("window", "threshold", "gamma"):
        np.testing.assert_array_equal(getattr(none, name), getattr(one, name))
    most = make(problem(), num_changes=T)  # T changes are the most
    most.reset(0)
    assert most.act() < K


def make_all(noise: float) -> list[Any]:
    agents = [make(problem(noise=noise)) for make in AGENTS]
    for agent in agents:
        agent.reset(0)
    return agents


def test_kl_upper_is_the_root() -> None:
    for mean in (0.0, 1e-9, 0.01, 0.3, 0.5, 0.99, 1 - 1e-12, 1.0):
        for level in (0.0, 1e-9, 0.01, 0.5, 3.0, 50.0):
            q = kl_upper(mean, level)
            assert mean <= q <= 1
            if mean < q < 1 - 1e-9:
                kl = rel_entr(mean, q) + rel_entr(1 - mean, 1 - q)
                assert kl == pytest.approx(level, rel=1e-6)
            else:  # at an end
                assert mean == 1 or level <= 1e-8 or q > 1 - 1e-8


@pytest.mark.parametrize(
    ("make", "parameter", "value"),
    [
        (CUSUMUCB, "num_samples", 0), (CUSUMUCB, "epsilon", 0), (CUSUMUCB, "threshold", 0),
        (CUSUMUCB, "alpha", 2), (CUSUMUCB, "xi", 0), (CUSUMUCB, "num_changes", 1.5),
        (PHTUCB, "epsilon", 0), (PHTUCB, "threshold", 0), (PHTUCB, "alpha", 2), (PHTUCB, "xi", 0),
        (MUCB, "window", 7), (MUCB, "window", 1),
        (CUSUMUCB, "num_changes", -1), (CUSUMUCB, "num_changes", T + 1),
        (MUCB, "num_changes", 0.5), (MUCB, "num_changes", T + 1),
        (MUCB, "tuning", "theory"),
        (MUCB, "threshold", 0), (MUCB, "gamma", 0), (MUCB, "smallest_change", 0),
        (MUCB, "num_changes", [1, 2]), (GLRUCB, "rewards", "poisson"), (GLRUCB, "restart", "x"),
        (GLRUCB, "delta", 0), (GLRUCB, "threshold", "x"), (GLRUCB, "alpha", 0),
        (GLRUCB, "exploration", "x"), (GLRUCB, "c", -1), (GLRUCB, "sigma", 0),
        (GLRUCB, "resolution", 0), (GLRUCB, "reward_range", (1, 0)),
    ],
)  # fmt: skip
def test_errors(make: Any, parameter: str, value: Any) -> None:
    with pytest.raises(ValueError, match=rf"The '{parameter}' parameter of (\w+) must be"):
        make(problem(), **{parameter: value})


@pytest.mark.parametrize("make", AGENTS)
def test_a_box_has_no_arms(make: Any) -> None:
    box = replace(problem(), kernel=SquaredExponential(0.2), continuous=True)
    with pytest.raises(ValueError, match=r"plays a fixed number of arms\. The task has a box"):
        make(box)


@pytest.mark.parametrize(
    ("make", "parameters", "noise", "factor"),
    [
        (CUSUMUCB, {"alpha": 0, "xi": 4.0}, 0.5, 2.0),
        (CUSUMUCB, {"alpha": 0}, 1.5, 3.0),
        (PHTUCB, {"alpha": 0}, 1.5, 3.0),
        (MUCB, {"gamma": 0.01}, 1.5, 3.0),
    ],
)
def test_what_widens_the_padding(
    make: Any, parameters: dict[str, Any], noise: float, factor: float
) -> None:
    agent = make(problem(noise), **parameters)
    agent.reset(0)
    for _ in range(2):
        for arm in range(K):
            agent.observe(arm, 0.5)
    logarithm = math.log(2 * K) if make is not MUCB else 2 * math.log(2 * K + 1)
    index = agent.index(UniformStreams([0]))
    np.testing.assert_allclose(index, 0.5 + factor * math.sqrt(logarithm / 2))


def test_the_threshold_of_cusum_has_a_floor() -> None:
    assert CUSUMUCB(problem(), num_changes=T).threshold[0] == 1.0


def test_pht_ucb_has_the_defaults_of_cusum_ucb_and_a_threshold_for_its_noise() -> None:
    for noise, factor in ((0.5, 1.0), (1.5, 9.0)):
        pht, cusum = PHTUCB(problem(noise), num_changes=2), CUSUMUCB(problem(noise), num_changes=2)
        for name in ("epsilon", "threshold", "alpha", "xi"):
            np.testing.assert_array_equal(getattr(pht, name), getattr(cusum, name))
        pht.reset(0)
        np.testing.assert_allclose(pht.detector.threshold, factor * math.log(250))


def test_when_rewards_count_as_0_or_1() -> None:
    bare, silent = replace(problem(1.0), reward_range=None, norm_bound=1.0), problem(0.0)
    for task, given, bernoulli, sigma in (
        (problem(0.5), {}, True, 0.5),
        (bare, {}, False, 0.5),  # noise of half the width, but only the norm is known
        (bare, {"reward_range": (-1, 1)}, True, 0.5),
        (silent, {}, False, 0.001),
        (problem(0.3), {"sigma": 0.7}, False, 0.7),
    ):
        agent = GLRUCB(task, **given)
        agent.reset(0)
        assert agent.bernoulli[0] == bernoulli
        assert agent.sigma[0] == agent.detector.sigma[0, 0] == pytest.approx(sigma)


def test_what_lies_beyond_0_and_1_is_cut_off_where_kl_is_taken() -> None:
    cases: list[Any] = [("bernoulli", 2.0), ("gaussian", 13.5)]
    for rewards, total in cases:
        agent = GLRUCB(problem(), rewards=rewards)
        agent.reset(0)
        for reward in (7.0, 6.5):  # too close for an alarm
            agent.observe(2, reward)
        assert agent.statistics.sums[0, 2] == total


def test_all_arms_have_their_turn_and_the_indices_theirs() -> None:
    for rate, waits in ((1.0, 1), (0.9, 1), (0.5, 4), (0.3, 9)):  # floor(4 / 0.3) = 13
        period = [*range(K), *[NOBODY] * waits]
        steps = np.arange(1, 2 * len(period) + 1)
        assert forced_exploration(steps, np.full(len(steps), rate), K).tolist() == 2 * period
