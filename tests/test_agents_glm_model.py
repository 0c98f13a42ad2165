"""The logistic model of D-GLM-UCB: its estimate and projection against scipy's optimisers."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from wgp_agents.kernels import glm, glm_projection

Array = NDArray[np.float64]
RIDGE = 0.01
estimate = numba.njit(lambda *args: glm.estimate(*args))
project = numba.njit(lambda *args: glm_projection.project(*args))


def g(theta: Array, phi: Array, counts: Array) -> Array:
    """Return sum of N mu(x^T theta) x, with the ridge."""
    return np.asarray((counts * expit(phi @ theta)) @ phi + RIDGE * theta)


def far(p: Array, phi: Array, counts: Array, theta: Array, W: Array) -> float:
    """Return the squared distance that the projection minimises."""
    gap = g(p, phi, counts) - g(theta, phi, counts)
    return float(gap @ np.linalg.solve(W, gap))


@pytest.mark.slow
@pytest.mark.parametrize("radius", [0.2, 1.0, 6.0])
def test_the_projection_is_no_further_than_a_general_optimiser_comes(radius: float) -> None:
    rng, cases = np.random.default_rng(5), 0
    for _ in range(8):
        phi = rng.uniform(-0.5, 0.5, (9, 3))
        counts = rng.exponential(5.0, 9)
        sums, squares = counts * (rng.random(9) < 0.5), counts * rng.random(9)
        W = (phi.T * squares) @ phi + np.eye(3)
        factor = np.ascontiguousarray(np.linalg.cholesky(W).T)
        theta = np.zeros(3)
        estimate(phi, counts, sums, RIDGE, theta)
        np.testing.assert_allclose(g(theta, phi, counts), sums @ phi, atol=1e-9)
        found = theta.copy()
        project(phi, counts, sums, RIDGE, factor, radius, found)
        if np.linalg.norm(theta) <= radius:
            np.testing.assert_array_equal(found, theta)
            continue

        ball = {"type": "ineq", "fun": lambda p: radius**2 - p @ p}
        starts = [np.zeros(3), radius * theta / np.linalg.norm(theta), *rng.normal(size=(2, 3))]
        problem = phi, counts, theta, W
        best = min(minimize(far, s, problem, method="SLSQP", constraints=ball).fun for s in starts)
        assert np.linalg.norm(found) == pytest.approx(radius, rel=1e-9)
        assert far(found, *problem) <= best * (1 + 1e-6)
        cases += 1
    assert cases >= 4


@pytest.mark.parametrize("factor", [1.0, 1e-6])
def test_the_estimate_is_found_from_anywhere(factor: float) -> None:
    rng = np.random.default_rng(6)
    for _ in range(20):
        phi = rng.uniform(-0.5, 0.5, (9, 3))
        counts = rng.exponential(5.0, 9)
        sums = counts * (rng.random(9) < 0.5)
        found = np.stack([10.0 * rng.normal(size=3), np.zeros(3)])
        for theta in found:
            estimate(phi, counts, sums, RIDGE * factor, theta)
        flat = (counts * expit(found[0] @ phi.T)) @ phi + RIDGE * factor * found[0]
        np.testing.assert_allclose(flat, sums @ phi, atol=1e-7)
        if factor == 1.0:
            np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
