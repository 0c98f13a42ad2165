"""Theorems 2 and 3: how often the confidence bounds fail, at a fixed t and over all t."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from wgp_agents.gp.width import CONFIDENCE, deng_width, step_delta
from wgp_agents.theory.surrogate import surrogate
from wgp_agents.theory.verify.play import Moment, batches
from wgp_agents.theory.verify.row import Curve, Row, share_row

__all__ = ["all_times", "coverage", "drifting"]

DELTA = 0.1
DISCOUNT = 0.97
ALL_TIMES = "Theorem 2, all t"  # Lemmas 10 and 11 claim it; Theorem 4 needs it


def coverage(quick: bool, seed: int) -> Iterator[Row]:
    """Count in how many runs Theorem 2's interval misses f* somewhere, with its own sigma-acute.

    Two instances: the paper's functions, and f* = 0 with B = 0, where all of the width is there
    for the noise. The realised gain makes the interval narrower than the theorem's.
    """
    runs, horizon = (400, 200) if quick else (2_000, 500)
    for name, norm_bound in (("||f*|| = B", None), ("f* = 0, B = 0", 0.0)):
        for confidence in CONFIDENCE:
            where = f"SE l = 0.2, eta = {DISCOUNT}, lambda = R^2, {name}, {runs} runs"
            missed = misses(confidence, norm_bound, runs, horizon, seed)
            if confidence == "paper":
                for t in (10, 50, horizon):
                    claim = f"fails at t = {t} in at most a share delta of runs"
                    failed = int(missed[t].sum())
                    yield share_row("Theorem 2, fixed t", claim, where, failed, runs, DELTA)
            claim = f"fails at any t <= {horizon} in at most delta: confidence = {confidence}"
            # The claim is false, but its failure needs more steps, or fewer features: `all_times`.
            failed = int(missed.any(axis=0).sum())
            yield share_row(ALL_TIMES, claim, where, failed, runs, DELTA)


def misses(
    confidence: str, norm_bound: float | None, runs: int, horizon: int, seed: int
) -> NDArray[np.bool_]:
    """Return whether the interval misses f* anywhere, at every t and in every run, `(T + 1, B)`."""
    kwargs = {"horizon": horizon, "norm_bound": norm_bound}
    parameters = {"discount": DISCOUNT, "width": "tight", "confidence": confidence, "delta": DELTA}
    played = batches("WGPBandit-Stationary-v0", runs, seed, kwargs, parameters)
    return np.concatenate([[outside(moment) for moment in batch] for batch in played], axis=1)


def outside(moment: Moment) -> NDArray[np.bool_]:
    """Return whether the truth leaves the interval anywhere, `(B,)`."""
    lower, upper = moment.agent.confidence_interval()
    missed = (moment.truth < lower) | (moment.truth > upper)
    return np.asarray(missed.any(axis=1))


def drifting(quick: bool, seed: int) -> Iterator[Row]:
    """Count in how many runs Theorem 3's set misses the surrogate m_t at a fixed t."""
    runs, times = (100, (50, 150)) if quick else (2_000, (50, 250, 500))
    for name in ("Abrupt", "Slow"):
        failures = dict.fromkeys(times, 0)
        kwargs, parameters = {"horizon": times[-1] + 1}, {"discount": DISCOUNT, "delta": DELTA}
        played = batches(f"WGPBandit-{name}-v0", runs, seed, kwargs, parameters)
        for moment in chain.from_iterable(played):
            if moment.t in failures:
                failures[moment.t] += int(outside_surrogate(moment).sum())
        for t, failed in failures.items():
            where = f"{name.lower()}, eta = {DISCOUNT}, lambda = R^2, {runs} runs"
            claim = f"m_t leaves the set at t = {t + 1} in at most a share delta of runs"
            yield share_row("Theorem 3", claim, where, failed, runs, DELTA)


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


def all_times(quick: bool, seed: int) -> Iterator[Row | Curve]:
    """Break the time-uniform claim: one arm, f* = 0, B = 0, a short memory and a long time.

    The discounted noise sum is then an AR(1) process, which crosses any fixed bound in the end.
    """
    runs, decades = (500, (2, 3, 4)) if quick else (2_000, (2, 3, 4, 5))
    horizons = [10**k for k in decades]
    for discount, forms in ((0.5, CONFIDENCE), (1.0, ("paper",))):
        shares = crossings(discount, runs, horizons, seed)
        for form in forms:
            where = f"one arm, f* = 0, eta = {discount}, lambda = 1, {runs} runs"
            false = form == "paper" and discount < 1
            rows = []
            for horizon, failed in zip(horizons, shares[form], strict=True):
                claim = f"fails at any t <= {horizon:,} in at most delta: confidence = {form}"
                given = ALL_TIMES, claim, where, failed, runs, DELTA
                rows.append(share_row(*given, documented=false))
            yield from rows
            label = form if discount < 1 else "no discount, paper"
            y, low, high = np.array([(row.measured, row.low, row.high) for row in rows]).T
            yield Curve("coverage", label, np.array(horizons, float), y, low, high)


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
