"""Random variates for every learner, from one uniform draw of each.

All streams move together, while how many numbers a variate takes may be a matter of chance: so
the draw is the seed of a SplitMix64 sequence [SLF14], from which a learner takes what it needs.

References:
    [MT00] Marsaglia, Tsang. A Simple Method for Generating Gamma Variables. ACM Transactions on
    Mathematical Software 26, 2000.
    [SLF14] Steele, Lea, Flood. Fast Splittable Pseudorandom Number Generators. OOPSLA 2014.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from wgp_agents.gp.compiled import compiled
from wgp_agents.randomness import UniformStreams
from wgp_gym.kernels import Array

__all__ = ["beta_variates", "normal_variates"]

Seeds = NDArray[np.uint64]

STEP = np.uint64(0x9E3779B97F4A7C15)  # the constants of SplitMix64
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
S12, S27, S30, S31 = np.uint64(12), np.uint64(27), np.uint64(30), np.uint64(31)


def normal_variates(uniform: UniformStreams, count: int) -> Array:
    """Return standard normal variates, `(B, count)`; one draw for each learner.

    The first ones do not depend on how many there are.

    Args:
        uniform: The learners' streams.
        count: How many of each learner.
    """
    seeds = seeds_of(uniform)
    draws = np.empty((len(seeds), count))
    fill_uniform(seeds, draws)
    variates: Array = ndtri(draws)
    return variates


def beta_variates(uniform: UniformStreams, first: Array, second: Array) -> Array:
    """Return variates of Beta(a, b), `(B, K)`, exact up to rounding; one draw for each learner.

    A variate is G_a / (G_a + G_b) of two gamma variates, each by the rejection of [MT00]. (The
    inverse distribution function costs about eight times as much.)

    Args:
        uniform: The learners' streams.
        first: a >= 1, `(B, K)`.
        second: b >= 1, `(B, K)`.
    """
    variates = np.empty(first.shape)
    fill_beta(seeds_of(uniform), first, second, variates)
    return variates


def seeds_of(uniform: UniformStreams) -> Seeds:
    """Return a draw of every learner as a whole number of 53 bits, `(B,)`."""
    return (uniform.draw() * 2.0**53).astype(np.uint64)


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
def gamma_variate(state: np.uint64, shape: float) -> tuple[np.uint64, float]:
    """Return the next state and a variate of Gamma(shape), shape >= 1; see [MT00]."""
    d = shape - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        state += STEP
        radius = math.sqrt(-2.0 * math.log(fraction(state)))
        state += STEP
        x = radius * math.cos(2.0 * math.pi * fraction(state))
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        state += STEP
        u = fraction(state)
        if u < 1.0 - 0.0331 * x**4:  # spares most logarithms
            return state, d * v
        if math.log(u) < 0.5 * x * x + d * (1.0 - v + math.log(v)):
            return state, d * v


@compiled
def fill_beta(seeds: Seeds, first: Array, second: Array, variates: Array) -> None:
    """Fill in a variate of Beta(a, b) for every learner and arm. See `beta_variates`."""
    for i in range(len(seeds)):
        state = mixed(seeds[i] + STEP)
        for k in range(first.shape[1]):
            state, one = gamma_variate(state, first[i, k])
            state, other = gamma_variate(state, second[i, k])
            variates[i, k] = one / (one + other)


@compiled
def fill_uniform(seeds: Seeds, draws: Array) -> None:
    """Fill in a uniform number from (0, 1) for every learner and arm."""
    for i in range(len(seeds)):
        state = mixed(seeds[i] + STEP)
        for k in range(draws.shape[1]):
            state += STEP
            draws[i, k] = fraction(state)
