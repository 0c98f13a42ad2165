"""The beam pattern of a uniform linear array, as a kernel of directions.

Notation: u = sin(angle) is the direction of a plane wave, from broadside; the elements are half a
wavelength apart, so that a wave from u has the phases pi n u, n = 0 .. N - 1.

References:
    [VT02] Van Trees. Optimum Array Processing. Wiley 2002, Chapter 2: uniform linear arrays.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wgp_gym.kernel_algebra import FeatureKernel
from wgp_gym.types import Array
from wgp_gym.validation import check_float, check_int

__all__ = ["BeamKernel", "periodic_sinc"]

MAX_ANTENNAS = 1_000


@dataclass(frozen=True)
class BeamKernel(FeatureKernel):
    """k(x, y) = |a(u)^H a(v)|^2, the power towards u of a beam at v, 1 where they are one.

    a(u) = N^{-1/2} (exp(i pi n u))_n is the steering vector, u = span x and v = span y. With
    d = u - v this is the Fejer kernel sin^2(pi N d / 2) / (N sin(pi d / 2))^2, the square of the
    beam pattern of [VT02]: 1 / N + (2 / N) times the sum over k = 1 .. N - 1 of (1 - k / N)
    cos(pi k d). So it is positive definite, with 2 N - 1 features; its period in d is 2.

    Args:
        antennas: The number N of elements, in [1, 1000].
        span: The directions u that [0, 1] shows go from somewhere to so much beyond, in (0, 2].

    Raises:
        ValueError: If a parameter is out of its range.
    """

    antennas: int
    span: float = 2.0

    def __post_init__(self) -> None:
        owner = "BeamKernel"
        count = check_int("antennas", self.antennas, owner, 1, MAX_ANTENNAS)
        span = check_float("span", self.span, owner, 0, 2, closed="right")
        object.__setattr__(self, "antennas", count)  # frozen, so set through object
        object.__setattr__(self, "span", span)

    def __call__(self, X: Array, Y: Array) -> Array:
        """Evaluate k on all pairs, `(..., n, m)`."""
        apart = self.span * (X[..., :, None, 0] - Y[..., None, :, 0])
        return np.asarray(periodic_sinc(apart, self.antennas) ** 2)

    def diagonal(self, X: Array) -> Array:
        """Return k(x, x) = 1, `(..., n)`."""
        return np.ones(X.shape[:-1])

    def features(self, X: Array) -> Array:
        """Return the 2 N - 1 features: a constant, then cosines, then sines, `(..., n, m)`."""
        N = self.antennas
        k = np.arange(1, N)
        angle = math.pi * self.span * np.asarray(X, float) * k
        weight = np.sqrt(2 / N * (1 - k / N))
        constant = np.full((*angle.shape[:-1], 1), N**-0.5)
        return np.concatenate([constant, weight * np.cos(angle), weight * np.sin(angle)], axis=-1)


def periodic_sinc(d: Array, count: int) -> Array:
    """Return sin(pi M d / 2) / (M sin(pi d / 2)) at d brought to [-1, 1] by its period 2.

    Args:
        d: Differences of directions, of any shape.
        count: M >= 1. Where it is even, the function's own period is 4; its square has 2.
    """
    near = d - 2 * np.rint(d / 2)
    half = 0.5 * math.pi * near
    below = count * np.sin(half)
    one = below == 0
    value: Array = np.where(one, 1.0, np.sin(count * half) / np.where(one, 1.0, below))
    return value
