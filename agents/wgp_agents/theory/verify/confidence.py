"""Theorems 2 and 3: how often the confidence bounds fail, at a fixed t and over all t."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.gp.width import CONFIDENCE, deng_width, step_delta
from wgp_agents.theory.surrogate import surrogate
from wgp_agents.theory.verify.play import Moment, batches
from wgp_agents.theory.verify.row import Curve, Findings, Row, failure_share

__all__ = ["all_times", "coverage", "drifting"]

DELTA = 0.1
DISCOUNT = 0.97
PANEL = "coverage"
ALL_TIMES = "Theorem 2, all t"  # Lemmas 10 and 11 claim it; Theorem 4 needs it


def coverage(quick: bool, seed: int) -> Findings:
    """Count in how many runs Theorem 2's interval misses f* somewhere, with its own sigma-acute.

    Two instances: the paper's functions, and f* = 0 with B = 0, where all of the width is there
    for the noise. The realised gain makes the interval narrower than the theorem's.
    """
    runs, horizon = (400, 200) if quick else (2_000, 500)
    fixed = (10, 50, horizon)
    found = Findings()
    for name, norm_bound in (("||f*|| = B", None), ("f* = 0, B = 0", 0.0)):
        for confidence in CONFIDENCE:
            where = f"SE l = 0.2, eta = {DISCOUNT}, lambda = R^2, {name}, {runs} runs"
            missed = misses(confidence, norm_bound, runs, horizon, seed)
            if confidence == "paper":
                for t in fixed:
                    share, low, high = failure_share(int(missed[t].sum()), runs)
                    claim = f"fails at t = {t} in at most a share delta of runs"
                    row = Row("Theorem 2, fixed t", claim, where, share, DELTA, low, high)
                    found.rows.append(row)
            share, low, high = failure_share(int(missed.any(axis=0).sum()), runs)
            claim = f"fails at any t <= {horizon} in at most delta: confidence = {confidence}"
            # The claim is false, but its failure needs more steps, or fewer features: `all_times`.
            row = Row(ALL_TIMES, claim, where, share, DELTA, low, high)
            found.rows.append(row)
    return found


def misses(
    confidence: str, norm_bound: float | None, runs: int, horizon: int, seed: int
) -> NDArray[np.bool_]:
    """Return whether the interval misses f* anywhere, at every t and in every run, `(T + 1, B)`."""
    kwargs: dict[str, Any] = {"horizon": horizon, "norm_bound": norm_bound}
    parameters = {"discount": DISCOUNT, "width": "tight", "confidence": confidence, "delta": DELTA}
    played = batches("WGPBandit-Stationary-v0", "wgp-ucb", runs, seed, kwargs, parameters)
    return np.concatenate([[outside(moment) for moment in batch] for batch in played], axis=1)


def outside(moment: Moment) -> NDArray[np.bool_]:
    """Return whether the truth leaves the interval anywhere, `(B,)`."""
    lower, upper = moment.agent.confidence_interval()
    missed = (moment.truth < lower) | (moment.truth > upper)
    return np.asarray(missed.any(axis=1))


def drifting(quick: bool, seed: int) -> Findings:
    """Count in how many runs Theorem 3's set misses the surrogate m_t at a fixed t."""
    runs, times = (100, (50, 150)) if quick else (2_000, (50, 250, 500))
    found = Findings()
    for name in ("Abrupt", "Slow"):
        failures = dict.fromkeys(times, 0)
        kwargs, parameters = {"horizon": times[-1] + 1}, {"discount": DISCOUNT, "delta": DELTA}
        played = batches(f"WGPBandit-{name}-v0", "wgp-ucb", runs, seed, kwargs, parameters)
        for moment in chain.from_iterable(played):
            if moment.t in failures:
                failures[moment.t] += int(outside_surrogate(moment).sum())
        for t, failed in failures.items():
            share, low, high = failure_share(failed, runs)
            where = f"{name.lower()}, eta = {DISCOUNT}, lambda = R^2, {runs} runs"
            claim = f"m_t leaves the set at t = {t + 1} in at most a share delta of runs"
            found.rows.append(Row("Theorem 3", claim, where, share, DELTA, low, high))
    return found


def outside_surrogate(moment: Moment) -> NDArray[np.bool_]:
    """Return whether m_t leaves mu~ -+ beta sigma~ anywhere, `(B,)`."""
    problem, t = moment.agent.problem, moment.t
    lower, upper = moment.agent.confidence_interval()
    weights = DISCOUNT ** -np.arange(1.0, t + 1)
    missed = np.empty(len(lower), bool)
    for i, truth in enumerate(moment.truth):
        plays = moment.actions[:, i]
        m = surrogate(
            problem.kernel,
            float(moment.agent.regularization[i]),
            problem.domain[plays],
            weights,
            moment.expected[:, i],
            truth[plays],
            problem.domain,
            truth,
        )
        missed[i] = ((m < lower[i]) | (m > upper[i])).any()
    return missed


def all_times(quick: bool, seed: int) -> Findings:
    """Break the time-uniform claim: one arm, f* = 0, B = 0, a short memory and a long time.

    The discounted noise sum is then an AR(1) process, which crosses any fixed bound in the end.
    """
    runs, decades = (500, (2, 3, 4)) if quick else (2_000, (2, 3, 4, 5))
    horizons = [10**k for k in decades]
    found = Findings()
    for discount, forms in ((0.5, CONFIDENCE), (1.0, ("paper",))):
        shares = crossings(discount, runs, horizons, seed)
        for form in forms:
            values = [failure_share(failed, runs) for failed in shares[form]]
            y, low, high = np.array(values).T
            label = form if discount < 1 else "no discount, paper"
            found.curves.append(Curve(PANEL, label, np.array(horizons, float), y, low, high))
            where = f"one arm, f* = 0, eta = {discount}, lambda = 1, {runs} runs"
            for horizon, ends in zip(horizons, values, strict=True):
                claim = f"fails at any t <= {horizon:,} in at most delta: confidence = {form}"
                share, lower, upper = ends
                documented = form == "paper" and discount < 1
                row = Row(ALL_TIMES, claim, where, share, DELTA, lower, upper, documented)
                found.rows.append(row)
    return found


def crossings(discount: float, runs: int, horizons: list[int], seed: int) -> dict[str, list[int]]:
    """Return in how many runs |mu~| > sigma-acute beta at any t up to each horizon."""
    rng = np.random.default_rng(seed)
    zero, one = np.zeros(1), np.ones(1)
    crossed = {form: np.zeros((len(horizons), runs), bool) for form in CONFIDENCE}
    total, weight, double = np.zeros(runs), 0.0, 0.0
    for t in range(1, horizons[-1] + 1):
        total = discount * total + rng.standard_normal(runs)
        weight, double = discount * weight + 1, discount**2 * double + 1
        mean, std = total / (weight + 1), np.sqrt(double + 1) / (weight + 1)
        gain = np.array([0.5 * np.log1p(double)])
        for form in CONFIDENCE:
            for k, horizon in enumerate(horizons):
                if t <= horizon and (k == 0 or form == "union" or t > horizons[k - 1]):
                    share = step_delta(form, DELTA * one, np.array([t]), horizon)
                    width = deng_width(zero, one, one, share, gain)
                    crossed[form][k] |= np.abs(mean) > width * std
    for form in ("paper", "anytime"):  # one bound for every horizon: what fails stays failed
        crossed[form] = np.logical_or.accumulate(crossed[form], axis=0)
    return {form: failed.sum(axis=1).tolist() for form, failed in crossed.items()}
