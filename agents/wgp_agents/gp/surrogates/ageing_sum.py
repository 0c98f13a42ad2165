"""A falling hyperbola as a sum of exponentials: what fades linearly, from sums of fixed size.

1 / x is the integral of exp(-s x) over s > 0. With s = exp(tau) the integrand is smooth and small
at both ends, so the trapezoid rule in tau converges fast: [BM05]. The exponents that are small at
all x of interest act together as a polynomial, and few Gauss nodes do for all of them: [GW69].

References:
    [BM05] Beylkin, Monzon. On Approximation of Functions by Exponential Sums. Applied and
        Computational Harmonic Analysis 19, 2005.
    [GW69] Golub, Welsch. Calculation of Gauss Quadrature Rules. Mathematics of Computation 23,
        1969.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_gym.types import Array

__all__ = ["ageing_sum"]

STEP = 0.46  # of tau; its error is 2 |Gamma(1 + 2 pi i / h)| = 9e-9
SMALL = 1e-10  # the part of 1 / x that the exponents below the first leave out
LARGE = 1e-9  # exp(-s x) of the largest exponent at the smallest x
FLAT = 6.0  # exponents with s x at most this for all x are merged
MERGED = 6  # into so many


def ageing_sum(ratio: float, horizon: int) -> tuple[Array, Array]:
    """Return a and z `(J,)` with sum of a_j z_j^(k - 1) = 1 / (1 + k ratio) for k = 1, 2, ..., T.

    The relative error is at most 1e-8. From k = 1 on x = 1 + k ratio grows by a factor below T,
    whatever the ratio is, so J is at most 23 for T = 500, 29 for T = 10,000 and 39 for
    T = 1,000,000: about 9 + 2.2 log T. Beyond T the sum falls faster than the hyperbola.

    Args:
        ratio: At least 0; with 0 there is one term, that does not fall.
        horizon: T >= 1.
    """
    if ratio == 0.0:
        return np.ones(1), np.ones(1)
    nearest, farthest = 1.0 + ratio, 1.0 + horizon * ratio
    first = math.floor(math.log(SMALL / farthest) / STEP)
    last = math.floor(math.log(-math.log(LARGE) / nearest) / STEP)
    exponents = np.exp(STEP * np.arange(first, last + 1))
    weights = STEP * exponents
    flat = exponents <= FLAT / farthest
    nodes, merged = gauss_rule(exponents[flat], weights[flat], MERGED)
    s, w = np.append(nodes, exponents[~flat]), np.append(merged, weights[~flat])
    return w * np.exp(-s * nearest), np.exp(-s * ratio)


def gauss_rule(points: Array, weights: Array, size: int) -> tuple[Array, Array]:
    """Return nodes and weights `(size,)` with the first 2 size moments of points with weights.

    By the Lanczos process on the diagonal matrix of the points, with its vectors made orthogonal
    anew at each step, and the eigenvalues of the tridiagonal matrix that it leaves.

    Args:
        points: Positive, rising, more than `size` of them, `(q,)`.
        weights: Positive, `(q,)`.
        size: How many nodes.
    """
    total, scale = weights.sum(), points[-1]
    x, vector = points / scale, np.sqrt(weights / total)
    basis: list[Array] = []
    diagonal, beside = np.zeros(size), np.zeros(size)
    for i in range(size):
        basis.append(vector)
        rest = x * vector
        diagonal[i] = vector @ rest
        for known in (*basis, *basis):  # twice: once leaves rounding behind
            rest = rest - (known @ rest) * known
        beside[i] = np.linalg.norm(rest)
        vector = rest / beside[i]
    values, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside[:-1], -1))
    return scale * values, total * vectors[0] ** 2
