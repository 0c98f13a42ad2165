"""Theorem 4 and Corollary 5: the regret of WGP-UCB, its bound, and how it grows with T."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.gp.gain import gain_bound, total_weight
from wgp_agents.gp.spectrum import mercer_spectrum
from wgp_agents.gp.tuning import forgetting_rate, gain_order
from wgp_agents.registry import make
from wgp_agents.theory.regret import regret_bound
from wgp_agents.theory.verify.play import BATCH, Keywords, moments
from wgp_agents.theory.verify.row import FORMS, Curve, Row
from wgp_gym.features import exact_features
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

__all__ = ["growth", "last_window", "regret_theorem", "small_budget", "tight_width"]

PANELS = {"abrupt": "WGPBandit-Abrupt-v0", "slow": "WGPBandit-Slow-v0"}
EXPONENT = 0.75
RESAMPLES = 2_000
HORIZONS = (250, 500, 1_000, 2_000, 4_000, 8_000, 16_000)
FIXED = {"norm_bound": 10.0, "variation_budget": 10.0}


class Watched(NamedTuple):
    """B runs of WGP-UCB, with what the proof of Theorem 4 speaks of."""

    problem: BanditProblem
    discounts: Array  # eta of each run, `(B,)`
    stds: Array  # sigma~_{t-1}(x_t), `(T, B)`
    steps: Array  # ||f_{t+1} - f_t||, `(T - 1, B)`
    widths: Array  # the largest beta_t of each run, `(B,)`
    regret: Array  # R_T of each run, `(B,)`


def watch(
    environment: str, runs: int, seed: int, lam: float, horizon: int, **more: object
) -> Watched:
    """Play WGP-UCB tuned for the known B_T, with delta / T at every step."""
    kwargs = {"horizon": horizon, **more}
    parameters = {"variation_budget": "known", "regularization": lam, "confidence": "union"}
    stds, variation = np.empty((2, horizon, runs))
    std, widths = np.empty((runs, 0)), []
    played = moments(environment, runs, seed, kwargs, parameters)
    for moment in played:
        if moment.t:
            stds[moment.t - 1] = std[np.arange(runs), moment.actions[-1]]
            variation[moment.t - 1] = moment.info["variation"]
        std = moment.agent.posterior().std
        widths.append(moment.agent.beta())
    problem = moment.agent.problem
    gain = np.full(runs, gain_order(horizon, 1))
    discounts = 1 - forgetting_rate(horizon, gain, np.asarray(problem.variation_budget))
    regret = np.asarray(moment.info["cumulative_regret"])
    steps = np.diff(variation, axis=0)
    return Watched(problem, discounts, stds, steps, np.max(widths, axis=0), regret)


def regret_theorem(quick: bool, seed: int) -> Iterator[Row]:
    """Compare the dynamic regret of WGP-UCB with Theorem 4's explicit right-hand side.

    The features of the finite domain are exact, so the terms with eps vanish.
    """
    runs, horizon = (20, 500) if quick else (BATCH, 500)
    for name, environment in PANELS.items():
        for lam in (0.01, 1.0):
            watched = watch(environment, runs, seed, lam, horizon)
            where = f"{name}, T = {horizon}, known B_T, lambda = {lam}, {runs} runs"
            for form, label in FORMS.items():
                bounds = right_hand_sides(watched, lam, form)
                worst = int((watched.regret / bounds).argmax())
                claim = f"R_T <= its bound, {label}: the run that comes closest"
                ends = float(watched.regret[worst]), float(bounds[worst])
                yield Row("Theorem 4", claim, where, *ends)
            most = 2 * np.asarray(watched.problem.norm_bound) * horizon
            claim = "... mended, over 2 B T, which no regret exceeds: the smallest ratio"
            yield Row("Theorem 4", claim, where, float((bounds / most).min()))


def right_hand_sides(watched: Watched, lam: float, constants: str) -> Array:
    """Return Theorem 4's bound for each run, `(B,)`."""
    problem = watched.problem
    spectrum = mercer_spectrum(problem.kernel, problem.domain)
    features = exact_features(problem.kernel, problem.domain).table.shape[1]
    norms, budgets = np.asarray(problem.norm_bound), np.asarray(problem.variation_budget)
    totals = []
    for i, eta in enumerate(watched.discounts):
        gain = gain_bound(spectrum, total_weight(eta, problem.horizon), lam).value
        bound = regret_bound(
            horizon=problem.horizon,
            discount=float(eta),
            norm_bound=float(norms[i]),
            variation_budget=float(budgets[i]),
            regularization=lam,
            width=float(watched.widths[i]),
            gain=float(gain),
            num_features=features,
            feature_error=0.0,
            constants=constants,
        )
        totals.append(bound.total)
    return np.array(totals)


def last_window(quick: bool, seed: int) -> Iterator[Row]:
    """Check the step in the proof of Lemma 20 that takes the last window for all of them.

    One change after the first step, when everything is still uncertain, and c = 1.
    """
    del quick
    runs, horizon, c = 20, 100, 1
    watched = watch(PANELS["abrupt"], runs, seed, 0.01, horizon, change_points=[2])
    spent = np.concatenate([np.zeros((1, runs)), np.cumsum(watched.stds, axis=0)])  # up to s
    left = np.zeros(runs)
    for p in range(1, horizon):
        for t in range(p + 1, min(p + c, horizon) + 1):
            left += watched.steps[p - 1] * (spent[p] - spent[max(t - c, 1) - 1])
    budget = watched.steps.sum(axis=0)
    last, largest = spent[-1] - spent[-c - 2], (spent[c:] - spent[:-c]).max(axis=0)
    where = f"abrupt, one change at t = 2, T = {horizon}, c = {c}: the run that comes closest"
    for claim, window, documented in (
        ("sum over t and p of the drift <= c B_T sum over s = T - c ... T of sigma~", last, True),
        ("... mended: <= c B_T times the largest such sum", largest, False),
    ):
        right = c * budget * window
        worst = int((left / right).argmax())
        ends = float(left[worst]), float(right[worst])
        yield Row("Lemma 20, proof", claim, where, *ends, documented=documented)


def small_budget(quick: bool, seed: int) -> Iterator[Row]:
    """Compare Corollary 5's third term with the order that it claims, where B_T is very small.

    The term has B_T^{-1/2}; the claimed order vanishes with B_T, as no regret does.
    """
    del quick, seed
    gain, horizon, budget = 10.0, 1e6, 1e-6
    third = gain**0.25 * budget**-0.5 * horizon**0.5
    claimed = gain**0.875 * budget**0.25 * horizon**0.75
    where = f"gamma = {gain:g}, T = {horizon:g}, B_T = {budget:g}, all constants 1"
    claim = "its third term, of B_T^-1/2, over the order that it claims, of B_T^1/4"
    yield Row("Corollary 5", claim, where, third / claimed)


def growth(quick: bool, seed: int) -> Iterator[Row | Curve]:
    """Measure how the regret grows with T at a fixed B_T, Corollary 5."""
    runs, horizons = (20, (250, 500, 1_000, 2_000)) if quick else (100, HORIZONS)
    x = np.array(horizons, float)
    for name, environment in PANELS.items():
        for budget in ("known", "unknown"):
            given = runs, seed, {"variation_budget": budget}
            regrets = np.stack([final_regret(environment, T, *given) for T in horizons])
            y = regrets.mean(axis=1)
            slope = float(np.polyfit(np.log(x), np.log(y), 1)[0])
            low, high = np.quantile(resampled_slopes(regrets, x, seed), [0.025, 0.975])
            where = f"{name}, B = B_T = 10, T = {horizons[0]:,} ... {horizons[-1]:,}, {runs} runs"
            claim = f"R_T grows at most like T^(3/4), {budget} B_T: the exponent"
            yield Row("Corollary 5", claim, where, slope, EXPONENT, float(low), float(high))
            if budget == "known":
                error = 1.96 * regrets.std(axis=1, ddof=1) / math.sqrt(runs)
                yield Curve("growth", f"{name} ({slope:.2f})", x, y, y - error, y + error)


def final_regret(
    environment: str, horizon: int | None, runs: int, seed: int, parameters: Keywords
) -> Array:
    """Return the final regret of each run, `(runs,)`."""
    kwargs: Keywords = {} if horizon is None else {"horizon": horizon, **FIXED}
    env = make_vector(environment, runs, **kwargs)
    played = rollout(make("wgp-ucb", env, **parameters), env, seed)
    regret: Array = played["cumulative_regret"][:, -1]
    return regret


def resampled_slopes(regrets: Array, horizons: Array, seed: int) -> Array:
    """Return bootstrap slopes of log mean regret against log T, runs resampled at each T."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(regrets.shape[1], size=(RESAMPLES, *regrets.shape))
    means = np.take_along_axis(regrets[None], drawn, axis=2).mean(axis=2)
    slopes: Array = np.polyfit(np.log(horizons), np.log(means).T, 1)[0]
    return slopes


def tight_width(quick: bool, seed: int) -> Iterator[Row]:
    """Measure what Theorem 2's own standard deviation does to the regret of WGP-UCB."""
    runs = 20 if quick else BATCH
    rng = np.random.default_rng(seed)
    for name, environment in (PANELS | {"stock": "WGPBandit-Stock-v0"}).items():
        for budget in ("known", "unknown"):
            tight, standard = (
                final_regret(
                    environment, None, runs, seed, {"variation_budget": budget, "width": w}
                )
                for w in ("tight", "standard")
            )
            drawn = rng.integers(runs, size=(RESAMPLES, runs))
            ratios = tight[drawn].mean(1) / standard[drawn].mean(1)
            low, high = map(float, np.quantile(ratios, [0.025, 0.975]))
            claim = f"regret with width tight over that with standard, {budget} B_T"
            ratio = float(tight.mean() / standard.mean())
            where = f"{name}, T = 500, lambda = R^2, {runs} runs"
            yield Row("Theorem 2", claim, where, ratio, low=low, high=high)
