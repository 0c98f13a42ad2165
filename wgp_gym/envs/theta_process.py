"""How the vector theta of a linear bandit moves: independent vectors, or a rotation."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from wgp_gym.envs.noise import SMALLEST
from wgp_gym.types import Array
from wgp_gym.validation import as_floats, reject

__all__ = ["IndependentVectors", "Rotation", "ThetaProcess", "on_sphere"]

OWNER = "LinearTask"
ROUNDING = 1e-9  # a vector of norm 1 that was typed in may be this much longer
SMALLEST_SINE = 1e-6  # of the angle between a start and the direction to turn towards


def on_sphere(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw points uniformly on the unit sphere of the last axis."""
    points: Array = rng.standard_normal(shape)
    # Much faster than loops over a short last axis.
    axes = [np.ascontiguousarray(points[..., axis]) for axis in range(shape[-1])]
    square = axes[0] ** 2
    for one in axes[1:]:
        square += one**2
    length = np.sqrt(square, out=square)
    for axis, one in enumerate(axes):
        np.divide(one, length, out=points[..., axis])
    return points


class ThetaProcess(ABC):
    """The vectors at the knots of a schedule."""

    @abstractmethod
    def draw(self, rng: np.random.Generator) -> Array:
        """Draw the vectors of one episode, `(K, d)`."""


class IndependentVectors(ThetaProcess):
    """K vectors that are given, or uniform on the unit sphere and independent.

    Args:
        count: K.
        dim: d.
        theta: The vectors, `(K, d)`, or None.

    Raises:
        ValueError: If there are not K vectors of the unit ball.
    """

    def __init__(self, count: int, dim: int, theta: ArrayLike | None) -> None:
        self._shape = (count, dim)
        self._theta = None if theta is None else in_ball(theta, dim)
        if self._theta is not None and len(self._theta) != count:
            rule = f"one vector for each of the {count} segments between change points"
            reject("theta", OWNER, rule, theta)

    def draw(self, rng: np.random.Generator) -> Array:
        """Draw the vectors of one episode, `(K, d)`."""
        return on_sphere(rng, self._shape) if self._theta is None else self._theta


class Rotation(ThetaProcess):
    """A vector that turns in a plane, by the same angle from knot to knot.

    Args:
        count: The number of knots K.
        dim: d >= 2.
        theta: The first vector, and for d > 2 optionally one more to turn towards, `(1, d)` or
            `(2, d)`; None: uniform on the unit sphere. The plane's other direction, where it is
            not given, is uniform too; but for d = 2 and a given start it is counter-clockwise.
        angle: The whole angle, in radians.

    Raises:
        ValueError: If theta is not of this kind.
    """

    def __init__(self, count: int, dim: int, theta: ArrayLike | None, angle: float) -> None:
        self._dim = dim
        self._angles = np.linspace(0.0, angle, count)[:, None]
        self._theta = None if theta is None else in_ball(theta, dim)
        if self._theta is None:
            return
        if len(self._theta) > (1 if dim == 2 else 2) or not independent(self._theta):
            rule = "a start, with dim > 2 perhaps another direction, linearly independent"
            reject("theta", OWNER, rule, theta)

    def draw(self, rng: np.random.Generator) -> Array:
        """Draw the vectors of one episode, `(K, d)`."""
        drawn = on_sphere(rng, (2, self._dim))
        given = self._theta
        start = drawn[0] if given is None else given[0]
        towards = drawn[1]
        if given is not None and self._dim == 2:
            towards = np.array([-start[1], start[0]])
        elif given is not None and len(given) == 2:
            towards = given[1]
        length = np.linalg.norm(start)
        side = towards - start * (towards @ start) / length**2
        side *= length / np.linalg.norm(side)
        vectors: Array = np.cos(self._angles) * start + np.sin(self._angles) * side
        return vectors


def in_ball(theta: ArrayLike, dim: int) -> Array:
    """Return vectors of the unit ball as an array `(K, d)`; else raise ValueError."""
    rule = f"a list of vectors of dim = {dim} numbers and norm at most 1"
    vectors = as_floats("theta", theta, OWNER, rule)
    if vectors.ndim != 2 or vectors.shape[1] != dim or not len(vectors):
        reject("theta", OWNER, rule, theta)
    if not (np.abs(vectors) <= 1 + ROUNDING).all():  # NaN is not, either
        reject("theta", OWNER, rule, theta)
    norms = np.sqrt(np.sum(vectors**2, axis=1))
    if not (norms <= 1 + ROUNDING).all():
        reject("theta", OWNER, rule, theta)
    if (norms < SMALLEST).any() and vectors[norms < SMALLEST].any():
        reject("theta", OWNER, f"a list of vectors of norm 0 or at least {SMALLEST:g}", theta)
    return vectors.astype(float)


def independent(vectors: Array) -> bool:
    """Return whether one or two vectors `(K, d)` are linearly independent, beyond rounding."""
    norms = np.linalg.norm(vectors, axis=1)
    if not norms.all():
        return False
    first, *others = vectors / norms[:, None]
    return all(np.linalg.norm(one - first * (first @ one)) > SMALLEST_SINE for one in others)
