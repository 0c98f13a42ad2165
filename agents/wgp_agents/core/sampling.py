"""Random variates for every learner, from one uniform draw of each.

All streams move together, but the number of draws that a variate takes may be random. So the draw
is the seed of a SplitMix64 sequence, which gives a learner all that it needs.
"""

from __future__ import annotations

import numpy as np
import scipy

from wgp_agents.core.randomness import UniformStreams
from wgp_agents.kernels.sampling import Seeds, fill_beta, fill_uniform
from wgp_gym.types import Array

__all__ = ["Seeds", "beta_variates", "fill_uniform", "normal_variates", "seeds_of"]


def normal_variates(uniform: UniformStreams, count: int) -> Array:
    """Return standard normal variates, `(B, count)`; the first ones do not depend on `count`."""
    seeds = seeds_of(uniform)
    draws = np.empty((len(seeds), count))
    fill_uniform(seeds, draws)
    variates: Array = scipy.special.ndtri(draws)
    return variates


def beta_variates(uniform: UniformStreams, successes: Array, trials: Array) -> Array:
    """Return variates of Beta(1 + S, 1 + N - S), `(B, K)`; exact up to rounding.

    S and N, the successes and trials, need not be whole; S counts as at most N.

    They come by rejection from a log-logistic law: at most 4 / e = 1.47 trials on average.
    """
    variates = np.empty(trials.shape)
    fill_beta(uniform.draw(), successes, trials, variates)
    return variates


def seeds_of(uniform: UniformStreams) -> Seeds:
    """Return a draw of every learner as an integer of 53 bits, `(B,)`."""
    return (uniform.draw() * 2.0**53).astype(np.uint64)
