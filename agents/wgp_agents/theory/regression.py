"""Weighted Gaussian-process regression on any data, [Deng22] Section 3, in kernel form.

The agents' surrogates solve the same problem step by step in feature space. This is the model on
its own, for n observations at once: O(n^3) to fit, O(n^2) for each point of a prediction.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.gp.model import Posterior
from wgp_gym.kernels import Kernel
from wgp_gym.types import Array
from wgp_gym.validation import as_floats, check_float, reject

__all__ = ["WeightedGPRegressor"]

OWNER = "WeightedGPRegressor"
JITTERS = (0.0, 1e-12, 1e-10, 1e-8)  # shares of each diagonal entry, tried in turn


class WeightedGPRegressor:
    """The minimiser of sum of w_s (y_s - f(x_s))^2 + lambda_t ||f||^2, with its uncertainty.

    lambda_t = lambda w_t, w_t being the last observation's weight unless given. Weights of one
    make it the usual Gaussian process with noise variance lambda; weights 1 / v_s with lambda = 1
    and w_t = 1 make v_s the noise variance of observation s.

    Only w_s / w_t matters: all is computed with these ratios and lambda, so that a common factor
    of the weights neither changes nor overflows anything.

    Args:
        kernel: The kernel.
        regularization: lambda > 0.

    Attributes:
        jitter_: Which share of each diagonal entry was added to it to make the factorisation
            succeed, usually 0; the same for the whole batch.

    Raises:
        ValueError: If the kernel is none, or lambda is not positive.
    """

    def __init__(self, kernel: Kernel, regularization: float) -> None:
        if not isinstance(kernel, Kernel):
            reject("kernel", OWNER, "a Kernel", kernel)
        self.kernel = kernel
        self.regularization = check_float(
            "regularization", regularization, OWNER, 0, closed="neither"
        )
        self.jitter_ = 0.0
        self._points: Array | None = None

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        regularization_weight: ArrayLike | None = None,
    ) -> WeightedGPRegressor:
        """Fit the observations; with a batch dimension anywhere, B problems on the same points.

        Args:
            X: Points in [0, 1]^d, `(n, d)`.
            y: Values, `(n,)` or `(B, n)`.
            sample_weight: Weights w_s > 0, `(n,)` or `(B, n)`. Default 1.
            regularization_weight: w_t > 0, scalar or `(B,)`. Default the last weight.

        Returns:
            The model itself.

        Raises:
            ValueError: If an argument is out of its range, shapes do not fit, or the kernel
                matrix cannot be factorised.
        """
        points = checked_points(X)
        n = len(points)
        shape = f"of shape ({n},) or (B, {n})"
        values = as_floats("y", y, OWNER, f"finite and {shape}")
        if values.ndim not in (1, 2) or values.shape[-1] != n:
            reject("y", OWNER, shape, values.shape)
        if not np.isfinite(values).all():
            reject("y", OWNER, "finite", float(values[~np.isfinite(values)][0]))
        given = np.ones(n) if sample_weight is None else sample_weight
        weights = checked_weights("sample_weight", given, shape)
        if weights.ndim not in (1, 2) or weights.shape[-1] != n:
            reject("sample_weight", OWNER, shape, weights.shape)
        last = weights[..., -1] if regularization_weight is None else regularization_weight
        last = checked_weights("regularization_weight", last, "a scalar or of shape (B,)")
        sizes = {"y": values.shape[:-1], "sample_weight": weights.shape[:-1]}
        batch = common_batch(sizes | {"regularization_weight": last.shape})
        self._solve(points, np.atleast_2d(values), np.atleast_2d(weights), np.atleast_1d(last))
        self._batch = batch
        return self

    def _solve(self, X: Array, y: Array, weights: Array, last: Array) -> None:
        """Factorise K~ + lambda I and solve for Eq. (3)'s coefficients."""
        with np.errstate(over="ignore"):
            ratios = weights / last[:, None]
        if not np.isfinite(ratios).all():
            reject("sample_weight", OWNER, "comparable with regularization_weight", ratios.max())
        roots = np.sqrt(ratios)
        weighted = roots[:, :, None] * self.kernel(X, X) * roots[:, None, :]
        self._factor, self.jitter_ = factorize(weighted, self.regularization)
        half = np.linalg.solve(self._factor, (roots * y)[..., None])
        self._coefficients = np.linalg.solve(self._factor.swapaxes(-1, -2), half)
        self._points, self._ratios = X, ratios

    def _weighted_vectors(self, X: ArrayLike, method: str) -> tuple[Array, Array]:
        """Return the checked points and k~_t(x) of each, `(B, n, q)`."""
        if self._points is None:
            raise RuntimeError(f"Call fit before {method}.")
        points = checked_points(X, self._points.shape[1])
        vectors = np.sqrt(self._ratios)[..., None] * self.kernel(self._points, points)
        return points, vectors

    def predict(self, X: ArrayLike) -> Posterior:
        """Return the posterior of [Deng22] Eq. (3)-(4) at points of [0, 1]^d `(q, d)`.

        Returns:
            Mean and std, each `(q,)`, or `(B, q)` for a batch.

        Raises:
            RuntimeError: If `fit` was not called before.
            ValueError: If the points are not of this kind.
        """
        points, vectors = self._weighted_vectors(X, "predict")
        mean = (vectors.swapaxes(-1, -2) @ self._coefficients)[..., 0]  # Eq. (3)
        half = np.linalg.solve(self._factor, vectors)
        variance = self.kernel.diagonal(points) - (half**2).sum(axis=-2)  # Eq. (4)
        return Posterior(self._shaped(mean), self._shaped(np.sqrt(np.maximum(variance, 0.0))))

    def tight_std(self, X: ArrayLike) -> Array:
        """Return sigma-acute of [Deng22] Theorem 2 at points of [0, 1]^d `(q, d)`.

        The paper says that it needs explicit features. It does not: with r = w_s / w_t and
        a = (K~ + lambda I)^{-1} k~(x), the identity Phi~ V^{-1} = (K~ + lambda I)^{-1} Phi~ turns
        lambda phi^T V^{-1} V~ V^{-1} phi into sigma-tilde^2 - lambda sum of (1 - r_s) a_s^2. So it
        is at most sigma-tilde where no weight exceeds w_t, as for increasing weights.

        Returns:
            `(q,)`, or `(B, q)` for a batch.

        Raises:
            RuntimeError: If `fit` was not called before.
            ValueError: If the points are not of this kind.
        """
        points, vectors = self._weighted_vectors(X, "tight_std")
        half = np.linalg.solve(self._factor, vectors)
        a = np.linalg.solve(self._factor.swapaxes(-1, -2), half)
        variance = self.kernel.diagonal(points) - (half**2).sum(axis=-2)
        surplus = ((self._ratios - 1)[..., None] * a**2).sum(axis=-2)
        return self._shaped(np.sqrt(np.maximum(variance + self.regularization * surplus, 0.0)))

    def _shaped(self, values: Array) -> Array:
        """Return `(B, q)` values for a batch, `(q,)` otherwise."""
        if self._batch is None:
            single: Array = values[0]
            return single
        return np.broadcast_to(values, (self._batch, values.shape[-1])).copy()


def checked_points(X: ArrayLike, dim: int | None = None) -> Array:
    """Return points of [0, 1]^d, `(n, d)`."""
    shape = f"of shape (n, {'d' if dim is None else dim})"
    points = as_floats("X", X, OWNER, shape).copy()  # the caller may change X later
    if points.ndim != 2 or points.size == 0 or dim not in (None, points.shape[1]):
        reject("X", OWNER, shape, points.shape)
    outside = points[~((points >= 0) & (points <= 1))]  # also where it is NaN
    if outside.size:
        reject("X", OWNER, "in [0, 1]^d", float(outside[0]))
    return points


def checked_weights(name: str, weights: ArrayLike, shape: str) -> Array:
    """Return weights as an array of finite, positive numbers."""
    rule = f"{shape}, finite and positive"
    array = as_floats(name, weights, OWNER, rule)
    wrong = array[~((array > 0) & (array < math.inf))]
    if array.size == 0 or wrong.size:
        reject(name, OWNER, rule, float(wrong[0]) if wrong.size else weights)
    return array


def common_batch(sizes: dict[str, tuple[int, ...]]) -> int | None:
    """Return B, or None where no argument has a batch dimension."""
    batch: int | None = None
    for name, size in sizes.items():
        if len(size) > 1 or (size and batch not in (None, size[0])):
            reject(name, OWNER, f"of batch size {batch or 'B'}", size)
        batch = size[0] if size else batch
    return batch


def factorize(weighted: Array, regularization: float) -> tuple[Array, float]:
    """Return the Cholesky factor of K~ + lambda I `(B, n, n)` and the jitter it took.

    The matrix is scaled to a diagonal of ones for it: weights may differ by many orders, and a
    jitter in the unit of the largest would swamp the smallest.
    """
    identity = np.eye(weighted.shape[-1])
    V = weighted + regularization * identity
    rule = "larger: K~ + lambda I is not positive definite"
    diagonal = V.diagonal(axis1=-2, axis2=-1)
    if not (diagonal > 0).all():
        reject("regularization", OWNER, rule, regularization)
    roots = np.sqrt(diagonal)[..., None]
    scaled = V / roots / roots.swapaxes(-1, -2)
    for jitter in JITTERS:
        try:
            factor = roots * np.linalg.cholesky(scaled + jitter * identity)
        except np.linalg.LinAlgError:
            continue
        return np.asarray(factor, float), jitter
    reject("regularization", OWNER, rule, regularization)
