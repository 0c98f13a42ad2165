"""Identities: the regression is weighted least squares in feature space. No randomness matters."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from wgp_agents.gp.spectrum import mercer_spectrum
from wgp_agents.gp.width import chowdhury_width, deng_width
from wgp_agents.theory.regression import WeightedGPRegressor
from wgp_agents.theory.verify.row import FALSE, Row
from wgp_gym.envs.optimum import grid
from wgp_gym.features import exact_features
from wgp_gym.kernels import Linear, SquaredExponential
from wgp_gym.types import Array

__all__ = ["algebra"]

EXACT = 1e-8  # two routes to one number, in floating point
UNSCALED = "lambda for lambda_t"


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
    rebuilt, fewer = (
        float(np.abs((phi[:, :m] * c[:m]) @ phi[:, :m].T - kernel(domain, domain)).max())
        for m in (len(c), 8)
    )
    theta = rng.uniform(-1, 1, 8)
    values = phi[:, :8] @ (np.sqrt(c[:8]) * theta)
    norm = values @ np.linalg.pinv(kernel(domain, domain), rcond=1e-10, hermitian=True) @ values
    error = max(rebuilt, abs(float(theta @ theta / norm) - 1))
    claim = "k = sum of c phi phi, and ||f|| = |theta|: largest error"
    row = Row("Theorem 1", claim, "SE l = 0.2, 100 points", error, EXACT)
    return row.controlled("eight terms of the sum", measured=fewer)


def linear_bandit(rng: np.random.Generator) -> Row:
    """Compare with weighted least squares, the estimator of weighted linear bandits."""
    X, y, query = rng.random((60, 3)), rng.standard_normal(60), rng.random((20, 3))
    weights = 0.9 ** -np.arange(1.0, 61.0)
    found = WeightedGPRegressor(Linear(), 0.3).fit(X, y, weights).predict(query).mean
    phi = X / np.sqrt(3)  # the features of k(x, y) = x^T y / d
    error, unscaled = (
        float(np.abs(found - query / np.sqrt(3) @ theta).max())
        for theta in (
            np.linalg.solve(
                phi.T @ (weights[:, None] * phi) + lam * np.eye(3), phi.T @ (weights * y)
            )
            for lam in (0.3 * weights[-1], 0.3)
        )
    )
    claim = "mu~ = phi^T theta^ of weighted linear bandits: largest error"
    row = Row("Remark 1, Lemma 9", claim, "phi(x) = x, d = 3, t = 60, eta = 0.9", error, EXACT)
    return row.controlled(UNSCALED, measured=unscaled)


def deviations(rng: np.random.Generator) -> Iterator[Row]:
    """Compare sigma~ and sigma-acute in kernel form with their definitions in feature space."""
    domain, steps, lam = grid(100, 1), 200, 0.01
    kernel, weights = SquaredExponential(0.2), np.sort(rng.uniform(1, 50, steps))
    phi = exact_features(kernel, domain, 1e-14).table
    plays = rng.integers(100, size=steps)
    model = WeightedGPRegressor(kernel, lam).fit(domain[plays], np.zeros(steps), weights)
    standard, tight = model.predict(domain).std, model.tight_std(domain)
    explicit, explicit_tight = explicit_deviations(phi, plays, weights, lam * weights[-1])
    unscaled, unscaled_tight = explicit_deviations(phi, plays, weights, lam)
    where = "SE l = 0.2, 100 points, t = 200, random increasing weights"
    for name, claim, found, right, wrong in (
        ("Lemma 12", "sigma~^2 = lambda_t ||phi||^2_{V^-1}", standard, explicit, unscaled),
        (
            *(
                "Section 4, end",
                "sigma-acute from kernels alone, which the paper thinks impractical",
            ),
            *(tight, explicit_tight, unscaled_tight),
        ),
    ):
        error, control = (float(np.abs(found - other).max()) for other in (right, wrong))
        row = Row(name, f"{claim}: largest error", where, error, EXACT)
        yield row.controlled(UNSCALED, measured=control)
    model.fit(domain[plays], np.zeros(steps), weights[::-1])
    decreasing = model.tight_std(domain) - model.predict(domain).std
    claim = "sigma-acute <= sigma~ for increasing weights: largest difference"
    row = Row("Lemma 13", claim, where, float((tight - standard).max()), 0.0)
    yield row.controlled("decreasing weights", measured=float(decreasing.max()))


def explicit_deviations(
    phi: Array, plays: NDArray[np.int64], weights: Array, lam: float
) -> tuple[Array, Array]:
    """Return sigma~ and sigma-acute by their definitions, with lambda_t = `lam`, `(n,)` each."""
    x, w, identity = phi[plays], weights[:, None], np.eye(phi.shape[1])
    V = x.T @ (w * x) + lam * identity
    double = x.T @ (w**2 * x) + lam * weights[-1] * identity
    solved = np.linalg.solve(V, phi.T)
    tight = np.einsum("an,ab,bn->n", solved, double, solved)
    standard = np.sqrt(lam * np.einsum("na,an->n", phi, solved))
    return standard, np.sqrt(lam / weights[-1] * tight)


def stationary(rng: np.random.Generator) -> Iterator[Row]:
    """Compare w = 1, lambda = 1 with Eq. (1)-(2), and beta with that of IGP-UCB."""
    X, y, query = rng.random((80, 2)), rng.standard_normal(80), rng.random((30, 2))
    kernel = SquaredExponential(0.2)
    model = WeightedGPRegressor(kernel, 1.0)
    found, other = (model.fit(X, y, w).predict(query) for w in (None, 0.9 ** -np.arange(80.0)))
    inverse = np.linalg.inv(kernel(X, X) + np.eye(80))
    k = kernel(query, X)
    mean = k @ inverse @ y
    std = np.sqrt(1 - np.einsum("qt,ts,qs->q", k, inverse, k))
    error, control = (
        float(np.abs([one.mean - mean, one.std - std]).max()) for one in (found, other)
    )
    claim = "w = 1, lambda = 1 gives the posterior of IGP-UCB, Eq. (1)-(2): largest error"
    row = Row("Remark 2", claim, "SE l = 0.2, d = 2, t = 80", error, EXACT)
    yield row.controlled("eta = 0.9", measured=control)
    one: Array = np.ones(1)
    given = one, one, one, 0.1 * one, one
    gap = float((chowdhury_width(*given) - deng_width(*given))[0])
    claim = "... and the beta of IGP-UCB: difference (IGP-UCB's has a + 1 under the root)"
    yield Row("Remark 2", claim, "B = R = gain = 1, delta = 0.1", gap, EXACT, documented=FALSE)
