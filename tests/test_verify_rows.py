"""What `wgp-gym verify` makes of a measured value, and the surrogate m_t that it looks at."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from wgp_agents.theory.surrogate import surrogate
from wgp_agents.theory.verify.row import Row, share_row
from wgp_gym.envs.optimum import grid
from wgp_gym.features import exact_features
from wgp_gym.kernels import SquaredExponential


def row(measured: float, bound: float, **others: Any) -> Row:
    return Row("Theorem 0", "a claim", "an instance", measured, bound, **others)


@pytest.mark.parametrize(
    ("found", "verdict", "expected"),
    [
        (row(1.0, 2.0), "pass", True),
        (row(2.0, 2.0), "pass", True),
        (row(2.1, 2.0), "FAIL", False),
        (row(2.0 + 1e-10, 2.0), "pass", True),  # rounding
        (row(1e-12, 0.0), "FAIL", False),  # there is none about zero
        (row(-1.0 - 1e-6, -1.0), "pass", True),
        (row(-1.0, -1.1), "FAIL", False),
        (row(math.nan, 1.0), "FAIL", False),
        (row(3.0, math.nan), "measured", True),
        (row(2.1, 2.0, documented=True), "the paper's statement fails, as documented", True),
        (row(1.0, 2.0, documented=True), "FAIL: documented as false, but it holds here", False),
        (row(0.12, 0.1, low=0.09, high=0.15), "pass", True),  # as well by chance
        (row(0.12, 0.1, low=0.11, high=0.13), "FAIL", False),
    ],
)
def test_verdict(found: Row, verdict: str, expected: bool) -> None:
    assert (found.verdict, found.expected) == (verdict, expected)


def test_slack_is_what_is_left() -> None:
    assert row(0.5, 2.0).slack == 1.5


def share(failures: int, runs: int) -> tuple[float, float, float]:
    found = share_row("Theorem 0", "a claim", "an instance", failures, runs, 0.1)
    return found.measured, found.low, found.high


def test_a_share_has_the_interval_of_clopper_and_pearson() -> None:
    # No failure in n runs: the upper end solves (1 - p)^n = 0.025.
    assert share(0, 400) == pytest.approx((0.0, 0.0, 1 - 0.025 ** (1 / 400)))
    # Published: 4.90 % to 17.62 %.
    assert share(10, 100) == pytest.approx((0.1, 0.0490, 0.1762), abs=5e-5)


def test_surrogate_is_its_definition_in_feature_space() -> None:
    rng, domain, eta, ridge = np.random.default_rng(0), grid(40, 1), 0.9, 0.05
    kernel = SquaredExponential(0.2)
    phi = exact_features(kernel, domain, 1e-14).table
    theta = rng.standard_normal((26, phi.shape[1]))  # theta_1 ... theta_26: t = 26
    plays = rng.integers(40, size=25)
    weights = eta ** -np.arange(1.0, 26.0)
    x = phi[plays]
    V = x.T @ (weights[:, None] * x) + ridge * weights[-1] * np.eye(phi.shape[1])
    then = np.sum(x * theta[:-1], axis=1)
    known = x.T @ (weights * then) + ridge * weights[-1] * theta[-1]
    expected = phi @ np.linalg.solve(V, known)
    truth = phi @ theta[-1]
    found = surrogate(kernel, ridge, domain[plays], weights, then, truth[plays], domain, truth)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)
