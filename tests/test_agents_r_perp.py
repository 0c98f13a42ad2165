"""R-PERP: its plays against the pseudo code with dense posteriors."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from wgp_agents.algorithms.adaptive.r_perp import RPERP
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.kernels.basis import make_basis
from wgp_agents.kernels.elimination import batch_posteriors, plan_batches
from wgp_gym.features import exact_features
from wgp_gym.kernels import Linear, SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

DOMAIN = np.linspace(0.0, 1.0, 30)[:, None]
KERNEL, NOISE = SquaredExponential(0.2), 0.1
T = 150
PROBLEM = BanditProblem(KERNEL, DOMAIN, T, NOISE, 1.5, 2.0)
GRAM = KERNEL(DOMAIN, DOMAIN)
MASK = 2**64 - 1


def reward(arm: int, t: int) -> float:
    return math.sin(5 * DOMAIN[arm, 0] + t / 60) + 0.1 * math.cos(7.1 * t)


def split_mix(draw: float, count: int) -> list[float]:
    """Return uniform numbers by SplitMix64 from one draw, in whole numbers of any length."""

    def _mixed(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    step = 0x9E3779B97F4A7C15
    state, found = _mixed((int(draw * 2**53) + step) & MASK), []
    for _ in range(count):
        state = (state + step) & MASK
        found.append(((_mixed(state) >> 12) + 0.5) / 2**52)
    return found


def dense(plays: list[int], rewards: list[float], gram: Floats, ridge: float) -> list[Floats]:
    """Return mean and variance of all points, from the matrix of all plays."""
    k = gram[plays]
    M = gram[np.ix_(plays, plays)] + ridge * np.eye(len(plays))
    solved = np.linalg.solve(M, k)
    return [solved.T @ np.array(rewards), gram.diagonal() - np.sum(k * solved, axis=0)]


def greedy(alive: list[int], size: int, draws: list[float], gram: Floats, ridge: float) -> Any:
    """Return a batch by maximum variance reduction over the points that are left."""
    batch: list[int] = []
    for j in range(size):
        variance = dense(batch, [0.0] * j, gram, ridge)[1] if batch else gram.diagonal()
        best = max(variance[a] for a in alive)
        tied = [a for a in alive if variance[a] >= best - 1e-9]
        batch.append(tied[int(draws[j] * len(tied))])
    return batch


def pseudo_code(period: int, width: float, seed: int) -> tuple[list[int], list[int]]:
    """Return the plays of a run, and how many points were left in each batch."""
    stream, plays, left = UniformStreams([seed]), list[int](), list[int]()
    while len(plays) < T:
        alive, previous, used = list(range(30)), 1, 0
        while used < period and len(plays) < T:
            previous = min(math.ceil(math.sqrt(period * previous)), period - used)
            left.append(len(alive))
            draw = stream.draw()[0]
            batch = sorted(greedy(alive, previous, split_mix(draw, previous), GRAM, NOISE**2))
            played, paid = list[int](), list[float]()
            while batch and len(plays) < T:
                played.append(batch.pop(int(draw * len(batch))))
                paid.append(reward(played[-1], len(plays)))
                plays.append(played[-1])
                draw = stream.draw()[0] if batch else draw
            used += previous
            mean, variance = dense(played, paid, GRAM, NOISE**2)
            half = width * np.sqrt(variance)
            lowest = max((mean - half)[a] for a in alive)
            alive = [a for a in alive if (mean + half)[a] >= lowest]
    return plays, left


def test_it_plays_the_pseudo_code() -> None:
    # Five learners, which end their batches and periods at different times, and the first alone.
    periods, widths = [60, 47, 150, 5, 16], [2.0, 1.0, 3.0, 0.5, 0.0]
    batch = replace(PROBLEM, norm_bound=np.ones(5), variation_budget=None)
    plays: list[Any] = []
    for agent in (
        RPERP(batch, restart_period=periods, confidence_width=widths),
        RPERP(PROBLEM, restart_period=60, confidence_width=2.0),
    ):
        agent.reset(0)
        for t in range(T):
            plays.append(agent.act())
            paid = [reward(arm, t) for arm in np.atleast_1d(plays[-1])]
            agent.observe(plays[-1], paid if agent.batched else paid[0])
    for i, (period, width) in enumerate(zip(periods, widths, strict=True)):
        expected, left = pseudo_code(period, width, i)
        assert [arms[i] for arms in plays[:T]] == expected
        assert min(left) < 15  # much was eliminated
        assert left.count(30) >= math.ceil(T / period)
    assert plays[T:] == [arms[0] for arms in plays[:T]]


def test_a_batch_is_the_greedy_one_of_the_points_that_are_left() -> None:
    rng = np.random.default_rng(0)
    points = rng.random((25, 2))
    kernel, ridge = Linear(), np.array([0.02, 0.3])
    smooth = SquaredExponential(0.4)
    for source in (kernel, smooth):
        basis = make_basis(exact_features(source, points, 1e-12), ridge, np.full(2, 1e-12))
        alive = rng.random((2, 25)) < 0.6
        planned, draws = np.full((2, 25), 7), rng.random((2, 40))
        sizes = np.array([40, 13])
        plan_batches(np.array([0, 1]), sizes, draws, 1e-9, basis, alive, planned)
        gram = source(points, points)
        for i in range(2):
            left = np.flatnonzero(alive[i]).tolist()
            batch = greedy(left, int(sizes[i]), draws[i].tolist(), gram, float(ridge[i]))
            np.testing.assert_array_equal(planned[i], np.bincount(batch, minlength=25))


def test_the_posterior_is_that_of_the_batch_alone() -> None:
    agent = RPERP(PROBLEM, restart_period=60, confidence_width=2.0)
    agent.reset(0)
    plays: list[int] = []
    for t in range(30):  # batches of 8 and 22
        plays.append(agent.act())
        agent.observe(plays[-1], reward(plays[-1], t))
        start = 0 if t < 8 else 8
        paid = [reward(arm, s) for s, arm in enumerate(plays)]
        mean, variance = dense(plays[start:], paid[start:], GRAM, NOISE**2)
        np.testing.assert_allclose(agent.posterior().mean, mean, atol=1e-9)
        np.testing.assert_allclose(agent.posterior().std, np.sqrt(variance), atol=1e-8)
    agent.act()
    np.testing.assert_array_equal(agent.posterior().mean, 0.0)


def test_a_batch_is_played_in_random_order() -> None:
    # The variances of a linear kernel are not alike: all learners plan the same 4 plays.
    learners = 3_000
    each = np.ones(learners)
    points = np.random.default_rng(4).random((6, 4))
    problem = BanditProblem(Linear(), points, 100, 0.1, each, each)
    agent = RPERP(problem, restart_period=16)
    agent.reset(0)
    orders = []
    for _ in range(4):
        orders.append(agent.act())
        agent.observe(orders[-1], np.zeros(learners))
    rows = [tuple(row) for row in np.array(orders).T.tolist()]
    assert len({tuple(sorted(row)) for row in rows}) == 1
    kinds = sorted(set(rows))
    assert len(kinds) == 24  # all orders of four points
    counts = [rows.count(kind) for kind in kinds]
    assert stats.chisquare(counts).pvalue > 1e-4  # uniform if correct: 1 seed in 10,000 fails


def test_large_rewards_leave_the_rest_of_the_sums_alone() -> None:
    mean, variance = np.empty((2, 1, 30))
    basis = make_basis(exact_features(KERNEL, DOMAIN), np.array([0.01]), np.array([1e-10]))
    counts, sums = np.zeros((1, 30), np.int64), np.zeros((1, 30))
    counts[0, [3, 20]], sums[0, 3], sums[0, 20] = [5, 2], -5e30, 1e30
    batch_posteriors(np.array([0]), basis, counts, sums, mean, variance)
    plays = [3] * 5 + [20] * 2
    expected = dense(plays, [-1e30] * 5 + [5e29] * 2, GRAM, 0.01)
    np.testing.assert_allclose(mean[0], expected[0], rtol=1e-6, atol=1e22)
    np.testing.assert_allclose(variance[0], expected[1], atol=1e-9)


def test_a_box_is_played_on_its_grid() -> None:
    box = RPERP(replace(PROBLEM, continuous=True), restart_period=40)
    arms = RPERP(PROBLEM, restart_period=40)
    for agent in (box, arms):
        agent.reset(3)
    for t in range(60):
        point, arm = box.act(), arms.act()
        assert point.dtype == np.float32
        assert point == pytest.approx(DOMAIN[arm], abs=1e-6)
        nearby = np.clip(point + 0.01, 0.0, 1.0)  # the grid is 0.034 wide
        box.observe(nearby, reward(arm, t))
        arms.observe(arm, reward(arm, t))
    np.testing.assert_array_equal(box.posterior().mean, arms.posterior().mean)


def test_plays_of_another_fill_a_batch() -> None:
    agent = RPERP(PROBLEM, restart_period=16, confidence_width=0.1)
    agent.reset(0)
    agent.act()
    for arm in (0, 10, 20, 29):  # N_1 = 4
        agent.observe(arm, float(arm == 10))
    assert agent.surviving.all()
    agent.act()
    assert agent.surviving[0].any()
    assert agent.surviving[0, 10]
    assert not agent.surviving[0, [0, 20, 29]].any()
    left = agent.surviving.copy()
    planned = agent.planned[0].copy()
    assert planned[29] == 0
    for _ in range(7):  # N_2 = 8; what is out cannot put others out
        agent.observe(29, 3.0)
        np.testing.assert_array_equal(agent.planned[0], planned)  # still to be played
        assert planned[agent.act()] > 0
    agent.observe(29, 3.0)
    agent.act()
    np.testing.assert_array_equal(agent.surviving, left)


@pytest.mark.parametrize(
    ("name", "value", "rule"),
    [
        ("restart_period", 0, "a whole number in .1, inf"),
        ("variation_budget", -1.0, r"a float in .*, 1e.[36]0\]"),
        ("variation_budget", "some", "'known', 'unknown' or a number"),
        ("information_gain", 0.0, r"a float in .*, 1e.[36]0\]"),
        ("confidence_width", "paper", "'heuristic', 'theory' or a number"),
        ("confidence_width", -1.0, r"a float in .*, 1e.[36]0\]"),
        ("delta", 1.0, r"a float in \[1e-30, 1\)"),
        ("norm_bound", -1.0, r"a float in .*, 1e.[36]0\]"),
        ("regularization", 0.0, r"a float in .*, 1e.[36]0\]"),
        ("noise_scale", -1.0, r"a float in .*, 1e.[36]0\]"),
        ("features", "some", "one of 'exact'"),
    ],
)
def test_bad_parameters_are_refused(name: str, value: Any, rule: str) -> None:
    with pytest.raises(ValueError, match=f"'{name}' parameter of RPERP must be {rule}"):
        RPERP(PROBLEM, **{name: value})


def test_what_it_cannot_play() -> None:
    env = gymnasium.make("WGPBandit-LinearContextual-v0")
    with pytest.raises(ValueError, match="'env' parameter of RPERP must be a task whose arms stay"):
        RPERP(env)
    with pytest.raises(ValueError, match="RPERP has no parameter 'window'"):
        RPERP(PROBLEM, window=3)  # type: ignore[call-arg]
    drawn = gymnasium.make("WGPBandit-Abrupt-v0")
    agent = RPERP(drawn, variation_budget="known", norm_bound=1.0)
    agent.reset(0)
    with pytest.raises(RuntimeError, match="variation budget is drawn"):
        agent.act()
    agent = RPERP(drawn)
    agent.reset(0)
    with pytest.raises(RuntimeError, match="norm bound is drawn"):
        agent.act()
    with pytest.raises(RuntimeError, match=r"RPERP\.reset\(\) before it plays"):
        RPERP(PROBLEM).posterior()
