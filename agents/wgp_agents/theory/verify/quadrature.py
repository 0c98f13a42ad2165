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
from wgp_agents.theory.verify.row import FORMS, Curve, Row
from wgp_gym.envs.optimum import grid
from wgp_gym.fourier import degree_for, error_bound, quadrature_features, sup_error
from wgp_gym.kernels import ModifiedMatern, SquaredExponential

__all__ = ["agreement", "deviation_error", "feature_error"]

GRIDS = {1: grid(201, 1), 2: grid(31, 2)}
KERNEL = SquaredExponential(0.2)
LAMBDAS = (0.01, 1.0)


def feature_error(quick: bool, seed: int) -> Iterator[Row | Curve]:
    """Compare the measured error with eps_m, Lemma 14."""
    del seed
    degrees = (15, 20, 25) if quick else (12, 15, 18, 20, 22, 25, 28, 30)
    for dim, points in GRIDS.items():
        errors = [sup_error(quadrature_features(KERNEL, dim, m), KERNEL, points) for m in degrees]
        bounds = [error_bound(m, 0.2, dim) for m in degrees]
        x = np.array(degrees, float)
        if dim == 1:  # in two dimensions the largest error is the same
            yield Curve("quadrature", "measured, d = 1 and 2", x, np.array(errors))
        yield Curve("quadrature", f"bound eps_m, d = {dim}", x, np.array(bounds))
        for m, error, bound in zip(degrees, errors, bounds, strict=True):
            where = f"SE l = 0.2, d = {dim}, m-bar = {m}"
            yield Row("Lemma 14", "|k - phi^T phi| <= eps_m", where, error, bound)
    long = SquaredExponential(3.0)
    error = sup_error(quadrature_features(long, 1, 1), long, GRIDS[1])
    where = "SE l = 3, d = 1, m-bar = 1"
    claim, bound = "|k - phi^T phi| <= eps_m", error_bound(1, 3.0, 1)
    yield Row("Lemma 14", claim, where, error, bound, documented=True)
    claim, bound = "... mended: <= eps_m exp(1 / (24 m-bar))", bound * math.exp(1 / 24)
    yield Row("Lemma 14", claim, where, error, bound)
    yield from weight_sums()
    for nu in (2.5, 1.5, 0.5):
        matern = ModifiedMatern(0.2, nu)
        error = sup_error(quadrature_features(matern, 1, 63), matern, GRIDS[1])
        where = f"modified Matern nu = {nu}, l = 0.2, d = 1, m-bar = 63"
        yield Row("Section 5", "error of its quadrature features", where, error)


def weight_sums() -> Iterator[Row]:
    """Compare the sum of the quadrature weights with k(x, x) = 1, as printed and mended."""
    m = 20
    rho = roots_hermite(m)[0]
    squares = eval_hermite(m - 1, rho) ** 2
    printed = float(np.sum(2.0 ** (m - 1) * math.factorial(m) / (m * squares)))
    mended = float(np.sum(quadrature_features(KERNEL, 1, m).weights))
    where = f"SE, m-bar = {m}"
    claim = "the weights v(rho) add up to k(x, x) = 1, as printed: error"
    yield Row("Section 5", claim, where, abs(printed - 1), 1e-9, documented=True)
    claim = "the weights v(rho) add up to k(x, x) = 1, with m-bar^2: error"
    yield Row("Section 5", claim, where, abs(mended - 1), 1e-9)


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
            yield Row("Lemma 15", claim, where, gaps[worst], bounds[worst])
        slope = float(np.polyfit(np.log(errors), np.log(gaps), 1)[0])
        claim = "|sigma~ - sigma-breve| shrinks at least like eps^(1/2): 1/2 less the exponent"
        where = f"SE l = 0.2, eta = {eta}, lambda = {lam}"
        yield Row("Lemma 15", claim, where, 0.5 - slope, 0.0)


def agreement(quick: bool, seed: int) -> Iterator[Row]:
    """Play WGP-UCB on the features of the paper's rule beside the exact ones, action by action."""
    runs, horizon = (20, 500) if quick else (200, 500)
    degree = degree_for(horizon, gain_order(horizon, 1))
    where = f"abrupt, T = {horizon}, m-bar = {degree}, {runs} runs"
    kwargs, parameters = {"horizon": horizon}, {"discount": 0.97}
    played = moments("WGPBandit-Abrupt-v0", runs, seed, kwargs, parameters)
    twin = make("qff-wgp-ucb", next(played).agent.problem, **parameters)
    assert isinstance(twin, GPAgent)
    twin.reset(seed)
    differ, apart = 0, 0.0
    for moment in played:
        arms = moment.actions[-1]
        differ += int((twin.act() != arms).sum())
        twin.observe(arms, moment.rewards[-1])
        gaps = np.subtract(moment.agent.posterior(), twin.posterior())
        apart = max(apart, float(np.abs(gaps).max()))
    claim = "features of the paper's rule: largest error of mu~ and sigma~"
    yield Row("Section 5", claim, where, apart, 1e-6)
    share = differ / (runs * horizon)
    yield Row("Section 5", "... and the share of other arms played", where, share, 0.05)
