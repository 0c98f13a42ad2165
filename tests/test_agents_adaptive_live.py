"""The adaptive agent on what a live system may send: units, jumps, outliers, few or many arms."""

from __future__ import annotations

import copy
import functools
import math
import pickle
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray
from test_agents_bands import of_model

from wgp_agents.algorithms.adaptive.adaptive_wgp_ucb import AdaptiveWGPUCB
from wgp_gym.kernels import Empirical, SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

BATCH = 10
WAVE = np.sin(9 * np.linspace(0.0, 1.0, 20))
GOOD = WAVE.max() - 0.1 < WAVE  # 4 of 20 arms


def line(arms: int = 20, batch: int | None = None, horizon: int = 500) -> BanditProblem:
    domain = np.linspace(0.0, 1.0, arms)[:, None]
    noise: Any = 0.1 if batch is None else np.full(batch, 0.1)
    return BanditProblem(SquaredExponential(0.2), domain, horizon, noise)


def live(agent: AdaptiveWGPUCB, paid: Callable[[Any, int], Any], steps: int) -> NDArray[Any]:
    """Play, look at all that the agent says at each step, and return the plays."""
    agent.reset(0)
    plays = []
    for t in range(steps):
        plays.append(agent.act())
        agent.observe(plays[-1], paid(plays[-1], t))
        assert np.isfinite(agent.posterior()).all(), t
        assert np.isfinite(np.array(agent.belief())).all(), t
        assert (agent.bank.standardised(agent.action_set.candidates)[1] >= 0).all(), t
    return np.array(plays)


@pytest.mark.parametrize("steps", [1, 300])
@pytest.mark.parametrize("reward", [0.0, 5.0, -1e140])
def test_a_constant_reward_says_that_all_arms_are_alike(reward: float, steps: int) -> None:
    agent = AdaptiveWGPUCB(line())
    plays = live(agent, lambda arm, t: reward, steps)
    assert agent.belief().scale == 0.0
    assert (agent.posterior().mean == reward).all()
    assert np.bincount(plays, minlength=20).max() < 0.2 * steps + 2  # it goes on looking


# Each of 20 learners found it within 45, 61 and 75 steps; 0.99, 0.91 and 0.90 of their last 100
# plays were on it, 0.98, 0.28 and 0.25 of those of the worst.
@pytest.mark.slow
@pytest.mark.parametrize("best", [0, 7, 13])
def test_an_arm_that_pays_more_after_1000_equal_rewards_is_found(best: int) -> None:
    agent = AdaptiveWGPUCB(line(batch=5))
    plays = live(agent, lambda arms, t: 5.0 + 1e-3 * ((arms == best) & (t >= 1000)), 1450)
    assert len(np.unique(plays[:1000])) == 20
    assert (plays[1000:1200] == best).any(axis=0).all()
    assert (plays[1350:] == best).mean() > 0.75


@pytest.mark.slow
def test_a_scale_that_has_faded_to_nought_cuts_nothing() -> None:
    # one reward whose square is hardly a number, nothing for long, then rewards of 0, 1 and 2
    rng = np.random.default_rng(0)
    arms = np.linspace(0.0, 1.0, 3)[:, None]
    agent = AdaptiveWGPUCB(BanditProblem(Empirical(np.eye(3)), arms, 500, np.full(BATCH, 0.1)))

    def _paid(arms: NDArray[Any], t: int) -> Floats:
        early: Floats = np.full(BATCH, 2e-153 * (t == 5))
        return early if t < 1500 else arms + 0.1 * rng.normal(size=BATCH)

    live(agent, _paid, 1650)
    assert (agent.belief().scale > 0.1).all()
    assert (agent.posterior().mean.max(axis=1) > 0.8).mean() > 0.8  # one may just have begun anew


EXTREMES: dict[str, Callable[[Any, int], float]] = {
    "1e30": lambda arm, t: 1e30 * math.sin(arm + t // 50),
    "1e300": lambda arm, t: 1e300 * math.sin(arm + t),
    "the largest": lambda arm, t: 1.7e308 * (-1) ** (arm + t),
    "one of 1e30": lambda arm, t: 1e30 if t == 50 else math.sin(arm),
    "one of 1e300": lambda arm, t: -1e300 if t == 50 else math.sin(arm),
    "first of 1e300": lambda arm, t: 1e300 if t == 0 else math.sin(arm),
    "denormal": lambda arm, t: 5e-324 * (arm % 3),
    "1e-160": lambda arm, t: 1e-160 * math.sin(arm),
    "then of our size": lambda arm, t: math.sin(arm) * (1e-300 if t < 100 else 1.0),
    "a huge unit": lambda arm, t: math.sin(arm) * (1.0 if t < 100 else 1e200),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", EXTREMES)
def test_rewards_of_any_size_leave_numbers(case: str) -> None:
    live(AdaptiveWGPUCB(line()), EXTREMES[case], 250)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [2.0**100, 2.0**-498])
def test_rewards_of_any_unit_are_learned_from(unit: float) -> None:
    def _plays(unit: float) -> NDArray[np.int64]:
        rng = np.random.default_rng(0)
        agent = AdaptiveWGPUCB(line(batch=BATCH))
        return live(agent, lambda arms, t: unit * (WAVE[arms] + 0.1 * rng.normal(size=BATCH)), 200)

    plays = _plays(unit)
    assert np.array_equal(plays, _plays(1.0))
    assert GOOD[plays[100:]].mean() > 0.95  # of 100 learners 0.999


@pytest.mark.slow
@pytest.mark.parametrize(("df", "scale", "least"), [(1, 0.05, 0.5), (3, 0.2, 0.95)])
def test_heavy_tails(df: int, scale: float, least: float) -> None:
    # of 100 learners 0.81 and 0.99 in the last 100 steps; chance 0.2
    rng = np.random.default_rng(5)
    agent = AdaptiveWGPUCB(line(batch=BATCH))
    plays = live(agent, lambda arms, t: WAVE[arms] + scale * rng.standard_t(df, BATCH), 500)
    assert GOOD[plays[400:]].mean() > least


def away(size: float, *steps: int) -> Callable[[int], float]:
    return lambda t: size * (t in steps)


ODD = {  # what is added to the reward of a step, and the least share of good plays afterwards
    "100": (away(100.0, 150), 0.98),  # of 100 learners 0.997 in all cases but the last four
    "-100": (away(-100.0, 150), 0.98),
    "10,000": (away(1e4, 150), 0.98),
    "-1e30": (away(-1e30, 150), 0.98),
    "first": (away(-100.0, 0), 0.98),
    "second": (away(100.0, 1), 0.98),
    "tenth": (away(-1e4, 9), 0.98),
    "eleventh": (away(1e4, 10), 0.98),
    "two": (away(100.0, 2, 5), 0.9),  # 0.97
    "first, high": (away(100.0, 0), 0.93),  # 0.98
    "a shift": (lambda t: 100.0 * (t >= 150), 0.8),  # 0.98: some do not look around again
    "a shift down": (lambda t: -100.0 * (t >= 150), 0.8),  # 0.97
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ODD)
def test_odd_rewards_are_soon_forgotten(case: str) -> None:
    added, least = ODD[case]
    rng = np.random.default_rng(1)
    agent = AdaptiveWGPUCB(line(batch=BATCH))
    plays = live(agent, lambda a, t: WAVE[a] + added(t) + 0.1 * rng.normal(size=BATCH), 350)
    assert GOOD[plays[200:]].mean() > least


@pytest.mark.slow
def test_one_odd_reward_in_a_hundred() -> None:
    # of 100 learners 0.995; where surprises are not cut, 0.68
    rng = np.random.default_rng(1)
    agent = AdaptiveWGPUCB(line(batch=BATCH))

    def _paid(arms: NDArray[Any], t: int) -> Floats:
        noisy: Floats = WAVE[arms] + 0.1 * rng.normal(size=BATCH)
        return noisy + 100.0 * (rng.random(BATCH) < 0.01)

    plays = live(agent, _paid, 500)
    assert GOOD[plays[200:]].mean() > 0.95


@pytest.mark.slow
def test_a_unit_that_grows_by_100_in_mid_run() -> None:
    # of 100 learners 0.999 before, 0.978 at the end, and scales of 41 to 120
    rng = np.random.default_rng(0)

    def _paid(arms: NDArray[Any], t: int) -> Floats:
        noisy: Floats = WAVE[arms] + 0.1 * rng.normal(size=BATCH)
        return noisy * (1.0 if t < 250 else 100.0)

    agent = AdaptiveWGPUCB(line(batch=BATCH))
    plays = live(agent, _paid, 500)
    assert GOOD[plays[200:250]].mean() > 0.97
    assert GOOD[plays[450:]].mean() > 0.9
    assert (agent.belief().scale > 10).all()


def test_without_noise() -> None:
    # half of them or more find the best arm of 20, the rest one that pays 0.01 to 0.05 less
    agent = AdaptiveWGPUCB(line(batch=BATCH))
    plays = live(agent, lambda arms, t: WAVE[arms], 250)
    assert (plays[150:] == WAVE.argmax()).mean() > 0.3
    assert GOOD[plays[150:]].all()


def test_one_arm() -> None:
    plays = live(AdaptiveWGPUCB(line(1)), lambda arm, t: math.sin(t), 100)
    assert not plays.any()


def test_two_arms_that_change_places() -> None:
    # of 100 learners the better one took 0.99 of the last 50 plays of either half
    rng = np.random.default_rng(0)
    agent = AdaptiveWGPUCB(line(2, BATCH))
    plays = live(agent, lambda a, t: ((a == 1) ^ (t >= 100)) + 0.1 * rng.normal(size=BATCH), 200)
    assert plays[50:100].mean() > 0.9
    assert plays[150:].mean() < 0.1


def test_ten_thousand_arms() -> None:
    plays = live(AdaptiveWGPUCB(line(10_000)), lambda arm, t: math.sin(arm / 1e3), 8)
    assert len(set(plays)) > 5


@pytest.mark.slow
def test_a_long_run_stays_in_order() -> None:
    # the least eigenvalue of any covariance was 1e-7
    agent = AdaptiveWGPUCB(line(horizon=5000), drifts=(0.0, 0.01), noise_ratios=(1e-3, 0.1))
    agent.reset(0)
    rng = np.random.default_rng(0)
    plays = []
    for t in range(5000):
        plays.append(agent.act())
        agent.observe(plays[-1], float(WAVE[plays[-1]] + 0.1 * rng.normal()))
        if t % 500 == 499:
            assert np.isfinite(agent.posterior()).all()
            assert (agent.bank.standardised(agent.action_set.candidates)[1] >= 0).all()
    for q in range(len(agent.bank.models.prior)):
        assert np.linalg.eigvalsh(of_model(agent.bank, 0, q)[0]).min() > 0.0
    assert GOOD[plays[4000:]].mean() > 0.98
    assert agent.belief().drift == 0.0
    assert agent.belief().memory == 5000


def task(batch: int) -> Any:
    mode = "vector_entry_point"
    return gymnasium.make_vec(
        "WGPBandit-Abrupt-v0", num_envs=batch, vectorization_mode=mode, horizon=90
    )


@functools.cache
def company(size: int) -> tuple[NDArray[Any], Any, Any]:
    """Return plays `(T, B)`, posterior and belief of B learners."""
    env = task(size)
    env.reset(seed=0)
    agent = AdaptiveWGPUCB(env)
    agent.reset(7)
    plays = []
    for _ in range(90):
        plays.append(agent.act())
        agent.observe(plays[-1], env.step(plays[-1])[1])
    return np.array(plays), agent.posterior(), agent.belief()


@pytest.mark.parametrize("size", [1, 2, 3])
def test_a_learner_is_the_same_in_any_company(size: int) -> None:
    few, many = company(size), company(100)
    assert np.array_equal(few[0], many[0][:, :size])
    for said, others in zip((*few[1], *few[2]), (*many[1], *many[2]), strict=True):
        assert np.array_equal(said, others[:size])


@pytest.mark.parametrize("again", [copy.deepcopy, lambda agent: pickle.loads(pickle.dumps(agent))])
def test_a_copy_goes_on_alike_and_apart(again: Any) -> None:
    agent = AdaptiveWGPUCB(line())
    agent.reset(0)
    for t in range(40):
        agent.observe(t % 20, math.sin(t % 20 + t // 20))
    twin = again(agent)
    for _ in range(20):
        arm = agent.act()
        assert twin.act() == arm
        for each in (agent, twin):
            each.observe(arm, math.sin(arm))
    assert agent.belief() == twin.belief()
    held = copy.deepcopy(twin.posterior())
    agent.observe(0, 5.0)
    assert np.array_equal(twin.posterior(), held)


def test_learners_start_anew_one_by_one() -> None:
    agent = AdaptiveWGPUCB(line(batch=2))
    agent.reset(0)
    for t in range(30):
        agent.observe(np.array([t % 20, 3 * t % 20]), np.array([t % 7, t % 5]) + 0.5)
    before = agent.posterior()
    agent.reset(learners=[True, False])
    fresh = AdaptiveWGPUCB(line())
    fresh.reset(0)
    for t in range(15):
        agent.observe(np.array([t, t]), np.array([t % 3 + 2.0, 1.0]))
        fresh.observe(t, t % 3 + 2.0)
    assert np.array_equal(agent.posterior().mean[0], fresh.posterior().mean)
    assert np.array_equal(agent.posterior().std[0], fresh.posterior().std)
    assert agent.belief().memory[0] == fresh.belief().memory
    assert agent.bank.kept.seen.tolist() == [15, 45]
    assert not np.array_equal(agent.posterior().mean[1], before.mean[1])
