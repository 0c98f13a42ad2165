"""K-armed agents where not all arms are there, not all learners learn, or only some start anew."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import wgp_agents
from wgp_agents.algorithms.arms.cusum_ucb import CUSUMUCB
from wgp_agents.algorithms.arms.exp3 import Exp3
from wgp_agents.algorithms.arms.exp3_s import Exp3S
from wgp_agents.algorithms.arms.glr_ucb import GLRUCB
from wgp_agents.algorithms.arms.m_ucb import MUCB
from wgp_agents.algorithms.arms.ucb1 import UCB1
from wgp_agents.arms.weights import ExponentialWeights
from wgp_agents.registry import AGENTS, ARMS
from wgp_gym.kernels import CentredLinear
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Mask

K, T, SEED = 5, 400, 30
POINTS = np.random.default_rng(0).random((K, 2))
TASK = BanditProblem(CentredLinear(), POINTS, T, 0.5, 1.5, 0.8, reward_range=(0.0, 1.0))
BATCH = replace(TASK, noise_scale=np.full(3, 0.5), norm_bound=np.full(3, 1.5))
VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name, entry in AGENTS.items() if entry.family == ARMS),
    ("d-glm-ucb", {}),
    ("sw-glm-ucb", {"window": 20}),
    ("thompson", {"prior": "gaussian"}),
    ("d-ts", {"discount": 0.9}),
    ("sw-ucb", {"window": 20}),
    ("rexp3", {"batch_size": 13}),
    ("exp3-s", {"gamma": 0.4, "alpha": 0.01}),
    ("cusum-ucb", {"num_samples": 5, "threshold": 1.0, "alpha": 0.2}),
    ("pht-ucb", {"threshold": 1.0, "alpha": 0.2}),
    ("adswitch", {"eviction": 0.5, "detection": 0.1, "gap_divisor": 4.0}),
    ("m-ucb", {"window": 8, "threshold": 1.5}),
    ("glr-ucb", {"restart": "global", "delta": 1.0, "alpha": 0.5}),
]
every_variant = pytest.mark.parametrize(("name", "parameters"), VARIANTS)


def paid(t: int, arms: Any) -> Any:
    """Return rewards of 0 or 1 that depend on the step and the arm alone, and change halfway."""
    best = 0 if t < 100 else K - 1
    return ((t * 7 + arms * 13) % 10 < 9 - 2 * np.abs(arms - best)) * 1.0


def masks(rng: np.random.Generator, rows: int) -> Mask:
    """Draw which arms are there: one at least of each row."""
    there = rng.random((rows, K)) < 0.5
    there[np.arange(rows), rng.integers(K, size=rows)] = True
    return there


@every_variant
def test_learners_are_on_their_own(name: str, parameters: dict[str, Any]) -> None:
    """Three in a batch are three alone: what is there, who learns, who starts anew."""
    together = wgp_agents.make(name, BATCH, **parameters)
    alone = [wgp_agents.make(name, TASK, **parameters) for _ in range(3)]
    together.reset(SEED)
    for i, one in enumerate(alone):
        one.reset(SEED + i)
    rng = np.random.default_rng(1)
    for t in range(200):
        allowed = masks(rng, 3) if t % 5 else None
        fresh, active = rng.random(3) < 0.05, rng.random(3) < 0.7
        if fresh.any():
            together.reset(100 * t, learners=fresh)
        for i in np.flatnonzero(fresh).tolist():
            alone[i] = wgp_agents.make(name, TASK, **parameters)  # a reset leaves nothing behind
            alone[i].reset(100 * t + i)
        if t % 4 == 3:  # somebody else's play
            arms = rng.integers(K, size=3)
        else:
            arms = together.act(allowed=allowed)
            rows = [None] * 3 if allowed is None else [row.tolist() for row in allowed]
            assert [one.act(allowed=row) for one, row in zip(alone, rows, strict=True)] == list(
                arms
            )
            assert allowed is None or allowed[np.arange(3), arms].all()
        together.observe(arms, np.where(active, paid(t, arms), np.nan), active=active)
        for i in np.flatnonzero(active).tolist():
            alone[i].observe(int(arms[i]), float(paid(t, arms)[i]))


@every_variant
def test_all_arms_there_is_no_mask(name: str, parameters: dict[str, Any]) -> None:
    free, masked = (wgp_agents.make(name, BATCH, **parameters) for _ in range(2))
    for one in (free, masked):
        one.reset(SEED)
    for t in range(200):
        arms = free.act()
        np.testing.assert_array_equal(masked.act(allowed=np.ones((3, K), bool)), arms)
        for one in (free, masked):
            one.observe(arms, paid(t, arms))


@every_variant
def test_the_only_arm_there_is_played(name: str, parameters: dict[str, Any]) -> None:
    agent = wgp_agents.make(name, TASK, **parameters)
    agent.reset(SEED)
    for t in range(60):
        only = np.arange(K) == t * t % K
        assert agent.act(allowed=only) == t * t % K
        agent.observe(t * t % K, float(paid(t, t * t % K)))


@every_variant
def test_what_is_no_mask(name: str, parameters: dict[str, Any]) -> None:
    agent = wgp_agents.make(name, BATCH, **parameters)
    agent.reset(SEED)
    for allowed in (
        np.zeros(K, bool),
        np.ones(K + 1, bool),
        [[1] * K, [0] * K, [1] * K],
        ["a"] * K,
    ):
        with pytest.raises(ValueError, match="'allowed' parameter of act must be True for at lea"):
            agent.act(allowed=allowed)


def test_arms_without_plays_go_first_among_those_that_are_there() -> None:
    agent = UCB1(TASK)
    agent.reset(SEED)
    there = np.array([1, 0, 1, 1, 0])
    taken = []
    for _ in range(3):
        taken.append(agent.act(allowed=there))
        agent.observe(taken[-1], 0.0)
    assert sorted(taken) == [0, 2, 3]
    assert agent.act(allowed=there) in taken
    assert agent.act() in (1, 4)


@pytest.mark.parametrize("made", [MUCB, GLRUCB])
def test_an_arm_that_is_not_there_is_not_forced(made: Any) -> None:
    share = {"gamma": 0.5} if made is MUCB else {"alpha": 0.5, "exploration": "constant"}
    agent = made(TASK, **share)
    agent.reset(SEED)
    for arm in range(K):
        for _ in range(3):
            agent.observe(arm, float(arm == 3))  # arm 3 is the best by far
    for step in range(3 * K + 1, 61):
        turn = step % 10
        there = np.arange(K) != (turn - 1 if step % 20 < 10 else K)
        expected = turn - 1 if 1 <= turn <= K and there[turn - 1] else 3 if there[3] else None
        arm = agent.act(allowed=there)
        assert arm == expected or (expected is None and there[arm])
        agent.observe(arm, float(arm == 3))


def test_a_random_arm_is_one_of_those_that_are_there() -> None:
    batch = 4000
    task = replace(TASK, noise_scale=np.full(batch, 0.5), norm_bound=np.full(batch, 1.5))
    agent = CUSUMUCB(task, alpha=1.0)
    agent.reset(SEED)
    for arm in range(K):
        agent.observe(np.full(batch, arm), np.full(batch, float(arm == 1)))  # arm 1 is the best
    shares = np.bincount(agent.act(allowed=[0, 1, 1, 0, 1]), minlength=K) / batch
    np.testing.assert_allclose(shares, [0, 1 / 3, 1 / 3, 0, 1 / 3], atol=0.03)  # four std. errors


def exact(weights: Array, gamma: float, there: Mask) -> Array:
    """Return the probabilities of Exp3 on the arms that are there."""
    mixed: Array = ((1 - gamma) * weights / weights.sum() + gamma / K) * there
    return mixed / float(mixed.sum())


def test_exponential_weights_learn_with_the_probabilities_that_were_played() -> None:
    gamma, alpha, rng = 0.3, 0.02, np.random.default_rng(3)
    agent = Exp3S(TASK, gamma=gamma, alpha=alpha)
    agent.reset(SEED)
    weights = np.ones(K)
    for _ in range(100):
        there = masks(rng, 1)[0]
        arm, reward = agent.act(allowed=there), rng.random()
        chances = exact(weights, gamma, there)
        np.testing.assert_allclose(agent.weights.probabilities(there[None])[0], chances, rtol=1e-9)
        agent.observe(arm, reward)
        gained = math.e * alpha / K * weights.sum()
        weights[arm] *= np.exp(gamma * reward / (chances[arm] * K))
        weights = (weights + gained) / weights.sum()
    np.testing.assert_allclose(
        agent.weights.probabilities()[0], exact(weights, gamma, np.ones(K, bool)), rtol=1e-9
    )


def test_estimates_are_unbiased_for_the_arms_that_are_there() -> None:
    gamma, there = np.array([0.3]), np.array([[True, False, True, True, False]])
    rewards, expected = np.array([0.2, 0.9, 0.7, 0.4, 0.1]), np.zeros(K)
    weights = ExponentialWeights(K, gamma, np.zeros(1))
    weights.learn(np.array([2]), np.ones(1), np.ones(1, bool))
    before = weights.probabilities()[0]
    shares = weights.probabilities(there)[0]
    for arm in np.flatnonzero(there[0]):
        one = ExponentialWeights(K, gamma, np.zeros(1))
        one.learn(np.array([2]), np.ones(1), np.ones(1, bool))
        one.learn(np.array([arm]), rewards[[arm]], np.ones(1, bool), there)
        # The estimate of an arm is what its weight gained beside that of arm 1, times K / gamma.
        pure = [(p - gamma[0] / K) / (1 - gamma[0]) for p in (before, one.probabilities()[0])]
        gained = np.log(pure[1] / pure[0]) - np.log(pure[1][1] / pure[0][1])
        expected += shares[arm] * gained * K / gamma[0]
    np.testing.assert_allclose(expected, rewards * there[0], atol=1e-9)


def test_feedback_of_an_arm_that_was_not_there_counts_it_as_one() -> None:
    agent = Exp3(TASK, gamma=0.5)
    agent.reset(SEED)
    agent.act(allowed=[1, 1, 0, 0, 0])
    agent.observe(4, 1.0)  # its chance among arms 0, 1 and 4 is 1 / 3
    weights = np.ones(K)
    weights[4] = np.exp(0.5 / (K / 3))
    expected = exact(weights, 0.5, np.ones(K, bool))
    np.testing.assert_allclose(agent.weights.probabilities()[0], expected)


def test_a_learner_that_starts_anew_has_seen_no_mask() -> None:
    agent, fresh = Exp3(BATCH, gamma=0.5), Exp3(TASK, gamma=0.5)
    agent.reset(SEED)
    agent.act(allowed=[1, 1, 0, 0, 0])
    agent.reset(learners=[False, True, False])
    agent.observe(np.ones(3, int), np.ones(3))
    fresh.reset(SEED)
    fresh.observe(1, 1.0)
    learned = agent.weights.probabilities()
    np.testing.assert_array_equal(learned[1], fresh.weights.probabilities()[0])
    assert (learned[[0, 2], 1] < learned[1, 1]).all()  # a chance of 1 / 2 earns less than of 1 / K


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("cusum-ucb", "M", "num_samples"),
        ("cusum-ucb", "h", "threshold"),
        ("m-ucb", "w", "window"),
        ("m-ucb", "b", "threshold"),
    ],
)
def test_letters_are_no_parameters(name: str, old: str, new: str) -> None:
    with pytest.raises(
        ValueError, match=rf"'{name}' has no parameter '{old}'\. It takes .*'{new}'"
    ):
        wgp_agents.make(name, TASK, **{old: 2})
