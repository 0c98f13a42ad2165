"""Corollary 5 and Remark 3: how the regret grows with T, B_T and gamma."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from wgp_agents.benchmark.rollout import make_vector, rollout
from wgp_agents.registry import make
from wgp_agents.theory.verify.play import BATCH, NEVER, PANELS, Keywords, play_functions
from wgp_agents.theory.verify.row import Curve, Row
from wgp_gym.kernels import Empirical
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

__all__ = ["PATHS", "growth", "growth_of_arms", "path_rows", "tight_width"]

EXPONENT = 0.75
RESAMPLES = 2_000
HORIZONS = (250, 500, 1_000, 2_000, 4_000, 8_000, 16_000)
FIXED = {"norm_bound": 10.0, "variation_budget": 10.0}


def growth(quick: bool, seed: int) -> Iterator[Row | Curve]:
    """Measure how the regret grows with T at a fixed B_T on the paper's tasks, Corollary 5."""
    runs, horizons = (20, (250, 500, 1_000, 2_000)) if quick else (100, HORIZONS)
    x = np.array(horizons, float)
    for name, environment in PANELS.items():
        known, unknown, never = (
            np.stack([final_regret(environment, T, runs, seed, given, agent) for T in horizons])
            for agent, given in (
                ("wgp-ucb", {"variation_budget": "known"}),
                ("wgp-ucb", {"variation_budget": "unknown"}),
                ("igp-ucb", {}),
            )
        )
        stubborn = exponent(never, x, seed)
        where = f"{name}, B = B_T = 10, T = {horizons[0]:,} ... {horizons[-1]:,}, {runs} runs"
        for budget, regrets in (("known", known), ("unknown", unknown)):
            slope, low, high = exponent(regrets, x, seed)
            claim = f"R_T grows at most like T^(3/4), {budget} B_T: the exponent"
            row = Row("Corollary 5", claim, where, slope, EXPONENT, low, high)
            yield row.controlled(NEVER, measured=stubborn[0], interval=stubborn[1:])
        for label, regrets in ((name, known), (f"{name}, never forgetting", never)):
            y = regrets.mean(axis=1)
            error = 1.96 * regrets.std(axis=1, ddof=1) / math.sqrt(runs)
            slope = exponent(regrets, x, seed)[0]
            yield Curve("growth", f"{label} ({slope:.2f})", x, y, y - error, y + error)


class Path(NamedTuple):
    """How arms and changes grow with T, and what Corollary 5 says of the regret along it."""

    claim: str
    arms: float  # K = 4 (T / T_0)^this, and gamma grows like K
    changes: float  # 2 (T / T_0)^this changes; B_T grows like them. 0: one change

    @property
    def exponent(self) -> float:
        """That of T in gamma^{7/8} B_T^{1/4} T^{3/4}."""
        return 7 / 8 * self.arms + self.changes / 4 + EXPONENT


PATHS = (
    Path("R_T grows at most like T^(3/4), B_T and gamma fixed", 0.0, 0.0),
    Path("R_T grows at most like B_T^(1/4) T^(3/4) = T^(7/8), B_T like T^(1/2)", 0.0, 0.5),
    Path("R_T grows at most like gamma^(7/8) T^(3/4) = T^0.896, gamma like T^(1/6)", 1 / 6, 0.0),
)


def growth_of_arms(quick: bool, seed: int) -> Iterator[Row]:
    """Measure the exponents of Corollary 5, and those of Remark 3's rivals, on independent arms."""
    horizons = (250, 1_000, 4_000) if quick else HORIZONS[1:]
    for path in PATHS:
        yield from path_rows(path, horizons, 40 if quick else 100, seed)


def path_rows(path: Path, horizons: tuple[int, ...], runs: int, seed: int) -> Iterator[Row]:
    """Return the rows of a path; those of a fixed B_T and gamma have the rivals as well.

    One arm is good or bad by turns, one is middling all the time, the others are poor: who does
    not forget, or does not try, loses a share of every step.
    """

    def _exponent(agent: str, parameters: Keywords) -> Exponent:
        given = runs, seed, agent, parameters
        regrets = [arms_regret(path, T, T / horizons[0], *given) for T in horizons]
        return exponent(np.stack(regrets), np.array(horizons, float), seed)

    unknown: Keywords = {"information_gain": "computed"}  # it grows with the number of arms
    known = {**unknown, "variation_budget": "known"}
    learners: list[tuple[str, str, str, Keywords]] = [
        ("Corollary 5", ", known B_T", "wgp-ucb", known)
    ]
    if path is PATHS[0]:
        learners += [
            ("Corollary 5", ", unknown B_T", "wgp-ucb", unknown),
            ("Remark 3", ", R-GP-UCB", "r-gp-ucb", known),
            ("Remark 3", ", SW-GP-UCB", "sw-gp-ucb", known),
        ]
    (value, *ends), change = min(
        (_exponent("igp-ucb", {}), NEVER),
        (_exponent("wgp-ucb", {"confidence_width": 0.0}), "a learner that only exploits"),
    )
    where = f"independent arms, T = {horizons[0]:,} ... {horizons[-1]:,}, {runs} runs"
    for statement, which, agent, parameters in learners:
        slope, low, high = _exponent(agent, parameters)
        claim = f"{path.claim}{which}: the exponent"
        row = Row(statement, claim, where, slope, path.exponent, low, high)
        yield row.controlled(change, measured=value, interval=(ends[0], ends[1]))


def arms_regret(
    path: Path,
    horizon: int,
    ratio: float,
    runs: int,
    seed: int,
    agent: str,
    parameters: Keywords,
) -> Array:
    """Return the final regret of each run at T = T_0 `ratio` on independent arms, `(runs,)`."""
    K = round(4 * ratio**path.arms)
    changes = round(2 * ratio**path.changes) if path.changes else 1
    truth = np.full((horizon + 1, K), 0.25)
    truth[:, 0] = 0.5
    phase = np.arange(horizon + 1) * (changes + 1) // horizon
    truth[:, 1] = np.where(np.minimum(phase, changes) % 2, -1.0, 1.0)
    norm = float(np.linalg.norm(truth, axis=1).max())
    places = np.linspace(0, 1, K)[:, None]
    problem = BanditProblem(Empirical(np.eye(K)), places, horizon, 0.1, norm, 2.0 * changes)
    end = play_functions(problem, truth, runs, seed, agent, **parameters)
    regret: Array = (truth[:-1].max(axis=1)[:, None] - end.expected).sum(axis=0)
    return regret


Exponent = tuple[float, float, float]


def exponent(regrets: Array, horizons: Array, seed: int) -> Exponent:
    """Return the slope of log mean regret against log T, with its 95 % interval."""
    slope = np.polyfit(np.log(horizons), np.log(regrets.mean(axis=1)), 1)[0]
    low, high = np.quantile(resampled_slopes(regrets, horizons, seed), [0.025, 0.975])
    return float(slope), float(low), float(high)


def final_regret(
    environment: str,
    horizon: int | None,
    runs: int,
    seed: int,
    parameters: Keywords,
    agent: str = "wgp-ucb",
) -> Array:
    """Return the final regret of each run, `(runs,)`."""
    kwargs: Keywords = {} if horizon is None else {"horizon": horizon, **FIXED}
    env = make_vector(environment, runs, **kwargs)
    played = rollout(make(agent, env, **parameters), env, seed)
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
