"""Uniform and Beta variates of every learner, from one seed of each.

References:
    [Che78] Cheng. Generating Beta Variates with Nonintegral Shape Parameters. Communications of
    the ACM 21, 1978.
    [SLF14] Steele, Lea, Flood. Fast Splittable Pseudorandom Number Generators. OOPSLA 2014.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array

__all__ = ["Seeds", "fill_beta", "fill_uniform", "mixed"]

Seeds = NDArray[np.uint64]

STEP = np.uint64(0x9E3779B97F4A7C15)  # the constants of SplitMix64 [SLF14]
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S12, S27, S30, S31 = np.uint64(12), np.uint64(27), np.uint64(30), np.uint64(31)
LOG_4 = math.log(4.0)
SQUEEZE = 1.0 + math.log(5.0)


@compiled
def mixed(state: np.uint64) -> np.uint64:
    """Return the number that SplitMix64 makes of a state."""
    z = (state ^ (state >> S30)) * FIRST
    z = (z ^ (z >> S27)) * SECOND
    return z ^ (z >> S31)


@compiled
def fraction(state: np.uint64) -> float:
    """Return a uniform number from (0, 1) for a state; 52 bits, or the largest would round to 1."""
    return (float(mixed(state) >> S12) + 0.5) * 2.0**-52


@compiled
def fill_uniform(seeds: Seeds, draws: Array) -> None:
    """Fill in a uniform number from (0, 1) for every learner and arm."""
    for i in range(len(seeds)):
        state = mixed(seeds[i] + STEP)
        for k in range(draws.shape[1]):
            state += STEP
            draws[i, k] = fraction(state)


@compiled
def beta_variate(state: np.uint64, first: float, second: float) -> tuple[np.uint64, float]:
    """Return the next state and a variate of Beta(first, second), both >= 1: BB of [Che78].

    With a the smaller one, b the larger, and L logistic of scale 1 / lambda, a e^L / (b + a e^L)
    is a variate of the smaller one's side if the trial succeeds. [Che78] has lambda^2 = (2 a b - a
    - b) / (a + b - 2) where both are above 1; the form below has its limit, 1, at a = b = 1.
    """
    a, b = min(first, second), max(first, second)
    p, q = a - 1.0, b - 1.0
    power = math.sqrt(1.0 + 2.0 * p * (q / (p + q))) if q > 0.0 else 1.0  # lambda
    while True:
        # Two uniform numbers: the proposal w = a e^L, and z, which decides whether it is taken.
        state += STEP
        u = fraction(state)
        state += STEP
        z = u * u * fraction(state)
        v = math.log(u / (1.0 - u)) / power
        w = a * math.exp(v)
        r = (a + power) * v - LOG_4
        # log z <= 5 z - 1 - log 5, and log x >= 1 - 1 / x: these two spare most logarithms.
        if a + r - w < 5.0 * z - SQUEEZE:
            log_z = math.log(z)
            if r + (a + b) * math.log((a + b) / (b + w)) < log_z:
                continue
        share = w / (b + w) if first <= second else b / (b + w)
        return state, share


@compiled
def fill_beta(draws: Array, successes: Array, trials: Array, variates: Array) -> None:
    """Fill in a variate of Beta(1 + S, 1 + N - S) for every learner and arm.

    S and N are `successes` and `trials`; a learner's seed is its draw from [0, 1), in 53 bits.
    """
    for i in range(len(draws)):
        state = mixed(np.uint64(draws[i] * 2.0**53) + STEP)
        for k in range(trials.shape[1]):
            S = successes[i, k]
            failures = max(trials[i, k] - S, 0.0)  # rounding may go below
            state, variates[i, k] = beta_variate(state, 1.0 + S, 1.0 + failures)
