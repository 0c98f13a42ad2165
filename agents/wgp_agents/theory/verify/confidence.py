"""Theorems 2 and 3: how often the confidence bounds fail, at a fixed t and over all t."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import numpy as np

from wgp_agents.gp.width import CONFIDENCE, deng_width, step_delta
from wgp_agents.theory.surrogate import surrogate
from wgp_agents.theory.verify.play import Moment, batches, play_functions
from wgp_agents.theory.verify.row import FALSE, SAYS_NOTHING, Curve, Row, share_row
from wgp_gym.kernels import Empirical
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

__all__ = ["INSTANCES", "all_times", "coverage", "drifting", "tight_instances", "tight_row"]

DELTA = 0.1
DISCOUNT = 0.97
FIXED, ALL_TIMES = "Theorem 2, fixed t", "Theorem 2, all t"
# Lemmas 10 and 11 claim the second; Theorem 4 needs it.
HALF = "half the width"
STEPS = 50
WEIGHTS = {  # of the tight instances
    "eta = 0.99": 0.99 ** -np.arange(1.0, STEPS + 1),
    "w_t = t": np.arange(1.0, STEPS + 1),
}


class Instance(NamedTuple):
    """A task on which a part of beta is needed."""

    name: str
    features: Array  # phi of each arm, unit vectors, `(n, d)`
    norm_bound: float  # B
    ratio: float  # of d sum of w_s^2 / w_t^2, to lambda
    control: str  # what of beta the control leaves out: see `narrower`


def half_sphere(n: int) -> Array:
    """Return n unit vectors spread over half a sphere, `(n, 3)`: a Fibonacci lattice."""
    i = np.arange(n) + 0.5
    z = i / n
    angle, radius = np.pi * (1 + np.sqrt(5)) * i, np.sqrt(1 - z**2)
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), z], axis=1)


def signs(dim: int) -> Array:
    """Return (1, +-1, ..., +-1) / sqrt(d), `(2^(d-1), d)`."""
    bits = np.arange(2 ** (dim - 1))[:, None] >> np.arange(dim - 1) & 1
    directions: Array = np.insert(1.0 - 2 * bits, 0, 1.0, axis=1) / np.sqrt(dim)
    return directions


SPHERE = half_sphere(100)
INSTANCES = (
    # Where f = 0 and B = 0 all of the width is there for the noise. The arms point everywhere,
    # so that one of them meets the worst direction of the noise.
    Instance("noise alone, 100 arms on a half-sphere", SPHERE, 0.0, 1.0, HALF),
    Instance(
        "noise alone, 100 arms on a half-sphere", SPHERE, 0.0, 0.4, "beta without log(1 / delta)"
    ),
    Instance(
        "noise alone, 64 arms in seven dimensions", signs(7), 0.0, 100.0, "beta without the gain"
    ),
    Instance("||f|| = B = 20 R, 100 arms on a half-sphere", SPHERE, 20.0, 1.0, "beta without B"),
    Instance("||f|| = B = R, 100 arms on a half-sphere", SPHERE, 1.0, 0.4, HALF),
)


def tight_instances(quick: bool, seed: int) -> Iterator[Row]:
    """Count failures of Theorems 2 and 3 where a narrower width fails too often.

    Under Theorem 3, f turns by 0.1 at each step where B > 0; where B = 0, f = m_t = 0.
    """
    runs = 400 if quick else 2_000
    for instance in INSTANCES:
        for weights in WEIGHTS:
            yield tight_row(FIXED, instance, weights, runs, seed)
    for instance in INSTANCES:
        for weights in WEIGHTS:
            yield tight_row("Theorem 3", instance, weights, runs, seed)


def tight_row(statement: str, instance: Instance, weights: str, runs: int, seed: int) -> Row:
    """Return the row of one instance."""
    ratios, turns = WEIGHTS[weights] / WEIGHTS[weights][-1], statement == "Theorem 3"
    angle = 0.1 * np.arange(STEPS + 1) * turns
    theta = np.zeros((STEPS + 1, instance.features.shape[1]))
    theta[:, :2] = instance.norm_bound * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    lam = float(np.sum(ratios**2)) / theta.shape[1] / instance.ratio
    n, gram = len(instance.features), instance.features @ instance.features.T
    kernel = Empirical(np.minimum((gram + gram.T) / 2, 1.0))
    problem = BanditProblem(kernel, np.linspace(0, 1, n)[:, None], STEPS, 1.0, instance.norm_bound)
    moment = play_functions(
        problem,
        theta @ instance.features.T,
        runs,
        seed,
        weights=WEIGHTS[weights],
        width="standard" if turns else "tight",
        regularization=lam,
        delta=DELTA,
    )
    target = surrogates(moment, WEIGHTS[weights]) if turns else moment.truth
    share = share_of_width(moment, target)
    control = instance.control, int((share > narrower(moment, instance.control)).sum())
    where = f"{instance.name}, {weights}, lambda = {lam:.2g} R^2, {runs:,} runs"
    what = "m_t leaves the set" if turns else "f leaves the interval"
    claim = f"{what} after {STEPS} plays in at most a share delta of runs"
    return share_row(statement, claim, where, int((share > 1).sum()), runs, DELTA, control=control)


def share_of_width(moment: Moment, target: Array) -> Array:
    """Return the largest |target - mu~| / (beta sigma), of which the claim is <= 1, `(B,)`."""
    lower, upper = moment.agent.confidence_interval()
    apart = np.abs(target - (lower + upper) / 2)
    largest: Array = (2 * apart / (upper - lower)).max(axis=1)
    return largest


def narrower(moment: Moment, control: str) -> Array:
    """Return the control's beta over beta, `(B,)`."""
    agent, beta = moment.agent, moment.agent.beta()
    B, R, lam = agent.width.norm_bound.values, agent.model.noise_scale, agent.model.regularization
    delta, gain = agent.width.delta, lam / 2 * ((beta - B) / R) ** 2 + np.log(agent.width.delta)
    without = {
        HALF: beta / 2,
        "beta without B": deng_width(0 * B, R, lam, delta, gain),
        "beta without the gain": deng_width(B, R, lam, delta, 0 * gain),
        "beta without log(1 / delta)": deng_width(B, R, lam, delta**0, np.maximum(gain, 0.0)),
    }
    ratio: Array = without[control] / beta
    return ratio


def coverage(quick: bool, seed: int) -> Iterator[Row]:
    """Count in how many runs Theorem 2's interval, with its own sigma-acute, misses f*.

    Two instances: the paper's functions, and f* = 0 with B = 0, where all of the width is there
    for the noise. The realised gain makes the interval narrower than the theorem's.
    """
    runs, horizon = (200, 200) if quick else (2_000, 500)
    for name, norm_bound in (("||f*|| = B", None), ("f* = 0, B = 0", 0.0)):
        kwargs = {"horizon": horizon, "norm_bound": norm_bound}
        parameters = {"discount": DISCOUNT, "width": "tight", "delta": DELTA}
        played = batches("WGPBandit-Stationary-v0", runs, seed, kwargs, parameters)
        shares = np.concatenate(
            [[share_of_width(m, m.truth) for m in batch] for batch in played], axis=1
        )
        where = f"SE l = 0.2, eta = {DISCOUNT}, lambda = R^2, {name}, {runs} runs"
        yield from own_task(FIXED, f"f* leaves the interval at t = {horizon}", where, shares[-1])
        # The claim is false, but its failure needs more steps, or fewer features: `all_times`.
        claim = f"fails at any t <= {horizon} in at most delta: confidence = paper"
        largest = shares.max(axis=0)
        control = HALF, int((largest > 0.5).sum())
        failed = int((largest > 1).sum())
        yield share_row(ALL_TIMES, claim, where, failed, runs, DELTA, control=control)


def own_task(statement: str, what: str, where: str, shares: Array) -> Iterator[Row]:
    """Return rows of the paper's own task, where the width is too loose to be tested."""
    runs, control = len(shares), (HALF, int((shares > 0.5).sum()))
    claim = f"{what} in at most a share delta of runs"
    failed = int((shares > 1).sum())
    given = statement, claim, where, failed, runs, DELTA
    yield share_row(*given, documented=SAYS_NOTHING, control=control)
    claim = "the share of the width that would do in all but delta of the runs"
    yield Row(statement, claim, where, float(np.quantile(shares, 1 - DELTA)))


def drifting(quick: bool, seed: int) -> Iterator[Row]:
    """Count in how many runs Theorem 3's set misses the surrogate m_t on the paper's tasks."""
    runs, steps = (100, 150) if quick else (1_000, 500)
    for name in ("Abrupt", "Slow"):
        kwargs, parameters = {"horizon": steps + 1}, {"discount": DISCOUNT, "delta": DELTA}
        played = batches(f"WGPBandit-{name}-v0", runs, seed, kwargs, parameters)
        weights = DISCOUNT ** -np.arange(1.0, steps + 1)
        shares = [
            share_of_width(moment, surrogates(moment, weights))
            for moment in chain.from_iterable(played)
            if moment.t == steps
        ]
        where = f"{name.lower()}, eta = {DISCOUNT}, lambda = R^2, {runs} runs"
        what = f"m_t leaves the set at t = {steps + 1}"
        yield from own_task("Theorem 3", what, where, np.concatenate(shares))


def surrogates(moment: Moment, weights: Array) -> Array:
    """Return m_t of each run on the domain, `(B, n)`."""
    problem = moment.agent.problem
    return np.stack(
        [
            surrogate(
                problem.kernel,
                float(moment.agent.model.regularization[i]),
                problem.domain[plays],
                weights,
                moment.expected[:, i],
                truth[plays],
                problem.domain,
                truth,
            )
            for i, (plays, truth) in enumerate(zip(moment.actions.T, moment.truth, strict=True))
        ]
    )


def all_times(quick: bool, seed: int) -> Iterator[Row | Curve]:
    """Break the time-uniform claim: one arm, f* = 0, B = 0, a short memory and a long time.

    The discounted noise sum is then an AR(1) process, which crosses any fixed bound in the end.
    """
    runs, decades = (500, (2, 3, 4)) if quick else (2_000, (2, 3, 4, 5))
    horizons = [10**k for k in decades]
    for discount, forms in ((0.5, CONFIDENCE), (1.0, ("paper",))):
        counts = crossings(discount, runs, horizons, seed)
        for form in forms:
            where = f"one arm, f* = 0, eta = {discount}, lambda = 1, {runs} runs"
            false = FALSE if form == "paper" and discount < 1 else ""
            rows = []
            for horizon, (failed, narrow) in zip(horizons, counts[form], strict=True):
                claim = f"fails at any t <= {horizon:,} in at most delta: confidence = {form}"
                given = ALL_TIMES, claim, where, failed, runs, DELTA
                control = None if false else (HALF, narrow)
                rows.append(share_row(*given, documented=false, control=control))
            yield from rows
            label = form if discount < 1 else "no discount, paper"
            y, low, high = np.array([(row.measured, row.low, row.high) for row in rows]).T
            yield Curve("coverage", label, np.array(horizons, float), y, low, high)


def crossings(
    discount: float, runs: int, horizons: list[int], seed: int
) -> dict[str, list[list[int]]]:
    """Return in how many runs |mu~| exceeds sigma-acute beta, and half of it, by each horizon."""
    rng = np.random.default_rng(seed)
    zero, one, shares = np.zeros(1), np.ones(1), np.array([[1.0], [0.5]])
    crossed = {form: np.zeros((len(horizons), 2, runs), bool) for form in CONFIDENCE}
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
                    crossed[form][k] |= np.abs(mean) > shares * width * std
    for form in ("paper", "anytime"):  # one bound for every horizon: what fails stays failed
        crossed[form] = np.logical_or.accumulate(crossed[form], axis=0)
    return {form: failed.sum(axis=-1).tolist() for form, failed in crossed.items()}
