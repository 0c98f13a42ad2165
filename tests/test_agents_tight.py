"""width="tight": the standard deviation of [Deng22] Theorem 2, and what it is for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import wgp_agents
from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.surrogates import posteriors
from wgp_gym.kernels import Kernel, Linear, Matern, SquaredExponential
from wgp_gym.problem import BanditProblem

Floats = NDArray[np.float64]

DOMAIN = np.linspace(0.0, 1.0, 100)[:, None]
STEPS = 40


def problem(
    kernel: Kernel, *, batch: int | None = None, continuous: bool = False, domain: Floats = DOMAIN
) -> BanditProblem:
    each = 1.0 if batch is None else np.ones(batch)
    return BanditProblem(kernel, domain, 500, 0.1, each, each, continuous=continuous)


def make(source: BanditProblem, **parameters: Any) -> GPAgent:
    agent = wgp_agents.make("wgp-ucb", source, **parameters)
    assert isinstance(agent, GPAgent)
    agent.reset(0)
    return agent


def bound_variance(agent: GPAgent) -> Floats:
    """Return the variances that the bound uses of all arms, `(B, n)`."""
    return agent.surrogate.predict(agent.action_set.candidates).bound_variance


def eigenfeatures(kernel: Kernel, points: Floats) -> Floats:
    """Return Phi with Phi Phi^T = K from the eigenvalues of K above 1e-13, `(n, m)`."""
    values, vectors = np.linalg.eigh(kernel(points, points))
    features: Floats = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, values > 1e-13]
    return features


def theorem_2(
    plays: Floats, points: Floats, w: Floats, ridge: float
) -> tuple[Floats, Floats, Floats]:
    """Return sigma~^2, sigma-acute^2 and V^{-1} sum w phi (to multiply y) of points.

    sigma-acute^2 = lambda phi^T V^{-1} V~ V^{-1} phi, V = sum w phi phi^T + lambda I and
    V~ = sum w^2 phi phi^T + lambda I. Weights are relative to the last one.
    """
    identity = ridge * np.eye(plays.shape[1])
    V = (plays.T * w) @ plays + identity
    double = (plays.T * w**2) @ plays + identity
    x = np.linalg.solve(V, points.T)
    tight = ridge * np.sum(x * (double @ x), axis=0)
    return ridge * np.sum(points.T * x, axis=0), tight, (x.T @ plays.T) * w


def history(seed: int = 0, n: int = 100) -> tuple[NDArray[np.int64], Floats]:
    rng = np.random.default_rng(seed)
    return rng.integers(n, size=STEPS), rng.standard_normal(STEPS)


@pytest.fixture(params=["compiled", "blas"])
def program(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Do the work by the compiled loop, or by BLAS, as with many features."""
    monkeypatch.setattr(posteriors, "MANY_FEATURES", 0 if request.param == "blas" else math.inf)


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("ridge", [1e-3, 0.01, 1.0])
@pytest.mark.parametrize("discount", [0.5, 0.9, 0.99, 1.0])
@pytest.mark.parametrize(
    ("kernel", "n"),
    [
        (SquaredExponential(0.2), 100),
        (Matern(0.2, 0.5), 100),
        (Matern(0.2, 0.5), 99),  # an odd number of features takes a way of its own
        (Linear(), 100),  # so does a single one
    ],
    ids=["few", "even", "odd", "one"],
)
def test_theorem_2(kernel: Kernel, n: int, discount: float, ridge: float) -> None:
    domain = DOMAIN[:n]
    source = problem(kernel, domain=domain)
    agent = make(source, discount=discount, regularization=ridge, width="tight")
    phi, (arms, y) = eigenfeatures(kernel, domain), history(n=n)
    for t in range(1, STEPS + 1):
        agent.observe(int(arms[t - 1]), float(y[t - 1]))
        if t in (1, 2, 17, STEPS):
            w = discount ** np.arange(t - 1, -1, -1.0)
            standard, tight, solve = theorem_2(phi[arms[:t]], phi, w, ridge)
            np.testing.assert_allclose(bound_variance(agent)[0], tight, rtol=0, atol=1e-8)
            np.testing.assert_allclose(agent.posterior().std ** 2, standard, rtol=0, atol=1e-8)
            np.testing.assert_allclose(agent.posterior().mean, solve @ y[:t], rtol=0, atol=1e-7)
            assert (bound_variance(agent)[0] <= agent.posterior().std ** 2 + 1e-12).all()
            assert (np.abs(tight - standard).max() > 1e-6) == (discount < 1 and t > 1)


@pytest.mark.usefixtures("program")
def test_without_discount_it_is_the_standard_one() -> None:
    kernel, (arms, y) = SquaredExponential(0.2), history()
    tight = make(problem(kernel), discount=1.0, width="tight")
    standard = make(problem(kernel), discount=1.0)
    for arm, reward in zip(arms.tolist(), y.tolist(), strict=True):
        for agent in (tight, standard):
            agent.observe(arm, reward)
        np.testing.assert_allclose(
            bound_variance(tight), bound_variance(standard), rtol=0, atol=1e-12
        )
        assert tight.act() == standard.act()


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("power", [2, -1])
def test_weights_of_ones_own(power: int) -> None:
    kernel, (arms, y) = SquaredExponential(0.2), history()
    w = np.arange(1.0, 501) ** power
    agent = make(problem(kernel), weights=w, width="tight")
    for arm, reward in zip(arms.tolist(), y.tolist(), strict=True):
        agent.observe(arm, reward)
    phi, relative = eigenfeatures(kernel, DOMAIN), w[:STEPS] / w[STEPS - 1]
    standard, tight, _ = theorem_2(phi[arms], phi, relative, 0.01)
    np.testing.assert_allclose(bound_variance(agent)[0], tight, rtol=0, atol=1e-8)
    assert np.abs(standard - tight).max() > 1e-3
    assert (tight < standard).all() == (power > 0)  # Lemma 13


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("discount", [0.7, 0.95])
def test_the_arm_played_has_the_largest_tight_bound(discount: float) -> None:
    kernel, rng = SquaredExponential(0.2), np.random.default_rng(1)
    agent = make(problem(kernel), discount=discount, width="tight")
    phi, differs = eigenfeatures(kernel, DOMAIN), 0
    arms, y = np.zeros(0, int), np.zeros(0)
    for t in range(STEPS):
        arm = agent.act()
        if t:
            w = discount ** np.arange(t - 1, -1, -1.0)
            standard, tight, solve = theorem_2(phi[arms], phi, w, 0.01)
            K = w[:, None] * kernel(DOMAIN[arms], DOMAIN[arms]) * w / 0.01
            gain = np.linalg.slogdet(np.eye(t) + K)[1] / 2
            beta = 1 + math.sqrt(2 * math.log(10) + 2 * gain)
            bound = solve @ y + beta * np.sqrt(np.maximum(tight, 0.0))
            assert bound[arm] >= bound.max() - 1e-6
            upper = agent.confidence_interval().upper
            np.testing.assert_allclose(upper, bound, rtol=0, atol=1e-6)
            other = solve @ y + beta * np.sqrt(np.maximum(standard, 0.0))
            differs += other[arm] < other.max() - 1e-6
        reward = float(np.sin(5 * arm / 99) + 0.1 * rng.standard_normal())
        agent.observe(arm, reward)
        arms, y = np.append(arms, arm), np.append(y, reward)
    assert differs > STEPS / 3  # the standard bound would have played otherwise


@pytest.mark.usefixtures("program")
def test_learners_restart_each_to_the_prior() -> None:
    kernel = Matern(0.2, 2.5)
    agent = make(problem(kernel, batch=2), discount=[0.9, 0.6], width="tight")
    np.testing.assert_array_equal(bound_variance(agent), np.ones((2, 100)))
    np.testing.assert_array_equal(agent.posterior().std, np.ones((2, 100)))
    (arms, y), phi = history(), eigenfeatures(kernel, DOMAIN)
    shown = np.array([[0.1, 1.0, 0.0, 0.0]] * 2)
    for t in range(20):
        shown[:, 2:] = [DOMAIN[arms[t], 0], y[t]]
        agent.predict(shown, episode_start=[False, t == 7])
        if t == 7:
            np.testing.assert_array_equal(bound_variance(agent)[1], np.ones(100))
    for i, first in ((0, 0), (1, 8)):
        w = [0.9, 0.6][i] ** np.arange(19 - first, -1, -1.0)
        tight = theorem_2(phi[arms[first:20]], phi, w, 0.01)[1]
        np.testing.assert_allclose(bound_variance(agent)[i], tight, rtol=0, atol=1e-8)


def test_learner_i_is_the_single_learner() -> None:
    kernel, (arms, y) = SquaredExponential(0.2), history()
    discounts = [0.9, 0.6, 1.0]
    batch = make(problem(kernel, batch=3), discount=discounts, width="tight")
    for arm, reward in zip(arms.tolist(), y.tolist(), strict=True):
        batch.observe([arm] * 3, [reward] * 3)
    for i, discount in enumerate(discounts):
        alone = make(problem(kernel), discount=discount, width="tight")
        for arm, reward in zip(arms.tolist(), y.tolist(), strict=True):
            alone.observe(arm, reward)
        np.testing.assert_array_equal(bound_variance(batch)[i], bound_variance(alone)[0])


def test_many_features_take_the_blas_way() -> None:
    kernel = Matern(0.2, 0.5)  # 100 features, more than 64
    (arms, y), phi = history(), eigenfeatures(kernel, DOMAIN)
    agent = make(problem(kernel), discount=0.9, width="tight")
    assert agent.action_set.basis.rank[0] > posteriors.MANY_FEATURES
    for arm, reward in zip(arms.tolist(), y.tolist(), strict=True):
        agent.observe(arm, reward)
    tight = theorem_2(phi[arms], phi, 0.9 ** np.arange(STEPS - 1, -1, -1.0), 0.01)[1]
    np.testing.assert_allclose(bound_variance(agent)[0], tight, rtol=0, atol=1e-8)


@pytest.mark.usefixtures("program")
@pytest.mark.parametrize("dim", [1, 2])
def test_on_a_box(dim: int) -> None:
    rng, kernel = np.random.default_rng(2), SquaredExponential([0.2, 0.4][dim - 1])
    far = rng.random((300, dim))
    source = problem(kernel, continuous=True, domain=far)
    agent, untight = (make(source, discount=0.8, width=w) for w in ("tight", "standard"))
    X, y, differs = np.zeros((0, dim)), np.zeros(0), 0
    for t in range(18):
        point = agent.act()
        if t in (4, 9, 12, 17):
            w = 0.8 ** np.arange(t - 1, -1, -1.0)
            near = np.clip(point + 0.01 * rng.uniform(-1, 1, (100, dim)), 0.0, 1.0)
            phi = eigenfeatures(kernel, np.concatenate([X, point[None], near, far]))
            standard, tight, solve = theorem_2(phi[:t], phi[t:], w, 0.01)
            K = w[:, None] * kernel(X, X) * w / 0.01
            gain = np.linalg.slogdet(np.eye(t) + K)[1] / 2
            beta = 1 + math.sqrt(2 * math.log(10) + 2 * gain)
            mean = solve @ y
            bound = mean + beta * np.sqrt(np.maximum(tight, 0.0))
            # A top of the tight bound, to what features that are right to 1e-8 allow.
            assert bound[0] >= bound[:101].max() - 1e-5
            assert bound[0] >= bound.max() - 0.06 * beta
            other = mean + beta * np.sqrt(np.maximum(standard, 0.0))
            differs += other[0] < other[:101].max() - 1e-3
            np.testing.assert_allclose(agent.posterior().std ** 2, standard[101:], atol=1e-5)
            np.testing.assert_array_equal(agent.posterior(), untight.posterior())
        reward = float(np.cos(3 * point.sum()) + 0.1 * rng.standard_normal())
        for one in (agent, untight):
            one.observe(point, reward)
        X, y = np.concatenate([X, point[None].astype(float)]), np.append(y, reward)
    assert differs or dim == 1  # the standard bound has its tops elsewhere, but for the ends


def test_no_other_width() -> None:
    with pytest.raises(ValueError, match=r"'width' parameter of WGPUCB must be .*did you mean 'ti"):
        make(problem(SquaredExponential(0.2)), width="tigth")
