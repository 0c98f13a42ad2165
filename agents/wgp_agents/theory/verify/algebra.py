"""Identities: the regression is weighted least squares in feature space. No randomness matters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wgp_agents.gp.spectrum import mercer_spectrum
from wgp_agents.gp.width import chowdhury_width, deng_width
from wgp_agents.theory.regression import WeightedGPRegressor
from wgp_agents.theory.verify.row import Row
from wgp_gym.envs.optimum import grid
from wgp_gym.features import exact_features
from wgp_gym.kernels import Linear, SquaredExponential
from wgp_gym.types import Array

__all__ = ["algebra"]

EXACT = 1e-8  # two routes to one number, in floating point


def algebra(quick: bool, seed: int) -> Iterator[Row]:
    """Check Theorem 1, Remarks 1 and 2, and Lemmas 9, 12 and 13."""
    del quick
    rng = np.random.default_rng(seed)
    yield mercer(rng)
    yield linear_bandit(rng)
    yield from deviations(rng)
    yield from stationary(rng)


def mercer(rng: np.random.Generator) -> Row:
    """Rebuild K, and compare |theta| with ||f||, f = sum of theta_m sqrt(c_m) phi_m.

    The norm is the kernel's own, v^T K^{-1} v of the values v; eight terms keep K^{-1} harmless.
    """
    domain = grid(100, 1)
    kernel = SquaredExponential(0.2)
    spectrum = mercer_spectrum(kernel, domain)
    c, phi = spectrum.eigenvalues, spectrum.functions
    rebuilt = np.abs((phi * c) @ phi.T - kernel(domain, domain)).max()
    theta = rng.uniform(-1, 1, 8)
    values = phi[:, :8] @ (np.sqrt(c[:8]) * theta)
    norm = values @ np.linalg.pinv(kernel(domain, domain), rcond=1e-10, hermitian=True) @ values
    error = max(float(rebuilt), abs(float(theta @ theta / norm) - 1))
    claim = "k = sum of c phi phi, and ||f|| = |theta|: largest error"
    return Row("Theorem 1", claim, "SE l = 0.2, 100 points", error, EXACT)


def linear_bandit(rng: np.random.Generator) -> Row:
    """Compare with weighted least squares, the estimator of weighted linear bandits."""
    X, y, query = rng.random((60, 3)), rng.standard_normal(60), rng.random((20, 3))
    weights = 0.9 ** -np.arange(1.0, 61.0)
    found = WeightedGPRegressor(Linear(), 0.3).fit(X, y, weights).predict(query).mean
    phi = X / np.sqrt(3)  # the features of k(x, y) = x^T y / d
    V = phi.T @ (weights[:, None] * phi) + 0.3 * weights[-1] * np.eye(3)
    theta = np.linalg.solve(V, phi.T @ (weights * y))
    error = float(np.abs(found - query / np.sqrt(3) @ theta).max())
    claim = "mu~ = phi^T theta^ of weighted linear bandits: largest error"
    return Row("Remark 1, Lemma 9", claim, "phi(x) = x, d = 3, t = 60, eta = 0.9", error, EXACT)


def deviations(rng: np.random.Generator) -> Iterator[Row]:
    """Compare sigma~ and sigma-acute in kernel form with their definitions in feature space."""
    domain, steps, lam = grid(100, 1), 200, 0.01
    kernel, weights = SquaredExponential(0.2), np.sort(rng.uniform(1, 50, steps))
    phi = exact_features(kernel, domain, 1e-14).table
    plays = rng.integers(100, size=steps)
    model = WeightedGPRegressor(kernel, lam).fit(domain[plays], np.zeros(steps), weights)
    standard, tight = model.predict(domain).std, model.tight_std(domain)
    x, w, identity = phi[plays], weights[:, None], np.eye(phi.shape[1])
    V = x.T @ (w * x) + lam * weights[-1] * identity
    double = x.T @ (w**2 * x) + lam * weights[-1] ** 2 * identity
    solved = np.linalg.solve(V, phi.T)
    explicit = np.sqrt(lam * weights[-1] * np.einsum("na,an->n", phi, solved))
    explicit_tight = np.sqrt(lam * np.einsum("an,ab,bn->n", solved, double, solved))
    where = "SE l = 0.2, 100 points, t = 200, random increasing weights"
    claim = "sigma~^2 = lambda_t ||phi||^2_{V^-1}: largest error of sigma~"
    yield Row("Lemma 12", claim, where, float(np.abs(standard - explicit).max()), EXACT)
    claim = "sigma-acute from kernels alone, which the paper calls impractical: largest error"
    yield Row("Section 4, end", claim, where, float(np.abs(tight - explicit_tight).max()), EXACT)
    claim = "sigma-acute <= sigma~ for increasing weights: largest difference"
    yield Row("Lemma 13", claim, where, float((tight - standard).max()), 0.0)


def stationary(rng: np.random.Generator) -> Iterator[Row]:
    """Compare w = 1, lambda = 1 with Eq. (1)-(2), and beta with that of IGP-UCB."""
    X, y, query = rng.random((80, 2)), rng.standard_normal(80), rng.random((30, 2))
    kernel = SquaredExponential(0.2)
    found = WeightedGPRegressor(kernel, 1.0).fit(X, y).predict(query)
    inverse = np.linalg.inv(kernel(X, X) + np.eye(80))
    k = kernel(query, X)
    mean = k @ inverse @ y
    std = np.sqrt(1 - np.einsum("qt,ts,qs->q", k, inverse, k))
    error = float(np.abs([found.mean - mean, found.std - std]).max())
    claim = "w = 1, lambda = 1 gives the posterior of IGP-UCB, Eq. (1)-(2): largest error"
    yield Row("Remark 2", claim, "SE l = 0.2, d = 2, t = 80", error, EXACT)
    one: Array = np.ones(1)
    given = one, one, one, 0.1 * one, one
    gap = float((chowdhury_width(*given) - deng_width(*given))[0])
    claim = "... and the beta of IGP-UCB: difference (IGP-UCB's has a + 1 under the root)"
    yield Row("Remark 2", claim, "B = R = gain = 1, delta = 0.1", gap, EXACT, documented=True)
