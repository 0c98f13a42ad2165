"""Feature maps in the kernel's place: quadrature, random, and a user's own."""

from __future__ import annotations

import itertools
import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.source import feature_source
from wgp_gym.fourier import degree_for, quadrature_features
from wgp_gym.kernels import Empirical, Kernel, Linear, Matern, SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

DOMAIN = np.linspace(0.0, 1.0, 100)[:, None]
SE = SquaredExponential(0.2)
LAMBDA, STEPS = 0.1**2, 30
AGENTS: dict[str, dict[str, Any]] = {
    "wgp-ucb": {"discount": 0.9},
    "sw-gp-ucb": {"window": 8},
    "r-gp-ucb": {"restart_period": 11},
    "igp-ucb": {},
}

every_gp = pytest.mark.parametrize("name", AGENTS)
arms_and_box = pytest.mark.parametrize("continuous", [False, True], ids=["arms", "box"])


def problem(
    kernel: Kernel = SE, domain: Floats = DOMAIN, *, continuous: bool = False
) -> BanditProblem:
    return BanditProblem(kernel, domain, 500, 0.1, 1.0, 1.0, continuous=continuous)


def make(name: str, source: Any, **parameters: Any) -> GPAgent:
    agent = wgp_agents.make(name, source, **{**AGENTS.get(name, {}), **parameters})
    assert isinstance(agent, GPAgent)
    agent.reset(0)
    return agent


def polynomial(X: Floats) -> Floats:
    """Return features 1, x, x^2, x^3 of a point on a line, with some scale."""
    return np.concatenate([0.6 * np.ones_like(X), 0.5 * X, 0.4 * X**2, 0.3 * X**3], axis=-1)


def rows(X: Floats) -> Floats:
    """Return features that are not smooth: 12 bins, of which each point has one."""
    table: Floats = np.eye(12)[np.minimum((12 * X[..., 0]).astype(int), 11)]
    return table


def weights(name: str, t: int) -> Floats:
    age = np.arange(t - 1, -1, -1)
    if name == "wgp-ucb":
        return np.asarray(0.9**age, float)
    held = {"sw-gp-ucb": 8, "r-gp-ucb": t % 11, "igp-ucb": t}[name]
    return np.asarray(age < held, float)


def dense(gram: Any, X: Floats, y: Floats, w: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance on the domain by t x t matrices of a kernel: Eq. (3) and (4)."""
    X, y, root = X[w > 0], y[w > 0], np.sqrt(w[w > 0])[:, None]
    M = root * gram(X, X) * root.T + LAMBDA * np.eye(len(X))
    k = root * gram(X, DOMAIN)
    solved = np.linalg.solve(M, k)
    return solved.T @ (root[:, 0] * y), gram(DOMAIN, DOMAIN).diagonal() - np.sum(k * solved, axis=0)


def played(agent: GPAgent, seed: int = 0) -> tuple[Floats, Floats]:
    """Show an agent arms, or points off the grid; return the points and the rewards."""
    rng, continuous = np.random.default_rng(seed), agent.problem.continuous
    arms, y = rng.integers(100, size=STEPS), rng.standard_normal(STEPS)
    X = rng.random((STEPS, 1)) if continuous else DOMAIN[arms]
    for point, arm, reward in zip(X, arms.tolist(), y.tolist(), strict=True):
        agent.observe(point if continuous else arm, reward)
    return X, y


@arms_and_box
@pytest.mark.parametrize("feature_map", [polynomial, rows], ids=["polynomial", "bins"])
@every_gp
def test_a_map_of_ones_own(name: str, feature_map: Any, continuous: bool) -> None:
    agent = make(name, problem(continuous=continuous), features=feature_map)
    prior = np.sum(feature_map(DOMAIN) ** 2, axis=1)
    np.testing.assert_allclose(agent.posterior().std ** 2, prior, rtol=1e-12)
    X, y = played(agent)
    mean, variance = dense(
        lambda A, B: feature_map(A) @ feature_map(B).T, X, y, weights(name, STEPS)
    )
    # As few columns as the map's kernel needs; on a box they may leave out 1e-8.
    assert agent.action_set.basis.phi.shape[0] <= feature_map(DOMAIN).shape[1]
    atol = 1e-6 if continuous else 1e-8
    np.testing.assert_allclose(agent.posterior().mean, mean, rtol=0, atol=atol)
    np.testing.assert_allclose(agent.posterior().std ** 2, variance, rtol=0, atol=atol)


@arms_and_box
@every_gp
def test_random_features(name: str, continuous: bool) -> None:
    source = problem(continuous=continuous)
    agent = make(name, source, features="random")
    feature_map: Any = feature_source("random", source, "test")
    assert feature_map(DOMAIN).shape == (100, 2_000)
    X, y = played(agent)
    mean, variance = dense(
        lambda A, B: feature_map(A) @ feature_map(B).T, X, y, weights(name, STEPS)
    )
    # Over 8 seeds the errors were at worst 4e-8 and 3e-10 for arms, 2e-6 and 2e-8 on the box.
    atol = 1e-5 if continuous else 2e-7
    np.testing.assert_allclose(agent.posterior().mean, mean, rtol=0, atol=atol)
    np.testing.assert_allclose(agent.posterior().std ** 2, variance, rtol=0, atol=atol)
    # 1,000 frequencies: an error of about 1,000^{-1/2} in k, so that it is another posterior.
    other = dense(SE, X, y, weights(name, STEPS))[1]
    assert 1e-5 < np.abs(variance - other).max() < 0.1


def test_random_features_are_always_the_same() -> None:
    first, second = (feature_source("random", problem(), "test") for _ in range(2))
    assert callable(first)
    assert callable(second)
    assert not isinstance(first, Kernel)
    assert not isinstance(second, Kernel)
    np.testing.assert_array_equal(first(DOMAIN), second(DOMAIN))


@arms_and_box
@every_gp
def test_quadrature_is_the_exact_kernel_to_1e_6(name: str, continuous: bool) -> None:
    agent = make(name, problem(continuous=continuous), features="quadrature")
    X, y = played(agent)
    mean, variance = dense(SE, X, y, weights(name, STEPS))
    # Over 8 seeds the errors were at worst 1e-8 and 8e-11 for arms, 3e-7 and 5e-9 on the box.
    np.testing.assert_allclose(agent.posterior().mean, mean, rtol=0, atol=1e-6)
    np.testing.assert_allclose(agent.posterior().std ** 2, variance, rtol=0, atol=1e-6)


def test_quadrature_of_a_short_length_takes_more_nodes() -> None:
    # Corollary 5's number of nodes, 63 here, knows T, not the length l: at l = 0.04 the kernel of
    # such a map is wrong by up to 1. Below l = 0.05 even 200 nodes are too few.
    assert degree_for(500, math.log(500) ** 2) == 63
    coarse = quadrature_features(SquaredExponential(0.04), 1, 63)
    assert np.abs(coarse(DOMAIN) @ coarse(DOMAIN).T - dense_kernel(0.04)).max() > 0.9
    for length in (0.2, 0.1, 0.075):
        agent = make("qff-wgp-ucb", problem(SquaredExponential(length)))
        assert agent.feature_error() < 1e-7
    rule = r"'features' parameter of WGPUCB must be 'exact' or 'random'.*0\.04.*200\^1 nodes leave"
    with pytest.raises(ValueError, match=rule):
        make("qff-wgp-ucb", problem(SquaredExponential(0.04)))


def test_quadrature_in_many_dimensions_names_the_remedy() -> None:
    with pytest.raises(ValueError, match=r"'exact' or 'random' for .* d = 3: 77\^3 nodes are"):
        make("qff-wgp-ucb", problem(SE, np.random.default_rng(0).random((5, 3))))


def dense_kernel(lengthscale: float) -> Any:
    return SquaredExponential(lengthscale)(DOMAIN, DOMAIN)


def test_a_map_that_is_none_is_refused() -> None:
    for wrong in (lambda X: X[:1], lambda X: X[:, 0], lambda X: X * np.nan):
        with pytest.raises(ValueError, match="'features' parameter of WGPUCB must be a map from n"):
            make("wgp-ucb", problem(SE), features=wrong)


def test_a_map_may_be_zero_and_may_return_lists() -> None:
    for continuous in (False, True):
        source = problem(SE, continuous=continuous)
        blind = make("wgp-ucb", source, features=lambda X: 0.0 * X)
        listed = make("wgp-ucb", source, features=lambda X: (0.5 * X).tolist())
        ours = make("wgp-ucb", source, features=lambda X: 0.5 * X)
        for agent in (blind, listed, ours):
            agent.observe(agent.act(), 1.0)
            agent.act()
        assert not np.asarray(blind.posterior()).any()
        np.testing.assert_array_equal(listed.posterior(), ours.posterior())


def test_a_map_to_bins_may_be_of_booleans() -> None:
    bins = np.arange(4) / 4
    agent, numbers = (
        make("wgp-ucb", problem(SE), features=f)
        for f in (lambda X: X[:, :1] >= bins, lambda X: (X[:, :1] >= bins).astype(float))
    )
    for one in (agent, numbers):
        one.observe(7, 1.0)
    np.testing.assert_array_equal(agent.posterior(), numbers.posterior())


def test_the_bound_on_the_gain_is_that_of_the_features() -> None:
    # Bins of the line: the linear kernel's bound would be 4.35, and 60 plays gain 37.
    def bins(X: Any) -> Any:
        return np.eye(12)[np.minimum((X[:, 0] * 12).astype(int), 11)]

    source = problem(Linear())
    agent = make("wgp-ucb", source, features=bins, gain="bound", discount=0.99)
    realised = make("wgp-ucb", source, features=bins, discount=0.99)
    for t in range(60):
        for one in (agent, realised):
            one.observe(t * 7 % len(DOMAIN), 0.0)
    assert agent.information_gain() == realised.information_gain() > 10
    assert agent.beta() > realised.beta()


@arms_and_box
@pytest.mark.parametrize("lengthscale", [0.2, 0.1, 0.075])
def test_feature_error_is_that_of_the_kernel_on_all_pairs(
    lengthscale: float, continuous: bool
) -> None:
    kernel = SquaredExponential(lengthscale)
    source = problem(kernel, continuous=continuous)
    feature_map: Any = feature_source("quadrature", source, "test")
    error = np.abs(feature_map(DOMAIN) @ feature_map(DOMAIN).T - kernel(DOMAIN, DOMAIN)).max()
    agent = make("wgp-ucb", source, features="quadrature")
    assert agent.feature_error() == pytest.approx(error, rel=1e-3, abs=2e-8)
    assert make("wgp-ucb", source).feature_error() < 1e-6


def test_quadrature_in_two_dimensions() -> None:
    axis = np.linspace(0.0, 1.0, 8)
    square = np.array(list(itertools.product(axis, axis)))
    exact, ours = (
        make("wgp-ucb", problem(SE, square), features=kind) for kind in ("exact", "quadrature")
    )
    rng = np.random.default_rng(1)
    for arm in rng.integers(64, size=25).tolist():
        for agent in (exact, ours):
            agent.observe(arm, arm / 64)
    np.testing.assert_allclose(ours.posterior(), exact.posterior(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("seed", [0, 1])
def test_quadrature_and_kernel_play_the_same_arms(seed: int) -> None:
    # Over 6 seeds all of 500 arms were the same.
    env = gymnasium.make("WGPBandit-Abrupt-v0")
    runs = []
    for name in ("wgp-ucb", "qff-wgp-ucb"):
        env.reset(seed=seed)
        agent = wgp_agents.make(name, env)
        agent.reset(seed + 100)
        arms = []
        for _ in range(500):
            arms.append(agent.act())
            agent.observe(arms[-1], env.step(arms[-1])[1])
        runs.append(arms)
    assert len(set(runs[0])) > 20
    assert np.mean(np.array(runs[0]) == np.array(runs[1])) >= 0.95


def test_the_preset_is_quadrature_and_may_be_replaced() -> None:
    preset = make("qff-wgp-ucb", problem(), discount=0.9)
    asked = make("wgp-ucb", problem(), features="quadrature")
    replaced = make("qff-wgp-ucb", problem(), discount=0.9, features=polynomial)
    for agent in (preset, asked, replaced):
        played(agent)
    np.testing.assert_array_equal(preset.posterior(), asked.posterior())
    assert not np.allclose(replaced.posterior(), asked.posterior(), atol=0.01)


@pytest.mark.parametrize(
    "kind",
    ["exact", "quadrature", "random", polynomial],
    ids=["exact", "quadrature", "random", "polynomial"],
)
@arms_and_box
def test_learner_i_is_the_single_learner(kind: Any, continuous: bool) -> None:
    options: dict[str, Any] = {"continuous": continuous, "points_per_dim": 30}
    name = "WGPBandit-Stationary-v0"
    batch = gymnasium.make_vec(name, num_envs=3, vectorization_mode="vector_entry_point", **options)

    def run(env: Any, i: int) -> tuple[Any, Any]:
        env.reset(seed=i)
        agent = wgp_agents.make("wgp-ucb", env, discount=0.9, features=kind)
        agent.reset(10 + i)
        actions = []
        for _ in range(8):
            actions.append(agent.act())
            agent.observe(actions[-1], env.step(actions[-1])[1])
        assert isinstance(agent, GPAgent)
        return np.array(actions), agent.posterior().mean

    together = run(batch, 0)
    for i in range(3):
        alone = run(gymnasium.make(name, **options), i)
        np.testing.assert_array_equal(together[0][:, i], alone[0])
        np.testing.assert_array_equal(together[1][i], alone[1])


@pytest.mark.parametrize(
    ("features", "kernel", "match"),
    [
        ("quadratur", SE, r"'features' parameter of WGPUCB must be .*did you mean 'quadrature'\?"),
        (None, SE, "'features' parameter of WGPUCB must be one of 'exact', 'quadrature', 'random'"),
        ("quadrature", Linear(), r"'kernel' parameter of quadrature_features .*Got 'Linear'"),
        ("random", Linear(), r"'kernel' parameter of random_features must be .*Got 'Linear'"),
        ("random", Empirical(np.eye(100)), r"parameter of random_features .*Got 'Empirical'"),
    ],
    ids=str,
)
def test_what_does_not_fit(features: Any, kernel: Kernel, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        make("wgp-ucb", problem(kernel), features=features)


def test_quadrature_of_matern_in_two_dimensions() -> None:
    match = r"must be SquaredExponential, ModifiedMatern or, for dim 1, Matern, .* Got 'Matern'"
    with pytest.raises(ValueError, match=match):
        make("qff-wgp-ucb", problem(Matern(0.2, 2.5), np.random.default_rng(0).random((9, 2))))
