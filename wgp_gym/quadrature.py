"""One-dimensional quadrature rules for the spectral densities of kernels.

References:
    [Boyd87] Boyd. Exponentially convergent Fourier-Chebyshev quadrature schemes on bounded and
        infinite intervals. J. Sci. Comput. 2, 1987.
    [Deng22], [Mutny18]: see `wgp_gym.kernels`.
    [TW14] Trefethen, Weideman. The exponentially convergent trapezoidal rule. SIAM Rev. 56, 2014.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import roots_hermite

from wgp_gym.kernels import matern_profile
from wgp_gym.types import Array

__all__ = ["hermite_rule", "matern_rule", "share_pairs"]


def hermite_rule(degree: int) -> tuple[Array, Array]:
    """Return the nodes and weights of Gauss-Hermite quadrature for exp(-x^2) / sqrt(pi).

    The weight of rho is v(rho) = 2^(m-1) m! / (m^2 H_{m-1}(rho)^2). With the orthonormal
    h_k = H_k / sqrt(2^k k!) that is 1 / (m h_{m-1}(rho)^2), without a factorial or a power to
    overflow: h grows like exp(rho^2 / 2), which is below 1e90 for m <= 200.

    Deviation: [Deng22] Section 5 prints m in the place of m^2, whose weights sum to m, not to 1.

    Returns:
        Nodes, ascending and exactly symmetric, and weights of sum 1, each `(m,)`.
    """
    roots = roots_hermite(degree)[0]
    nodes: Array = (roots - roots[::-1]) / 2
    previous, current = np.zeros(degree), np.ones(degree)
    for k in range(degree - 1):
        following = nodes * math.sqrt(2 / (k + 1)) * current - math.sqrt(k / (k + 1)) * previous
        previous, current = current, following
    return nodes, 1 / (degree * current**2)


def matern_rule(degree: int, lengthscale: float, nu: float) -> tuple[Array, Array]:
    """Return a quadrature rule for the spectral density of the one-dimensional Matern kernel.

    The trapezoidal rule in theta in (-pi/2, pi/2), with the frequency either L tan(theta)
    ([Mutny18], [Boyd87]) or L theta ([TW14], on a cut line). The density falls only like
    w^-(2 nu + 1), so the error falls about like m^-(2 nu), with a factor that depends on L; the
    first map is better for long l, the second for short. The pair with the least error over the
    lags 0 to 1 is taken.

    Deviation: [Mutny18] takes the tangent with Gauss-Legendre nodes and a fixed L, at l = 0.2,
    nu = 2.5, m = 63 at least 30 times less accurate, and with the best L 10 times.

    Returns:
        Frequencies, symmetric to 0, and weights of sum 1, each `(m,)`.
    """
    corner = math.sqrt(2 * nu) / lengthscale  # where the density starts to fall
    theta = np.arange(1 - degree, degree, 2, dtype=np.float64) * (math.pi / (2 * degree))
    lags = np.linspace(0.0, 1.0, 257)
    exact = matern_profile(lags, lengthscale, nu)
    best, least = (theta, theta), math.inf
    for scale in np.geomspace(0.1, 100.0, 91):  # L / corner
        for curve, slope in ((theta, np.ones(degree)), (np.tan(theta), 1 + np.tan(theta) ** 2)):
            weights: Array = slope * (1 + (scale * curve) ** 2) ** -(nu + 0.5)
            weights /= weights.sum()
            frequencies: Array = corner * scale * curve
            half, shared = share_pairs(frequencies, weights)
            error = float(np.abs(np.cos(np.outer(lags, half)) @ shared - exact).max())
            if error < least:
                best, least = (frequencies, weights), error
    return best


def share_pairs(nodes: Array, weights: Array) -> tuple[Array, Array]:
    """Return one node of each pair +-omega, with the weight of both.

    Args:
        nodes: Row N - 1 - i is minus row i, `(N, ...)`.
        weights: The same for both of a pair, `(N,)`.
    """
    first = len(weights) // 2
    shared = 2 * weights[first:]
    shared[: len(weights) % 2] /= 2  # the middle one of an odd number is its own partner
    return nodes[first:], shared
