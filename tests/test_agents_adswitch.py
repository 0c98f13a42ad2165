"""AdSwitch: against plain loops over all intervals, as printed; its checks; what it detects."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.algorithms.arms.adswitch import AdSwitch
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import fill_uniform, seeds_of
from wgp_gym.kernels import Empirical
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

K, T = 4, 100
SHARP: dict[str, Any] = {"eviction": 0.6, "detection": 0.15, "gap_divisor": 3.0}
# Arms that rise and fall, good ones and bad ones
MEANS = np.array(
    [[0.9, 0.5, 0.1, 0.4], [1.5, 0.5, 0.1, 1.0], [1.5, 0.5, 1.3, 0.2], [0.6, 1.0, 1.3, 0.2]]
)


def problem(batch: int | None = None, noise: float = 0.3, horizon: int = T) -> BanditProblem:
    scale: Any = noise if batch is None else np.full(batch, noise)
    domain = np.linspace(0, 1, K)[:, None]
    given = {"noise_scale": scale, "norm_bound": K**0.5, "variation_budget": 1.0}
    return BanditProblem(Empirical(np.eye(K)), domain, horizon, **given, reward_range=(0.0, 1.0))


class Printed:
    """Algorithm 1 of [AGO19] with all plays of the episode, C_1 = 0.6, c = 0.15 and g = 3."""

    def __init__(self) -> None:
        self.t, self.last, self.episode = 0, [0] * K, 1
        self.evictions = self.detections = self.alarms = self.checks = 0
        self.begin()

    def begin(self) -> None:
        self.arms, self.rewards = np.zeros(0, int), np.zeros(0)
        self.good, self.mu, self.gap = set(range(K)), [0.0] * K, [0.0] * K
        self.S: list[set[tuple[int, int]]] = [set() for _ in range(K)]  # of n and s

    def of(self, k: int, s: int) -> Floats:
        """Return the rewards of an arm since step s of the episode."""
        found: Floats = self.rewards[s:][self.arms[s:] == k]
        return found

    def act(self, draws: Floats) -> list[int]:
        """Return the arms that are due."""
        self.t += 1
        for k in set(range(K)) - self.good:
            fits = [i for i in range(1, 61) if i == 1 or 2.0**-i >= self.gap[k] / 3]
            p = [2.0**-i * math.sqrt(self.episode / (K * T * math.log(T))) for i in fits]
            # The chance that one of the i from j on is drawn
            some = [1 - math.prod(1 - q for q in p[j:]) for j in range(len(p))]
            largest = [i for i, chance in zip(fits, some, strict=True) if draws[k] < chance]
            if largest:
                n = math.floor(0.15 * math.log(T) * 4.0 ** largest[-1])
                self.S[k].add((n, len(self.arms)))
                self.checks += 1
        due = [k for k in range(K) if k in self.good or self.S[k]]
        return [k for k in due if self.last[k] == min(self.last[j] for j in due)]

    def learn(self, arm: int, reward: float) -> None:
        self.last[arm] = self.t
        self.arms, self.rewards = np.append(self.arms, arm), np.append(self.rewards, reward)
        changed, unlike = self.a_good_arm_changed(), self.a_bad_arm_changed()
        self.detections, self.alarms = self.detections + changed, self.alarms + unlike
        if changed or unlike:
            self.episode += 1
            self.begin()
            return
        for k in set(range(K)) - self.good:
            self.S[k] = {(n, s) for n, s in self.S[k] if len(self.of(k, s)) < n}
        self.evict()

    def radius(self, n: Any) -> Any:
        return np.sqrt(0.15 * math.log(T) / n)

    def a_good_arm_changed(self) -> bool:
        """(3): each interval [s1, s2] against each [s, t]."""
        for k in self.good:
            past = self.of(k, 0)
            sums, n = np.concatenate([[0.0], past.cumsum()]), len(past)
            i, j = np.triu_indices(n + 1, 1)  # plays i ... j - 1
            means, radii = (sums[j] - sums[i]) / (j - i), self.radius(j - i)
            ends = j == n
            apart = np.abs(means[:, None] - means[ends])
            if (apart > radii[:, None] + self.radius((j - i)[ends])).any():
                return True
        return False

    def a_bad_arm_changed(self) -> bool:
        """(4): each [s, t] against mu~."""
        for k in set(range(K)) - self.good:
            for s in range(len(self.arms)):
                past = self.of(k, s)
                apart = abs(past.mean() - self.mu[k]) if len(past) else 0.0
                if len(past) and apart > self.gap[k] / 4 + self.radius(len(past)):
                    return True
        return False

    def evict(self) -> None:
        """(1) and (2), with the earliest s."""
        out = set()
        for s in range(len(self.arms)):
            plays = {k: self.of(k, s) for k in self.good}
            best = max((past.mean() for past in plays.values() if len(past)), default=0.0)
            for k, past in plays.items():
                if k in out or len(past) < 2:
                    continue
                gap = best - past.mean()
                if gap > math.sqrt(0.6 * math.log(T) / (len(past) - 1)):
                    out.add(k)
                    self.mu[k], self.gap[k] = past.mean(), gap
        self.good -= out
        self.evictions += len(out)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 7, 11])
def test_a_whole_run_is_the_printed_one(seed: int) -> None:
    agent = AdSwitch(problem(3), **SHARP, resolution=10**6)
    seeds = [10 * seed, 10 * seed + 1, 10 * seed + 2]
    agent.reset(seeds)
    books, streams = [Printed() for _ in seeds], [UniformStreams([s]) for s in seeds]
    rng = np.random.default_rng(seed)
    for t in range(260):
        arms = agent.act()
        for i, book in enumerate(books):
            draws = np.empty((1, K))
            fill_uniform(seeds_of(streams[i]), draws)
            tied = book.act(draws[0])
            assert arms[i] == tied[int(float(streams[i].draw()[0]) * len(tied))]
        rewards = MEANS[t // 65, arms] + 0.3 * rng.normal(size=3)
        agent.observe(arms, rewards)
        for i, book in enumerate(books):
            book.learn(int(arms[i]), float(rewards[i]))
            assert set(np.flatnonzero(agent.state.good[i]).tolist()) == book.good
            assert agent.state.episode[i] == book.episode
    for what in ("evictions", "detections", "alarms", "checks"):  # each of its parts was met
        assert sum(getattr(book, what) for book in books) > 2, what


@pytest.mark.slow
def test_checks_begin_with_their_probabilities() -> None:
    batch = 10_000
    agent = AdSwitch(problem(batch, horizon=2), eviction=1e-6, detection=40.0, gap_divisor=8.0)
    agent.reset(0)
    for arm in (0, 0, 1, 1):  # arm 0 pays 0, arm 1 pays 1: the gap is 1
        agent.observe(np.full(batch, arm), np.full(batch, float(arm)))
    assert agent.state.good.tolist()[0] == [False, True, True, True]
    agent.act()
    rate = 1 / math.sqrt(K * 2)  # log(T) counts as 1
    p = [2.0**-i * rate for i in (1, 2, 3)]
    expected = [p[0] * (1 - p[1]) * (1 - p[2]), p[1] * (1 - p[2]), p[2]]
    for i, chance in zip((1, 2, 3), expected, strict=True):
        share = (agent.state.target[:, 0] == 2 + math.floor(40 * 4.0**i)).mean()
        assert share == pytest.approx(chance, abs=4 * math.sqrt(chance / batch))
    before = agent.state.target.copy()
    agent.act()  # a second look at the same step begins no other check
    np.testing.assert_array_equal(agent.state.target, before)


def first_episodes(resolution: int, means: Floats, batch: int = 30) -> NDArray[np.int64]:
    """Return the step at which each learner's second episode began; 2,001: none."""
    agent = AdSwitch(problem(batch, 0.5, 2000), resolution=resolution)
    agent.reset(0)
    rng, found = np.random.default_rng(1), np.full(batch, 2001)
    for t in range(2000):
        arms = agent.act()
        agent.observe(arms, (rng.random(batch) < means[t][arms]).astype(float))
        found[(agent.state.episode > 1) & (found == 2001)] = t + 1
    return found


@pytest.mark.slow
def test_it_sees_changes_and_seldom_what_is_none() -> None:
    # The fall is seen after 6 plays, 0.83 of the rises within 1,000 steps.
    still = np.tile([0.9, 0.1, 0.1, 0.1], (2000, 1))
    falls, rises = still.copy(), still.copy()
    falls[1000:, 0] = 0.0
    rises[1000:, 1] = 1.0
    assert (first_episodes(10, still) < 2001).mean() < 0.1
    fell = first_episodes(10, falls) - 1000
    assert (fell > 0).all()
    assert np.median(fell) < 15
    assert (first_episodes(10, rises) <= 2000).mean() > 0.6  # only checks can show it


def test_fewer_intervals_see_no_more() -> None:
    values = np.random.default_rng(2).random((400, 20))
    values[150:] += 0.25
    agents = [AdSwitch(problem(20), detection=0.3, resolution=m) for m in (1, 10, 10**6)]
    first = np.full((3, 20), 401)
    for agent in agents:
        agent.reset(0)
    for t, row in enumerate(values):
        for found, agent in zip(first, agents, strict=True):
            agent.observe(np.zeros(20, int), row)
            found[(agent.state.episode > 1) & (found == 401)] = t
            assert agent.state.size.max() <= (401 if agent is agents[2] else 80)
    assert (first[0] >= first[1]).all()
    assert (first[1] >= first[2]).all()
    assert (first[2] >= 150).all()
    # Mean delays of 65, 41.5 and 41.1 plays
    assert np.mean(first[1] - first[2]) < 3 < np.mean(first[0] - first[2])


def test_a_good_arm_that_is_seldom_there_keeps_none_alive() -> None:
    # Arm 0 pays 0.1 and arm 1 0.8; arm 2, with 0.9, is there at each 60th step alone.
    evicted = {True: 200, False: 200}
    for last_arm in (True, False):
        agent = AdSwitch(problem(noise=0.05, horizon=4000))
        agent.reset(0)
        for t in range(200):
            arm = int(agent.act(allowed=[True, True, last_arm and t % 60 == 0, False]))
            agent.observe(arm, (0.1, 0.8, 0.9)[arm])
            if not agent.state.good[0, 0]:
                evicted[last_arm] = t
                break
    assert evicted[True] <= evicted[False] + 5


@pytest.mark.slow
def test_it_follows_a_change_that_elimination_does_not() -> None:
    # The best arm becomes the worst halfway: elimination alone loses 800 from then on. The whole
    # regret on seeds 1 to 6: 275 to 282.
    agent = AdSwitch(problem(20, 0.5, 2000))
    agent.reset(1000)
    rng, regret = np.random.default_rng(1), 0.0
    for t in range(2000):
        means = np.array([0.9, 0.1, 0.2, 0.3] if t < 1000 else [0.1, 0.9, 0.2, 0.3])
        arms = np.asarray(agent.act())
        regret += means.max() - means[arms].mean()
        agent.observe(arms, (rng.random(20) < means[arms]).astype(float))
    assert regret < 400


def test_the_constants() -> None:
    theory, ours = (
        AdSwitch(problem(), constants="theory"),
        AdSwitch(problem(noise=1.5), gap_divisor=7),
    )
    assert (theory.eviction[0], theory.detection[0], theory.gap_divisor[0]) == (16.1, 2.0, 16.0)
    assert (ours.eviction[0], ours.detection[0], ours.gap_divisor[0]) == (2.0, 0.5, 7.0)
    ours.reset(0)  # three times the noise of rewards in [0, 1]
    assert ours.numbers.eviction[0] == pytest.approx(9 * 2.0 * math.log(T))
    assert ours.numbers.detection[0] == pytest.approx(9 * 0.5 * math.log(T))
    assert ours.numbers.chance[0] == pytest.approx(1 / math.sqrt(K * T * math.log(T)))


def test_masks_leave_the_one_that_waited_longest() -> None:
    agent = AdSwitch(problem(), **SHARP)
    agent.reset(0)
    for arm, reward in [*[(0, 0.0), (1, 1.0)] * 6, (2, 0.5), (3, 0.5)]:
        agent.observe(arm, reward)
    assert not agent.state.good[0, 0]
    assert agent.act() == 1
    assert agent.act(allowed=[True, False, False, True]) == 3  # good, though played later
    assert agent.act(allowed=[True, False, False, False]) == 0


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("constants", "practica"),
        ("eviction", 0),
        ("detection", 0),
        ("gap_divisor", -1.0),
        ("resolution", 0),
        ("reward_range", (1, 0)),
    ],
)
def test_errors(parameter: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"The '{parameter}' parameter of AdSwitch must be"):
        wgp_agents.make("adswitch", problem(), **{parameter: value})
