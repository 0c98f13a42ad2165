"""Section 5: quadrature Fourier features, their error, and what it does to the posterior."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.special import eval_hermite, roots_hermite

from wgp_agents.gp.agent import GPAgent
from wgp_agents.gp.tuning import gain_order
from wgp_agents.registry import make
from wgp_agents.theory.regression import WeightedGPRegressor
from wgp_agents.theory.regret import deviation_error_bound
from wgp_agents.theory.verify.play import moments
from wgp_agents.theory.verify.row import FALSE, FORMS, SAYS_NOTHING, Curve, Row
from wgp_gym.envs.optimum import grid
from wgp_gym.fourier import degree_for, error_bound, quadrature_features, sup_error
from wgp_gym.kernels import Empirical, ModifiedMatern, SquaredExponential

__all__ = ["agreement", "deviation_error", "feature_error"]

GRIDS = {1: grid(201, 1), 2: grid(31, 2)}
KERNEL = SquaredExponential(0.2)
LAMBDAS = (0.01, 1.0)
RATE = "eps for sqrt(eps)"


def feature_error(quick: bool, seed: int) -> Iterator[Row | Curve]:
    """Compare the measured error with eps_m, Lemma 14. No error exceeds 2, as |k| <= 1."""
    del seed
    degrees = (15, 20, 25) if quick else (12, 15, 18, 20, 22, 25, 28, 30)
    for dim in GRIDS:
        x = np.array(degrees, float)
        bounds = [error_bound(m, 0.2, dim) for m in degrees]
        if dim == 1:  # in two dimensions the largest error is the same
            errors = [measured_error(KERNEL, dim, m) for m in degrees]
            yield Curve("quadrature", "measured, d = 1 and 2", x, np.array(errors))
        yield Curve("quadrature", f"bound eps_m, d = {dim}", x, np.array(bounds))
        for lengthscale, m, more in ((0.2, 20, 6), (0.2, 25, 6), (1.0, 3, 1), (1.0, 5, 1)):
            yield error_row(lengthscale, dim, m, more)
        # From here on downwards the bound is larger than any error.
        yield error_row(0.2, dim, 15, 6)._replace(documented=SAYS_NOTHING)
    long = SquaredExponential(3.0)
    error, bound = measured_error(long, 1, 1), error_bound(1, 3.0, 1)
    where, claim = "SE l = 3, d = 1, m-bar = 1", "|k - phi^T phi| <= eps_m"
    yield Row("Lemma 14", claim, where, error, bound, documented=FALSE)
    claim = "... mended: <= eps_m exp(1 / (24 m-bar))"
    row = Row("Lemma 14", claim, where, error, bound * math.exp(1 / 24), trivial=2.0)
    yield row.controlled("as printed", bound=bound)
    yield from weight_sums()
    for nu in (2.5, 1.5, 0.5):
        matern = ModifiedMatern(0.2, nu)
        error = sup_error(quadrature_features(matern, 1, 63), matern, GRIDS[1])
        where = f"modified Matern nu = {nu}, l = 0.2, d = 1, m-bar = 63"
        yield Row("Section 5", "error of its quadrature features", where, error)


def measured_error(kernel: SquaredExponential, dim: int, degree: int) -> float:
    """Return the largest |k - phi^T phi| on a grid."""
    return sup_error(quadrature_features(kernel, dim, degree), kernel, GRIDS[dim])


def error_row(lengthscale: float, dim: int, degree: int, more: int) -> Row:
    """Return the row of Lemma 14; the control is eps_m of `more` nodes more."""
    kernel = SquaredExponential(lengthscale)
    error, bound = measured_error(kernel, dim, degree), error_bound(degree, lengthscale, dim)
    where = f"SE l = {lengthscale}, d = {dim}, m-bar = {degree}"
    row = Row("Lemma 14", "|k - phi^T phi| <= eps_m", where, error, bound, trivial=2.0)
    smaller = error_bound(degree + more, lengthscale, dim)
    return row.controlled(f"eps_m of m-bar = {degree + more}", bound=smaller)


def weight_sums() -> Iterator[Row]:
    """Compare the sum of the quadrature weights with k(x, x) = 1, as printed and mended."""
    m = 20
    rho = roots_hermite(m)[0]
    squares = eval_hermite(m - 1, rho) ** 2
    printed = float(np.sum(2.0 ** (m - 1) * math.factorial(m) / (m * squares)))
    right = float(np.sum(quadrature_features(KERNEL, 1, m).weights))
    where = f"SE, m-bar = {m}"
    claim = "the weights v(rho) add up to k(x, x) = 1, as printed: error"
    yield Row("Section 5", claim, where, abs(printed - 1), 1e-9, documented=FALSE)
    claim = "the weights v(rho) add up to k(x, x) = 1, with m-bar^2: error"
    row = Row("Section 5", claim, where, abs(right - 1), 1e-9)
    yield row.controlled("as printed", measured=abs(printed - 1))


def deviation_error(quick: bool, seed: int) -> Iterator[Row | Curve]:
    """Compare sigma~ with sigma-breve of maps of falling error, Lemma 15."""
    rng, domain, steps = np.random.default_rng(seed), grid(100, 1), 200
    plays = rng.integers(100, size=steps)
    degrees = (15, 20, 25) if quick else (14, 16, 18, 20, 22, 24, 26)
    eta = 0.97
    for lam in LAMBDAS:
        weights = eta ** -np.arange(1.0, steps + 1)
        model = WeightedGPRegressor(KERNEL, lam).fit(domain[plays], np.zeros(steps), weights)
        exact = model.predict(domain).std
        errors, gaps = [], []
        for m in degrees:
            features = quadrature_features(KERNEL, 1, m)
            table, ratios = features(domain), weights / weights[-1]
            x = table[plays]
            V = x.T @ (ratios[:, None] * x) + lam * np.eye(table.shape[1])
            approximate = np.sqrt(lam * np.sum(table.T * np.linalg.solve(V, table.T), axis=0))
            errors.append(sup_error(features, KERNEL, domain))
            gaps.append(float(np.abs(exact - approximate).max()))
        x = np.array(errors)
        yield Curve("deviation", f"measured, lambda = {lam}", x, np.array(gaps))
        labels = {"paper": "bound as printed", "mended": f"mended bound, lambda = {lam}"}
        for form, kind in FORMS.items():
            bounds = [deviation_error_bound(e, eta, lam, constants=form) for e in errors]
            if form == "mended" or lam == LAMBDAS[0]:  # as printed it does not look at lambda
                yield Curve("deviation", labels[form], x, np.array(bounds))
            worst = int(np.argmax(np.array(gaps) / np.array(bounds)))
            claim = f"|sigma~ - sigma-breve| <= its bound, {kind}: worst degree"
            where = f"SE l = 0.2, eta = {eta}, lambda = {lam}, m-bar = {degrees[worst]}"
            row = Row("Lemma 15", claim, where, gaps[worst], bounds[worst], documented=SAYS_NOTHING)
            row = row._replace(trivial=math.sqrt(1 + errors[worst]))  # the largest sigma-breve
            squared = deviation_error_bound(errors[worst] ** 2, eta, lam, constants=form)
            yield row.controlled(RATE, bound=squared)
    yield from unseen_point()


def unseen_point() -> Iterator[Row]:
    """Compare them where the rate shows: k(x, x) = eps, which the features take for 0.

    The one play is of another point, of which x knows nothing.
    """
    eps = 1e-6
    kernel = Empirical(np.diag([1.0, eps]))
    model = WeightedGPRegressor(kernel, 1.0).fit(np.zeros((1, 1)), np.zeros(1))
    gap = float(model.predict(np.ones((1, 1))).std[0])  # sigma-breve is 0
    for eta, lam in ((0.01, 1.0), (0.9, 100.0)):
        for form, kind in FORMS.items():
            bound, squared = (
                deviation_error_bound(e, eta, lam, constants=form) for e in (eps, eps**2)
            )
            claim = f"|sigma~ - sigma-breve| <= its bound, {kind}"
            where = f"k(x, x) = eps = {eps:g}, taken for 0, eta = {eta}, lambda = {lam:g}"
            row = Row("Lemma 15", claim, where, gap, bound, trivial=1.0)
            yield row.controlled(RATE, bound=squared)


def agreement(quick: bool, seed: int) -> Iterator[Row]:
    """Play WGP-UCB on the features of the paper's rule beside the exact ones, action by action."""
    runs, horizon = (20, 500) if quick else (200, 500)
    degree = degree_for(horizon, gain_order(horizon, 1))
    where = f"abrupt, T = {horizon}, m-bar = {degree}, {runs} runs"
    kwargs, parameters = {"horizon": horizon}, {"discount": 0.97}
    played = moments("WGPBandit-Abrupt-v0", runs, seed, kwargs, parameters)
    problem = next(played).agent.problem
    few = degree // 5
    twins = [
        make("qff-wgp-ucb", problem, features=quadrature_features(KERNEL, 1, m), **parameters)
        for m in (degree, few)
    ]
    for twin in twins:
        twin.reset(seed)
    differ, apart = np.zeros(2, int), np.zeros(2)
    for moment in played:
        arms = moment.actions[-1]
        for i, twin in enumerate(twins):
            assert isinstance(twin, GPAgent)
            differ[i] += int((twin.act() != arms).sum())
            twin.observe(arms, moment.rewards[-1])
            gaps = np.subtract(moment.agent.posterior(), twin.posterior())
            apart[i] = max(apart[i], float(np.abs(gaps).max()))
    share = differ / (runs * horizon)
    for claim, found, bound in (
        ("features of the paper's rule: largest error of mu~ and sigma~", apart, 1e-6),
        ("... and the share of other arms played", share, 0.05),
    ):
        row = Row("Section 5", claim, where, float(found[0]), bound)
        yield row.controlled(f"m-bar = {few}", measured=float(found[1]))
