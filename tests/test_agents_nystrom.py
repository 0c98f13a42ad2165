"""Arms that are drawn anew at each step under any kernel: Nystrom features on stand-ins."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import qmc

import wgp_agents
from wgp_agents import GPUCB, TVGPUCB, WGPUCB, AdaptiveWGPUCB
from wgp_agents.core.observation import observation_of
from wgp_agents.gp.nystrom import between
from wgp_gym.kernels import (
    Categorical,
    Empirical,
    Kernel,
    Linear,
    Matern,
    OnColumns,
    SquaredExponential,
)
from wgp_gym.problem import BanditProblem

Array = NDArray[np.float64]
SE = SquaredExponential
N, D, STEPS = 5, 2, 40
SPREAD: Array = qmc.Sobol(D, scramble=False).random(256)


def problem(kernel: Kernel | None = None, **given: Any) -> BanditProblem:
    stated = {"contextual": True, "stand_ins": SPREAD, "norm_bound": 1.0, "variation_budget": 1.0}
    return BanditProblem(kernel or SE(0.5), SPREAD[:N], STEPS, 0.1, **{**stated, **given})


def episode(seed: int) -> tuple[Array, Array]:
    """Return the arms of all steps `(T, n, d)`, and what each would pay `(T, n)`."""
    rng = np.random.default_rng(seed)
    arms = rng.random((STEPS, N, D))
    pay = np.sin(4 * arms[..., 0]) * arms[..., 1] + 0.1 * rng.standard_normal((STEPS, 1))
    return arms, pay


def play(agent: Any, episodes: list[tuple[Array, Array]]) -> list[Any]:
    """Return what is played, and the posterior of the arms at each step."""
    found: list[Any] = []
    for t in range(STEPS):
        rows = np.stack([observation_of(arms[t]) for arms, _ in episodes])
        played = agent.act(rows if agent.batched else rows[0])
        chosen = np.atleast_1d(played)
        pay = np.array([rewards[t, a] for (_, rewards), a in zip(episodes, chosen, strict=True)])
        found += [chosen.copy(), *np.stack(agent.posterior()).reshape(2, len(episodes), -1)]
        agent.observe(played, pay if agent.batched else float(pay[0]))
    return found


class Nystrom(Kernel):
    """The kernel k(x, S) K(S, S)^{-1} k(S, y) of a few stand-ins S, by plain algebra."""

    def __init__(self, kernel: Kernel, stand_ins: Array) -> None:
        self.kernel, self.stand_ins = kernel, stand_ins
        self.inverse = np.linalg.inv(kernel(stand_ins, stand_ins))

    def __call__(self, X: Array, Y: Array) -> Array:
        found: Array = (
            self.kernel(X, self.stand_ins) @ self.inverse @ self.kernel(self.stand_ins, Y)
        )
        return found

    def diagonal(self, X: Array) -> Array:
        return np.diagonal(self(X, X))


def dense(
    name: str, kernel: Kernel, plays: Array, pay: Array, at: Array, left: Array | float = 0.0
) -> tuple[Array, Array]:
    """Return the posterior at points by a t x t matrix, for lambda = 0.01.

    `left` is what the features leave out of k(x, x) of the plays, `(t,)`.
    """
    t = len(plays)
    age = (t - np.arange(t)).astype(float)  # of each observation at the next step
    K, k, noise = kernel(plays, plays), kernel(at, plays), 0.01 + left * np.ones(t)
    if name == "wgp-ucb":  # weights 0.9^age, up to a factor that drops out with lambda
        noise = noise / 0.9 ** (age - 1)
    if name == "tv-gp-ucb":
        K = K * 0.95 ** (np.abs(age[:, None] - age) / 2)
        k = k * 0.95 ** (age / 2)
    A = K + np.diag(noise)
    variance = kernel.diagonal(at) - np.einsum("ij,ji->i", k, np.linalg.solve(A, k.T))
    return k @ np.linalg.solve(A, pay), np.sqrt(np.maximum(variance, 0.0))


AGENTS = {"wgp-ucb": {"discount": 0.9}, "tv-gp-ucb": {"eps": 0.05}, "gp-ucb": {}}
KERNELS: dict[str, Kernel] = {
    "se": SE(0.5),
    "product": OnColumns(SE(0.4), 0) * OnColumns(Matern(1.0, 2.5), 1),
    "sum": OnColumns(SE(0.4), 0) + Linear(),
}


@pytest.mark.parametrize("features", ["exact", "nystrom", "quadrature", "random"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("name", AGENTS)
def test_equals_a_dense_posterior(name: str, kernel: str, features: Any) -> None:
    if features in ("quadrature", "random") and kernel != "se":
        return
    one = KERNELS[kernel]
    arms, pay = episode(3)
    parameters: dict[str, Any] = {**AGENTS[name], "features": features}
    agent: Any = wgp_agents.make(name, problem(one), **parameters)
    agent.reset(0)
    found = play(agent, [(arms, pay)])
    chosen = np.array([actions[0] for actions in found[::3]])
    rows = np.arange(STEPS)
    t = STEPS - 1
    mean, std = dense(name, one, arms[rows, chosen][:t], pay[rows, chosen][:t], arms[t])
    most = 0.15 if features == "random" else 2e-3
    np.testing.assert_allclose(found[3 * t + 1][0], mean, atol=most)
    np.testing.assert_allclose(found[3 * t + 2][0], std, atol=most)
    assert agent.feature_error() < (0.1 if features == "random" else 1e-3)


@pytest.mark.parametrize("name", AGENTS)
def test_what_the_features_leave_out_is_noise_of_a_play(name: str) -> None:
    arms, pay = episode(4)
    few, kernel = SPREAD[:16], SE(0.3)
    agent: Any = wgp_agents.make(name, problem(kernel, stand_ins=few), **AGENTS[name])
    agent.reset(0)
    found = play(agent, [(arms, pay)])
    chosen = np.array([actions[0] for actions in found[::3]])
    rows, t, rough = np.arange(STEPS), STEPS - 1, Nystrom(kernel, few)
    plays = arms[rows, chosen][:t]
    left = 1 - rough.diagonal(plays)
    assert left.max() > 0.1
    mean, std = dense(name, rough, plays, pay[rows, chosen][:t], arms[t], left)
    np.testing.assert_allclose(found[3 * t + 1][0], mean, atol=1e-6)
    whole = np.sqrt(std**2 + 1 - rough.diagonal(arms[t]))
    np.testing.assert_allclose(found[3 * t + 2][0], whole, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["wgp-ucb", "wgp-ts", "sw-gp-ucb", "pe-gp-ucb", "adaptive-wgp-ucb"]
)
def test_learner_i_is_the_single_learner(name: str) -> None:
    alone = []
    for i in range(2):
        agent: Any = wgp_agents.make(name, problem())
        agent.reset(7 + i)
        alone.append(play(agent, [episode(i)]))
    for batch in (1, 3):
        each = np.ones(batch)
        many: Any = wgp_agents.make(name, problem(norm_bound=each, variation_budget=each))
        many.reset(7)
        together = play(many, [episode(i) for i in range(batch)])
        for i in range(min(batch, 2)):
            for one, other in zip(together, alone[i], strict=True):
                np.testing.assert_array_equal(one[i], other[0])


@pytest.mark.parametrize("name", ["wgp-ucb", "adaptive-wgp-ucb"])
def test_state_and_copies_go_on_alike(name: str) -> None:
    arms, pay = episode(1)
    one: Any = wgp_agents.make(name, problem())
    other: Any = wgp_agents.make(name, problem())
    one.reset(3)
    play(one, [(arms, pay)])
    other.reset(11)
    other.load_state_dict(one.state_dict())
    expected = play(copy.deepcopy(one), [episode(2)])
    for twin in (other, pickle.loads(pickle.dumps(one))):
        for a, b in zip(expected, play(twin, [episode(2)]), strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(("kernel", "n"), [(SE(0.5), 12), (Matern(0.1, 0.5), 180)])
def test_shown_the_same_arms_always_adaptive_plays_as_on_fixed_arms(kernel: Kernel, n: int) -> None:
    domain = SPREAD[:n]  # of 180 the features leave something out
    fixed = AdaptiveWGPUCB(BanditProblem(kernel, domain, STEPS))
    anew = AdaptiveWGPUCB(BanditProblem(kernel, domain, STEPS, contextual=True))
    rng, pay = np.random.default_rng(0), np.sin(5 * domain[:, 0])
    fixed.reset(1)
    anew.reset(1)
    for _ in range(STEPS):
        action = fixed.act()
        assert anew.act(observation_of(domain)) == action
        reward = pay[int(action)] + 0.1 * rng.standard_normal()
        fixed.observe(action, reward)
        anew.observe(action, reward)
    for a, b in zip(fixed.posterior(), anew.posterior(), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)
    assert fixed.belief() == pytest.approx(anew.belief(), rel=1e-6)


# What it learns: the best choice is where the context is, Krause and Ong (2011).

CHOICES = np.linspace(0.0, 1.0, 8)
PRODUCT = OnColumns(SE(0.3), 0) * OnColumns(SE(0.3), 1)


def regrets(agent: Any, steps: int = 150, categories: bool = False) -> Array:
    rng, found = np.random.default_rng(5), []
    agent.reset(0)
    for _ in range(steps):
        context = rng.random()
        if categories:
            context = round(2 * context) / 2
        arms = np.column_stack([CHOICES, np.full(8, context)])
        truth = 1 - 4 * (CHOICES - context) ** 2
        action = agent.act(observation_of(arms))
        found.append(truth.max() - truth[action])
        agent.observe(action, truth[action] + 0.2 * rng.standard_normal())
    return np.array(found)


def choice_problem(kernel: Kernel = PRODUCT, categories: bool = False) -> BanditProblem:
    contexts = np.linspace(0, 1, 3 if categories else 12)
    spread = np.stack(np.meshgrid(CHOICES, contexts), axis=-1).reshape(-1, 2)
    return BanditProblem(kernel, spread[:8], 150, 0.2, 2.0, 1.0, contextual=True, stand_ins=spread)


@pytest.mark.parametrize("name", ["gp-ucb", "wgp-ucb", "adaptive-wgp-ucb"])
def test_a_product_over_choice_and_context_learns(name: str) -> None:
    parameters = {"discount": 0.99, "confidence_width": 1.0} if name == "wgp-ucb" else {}
    late = regrets(wgp_agents.make(name, choice_problem(), **parameters))[75:].mean()
    random = regrets(wgp_agents.make("random", choice_problem()))[75:].mean()
    assert random > 0.4
    assert late < 0.1 * random  # the best choice for all contexts loses 1/3 a step


def test_categories_as_contexts() -> None:
    kernel = OnColumns(SE(0.3), 0) * OnColumns(Categorical(0.2), 1)
    agent = AdaptiveWGPUCB(choice_problem(kernel, categories=True))
    random = regrets(wgp_agents.make("random", choice_problem(categories=True)), categories=True)
    late = regrets(agent, categories=True)[75:].mean()
    assert late < 0.1 * random.mean()
    assert agent.feature_error() < 1e-3  # no context between two categories is looked at


# The error of the features


def test_the_error_is_that_of_points_between_the_stand_ins_too() -> None:
    few = SPREAD[:16]
    rough = GPUCB(problem(SE(0.15), stand_ins=few))
    assert rough.feature_error() > 0.5  # on the stand-ins it is 1e-9
    fine = AdaptiveWGPUCB(problem(SE(0.15), stand_ins=few))
    assert fine.feature_error() > 0.5
    agent = GPUCB(problem(SE(0.4)))
    places = np.random.default_rng(2).random((60, D))
    phi = np.concatenate([agent.action_set.embed(place[None]).features for place in places])
    measured = np.abs(SE(0.4)(places, places) - phi @ phi.T).max()
    assert 0.1 * measured < agent.feature_error() < 10 * measured + 1e-9


@pytest.mark.parametrize("make", [GPUCB, TVGPUCB, AdaptiveWGPUCB])
def test_what_the_features_leave_out_is_uncertain(make: Any) -> None:
    agent = make(problem(SE(0.05), stand_ins=np.full((4, D), 0.1)))
    agent.reset(0)
    arms = np.full((N, D), 0.1)
    arms[1:] = [[0.9, 0.9], [0.9, 0.1], [0.1, 0.9], [0.5, 0.5]]
    for reward in (1.0, 0.8, 1.2, 0.9, 1.1, 1.0):
        agent.act(observation_of(arms))
        agent.observe(0, reward)
    agent.act(observation_of(arms))
    std = agent.posterior().std
    # The adaptive agent finds more noise in so few rewards: 1.3 times.
    assert std[1:].min() > (1.2 if make is AdaptiveWGPUCB else 2.5) * std[0]
    if make is not AdaptiveWGPUCB:
        np.testing.assert_allclose(std[1:], 1.0, atol=1e-6)


def test_between() -> None:
    codes = np.array([0.0, 0.5, 1.0])
    points = np.stack(np.meshgrid(codes, np.linspace(0.2, 0.6, 6)), axis=-1).reshape(-1, 2)
    found = between(points, None)
    assert min(len(np.unique(column)) for column in found.T) > 200
    for category in (Categorical(), Empirical(np.eye(3))):
        kernel = OnColumns(SE(0.2), 1) + OnColumns(OnColumns(category, 1), [1, 0])
        found = between(points, kernel * Linear())
        assert set(found[:, 0]) == set(codes)
    assert len(np.unique(found[:, 1])) > 200
    assert (found.min(axis=0) >= points.min(axis=0)).all()
    assert (found.max(axis=0) <= points.max(axis=0)).all()


def test_stand_ins_need_not_be_as_many_as_the_arms_shown() -> None:
    agent = GPUCB(problem())
    agent.reset(0)
    assert agent.act(observation_of(SPREAD[20 : 20 + N])) in range(N)
    with pytest.raises(ValueError, match="An observation has 15 numbers, 5 x 2 of them the arms"):
        agent.act(observation_of(SPREAD[20 : 21 + N]))
    linear = replace(problem(Linear()), stand_ins=None)
    np.testing.assert_array_equal(linear.spread, linear.domain)
    with pytest.raises(ValueError, match="'stand_ins' parameter of BanditProblem must be None wh"):
        BanditProblem(SE(0.5), SPREAD, stand_ins=SPREAD)
    for bad in (SPREAD[:, :1], SPREAD + 1, SPREAD[0]):
        with pytest.raises(ValueError, match="'stand_ins' parameter of BanditProblem must be poi"):
            problem(stand_ins=bad)
    with pytest.raises(ValueError, match="must share domain"):
        BanditProblem.stack([problem(), problem(stand_ins=SPREAD[:9])])
    with pytest.raises(ValueError, match="'features' parameter of WGPUCB must be 'exact' where ar"):
        WGPUCB(BanditProblem(SE(0.5), SPREAD, 9, 0.1), discount=0.9, features="nystrom")
