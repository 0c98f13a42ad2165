"""The lemmas of Appendix C on sums: of standard deviations, and of V^{-1} phi phi^T."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wgp_agents.gp.tuning import gain_order
from wgp_agents.theory.regret import deviation_error_bound, deviation_sum_bound
from wgp_agents.theory.verify.row import FORMS, Curve, Findings, Row
from wgp_gym.envs.synthetic import grid
from wgp_gym.features import exact_features
from wgp_gym.fourier import degree_for, quadrature_features, sup_error
from wgp_gym.kernels import SquaredExponential
from wgp_gym.types import Array

__all__ = ["constants", "sums", "windows"]


def replay(table: Array, plays: NDArray[np.int64], eta: float, ridge: float) -> tuple[Array, Array]:
    """Return sigma_{t-1}(x_t) and the single-weighted gain after each play, `(T,)` each.

    Args:
        table: Row a is phi(x_a), `(n, m)`.
        plays: The rows played; -1 plays the row of largest variance.
        eta: The discount.
        ridge: lambda.
    """
    m = table.shape[1]
    A = np.zeros((m, m))
    stds, gains = np.empty(len(plays)), np.empty(len(plays))
    for t, play in enumerate(plays):
        V = A + ridge * np.eye(m)
        variance = ridge * np.einsum("na,an->n", table, np.linalg.solve(V, table.T))
        arm = int(variance.argmax()) if play < 0 else int(play)
        stds[t] = math.sqrt(variance[arm])
        A = eta * A + np.outer(table[arm], table[arm])
        gains[t] = 0.5 * np.linalg.slogdet(np.eye(m) + A / ridge)[1]
    return stds, gains


def sums(quick: bool, seed: int) -> Findings:
    """Compare sums of sigma-breve with Lemma 16, as printed and mended."""
    del seed
    table = exact_features(SquaredExponential(0.2), grid(100, 1), 1e-14).table
    found, m = Findings(), table.shape[1]
    first = np.r_[23, np.full(9, -1)]  # then ever the widest
    ridges = (0.01, 0.1, 1.0) if quick else tuple(np.geomspace(1e-3, 10, 17))
    ratios: dict[str, list[float]] = {"paper": [], "mended": []}
    for ridge in ridges:
        stds, gains = replay(table, first, 0.99, ridge)
        for form, found_ratios in ratios.items():
            bound = deviation_sum_bound(10, 0.99, ridge, float(gains[-1]), m, constants=form)
            found_ratios.append(float(stds.sum()) / bound)
    for form, found_ratios in ratios.items():
        found.curves.append(Curve("sums", FORMS[form], np.array(ridges), np.array(found_ratios)))
    for ridge, documented in ((0.01, True), (1.0, False)):
        stds, gains = replay(table, first, 0.99, ridge)
        for form, label in FORMS.items():
            bound = deviation_sum_bound(10, 0.99, ridge, float(gains[-1]), m, constants=form)
            claim = f"sum of sigma-breve_(t-1)(x_t) <= its bound, {label}"
            where = f"SE l = 0.2, eta = 0.99, lambda = {ridge}, T = 10, widest plays"
            value, wrong = float(stds.sum()), documented and form == "paper"
            found.rows.append(Row("Lemma 16", claim, where, value, bound, documented=wrong))
    found.rows += [*papers_setting(), *with_error(), *terms_of_a_window()]
    return found


def papers_setting() -> list[Row]:
    """Compare the sum on the quadrature features of Corollary 5's rule, T = 500."""
    features = quadrature_features(SquaredExponential(0.2), 1, degree_for(500, gain_order(500, 1)))
    eta, ridge, m = 0.97, 0.01, features.num_features
    stds, gains = replay(features(grid(100, 1)), np.full(500, -1), eta, ridge)
    where = f"SE l = 0.2, {m} quadrature features, eta = {eta}, lambda = {ridge}, widest plays"
    bound = deviation_sum_bound(500, eta, ridge, float(gains.max()), m)
    claim = "sum of sigma-breve_(t-1)(x_t) <= its bound, mended"
    return [Row("Lemma 16", claim, f"{where}, T = 500", float(stds.sum()), bound)]


def with_error() -> list[Row]:
    """Compare sums of sigma~, of the kernel, with Lemmas 17 and 19 on coarse features, mended."""
    kernel, eta, ridge, T, c = SquaredExponential(0.2), 0.97, 0.01, 500, 100
    features, domain = quadrature_features(kernel, 1, 20), grid(100, 1)
    error = sup_error(features, kernel, domain)
    plays = np.random.default_rng(0).integers(100, size=T)
    exact, _ = replay(exact_features(kernel, domain, 1e-14).table, plays, eta, ridge)
    _, gains = replay(features(domain), plays, eta, ridge)
    where = f"SE l = 0.2, m-bar = 20 (eps = {error:.0e}), eta = {eta}, lambda = {ridge}, T = {T}"
    rows = []
    for name, steps, largest in (
        ("Lemma 17", T, float(exact.sum())),
        ("Lemma 19", c, float(np.convolve(exact, np.ones(c), "valid").max()) * eta**-0.5),
    ):
        bound = deviation_sum_bound(
            steps, eta, ridge, float(gains.max()), features.num_features, feature_error=error
        )
        bound += steps * deviation_error_bound(error, eta, ridge)
        scale = 1.0 if steps == T else eta**-0.5
        claim = f"sum of sigma~ over {steps} steps <= its bound, mended"
        rows.append(Row(name, claim, where, largest, scale * bound))
    return rows


def terms_of_a_window() -> list[Row]:
    """Show that Lemma 18 counts a term too few."""
    where = "two orthonormal plays, c = 1, lambda = 1, eta = 0.999"
    stds, gains = replay(np.eye(2), np.array([0, 1]), 0.999, 1.0)
    given = (1, 0.999, 1.0, float(gains[-1]), 2)
    claim = "eta^-1/2 sum over s = t - c ... t of sigma-breve <= its bound (c + 1 terms)"
    mended = "... mended: the c terms s = t - c ... t - 1, all that its use needs"
    scale, printed = 0.999**-0.5, deviation_sum_bound(*given, constants="paper")
    right = scale * deviation_sum_bound(*given)
    return [
        Row("Lemma 18", claim, where, scale * float(stds.sum()), printed, documented=True),
        Row("Lemma 18", mended, where, scale * float(stds[-1]), right),
    ]


def constants(quick: bool, seed: int) -> Findings:
    """Show where Lemmas 17 and 19, which give Lemma 15 the constant 1, fail as printed."""
    del quick, seed
    ridge, eta, small = 1e-6, 0.01, 1e-3
    # phi(x) = 1; phi of the only play is 1e-3, and 0 in the approximation: sigma(x) stays 1.
    gap = 1 - math.sqrt(ridge / (small**2 + ridge))
    where = f"phi(x) = 1, a play of phi = {small:g} taken for 0, lambda = {ridge:g}, eta = {eta}"
    found = Findings()
    for form in ("paper", "mended"):
        bound = deviation_error_bound(small, eta, ridge, constants=form)
        label = "as printed, sqrt(eps) / (1 - eta)" if form == "paper" else "mended"
        claim = f"|sigma~ - sigma-breve| <= its bound, {label}"
        found.rows.append(
            Row("Lemmas 17, 19", claim, where, gap, bound, documented=form == "paper")
        )
    return found


def windows(quick: bool, seed: int) -> Findings:
    """Check Lemma 21 on random plays, and what the paper says of the eigenvalues beside it."""
    rng = np.random.default_rng(seed)
    largest, slack, eigenvalue = 0.0, math.inf, 0.0
    for _ in range(50 if quick else 500):
        ridge, eta = 10 ** rng.uniform(-2, 0.5), rng.uniform(0.6, 0.99)
        m, steps = int(rng.integers(2, 6)), int(rng.integers(5, 30))
        table = rng.standard_normal((steps, m))
        table /= np.linalg.norm(table, axis=1)[:, None]
        stds, _ = replay(table, np.arange(steps), eta, ridge)
        first, last = sorted(rng.integers(steps, size=2).tolist())
        M = window_matrix(table, eta, ridge, slice(first, last + 1))
        largest = max(largest, float(np.linalg.norm(M, 2)))
        eigenvalue = max(eigenvalue, float(np.abs(np.linalg.eigvals(M)).max()))
        bound = eta**-0.5 / ridge * float(stds[first : last + 1].sum())
        slack = min(slack, bound - float(np.linalg.norm(M, 2)))
    where = "random plays, d = 2 ... 5, random windows, lambda and eta"
    claim = "||V^-1 sum of w phi phi^T|| <= eta^-1/2 / lambda sum of sigma~: less its bound"
    true = "lambda_max of that matrix <= 1, of which the paper says that it is not true"
    return Findings(
        [
            Row("Lemma 21", claim, where, -slack, 0.0),
            Row("Lemma 21", true, where, eigenvalue, 1.0),
            Row("Lemma 21", "its norm, which the proof needs: may exceed 1", where, largest),
        ]
    )


def window_matrix(table: Array, eta: float, ridge: float, part: slice) -> Array:
    """Return V^{-1} sum over the plays in `part` of w phi phi^T, `(m, m)`."""
    steps, m = table.shape
    weights = eta ** (steps - 1.0 - np.arange(steps))[:, None]
    V = table.T @ (weights * table) + ridge * np.eye(m)
    solved: Array = np.linalg.solve(V, table[part].T @ (weights[part] * table[part]))
    return solved
