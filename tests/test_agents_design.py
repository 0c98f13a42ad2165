"""Optimal designs against scipy, closed forms, a textbook design and their own optimality."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import brentq, minimize

from wgp_agents.algorithms.adaptive.replays import design_factors, optimal_designs
from wgp_gym.features import exact_features
from wgp_gym.kernels import Matern, SquaredExponential

Floats = NDArray[np.float64]
POINTS = np.linspace(0.0, 1.0, 100)[:, None]


def design(phi: Floats, ridge: float, costs: Floats) -> Floats:
    """Return the design of a single learner that uses all features."""
    rank = np.array([len(phi)])
    found = optimal_designs(np.ascontiguousarray(phi), rank, np.array([ridge]), costs[None])
    probabilities: Floats = found.probabilities[0]
    return probabilities


def dense(phi: Floats, ridge: float, p: Floats) -> Floats:
    """Return S(p) as its definition reads."""
    S = ridge * np.eye(len(phi))
    for a, share in enumerate(p):
        S = S + share * np.outer(phi[:, a], phi[:, a])
    return S


def norms(phi: Floats, ridge: float, p: Floats) -> Floats:
    """Return v, the squared norms of the features in S(p)^{-1}."""
    inverse = np.linalg.inv(dense(phi, ridge, p))
    return np.array([f @ inverse @ f for f in phi.T])


def objective(p: Floats, phi: Floats, ridge: float, costs: Floats) -> float:
    return float(costs @ p - np.linalg.slogdet(dense(phi, ridge, p))[1])


def random_problem(rng: np.random.Generator) -> tuple[Floats, float, Floats]:
    """Return features in the unit ball, some alike, a ridge and costs of which one is 0."""
    m, n = int(rng.integers(1, 12)), int(rng.integers(2, 40))
    phi = rng.normal(size=(m, n))[:, rng.integers(0, n, n)]
    phi /= np.linalg.norm(phi, axis=0).max()
    costs = rng.exponential(size=n) * 10 ** rng.uniform(-2, 4)
    return phi, 10 ** rng.uniform(-4, 0), costs - costs.min()


@pytest.mark.parametrize("seed", range(8))
def test_it_is_the_minimum_that_scipy_finds(seed: int) -> None:
    rng = np.random.default_rng(seed)
    phi, costs = rng.normal(size=(3, 7)), rng.exponential(size=7) * (seed % 4)
    found = design(phi, 0.1, costs)
    other = minimize(
        objective,
        np.full(7, 1 / 7),
        (phi, 0.1, costs),
        jac=lambda p, phi, ridge, costs: costs - norms(phi, ridge, p),
        method="SLSQP",
        bounds=[(0, 1)] * 7,
        constraints={"type": "eq", "fun": lambda p: p.sum() - 1},
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert objective(found, phi, 0.1, costs) <= other.fun + 1e-9
    np.testing.assert_allclose(found, other.x, atol=1e-6)  # they agree to 5e-9


@pytest.mark.parametrize("seed", range(40))
def test_the_gap_proves_the_accuracy(seed: int) -> None:
    phi, ridge, costs = random_problem(np.random.default_rng(seed))
    rank = np.array([len(phi)])
    found = optimal_designs(np.ascontiguousarray(phi), rank, np.array([ridge]), costs[None])
    p = found.probabilities[0]
    v = norms(phi, ridge, p)
    gap = (v - costs).max() - p @ (v - costs)
    assert gap <= 2e-9 * max(1.0, p @ v)  # the bound, and rounding
    assert found.gaps[0] == pytest.approx(gap, abs=1e-9 * max(1.0, p @ v))
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("kernel", [SquaredExponential(0.2), Matern(0.2, 2.5)])
@pytest.mark.parametrize("beta", [0.1, 5.0, 100.0])
def test_the_two_properties_of_its_lemma(kernel: SquaredExponential | Matern, beta: float) -> None:
    phi = exact_features(kernel, POINTS).table.T
    m, n = phi.shape
    f = phi.T @ np.random.default_rng(0).normal(size=m) / np.sqrt(m)
    gaps = f.max() - f
    p = design(phi, 0.01, beta / 2 * gaps)
    assert p @ gaps < 2 * m / beta
    assert (norms(phi, 0.01, p) < beta * gaps + 2 * n).all()
    assert (norms(phi, 0.01, p) <= beta / 2 * gaps + m + 1e-6).all()  # what optimality says


def test_orthogonal_arms_share_as_water_fills() -> None:
    ridge, costs = 0.05, np.array([0.0, 0.3, 1.0, 2.5, 40.0])
    # The gradient c_a - 1 / (p_a + ridge) is the same, -l, wherever p_a > 0.
    level = brentq(lambda x: np.maximum(1 / (x + costs) - ridge, 0).sum() - 1, 1e-6, 1e3)
    expected = np.maximum(1 / (level + costs) - ridge, 0)
    assert expected[-1] == 0
    np.testing.assert_allclose(design(np.eye(5), ridge, costs), expected, atol=1e-8)


def test_quadratic_regression_is_best_tried_at_both_ends_and_the_middle() -> None:
    x = np.linspace(-1, 1, 41)
    p = design(np.stack([np.ones(41), x, x**2]), 1e-8, np.zeros(41))
    expected = np.zeros(41)
    expected[[0, 20, 40]] = 1 / 3
    np.testing.assert_allclose(p, expected, atol=1e-6)


def test_an_arm_of_infinite_cost_is_not_played() -> None:
    phi = np.random.default_rng(0).normal(size=(3, 8))
    costs = np.where(np.arange(8) % 2 == 0, 0.0, np.inf)
    p = design(phi, 0.1, costs)
    assert not p[1::2].any()
    np.testing.assert_allclose(p[::2], design(phi[:, ::2], 0.1, np.zeros(4)), atol=1e-7)


def test_enormous_costs_leave_the_best_arm_alone() -> None:
    phi = np.random.default_rng(0).normal(size=(3, 8))
    costs = 1e45 * np.array([3.0, 1.0, 0.0, 2.0, 1.0, 1.0, 5.0, 2.0])
    np.testing.assert_array_equal(design(phi, 0.1, costs), np.eye(8)[2])


def test_factors_are_those_of_s_and_of_the_leading_features_alone() -> None:
    rng = np.random.default_rng(0)
    phi, p = rng.normal(size=(5, 9)), rng.dirichlet(np.ones(9), 2)
    R = design_factors(phi, np.array([5, 3]), np.array([0.1, 0.7]), p)
    np.testing.assert_allclose(R[0].T @ R[0], dense(phi, 0.1, p[0]), atol=1e-13)
    np.testing.assert_allclose(R[1, :3, :3].T @ R[1, :3, :3], dense(phi[:3], 0.7, p[1]), atol=1e-13)
    assert not R[1, 3:].any()
    assert not np.tril(R, -1).any()


def test_a_learner_has_its_own_design_whatever_the_others_have() -> None:
    rng = np.random.default_rng(0)
    phi, costs = rng.normal(size=(6, 20)), rng.exponential(size=(4, 20))
    rank, ridge = np.array([6, 4, 6, 1]), np.array([0.1, 0.1, 0.01, 1.0])
    together = optimal_designs(phi, rank, ridge, costs)
    for i in range(4):
        leading = np.ascontiguousarray(phi[: rank[i]])
        alone = optimal_designs(leading, rank[i : i + 1], ridge[i : i + 1], costs[i : i + 1])
        np.testing.assert_array_equal(together.probabilities[i], alone.probabilities[0])
        assert together.gaps[i] == alone.gaps[0]
