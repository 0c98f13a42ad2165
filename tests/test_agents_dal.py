"""DAL-GP-UCB: its covering set, its turns and its alarms, against naive ones."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from wgp_agents.algorithms.adaptive.dal_gp_ucb import DALGPUCB, covering_set
from wgp_agents.algorithms.kernelized.igp_ucb import IGPUCB
from wgp_gym.kernels import Kernel, Linear, Matern, SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

DOMAIN = np.linspace(0.0, 1.0, 40)[:, None]
SQUARE = np.random.default_rng(0).random((60, 2))
KERNEL = SquaredExponential(0.2)
NOISE, T = 0.1, 300


def problem(batch: int | None = None, horizon: int = T, **words: Any) -> BanditProblem:
    each = 2.0 if batch is None else np.full(batch, 2.0)
    return BanditProblem(KERNEL, DOMAIN, horizon, NOISE, each, each, **words)


def hidden(kernel: Kernel, X: Floats, chosen: Ints) -> float:
    """Return max over x of P(x), the largest g(x) of a g of norm 1 that is 0 on the chosen."""
    S = X[chosen]
    k = kernel(S, X)
    solved = np.linalg.solve(kernel(S, S) + 1e-12 * np.eye(len(S)), k)
    square = kernel.diagonal(X) - np.sum(k * solved, axis=0)
    return float(np.sqrt(np.maximum(square, 0.0).max() / kernel.diagonal(X).max()))


@pytest.mark.parametrize("error", [0.7, 0.5, 0.1])
@pytest.mark.parametrize(
    ("kernel", "X"),
    [(KERNEL, DOMAIN), (Matern(0.3, 1.5), SQUARE), (Linear(), SQUARE)],
    ids=["se", "matern", "linear"],
)
def test_no_function_hides_from_the_covering_set(kernel: Kernel, X: Floats, error: float) -> None:
    chosen = covering_set(kernel, X, error)
    assert hidden(kernel, X, chosen) <= error + 1e-9
    assert len(chosen) == 1 or hidden(kernel, X, chosen[:-1]) > error
    np.testing.assert_array_equal(covering_set(kernel, X, error, 2), chosen[:2])


def test_a_linear_kernel_is_covered_by_a_basis() -> None:
    X = np.random.default_rng(1).random((30, 4))
    chosen = covering_set(Linear(), X, 0.0)
    assert len(chosen) == 4
    assert np.linalg.matrix_rank(X[chosen]) == 4


def test_a_feature_map_is_covered_as_its_kernel_is() -> None:
    def features(X: Floats) -> Floats:
        return X / math.sqrt(2)  # of the linear kernel x^T y / d

    agent = DALGPUCB(
        BanditProblem(KERNEL, SQUARE, T, NOISE, 1.0, 1.0), features=features, covering_error=0.1
    )
    np.testing.assert_array_equal(agent.covering, covering_set(Linear(), SQUARE, 0.1))


class Naive:
    """The turns and the test of all splits, with every reward kept."""

    def __init__(self, covering: Ints, factor: float, delta: float) -> None:
        self.covering, self.factor, self.delta = covering.tolist(), factor, delta
        self.alarms = self.n = 0
        self.kept: dict[int, list[float]] = {arm: [] for arm in self.covering}
        self.arms: list[int] = []
        self.y: list[float] = []

    def igp_ucb(self) -> tuple[Floats, Floats, float]:
        """Return mean, deviation and width of IGP-UCB on the plays since the last alarm."""
        M = KERNEL(DOMAIN[self.arms], DOMAIN[self.arms]) / NOISE**2 + np.eye(len(self.arms))
        k = KERNEL(DOMAIN[self.arms], DOMAIN)
        solved = np.linalg.solve(M * NOISE**2, k)
        variance = np.maximum(1 - np.sum(k * solved, axis=0), 0.0)
        width = 2 + math.sqrt(2 * math.log(10) + np.linalg.slogdet(M)[1])  # B = 2, lambda = R^2
        return solved.T @ np.array(self.y), np.sqrt(variance), width

    def forced(self) -> int | None:
        size = len(self.covering)
        alpha = self.factor * math.sqrt((self.alarms + 1) * size * math.log(T) / T)
        place = self.n % max(math.ceil(size / min(alpha, 1.0)), size + 1)
        return self.covering[place] if place < size else None

    def observe(self, arm: int, y: float) -> None:
        self.n += 1
        self.arms.append(arm)
        self.y.append(y)
        if arm not in self.kept:
            return
        self.kept[arm].append(y)
        values = np.array(self.kept[arm])
        n = len(values)
        level = math.log(3 * n**1.5 / self.delta)
        for s in range(1, n):
            gap = values[:s].mean() - values[s:].mean()
            if s * (n - s) * gap**2 / (2 * NOISE**2 * n) >= level:
                self.alarms, self.n = self.alarms + 1, 0
                self.kept = {each: [] for each in self.covering}
                self.arms, self.y = [arm], [y]  # the play that gave the alarm is kept
                return


@pytest.mark.parametrize(("factor", "size"), [(1.0, None), (0.5, 3), (4.0, None)])
def test_turns_and_alarms_are_those_of_a_naive_run(factor: float, size: int | None) -> None:
    agent = DALGPUCB(
        problem(),
        exploration=factor,
        num_covering=size,
        alarm_delta=0.01,
        threshold="simple",
        resolution=T,  # all splits
    )
    agent.reset(0)
    naive, rng = Naive(agent.covering, factor, 0.01), np.random.default_rng(7)
    free = 0
    for t in range(T):
        arm, turn = agent.act(), naive.forced()
        mean, std, width = naive.igp_ucb()
        np.testing.assert_allclose(agent.posterior(), [mean, std], rtol=0, atol=1e-5)
        assert agent.beta() == pytest.approx(width, abs=1e-6)
        if turn is None:
            free += 1
            upper = mean + width * std
            assert upper[arm] >= upper.max() - 1e-4
        else:
            assert arm == turn
        y = math.sin(6 * DOMAIN[arm, 0] + 2 * (t // 100)) + NOISE * rng.standard_normal()
        agent.observe(arm, y)
        naive.observe(arm, y)
        assert agent.resets.tolist() == [naive.alarms]
    assert naive.alarms >= 2
    assert free > T / 8


def test_between_its_turns_it_knows_what_igp_ucb_knows() -> None:
    agent, alone = DALGPUCB(problem()), IGPUCB(problem())
    agent.reset(0)
    alone.reset(0)
    for t in range(60):
        arm = agent.act()
        for learner in (agent, alone):
            learner.observe(arm, math.sin(6 * DOMAIN[arm, 0]) + NOISE * math.cos(7.1 * t))
        np.testing.assert_array_equal(agent.posterior(), alone.posterior())
        assert agent.beta() == alone.beta()


def test_an_alarm_leaves_the_play_that_gave_it() -> None:
    agent = DALGPUCB(problem(2))
    agent.reset(0)
    arm = int(agent.covering[1])
    for _ in range(20):
        agent.observe([arm, arm], [0.5, 0.5])
    assert agent.resets.tolist() == [0, 0]
    agent.observe([arm, arm], [0.5, 4.5])
    assert agent.resets.tolist() == [0, 1]
    mean, std = agent.posterior()
    assert mean[:, arm] == pytest.approx([21 * 0.5 / 21.01, 4.5 / 1.01])
    assert std[1, arm] == pytest.approx(math.sqrt(1 - 1 / 1.01))
    assert agent.act()[1] == agent.covering[0]  # a turn begins
    agent.reset(0)
    assert agent.resets.tolist() == [0, 0]


def test_who_does_not_play_is_left_alone() -> None:
    agent = DALGPUCB(problem(3))
    agent.reset(0)
    arm = np.full(3, agent.covering[0])
    for _ in range(20):
        agent.observe(arm, np.full(3, 0.5))
    before = agent.act()
    agent.observe(arm, np.full(3, 9.0), active=[False, True, False])
    assert agent.resets.tolist() == [0, 1, 0]
    np.testing.assert_array_equal(agent.act()[[0, 2]], before[[0, 2]])


def test_each_episode_begins_alike() -> None:
    agent, runs = DALGPUCB(problem()), []
    np.testing.assert_allclose(agent.alarm_delta, [1 / T])
    for _ in range(2):
        agent.reset(3)
        actions = []
        for t in range(40):
            actions.append(agent.act())
            agent.observe(actions[-1], 2.0 * (t > 30))
        runs.append((actions, agent.resets.tolist()))
    assert runs[0] == runs[1]
    assert runs[0][1] == [1]


def alarmed(jump: float, noise: float = NOISE, seed: int = 0, **words: Any) -> float:
    """Return the share of learners with an alarm; the function changes by `jump` at half of T."""
    batch, rng = 200, np.random.default_rng(seed)
    agent = DALGPUCB(problem(batch), **words)
    agent.reset(seed)
    for t in range(T):
        arms = agent.act()
        mean = np.sin(6 * DOMAIN[arms, 0]) + jump * (t >= T // 2)
        agent.observe(arms, mean + noise * rng.standard_normal(batch))
    return float(np.mean(agent.resets > 0))


def test_a_stationary_task_gives_few_alarms() -> None:
    # 5 tests of delta_F = 1 / 300 each bound it by 0.017; the proven threshold is far above what
    # that takes: none in 10 seeds. The simple one with delta_F = 0.2: 0.125 to 0.185 of them.
    assert alarmed(0.0) <= 0.017
    assert alarmed(0.0, threshold="simple", alarm_delta=0.2) < 0.3
    assert alarmed(0.0, 4 * NOISE, noise_scale=4 * NOISE) <= 0.017


def test_a_jump_gives_an_alarm() -> None:
    assert alarmed(1.0) == 1.0
    # Noise that it does not know of looks like jumps: 0.985 to 1 over 5 seeds.
    assert alarmed(0.0, 4 * NOISE) > 0.9


def test_on_a_box_points_of_the_grid_are_forced_and_watched() -> None:
    agent = DALGPUCB(problem(continuous=True))
    agent.reset(0)
    places = DOMAIN[agent.covering].astype(np.float32)
    for place in places:
        np.testing.assert_array_equal(agent.act(), place)
        agent.observe(place, 0.0)
    assert agent.act() not in places
    for _ in range(4):
        agent.observe(places[2], 0.0)
    agent.observe(places[2] + np.float32(0.01), 9.0)  # no point of the set
    assert agent.resets.tolist() == [0]
    row = np.array([0.1, 1.0, places[2, 0], 9.0], np.float32)
    agent.predict(row, episode_start=False)
    assert agent.resets.tolist() == [1]


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ({"covering_error": 0.0}, r"'covering_error' parameter of DALGPUCB must be a float in \("),
        ({"covering_error": 1.0}, r"a float in \(0, 1\)"),
        ({"num_covering": 0}, "'num_covering' parameter of DALGPUCB must be an int in"),
        (
            {"exploration": 0.0},
            r"'exploration' parameter of DALGPUCB must be a float",
        ),
        (
            {"alarm_delta": 0.0},
            r"'alarm_delta' parameter of DALGPUCB must be a float in \[1e-30",
        ),
        ({"threshold": "high"}, "'threshold' parameter of GLR must be one of 'proven', 'simple'"),
        ({"resolution": 0}, "'resolution' parameter of GLR must be an int"),
        ({"delta": 1.0}, r"'delta' parameter of DALGPUCB must be a float in \[1e-30, 1\)"),
    ],
    ids=str,
)
def test_bad_parameters(words: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        DALGPUCB(problem(), **words)


def test_arms_that_are_drawn_anew_cannot_be_watched() -> None:
    task = BanditProblem(Linear(), np.zeros((5, 2)), T, NOISE, 1.0, contextual=True)
    with pytest.raises(ValueError, match="'env' parameter of DALGPUCB must be a task whose arms"):
        DALGPUCB(task)
