"""Random variates for every learner, from one uniform draw of each.

All streams move together, but the number of draws that a variate takes may be random. So the draw
is the seed of a SplitMix64 sequence, which gives a learner all that it needs.
"""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from wgp_agents.core.randomness import UniformStreams
from wgp_agents.kernels.sampling import Seeds, fill_beta, fill_uniform
from wgp_gym.types import Array

__all__ = ["Seeds", "beta_variates", "fill_uniform", "normal_variates", "seeds_of"]


def normal_variates(uniform: UniformStreams, count: int) -> Array:
    """Return standard normal variates, `(B, count)`; the first ones do not depend on `count`."""
    seeds = seeds_of(uniform)
    draws = np.empty((len(seeds), count))
    fill_uniform(seeds, draws)
    variates: Array = ndtri(draws)
    return variates


def beta_variates(uniform: UniformStreams, first: Array, second: Array) -> Array:
    """Return variates of Beta(a, b), `(B, K)`, for a and b of at least 1; exact up to rounding.

    They come by rejection from a log-logistic law: at most 4 / e = 1.47 trials on average.
    """
    variates = np.empty(first.shape)
    fill_beta(seeds_of(uniform), first, second, variates)
    return variates


def seeds_of(uniform: UniformStreams) -> Seeds:
    """Return a draw of every learner as an integer of 53 bits, `(B,)`."""
    return (uniform.draw() * 2.0**53).astype(np.uint64)
