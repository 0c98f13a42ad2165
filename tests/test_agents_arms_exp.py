"""The K-armed agents that draw their arm by exponential weights."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

from wgp_agents.algorithms.arms.exp3 import Exp3
from wgp_agents.algorithms.arms.exp3_s import Exp3S
from wgp_agents.algorithms.arms.rexp3 import Rexp3
from wgp_agents.algorithms.arms.sw_ucb import SWUCB
from wgp_agents.arms.weights import sample_categorical
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.tuning import BudgetChoice
from wgp_gym.kernels import Empirical
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

AGENTS: list[Any] = [Exp3, Exp3S, Rexp3]


def problem(arms: int, noise: Any = 0.5, horizon: int = 500, **others: Any) -> BanditProblem:
    """Return a problem of arms that have nothing to do with each other."""
    domain, norm = np.linspace(0, 1, arms)[:, None], arms**0.5
    given: dict[str, Any] = {
        "variation_budget": 1.0,
        "norm_bound": norm,
        "reward_range": (0.0, 1.0),
        **others,
    }
    return BanditProblem(Empirical(np.eye(arms)), domain, horizon, noise, **given)


class Textbook:
    """Exp3, Exp3.S and Rexp3 of one learner as they are printed, with plain weights."""

    def __init__(self, arms: int, gamma: float, alpha: float, batch: float) -> None:
        self.arms, self.gamma, self.alpha, self.batch = arms, gamma, alpha, batch
        self.restart()

    def restart(self) -> None:
        self.weights, self.plays = [1.0] * self.arms, 0

    def probability(self, arm: int) -> float:
        share = self.weights[arm] / sum(self.weights)
        return (1 - self.gamma) * share + self.gamma / self.arms

    def pick(self, uniform: float) -> int:
        reached = 0.0
        for arm in range(self.arms):
            reached += self.probability(arm)
            if uniform < reached:
                return arm
        return self.arms - 1

    def learn(self, arm: int, reward: float) -> None:
        estimate = min(max(reward, 0.0), 1.0) / self.probability(arm)
        gained = math.e * self.alpha / self.arms * sum(self.weights)
        self.weights[arm] *= math.exp(self.gamma * estimate / self.arms)
        self.weights = [weight + gained for weight in self.weights]
        self.plays += 1
        if self.plays == self.batch:
            self.restart()


@pytest.mark.parametrize(
    ("made", "parameters", "textbook"),
    [
        (Exp3, {"gamma": [0.1, 0.5, 1.0]}, [(0.1, 0, 0), (0.5, 0, 0), (1.0, 0, 0)]),
        (
            Exp3S,
            {"gamma": [0.1, 0.5, 0.2], "alpha": [0.01, 0.0, 0.3]},
            [(0.1, 0.01, 0), (0.5, 0.0, 0), (0.2, 0.3, 0)],
        ),
        (
            Rexp3,
            {"gamma": 0.3, "batch_size": [1, 7, 60]},
            [(0.3, 0, 1), (0.3, 0, 7), (0.3, 0, 60)],
        ),
        (Rexp3, {"gamma": [0.3, 0.6, 0.9]}, [(0.3, 0, 112), (0.6, 0, 112), (0.9, 0, 112)]),
    ],
)
def test_decisions_are_those_of_the_textbook(
    made: Any, parameters: dict[str, Any], textbook: list[Any]
) -> None:
    arms, random = 4, np.random.default_rng(3)
    agent = made(problem(arms, np.full(3, 0.5), reward_range=(-1.0, 3.0)), **parameters)
    naive = [Textbook(arms, *row) for row in textbook]
    agent.reset(7)
    streams, rows = UniformStreams([7, 8, 9]), np.zeros((3, 4))
    for step in range(300):
        fresh = random.random(3) < (0.01 if step else 1.0)
        chosen, _ = agent.predict(rows, episode_start=fresh)
        for learner in np.flatnonzero(fresh):
            naive[learner].restart()
        uniform = streams.draw()
        assert [naive[i].pick(uniform[i]) for i in range(3)] == list(chosen)
        rewards = random.normal(np.array([0.0, 1.0, 2.5, 1.5])[chosen], 1.0)
        for i in range(3):
            naive[i].learn(chosen[i], (rewards[i] + 1) / 4)
        rows = np.column_stack([np.zeros(3), np.ones(3), chosen / (arms - 1), rewards])


def test_weights_neither_overflow_nor_vanish() -> None:
    agent = Exp3(problem(2, horizon=20_000), gamma=0.5)
    agent.reset(0)
    # With p = 3/4 a play of arm 0 adds 1/3 to the logarithm of its weight, which is 1000 then;
    # with p = 1/4 a play of arm 1 adds 1.
    for arm, plays, chance in ((0, 3000, 0.75), (1, 900, 0.75), (1, 150, 0.25)):
        for _ in range(plays):
            agent.observe(arm, 1.0)
        assert agent.weights.probabilities()[0, 0] == pytest.approx(chance)


def test_gamma_alpha_and_batches_are_tuned_by_theory() -> None:
    arms, horizon = 10, 5000
    e = math.e
    task = problem(arms, np.full(2, 0.5), horizon, variation_budget=np.array([2.0, 0.0]))
    np.testing.assert_allclose(Exp3(task).gamma, math.sqrt(arms * math.log(arms) / 5000 / (e - 1)))
    agent = Exp3S(task, num_changes=[4, 5000])
    inside = arms * (5 * math.log(arms * horizon) + e) / ((e - 1) * horizon)
    np.testing.assert_allclose(agent.gamma, [math.sqrt(inside), 1.0])
    np.testing.assert_array_equal(agent.alpha, 1 / 5000)
    cases: list[tuple[BudgetChoice, list[int]]] = [
        ("known", [525, 5000]),
        ("unknown", [832, 832]),
        (4.0, [331, 331]),
    ]
    for budget, sizes in cases:
        rexp3 = Rexp3(task, variation_budget=budget)
        rexp3.reset(0)
        np.testing.assert_array_equal(rexp3.batch_size, sizes)
        rates = [math.sqrt(arms * math.log(arms) / ((e - 1) * size)) for size in sizes]
        np.testing.assert_allclose(rexp3.gamma, rates)


def test_the_budget_is_in_units_of_the_range() -> None:
    wide = problem(10, 0.5, 5000, variation_budget=20.0, reward_range=(-5.0, 5.0))
    agent = Rexp3(wide, variation_budget="known")
    agent.reset(0)
    np.testing.assert_array_equal(agent.batch_size, 525)


def run(agent: Any, seed: int, steps: int) -> Array:
    """Return the arms that are played where the reward depends on step and arm alone."""
    agent.reset(seed)
    taken = []
    for t in range(steps):
        taken.append(agent.act())
        huge = 1e30 if t in (20, 50) else 0.0
        agent.observe(taken[-1], np.sin(t + 1.7 * taken[-1]) + 0.2 + huge)
    return np.array(taken)


@pytest.mark.parametrize("made", AGENTS)
def test_a_learner_does_not_depend_on_the_others(made: Any) -> None:
    many = made(problem(7, np.full(100, 0.5)))
    together = run(many, 10, 150)
    for batch in (1, 2, 3):
        some = made(problem(7, np.full(batch, 0.5)))
        np.testing.assert_array_equal(run(some, 10, 150), together[:, :batch])
        chances = some.weights.probabilities()
        np.testing.assert_array_equal(chances, many.weights.probabilities()[:batch])
    np.testing.assert_array_equal(run(made(problem(7)), 42, 150), together[:, 32])
    for twin in (copy.deepcopy(many), pickle.loads(pickle.dumps(many))):
        np.testing.assert_array_equal(twin.act(), copy.deepcopy(many).act())


@pytest.mark.parametrize("made", AGENTS)
def test_a_single_arm_is_played(made: Any) -> None:
    domain = np.zeros((1, 1))
    task = BanditProblem(Empirical(np.eye(1)), domain, 5, 0.5, 1.0, 1.0, reward_range=(0.0, 1.0))
    np.testing.assert_array_equal(run(made(task), 0, 60), 0)


def test_arms_are_drawn_with_their_probabilities() -> None:
    chances = np.array([[0.0, 0.25, 0.0, 0.5, 0.25, 0.0]] * 400)
    chosen = sample_categorical(chances, np.arange(400) / 400)
    np.testing.assert_array_equal(np.bincount(chosen, minlength=6), [0, 100, 0, 200, 100, 0])
    short = np.array([[0.1] * 9 + [0.1 - 1e-16]])  # rounding: the sum is below 1
    assert sample_categorical(short, np.array([1 - 2.0**-53]))[0] == 9


def test_exp3_keeps_its_published_bound() -> None:
    """Corollary 3.2: 2.63 (T K log K)^{1/2} = 408; 15 learners have 270, standard error 8."""
    regret = regrets([(Exp3, {})], np.tile([0.7, 0.5, 0.5, 0.5, 0.5], (3000, 1)))[0]
    assert 200 < regret < 2.63 * math.sqrt(3000 * 5 * math.log(5))


@pytest.mark.slow
def test_a_window_follows_a_change_better_than_exp3_s() -> None:
    """The first experiment of Garivier and Moulines, whose abstract says so, up to t = 5,000.

    Thirty learners have the regrets 166 (standard error 5) and 287 (8).
    """
    means = np.tile([0.5, 0.3, 0.4], (10_000, 1))
    means[3000:5000, 2] = 0.9
    window, exponential = regrets([(SWUCB, {"num_changes": 2}), (Exp3S, {"num_changes": 2})], means)
    assert window < 200 < 240 < exponential


def regrets(agents: list[Any], means: Array) -> list[float]:
    """Return the regret of Bernoulli arms with means `(T, K)` over at most 5,000 steps."""
    (horizon, arms), batch, totals = means.shape, 15, []
    chance = np.random.default_rng(0).random((horizon, batch))
    for made, parameters in agents:
        agent, total = made(problem(arms, np.full(batch, 0.5), horizon), **parameters), 0.0
        agent.reset(0)
        for t in range(min(horizon, 5000)):
            played = agent.act()
            agent.observe(played, (chance[t] < means[t, played]).astype(float))
            total += float(np.mean(means[t].max() - means[t, played]))
        totals.append(total)
    return totals


@pytest.mark.parametrize(
    ("made", "parameters", "message"),
    [
        (Exp3, {"gamma": 0.0}, r"'gamma' parameter of Exp3 must be a float in \[1e-30, 1\]"),
        (Exp3S, {"gamma": 1.5}, "'gamma' parameter of Exp3S"),
        (Exp3S, {"alpha": -0.1}, r"'alpha' parameter of Exp3S must be a float in \[0, 1e"),
        (Exp3S, {"num_changes": -1}, "'num_changes' parameter of Exp3S"),
        (Rexp3, {"gamma": "theory"}, "'gamma' parameter of Rexp3"),
        (Rexp3, {"batch_size": 0.5}, "'batch_size' parameter of Rexp3 must be a whole number"),
        (Rexp3, {"variation_budget": -1}, "'variation_budget' parameter of Rexp3"),
        (Rexp3, {"variation_budget": "no"}, "must be 'known', 'unknown' or a number in"),
    ],
)
def test_bad_parameters_are_refused(made: Any, parameters: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        made(problem(3), **parameters)


def test_a_known_budget_must_be_drawn() -> None:
    agent = Rexp3(problem(3, variation_budget=None), variation_budget="known")
    with pytest.raises(RuntimeError, match="variation budget is drawn with the episode"):
        agent.reset(0)
