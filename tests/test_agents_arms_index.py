"""The K-armed agents that play the largest index, against indices over the whole history."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import integrate, stats

from wgp_agents.algorithms.arms.d_ts import DTS
from wgp_agents.algorithms.arms.d_ucb import DUCB
from wgp_agents.algorithms.arms.sw_ucb import SWUCB
from wgp_agents.algorithms.arms.thompson import ThompsonSampling
from wgp_agents.algorithms.arms.ucb1 import UCB1
from wgp_agents.arms import posterior
from wgp_agents.arms.agent import IndexAgent
from wgp_agents.base import Agent
from wgp_agents.core.argmax import argmax
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import beta_variates
from wgp_gym.kernels import Empirical, SquaredExponential
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

Plays = list[tuple[int, float]]
AGENTS: list[tuple[Any, dict[str, Any]]] = [
    (UCB1, {}),
    (DUCB, {}),
    (SWUCB, {"num_changes": 20}),
    (ThompsonSampling, {}),
    (ThompsonSampling, {"prior": "gaussian"}),
    (DTS, {"num_changes": 20}),
    (DTS, {"prior": "gaussian"}),
]


def problem(arms: int, noise: Any = 0.5, horizon: int = 500, **others: Any) -> BanditProblem:
    domain, norm = np.linspace(0, 1, arms)[:, None], arms**0.5
    given: dict[str, Any] = {"reward_range": (0.0, 1.0), **others}
    return BanditProblem(Empirical(np.eye(arms)), domain, horizon, noise, norm, 1.0, **given)


def ucb1_index(plays: Plays, learner: int, arm: int, scale: float) -> float:
    rewards = [r for a, r in plays if a == arm]
    if not rewards:
        return math.inf
    padding = math.sqrt(2 * math.log(len(plays)) / len(rewards))
    return sum(rewards) / len(rewards) + scale * padding


def d_ucb_index(plays: Plays, learner: int, arm: int, scale: float) -> float:
    gamma, xi = [0.9, 0.5, 1.0][learner], [0.5, 0.6, 2.0][learner]
    weights = [gamma ** (len(plays) - 1 - s) for s in range(len(plays))]
    count = sum(w for w, (a, _) in zip(weights, plays, strict=True) if a == arm)
    if count < 1e-100:
        return math.inf
    mean = sum(w * r for w, (a, r) in zip(weights, plays, strict=True) if a == arm) / count
    return mean + scale * 2 * math.sqrt(xi * math.log(sum(weights)) / count)


def sw_ucb_index(plays: Plays, learner: int, arm: int, scale: float) -> float:
    tau, xi = [12, 30, 10_000][learner], [0.5, 0.6, 2.0][learner]
    rewards = [r for a, r in plays[-tau:] if a == arm]
    if not rewards:
        return math.inf
    padding = math.sqrt(xi * math.log(min(len(plays), tau)) / len(rewards))
    return sum(rewards) / len(rewards) + scale * padding


@pytest.mark.parametrize(
    ("made", "parameters", "naive"),
    [
        (UCB1, {}, ucb1_index),
        (DUCB, {"discount": [0.9, 0.5, 1.0], "xi": [0.5, 0.6, 2.0]}, d_ucb_index),
        (SWUCB, {"window": [12, 30, math.inf], "xi": [0.5, 0.6, 2.0]}, sw_ucb_index),
    ],
)
def test_decisions_are_those_of_the_whole_history(
    made: Any, parameters: dict[str, Any], naive: Callable[..., float]
) -> None:
    noise, arms = np.array([0.1, 2.0, 6.0]), 4
    scale = [1.0, 1.0, 3.0]  # the range is 4 wide
    agent = made(problem(arms, noise, reward_range=(-1.0, 3.0)), **parameters)
    random = np.random.default_rng(3)
    plays: list[Plays] = [[], [], []]
    rows, chosen, unique = np.zeros((3, 4)), np.zeros(3, int), 0
    for step in range(300):
        fresh = random.random(3) < (0.02 if step else 1.0)
        chosen, _ = agent.predict(rows, episode_start=fresh)
        plays = [[] if fresh[i] else plays[i] for i in range(3)]
        for i in range(3):
            index = np.array([naive(plays[i], i, arm, scale[i]) for arm in range(arms)])
            assert index[chosen[i]] >= index.max() - 2e-9
            unique += np.sum(index >= index.max() - 2e-9) == 1
        rewards = random.normal(np.array([0.0, 1.0, 2.0, 1.5])[chosen], noise)
        plays = [[*plays[i], (int(chosen[i]), (float(rewards[i]) + 1) / 4)] for i in range(3)]
        rows = np.column_stack([np.zeros(3), np.ones(3), chosen / (arms - 1), rewards])
    assert unique > 600


def counts(plays: Plays, gamma: float, arm: int) -> tuple[float, float]:
    """Return the weighted successes and failures of an arm."""
    ages = range(len(plays) - 1, -1, -1)
    weighted = [(gamma**age, r) for age, (a, r) in zip(ages, plays, strict=True) if a == arm]
    return sum(w * r for w, r in weighted), sum(w * (1 - r) for w, r in weighted)


@pytest.mark.parametrize(
    ("made", "parameters", "gammas"),
    [(ThompsonSampling, {}, [1.0, 1.0]), (DTS, {"discount": [0.95, 0.6]}, [0.95, 0.6])],
)
def test_the_beta_posterior_counts_successes_and_failures(
    monkeypatch: pytest.MonkeyPatch, made: Any, parameters: dict[str, Any], gammas: list[float]
) -> None:
    shapes: list[Any] = []

    def _draw(uniform: UniformStreams, successes: Array, trials: Array) -> Array:
        shapes.append((1 + successes, 1 + trials - successes))
        return beta_variates(uniform, successes, trials)

    monkeypatch.setattr(posterior, "beta_variates", _draw)
    agent = made(problem(3, np.full(2, 0.5)), **parameters)
    agent.reset(0)
    plays: list[Plays] = [[], []]
    for step in range(120):
        arms = agent.act()
        for i in range(2):
            expected = np.array([counts(plays[i], gammas[i], arm) for arm in range(3)]) + 1
            np.testing.assert_allclose(shapes[-1][0][i], expected[:, 0], rtol=1e-12)
            np.testing.assert_allclose(shapes[-1][1][i], expected[:, 1], rtol=1e-12)
        rewards = np.array([(step * 7 + arm) % 3 == 0 for arm in arms], float)  # no chance
        agent.observe(arms, rewards)
        plays = [[*plays[i], (int(arms[i]), rewards[i])] for i in range(2)]


@pytest.mark.parametrize(
    ("made", "parameters", "gamma"),
    [(ThompsonSampling, {}, 1.0), (DTS, {"discount": 0.8}, 0.8)],
)
def test_the_gaussian_posterior_is_bayes(
    monkeypatch: pytest.MonkeyPatch, made: Any, parameters: dict[str, Any], gamma: float
) -> None:
    """A prior N(0, 1) and a likelihood per play, raised to its weight."""
    agent = made(problem(2, 0.6, reward_range=(1.0, 3.0)), prior="gaussian", **parameters)
    agent.reset(0)
    sigma, history = 0.3, [(0, 0.4), (1, 1.3), (0, -0.2), (0, 0.9)]
    for arm, reward in history:
        agent.observe(arm, 1 + 2 * reward)
    grid = np.linspace(-4, 4, 200_001)
    for normal in (0.0, 1.0):
        monkeypatch.setattr(posterior, "normal_variates", lambda u, k, z=normal: np.full((1, k), z))
        index = agent.index(UniformStreams([0]))[0]
        for arm in range(2):
            density = stats.norm.logpdf(grid)
            for age, (played, reward) in enumerate(reversed(history)):
                if played == arm:
                    density += gamma**age * stats.norm.logpdf(reward, grid, sigma)
            density = np.exp(density - density.max())
            density /= integrate.trapezoid(density, grid)
            mean = integrate.trapezoid(grid * density, grid)
            std = math.sqrt(integrate.trapezoid((grid - mean) ** 2 * density, grid))
            assert index[arm] == pytest.approx(mean + normal * std, abs=1e-6)


def test_thompson_sampling_plays_an_arm_as_often_as_it_is_the_best() -> None:
    batch = 4000
    agent = ThompsonSampling(problem(2, np.full(batch, 0.5)))
    agent.reset(0)
    for arm, reward in [(0, 1.0), (0, 1.0), (0, 0.0), (1, 1.0), (1, 0.0), (1, 0.0), (1, 1.0)]:
        agent.observe(np.full(batch, arm), np.full(batch, reward))
    chance = integrate.quad(lambda x: stats.beta.pdf(x, 3, 2) * stats.beta.cdf(x, 3, 3), 0, 1)[0]
    assert np.mean(agent.act() == 0) == pytest.approx(chance, abs=0.032)  # four standard errors


def run(agent: Agent, seed: int, steps: int, huge: float = 0.0) -> Array:
    """Return the arms that are played where the reward depends on step and arm alone."""
    agent.reset(seed)
    taken = []
    for t in range(steps):
        taken.append(agent.act())
        size = huge if t in (20, 50) else 0.0
        agent.observe(taken[-1], np.sin(t + 1.7 * taken[-1]) + 0.2 + size)
    return np.array(taken)


@pytest.mark.parametrize(("made", "parameters"), AGENTS)
def test_a_learner_does_not_depend_on_the_others(made: Any, parameters: dict[str, Any]) -> None:
    many = made(problem(7, np.full(100, 0.5)), **parameters)
    together = run(many, 10, 150)
    for batch in (1, 2, 3):
        some = made(problem(7, np.full(batch, 0.5)), **parameters)
        np.testing.assert_array_equal(run(some, 10, 150), together[:, :batch])
        seeds = list(range(100))
        few, all_ = (one.index(UniformStreams(seeds[: one.num_learners])) for one in (some, many))
        np.testing.assert_array_equal(few, all_[:batch])
    single = made(problem(7, 0.5), **parameters)
    np.testing.assert_array_equal(run(single, 42, 150), together[:, 32])
    assert len(np.unique(together, axis=1).T) > 90  # the streams differ


@pytest.mark.parametrize(("made", "parameters"), AGENTS)
def test_agents_survive_copies_and_huge_rewards(made: Any, parameters: dict[str, Any]) -> None:
    agent = made(problem(4, np.full(3, 0.5)), **parameters)
    run(agent, 0, 100, huge=1e30)
    twin, other = copy.deepcopy(agent), pickle.loads(pickle.dumps(agent))
    np.testing.assert_array_equal(twin.act(), other.act())
    np.testing.assert_array_equal(run(agent, 5, 60), run(other, 5, 60))


def test_ties_are_broken_uniformly() -> None:
    index = np.array([[1.0, math.inf, 0.0, math.inf, -math.inf, math.inf]] * 300)
    chosen = argmax(index, (np.arange(300) + 0.5) / 300)
    np.testing.assert_array_equal(np.bincount(chosen, minlength=6), [0, 100, 0, 100, 0, 100])
    close = np.array([[0.5, 0.5 - 1e-10, 0.5 - 1e-8]] * 2)
    np.testing.assert_array_equal(argmax(close, np.array([0.2, 0.9])), [0, 1])
    lost = np.full((3, 3), -math.inf)  # all are the smallest
    np.testing.assert_array_equal(argmax(lost, np.array([0.2, 0.5, 0.9])), [0, 1, 2])
    np.testing.assert_array_equal(argmax(np.array([[-1e30, -math.inf]]), np.array([0.9])), [0])


def test_what_is_not_a_number_is_never_played() -> None:
    for row in ([0.0, math.nan], [math.nan] * 2, [math.inf, math.nan]):
        with pytest.raises(ValueError, match=r"posterior is not finite.*'regularization'"):
            argmax(np.array([[0.0, 1.0], row]), np.array([0.9, 0.9]))


@pytest.mark.parametrize(
    ("made", "parameters", "message"),
    [
        (UCB1, {"reward_range": (1, 0)}, "'reward_range' parameter of UCB1 must be None or two"),
        (DUCB, {"discount": 1.1}, r"'discount' parameter of DUCB must be a float in \[0, 1\]"),
        (DUCB, {"num_changes": 501}, r"'num_changes' .* must be a whole number in \[0, 500\]"),
        (DUCB, {"xi": -1.0}, r"'xi' parameter of DUCB must be a float in \[0, 1e"),
        (SWUCB, {"window": 0}, r"'window' parameter of SWUCB must be a whole number in \[1, inf"),
        (SWUCB, {"num_changes": 0.5}, "'num_changes' parameter of SWUCB must be a whole"),
        (SWUCB, {"xi": math.inf}, "'xi' parameter of SWUCB"),
        (DTS, {"discount": [0.5, 0.6]}, "'discount' parameter of DTS"),
        (DTS, {"prior": "normal"}, "'prior' parameter of DTS must be one of 'beta', 'gaussian'"),
        (ThompsonSampling, {"prior": 1}, "'prior' parameter of ThompsonSampling"),
    ],
)
def test_bad_parameters_are_refused(made: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(problem(3), **parameters)


def test_tasks_without_fixed_arms_are_refused() -> None:
    domain = np.linspace(0, 1, 5)[:, None]
    box = BanditProblem(SquaredExponential(0.2), domain, 10, 0.1, 1.0, 1.0, continuous=True)
    with pytest.raises(ValueError, match=r"UCB1 plays a fixed number of arms. The task has a box"):
        UCB1(box)
    with pytest.raises(ValueError, match="drawn anew at each step"):
        UCB1(problem(3, contextual=True))
    drawn_later = BanditProblem(SquaredExponential(0.2), domain, 10, 0.1)
    with pytest.raises(RuntimeError, match="norm bound is drawn with the episode"):
        UCB1(drawn_later).reset(0)
    assert isinstance(UCB1(drawn_later, reward_range=(0, 1)), IndexAgent)
