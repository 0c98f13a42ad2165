"""The surrogate m_t of [Deng22] Section 4: what the learner would know without noise."""

from __future__ import annotations

import numpy as np

from wgp_agents.theory.regression import WeightedGPRegressor
from wgp_gym.kernels import Kernel
from wgp_gym.types import Array
from wgp_gym.validation import reject

__all__ = ["surrogate"]


def surrogate(
    kernel: Kernel,
    regularization: float,
    X: Array,
    weights: Array,
    truth_then: Array,
    truth_now: Array,
    points: Array,
    truth_at_points: Array,
) -> Array:
    """Return m_t = phi^T V_{t-1}^{-1} (sum of w_s phi(x_s) f_s(x_s) + lambda w_{t-1} theta_t).

    With V_{t-1} theta_t taken off and added again, m_t is f_t plus the posterior mean of the
    data f_s(x_s) - f_t(x_s): no features are needed.

    Args:
        kernel: The kernel.
        regularization: lambda.
        X: The points played, `(t - 1, d)`.
        weights: w_s of each play, `(t - 1,)`, the last one being w_{t-1}.
        truth_then: f_s(x_s), `(t - 1,)`.
        truth_now: f_t(x_s), `(t - 1,)`.
        points: Where to evaluate, `(n, d)`.
        truth_at_points: f_t there, `(n,)`.

    Raises:
        ValueError: If an argument does not fit: see `WeightedGPRegressor.fit`.
    """
    for name, given, size in (
        ("truth_now", truth_now, len(truth_then)),
        ("truth_at_points", truth_at_points, len(points)),
    ):
        if np.shape(given) != (size,):
            reject(name, "surrogate", f"of shape ({size},)", np.shape(given))
    model = WeightedGPRegressor(kernel, regularization).fit(X, truth_then - truth_now, weights)
    value: Array = truth_at_points + model.predict(points).mean
    return value
