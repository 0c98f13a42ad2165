"""What the K-armed agents keep of their plays, and the variates that they draw."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest
from scipy import stats

from wgp_agents.arms.posterior import ArmPosterior
from wgp_agents.arms.statistics import (
    AllPlays,
    ArmStatistics,
    DiscountedPlays,
    MonitoredPlays,
    WindowPlays,
    tuned_discount,
    tuned_window,
)
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import beta_variates, normal_variates
from wgp_agents.detectors import TwoWindowMean
from wgp_gym.types import Array

ARMS = 4
WINDOWS = np.array([1.0, 7.0, 40.0, 1000.0, math.inf])
DISCOUNTS = np.array([0.0, 0.5, 0.9, 0.999, 1.0])
BATCH = len(WINDOWS)
MEMORIES: dict[str, ArmStatistics] = {
    "all": AllPlays(BATCH, ARMS),
    "discounted": DiscountedPlays(BATCH, ARMS, DISCOUNTS),
    "window": WindowPlays(BATCH, ARMS, WINDOWS),
}
Play = tuple[int, float]


def weight(kind: str, learner: int, age: int) -> float:
    """Return what a play counts that is `age` plays old."""
    if kind == "discounted":
        return float(DISCOUNTS[learner] ** age)
    return float(kind == "all" or age < WINDOWS[learner])


def naive(kind: str, learner: int, plays: list[Play]) -> tuple[Array, Array]:
    """Return counts and sums of every arm over the whole history."""
    last = len(plays) - 1
    weighted = [(arm, weight(kind, learner, last - s), r) for s, (arm, r) in enumerate(plays)]
    counts = [math.fsum(w for arm, w, _ in weighted if arm == k) for k in range(ARMS)]
    sums = [math.fsum(w * r for arm, w, r in weighted if arm == k) for k in range(ARMS)]
    return np.array(counts), np.array(sums)


@pytest.mark.parametrize("kind", MEMORIES)
def test_statistics_are_those_of_the_whole_history(kind: str) -> None:
    memory, random = copy.deepcopy(MEMORIES[kind]), np.random.default_rng(1)
    plays: list[list[Play]] = [[] for _ in range(BATCH)]
    for step in range(300):
        if step % 90 == 70:
            fresh = random.random(BATCH) < 0.5
            memory.clear(fresh)
            plays = [[] if fresh[i] else plays[i] for i in range(BATCH)]
        active = random.random(BATCH) < 0.8
        arms, rewards = random.integers(0, ARMS, BATCH), random.normal(0.5, 1.0, BATCH)
        memory.add(arms, rewards, active)
        for i in np.flatnonzero(active):
            plays[i].append((int(arms[i]), float(rewards[i])))
        for learner in range(BATCH if step % 4 == 0 else 0):
            counts, sums = naive(kind, learner, plays[learner])
            played = counts >= 1e-100
            np.testing.assert_allclose(memory.counts[learner], counts * played, rtol=1e-11)
            np.testing.assert_allclose(memory.sums[learner], sums * played, rtol=1e-9, atol=1e-12)
            mean = np.where(played, sums / np.where(played, counts, 1.0), 0.0)
            np.testing.assert_allclose(memory.mean()[learner], mean, rtol=1e-9, atol=1e-9)
            np.testing.assert_array_equal(memory.played()[learner], played)
            assert memory.steps[learner] == len(plays[learner])


@pytest.mark.parametrize("restart", ["local", "global"])
def test_an_alarm_forgets_its_arm_or_all(restart: Any) -> None:
    detector = TwoWindowMean((2, 3), window=2, threshold=1.5)
    memory = MonitoredPlays(detector, restart)
    everybody = np.ones(2, bool)
    for arm, rewards in ((0, [2, -1]), (2, [2, -1]), (1, [2, -1]), (0, [0, -1])):
        memory.add(np.full(2, arm), np.array(rewards, float), everybody)
    alone = restart == "local"  # the first learner's arm 0 went from 2 to 0
    np.testing.assert_array_equal(memory.counts, [[0, alone, alone], [2, 1, 1]])
    np.testing.assert_array_equal(memory.sums, [[0, 2 * alone, 2 * alone], [-2, -1, -1]])
    np.testing.assert_array_equal(memory.age, [[0, 4 * alone, 4 * alone], [4, 4, 4]])
    np.testing.assert_array_equal(memory.steps, [4, 4])
    np.testing.assert_array_equal(memory.alarms, [1, 0])
    memory.add(np.zeros(2, int), np.array([2.0, -1.0]), everybody)  # its test starts anew
    np.testing.assert_array_equal(memory.alarms, [1, 0])
    memory.clear(np.array([True, False]))
    np.testing.assert_array_equal(memory.alarms + memory.steps, [0, 5])
    assert not memory.counts[0].any()
    assert not memory.age[0].any()


def test_a_detector_does_not_see_the_rewards_of_those_who_did_not_play() -> None:
    memory = MonitoredPlays(TwoWindowMean((2, 2), window=2, threshold=0.5))
    arms = np.zeros(2, int)
    memory.add(arms, np.zeros(2), np.ones(2, bool))
    memory.add(arms, np.ones(2), np.array([True, False]))
    assert memory.alarms.tolist() == [1, 0]
    memory.add(arms, np.zeros(2), np.array([False, True]))
    assert memory.alarms.tolist() == [1, 0]
    np.testing.assert_array_equal(memory.counts, [[0, 0], [2, 0]])


def test_huge_rewards_leave_nothing_behind_in_a_window() -> None:
    memory, random = WindowPlays(1, 1, np.array([10.0])), np.random.default_rng(0)
    rewards = random.random(200)
    rewards[[3, 25, 26, 97, 130]] = [1e30, -1e30, 1e200, 1e16, -1e30]
    for t, reward in enumerate(rewards):
        memory.add(np.zeros(1, np.int64), np.array([reward]), np.ones(1, bool))
        inside = rewards[max(0, t - 9) : t + 1]
        if np.abs(inside).max() <= 1:
            assert memory.sums[0, 0] == pytest.approx(math.fsum(inside), rel=1e-14)


def test_a_window_keeps_its_plays_and_no_more() -> None:
    memory = WindowPlays(2, 3, np.array([150.0, 20.0]))
    sizes = []
    for t in range(1000):
        memory.add(np.full(2, t % 3), np.ones(2), np.ones(2, bool))
        sizes.append(len(pickle.dumps(memory)))
    assert len(set(sizes[150:])) == 1
    np.testing.assert_array_equal(memory.counts.sum(axis=1), [150, 20])
    endless = WindowPlays(1, 3, np.array([1e15]))  # room for no more than it has seen
    for _ in range(200):
        endless.add(np.zeros(1, np.int64), np.ones(1), np.ones(1, bool))
    assert len(pickle.dumps(endless)) < 10_000
    np.testing.assert_array_equal(endless.counts, [[200, 0, 0]])


def test_an_arm_that_has_faded_to_nothing_is_as_if_never_played() -> None:
    memory = DiscountedPlays(1, 2, np.array([0.5]))
    memory.add(np.zeros(1, np.int64), np.array([1e30]), np.ones(1, bool))
    for age in range(1, 400):
        memory.add(np.ones(1, np.int64), np.ones(1), np.ones(1, bool))
        alive = 0.5**age >= 1e-100
        assert memory.played()[0, 0] == alive
        assert memory.mean()[0, 0] == pytest.approx(1e30 * alive)


BETAS = [(1, 1), (1, 3), (2.5, 1), (7, 300), (300, 7), (60, 50), (1.001, 1e5), (1 + 1e-15, 1)]


# 40,000 values; the 5e-5 quantile of the statistic lies at 0.0114. Seeds are fixed.
@pytest.mark.parametrize(("a", "b"), BETAS)
def test_beta_variates_have_their_distribution(a: float, b: float) -> None:
    streams, shape = UniformStreams(list(range(100))), (100, 4)
    successes, trials = np.full(shape, a - 1.0), np.full(shape, a + b - 2.0)
    draws = [beta_variates(streams, successes, trials) for _ in range(100)]
    assert stats.kstest(np.ravel(draws), stats.beta(a, b).cdf).statistic < 0.0114
    between = np.corrcoef(np.reshape(draws, (-1, 4)).T) - np.eye(4)
    assert np.abs(between).max() < 0.045  # 4.5 standard errors


def test_normal_variates_have_their_distribution() -> None:
    streams = UniformStreams(list(range(100)))
    draws = [normal_variates(streams, 4) for _ in range(100)]
    assert stats.kstest(np.ravel(draws), stats.norm.cdf).statistic < 0.0114
    between = np.corrcoef(np.reshape(draws, (-1, 4)).T) - np.eye(4)
    assert np.abs(between).max() < 0.045


def test_variates_of_a_learner_do_not_depend_on_the_others() -> None:
    successes = np.linspace(0.0, 8.0, 12).reshape(4, 3)
    trials = successes + successes[::-1]
    many, one = UniformStreams([5, 6, 7, 8]), UniformStreams([7])
    for _ in range(20):
        together = beta_variates(many, successes, trials)
        alone = beta_variates(one, successes[2:3], trials[2:3])
        np.testing.assert_array_equal(together[2:3], alone)
        np.testing.assert_array_equal(normal_variates(many, 3)[2:3], normal_variates(one, 3))


@pytest.mark.parametrize("choices", [True, False])
def test_a_trial_succeeds_with_the_probability_of_the_reward(choices: bool) -> None:
    rewards = np.array([-2.0, 0.0, 0.25, 0.7, 1.0, 1e30])
    batch, rounds = len(rewards), 4000
    memory, streams = AllPlays(batch, 2), UniformStreams(list(range(batch)))
    posterior = ArmPosterior("test", "beta", memory)
    for _ in range(rounds):
        if choices:  # without, one coin serves all plays
            posterior.draw(np.ones(batch), streams)
        posterior.add(np.zeros(batch, int), rewards, np.ones(batch, bool))
    # Four standard errors are at most 0.032.
    np.testing.assert_allclose(memory.sums[:, 0] / rounds, np.clip(rewards, 0, 1), atol=0.032)
    np.testing.assert_array_equal(memory.sums[[0, 1, 4, 5], 0], np.array([0, 0, 1, 1]) * rounds)


def test_the_coin_of_a_trial_is_drawn_by_every_learner() -> None:
    batch = 4000
    memory = AllPlays(batch, 2)
    posterior = ArmPosterior("test", "beta", memory)
    posterior.draw(np.ones(batch), UniformStreams(list(range(batch))))
    posterior.add(np.zeros(batch, int), np.full(batch, 0.3), np.ones(batch, bool))
    assert memory.sums[:, 0].mean() == pytest.approx(0.3, abs=0.029)  # four standard errors


def test_theory_tunes_the_memories() -> None:
    # Garivier and Moulines: 1 - sqrt(4 / 10,000) / 4 and 2 sqrt(10,000 log(10,000) / 4).
    few = np.array([0, 4])
    np.testing.assert_allclose(tuned_discount(few, 10_000), [1.0, 0.995])
    np.testing.assert_array_equal(tuned_window(few, 10_000, 3), [math.inf, 304])
    assert tuned_window(np.array([500]), 500, 10)[0] == 11  # never fewer than K + 1
    assert tuned_window(np.array([1]), 20, 3)[0] == 16
    assert tuned_window(np.array([1]), 9, 3)[0] == math.inf  # spans T
