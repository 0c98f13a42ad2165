"""Observations that go stale: what is kept of them, and what of it speaks of the future.

The function is a Gaussian process of covariance v k(x, x') c(t - t'), v the signal variance and
c(u) = (1 + r u) e^{-r u}, r = 3^{1/2} / l, the Matern-3/2 correlation in time. For times t + u
after the present t it splits: c(t + u - t_a) = e^{-r u} (g_a + r u h_a), with
h_a = e^{-r (t - t_a)} and g_a = (1 + r (t - t_a)) h_a. So all that n observations say of the
future has 2 m coordinates, phi_a being the m features of play a. For one learner:

| symbol | code | meaning |
|---|---|---|
| P | `inverse` | (K + D)^{-1} of the covariance and the noise variances, both over v, `(n, n)` |
| alpha | `alpha` | P y |
| M | `weights` | sum of alpha_a (g_a, h_a) phi_a, `(2, m)`: the posterior mean of the future |
| W_a | | sum over b of P_ab (g_b, h_b) phi_b, `(2, m)` |
| R W_a | `influence` | the same, R such that R^T R is the mean of phi phi^T over all points |
| Q | `shrinkage` | sum of (g_a, h_a) phi_a W_a^T, its blocks 11, 12 and 22, `(3, m, m)` |

Without observation a the mean at (x, t + u) is smaller by z_a alpha_a / P_aa, and the variance
larger by v z_a^2 / P_aa, where z_a = e^{-r u} phi(x) . (W_a1 + r u W_a2). The integral of z_a^2
over u >= 0 and its mean over x is |R W_a1|^2 / 2 + R W_a1 . R W_a2 / 2 + |R W_a2|^2 / 4, up to a
factor 1 / r that all have in common. That is why a step costs O(n^2 + n m + m^2) and the points.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgp_gym.types import Array

__all__ = ["Rules", "Space", "StaleArrays"]


class StaleArrays(NamedTuple):
    """What B learners keep: at most L - 1 observations each between steps.

    Attributes:
        mean: Posterior means of all points at the next step, `(B, n)`.
        variance: Their posterior variances, `(B, n)`.
        gain: 1/2 log det(I + D^{-1} K) of what is held, `(B,)`.
        held: How many observations are held, `(B,)`.
        features: Their features, `(B, L, m)`.
        times: The steps at which they were made, from 0, `(B, L)`.
        rewards: Their rewards, `(B, L)`.
        noise: Their noise variances over v, `(B, L)`.
        inverse: P, `(B, L, L)`.
        influence: R W, `(B, L, 2, m)`.
        shrinkage: Q, `(B, 3, m, m)`.
        weights: M, `(B, 2, m)`.
        clock: The steps so far, `(B,)`.
        lengthscale: l of the time kernel, in steps, `(B,)`.
        budget: The removal budget, `(B,)`.
        age: Changes since all was last computed anew, `(B,)`.
    """

    mean: Array
    variance: Array
    gain: Array
    held: NDArray[np.int64]
    features: Array
    times: NDArray[np.int64]
    rewards: Array
    noise: Array
    inverse: Array
    influence: Array
    shrinkage: Array
    weights: Array
    clock: NDArray[np.int64]
    lengthscale: Array
    budget: Array
    age: NDArray[np.int64]


class Space(NamedTuple):
    """What the integral over space is made of.

    Attributes:
        root: R, upper, `(m, m)`: that of the first m features is its own leading block.
        gram: R^T R, the mean of phi phi^T over all points, `(m, m)`.
    """

    root: Array
    gram: Array


class Rules(NamedTuple):
    """How B learners fit and drop.

    Attributes:
        signal: The signal variance v, `(B,)`.
        alpha: The budget grows by the factor 1 + alpha in each lengthscale, `(B,)`.
        fitted: Whose lengthscale is fitted, `(B,)`.
        grid: The lengthscales to choose from, in steps.
        initial: Observations before any is dropped, and before the first fit.
        refit_every: Steps from one fit to the next.
        capacity: The most observations to hold.
    """

    signal: Array
    alpha: Array
    fitted: NDArray[np.bool_]
    grid: Array
    initial: int
    refit_every: int
    capacity: int
