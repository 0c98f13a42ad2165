"""Small networks, one for each learner, trained side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from wgp_gym.types import Array, Floats32, Indices, Mask

__all__ = ["Network", "Pull", "backward", "forward"]

DECAYS = 0.9, 0.999  # beta_1 and beta_2 of Adam
EPSILON = 1e-8
BLOCK = 1024  # arms at a time
Real = TypeVar("Real", np.float32, np.float64)
Layers: TypeAlias = tuple[NDArray[Real], NDArray[Real], NDArray[Real]]


class Pull(NamedTuple):
    """What draws weights back: strength |theta - towards|^2 is added to the loss."""

    towards: Floats32  # (b, P)
    strength: Floats32  # (b,)


class Network:
    """B perceptrons with two hidden layers of rectified units, each with weights of its own.

    Products are taken learner by learner (stacked matrix products), so that the numbers of one
    do not depend on B; in single precision, as networks are trained elsewhere too.

    Args:
        batch: B.
        inputs: p.
        hidden: h.
        learning_rate: Of Adam, `(B,)`.

    Source: [Kingma15] Kingma and Ba. Adam: A method for stochastic optimization. ICLR 2015,
    Algorithm 1. The weights start as in [He15] He and others. Delving deep into rectifiers. ICCV
    2015, Section 2.2.
    """

    def __init__(self, batch: int, inputs: int, hidden: int, learning_rate: Array) -> None:
        layers = ((inputs, hidden), (hidden, hidden), (hidden, 1))
        self._shapes = [(rows, width) for below, width in layers for rows in (below, 1)]
        size = sum(rows * columns for rows, columns in self._shapes)
        self.weights, self._first, self._second = np.zeros((3, batch, size), np.float32)
        self._rate = learning_rate.astype(np.float32)
        self._updates = np.zeros(batch, np.float32)

    @property
    def hidden(self) -> int:
        """The units in each hidden layer."""
        return self._shapes[0][1]

    def split(self, flat: Floats32) -> Iterator[Floats32]:
        """Yield the weights and offsets of each layer, views `(b, rows, columns)` of `(b, P)`."""
        start = 0
        for rows, columns in self._shapes:
            yield flat[:, start : start + rows * columns].reshape(len(flat), rows, columns)
            start += rows * columns

    def draw(self, mask: Mask, uniform: Array) -> None:
        """Give the learners in `mask` `(B,)` new weights that follow from `uniform` `(B,)`."""
        for i in np.flatnonzero(mask):
            normal = np.random.default_rng(int(uniform[i] * 2**53)).standard_normal
            for part in self.split(self.weights[i : i + 1]):
                rows = part.shape[1]
                part[:] = 0.0 if rows == 1 else normal(part.shape) * np.sqrt(2 / rows)
        self._first[mask] = self._second[mask] = self._updates[mask] = 0.0

    def values(self, inputs: Floats32) -> Floats32:
        """Return the outputs on inputs `(n, p)` that all learners share, `(B, n)`."""
        parts = list(self.split(self.weights))
        blocks = range(0, len(inputs), BLOCK)  # or the hidden units of all arms fill the memory
        values = [forward(parts, inputs[start : start + BLOCK])[-1][:, :, 0] for start in blocks]
        return np.concatenate(values, axis=1)

    def fit(
        self,
        learners: Indices,
        inputs: Floats32,
        targets: Floats32,
        weights: Floats32,
        steps: int,
        pull: Pull | None = None,
    ) -> None:
        """Take steps of Adam on the weighted mean of the squared errors.

        Args:
            learners: The b learners that do.
            inputs: `(b, M, p)`.
            targets: `(b, M)`.
            weights: `(b, M)`.
            steps: How many.
            pull: What draws the weights back, if anything.
        """
        theta, first, second = (
            state[learners] for state in (self.weights, self._first, self._second)
        )
        gradient, rate = np.empty_like(theta), self._rate[learners, None]
        for _ in range(steps):
            self._updates[learners] += 1
            self._differentiate(theta, gradient, inputs, targets, weights)
            if pull is not None:
                gradient += 2 * pull.strength[:, None] * (theta - pull.towards)
            first += (1 - DECAYS[0]) * (gradient - first)
            second += (1 - DECAYS[1]) * (gradient * gradient - second)
            age = self._updates[learners, None]
            size = np.sqrt(second / (1 - DECAYS[1] ** age)) + EPSILON
            theta -= rate * (first / (1 - DECAYS[0] ** age)) / size
        self.weights[learners], self._first[learners] = theta, first
        self._second[learners] = second

    def _differentiate(
        self,
        theta: Floats32,
        gradient: Floats32,
        inputs: Floats32,
        targets: Floats32,
        weights: Floats32,
    ) -> None:
        """Write the gradient of the weighted mean squared error, `(b, P)`."""
        parts, slopes = list(self.split(theta)), list(self.split(gradient))
        one, two, out = forward(parts, inputs)
        error = 2 * weights[:, :, None] * (out - targets[:, :, None])
        for layer, below, slope in backward(parts, (inputs, one, two), error):
            np.matmul(below.swapaxes(1, 2), slope, out=slopes[layer])
            slope.sum(axis=1, keepdims=True, out=slopes[layer + 1])


def forward(
    parts: list[NDArray[Real]], inputs: NDArray[Real]
) -> tuple[NDArray[Real], NDArray[Real], NDArray[Real]]:
    """Return both hidden layers and the output, `(b, M, columns)`."""
    one = np.maximum(inputs @ parts[0] + parts[1], 0.0)
    two = np.maximum(one @ parts[2] + parts[3], 0.0)
    return one, two, two @ parts[4] + parts[5]


def backward(
    parts: list[NDArray[Real]],
    layers: tuple[NDArray[Real], NDArray[Real], NDArray[Real]],
    slope: NDArray[Real],
) -> Iterator[tuple[int, NDArray[Real], NDArray[Real]]]:
    """Yield the factors of the gradient of each layer's weights, from the last to the first.

    Args:
        parts: The weights and offsets of each layer.
        layers: The inputs and both hidden layers, `(b, M, columns)`.
        slope: The derivative with respect to each output, `(b, M, 1)`.

    Yields:
        The place of the layer's weights in `parts`; what it is given, `(b, M, rows)`; and the
        derivative with respect to what it returns before it is rectified, `(b, M, columns)`. An
        input's gradient is the outer product of its rows of these; of the offsets, the latter.
    """
    for layer, below in ((4, layers[2]), (2, layers[1]), (0, layers[0])):
        yield layer, below, slope
        if layer:
            slope = (slope @ parts[layer].swapaxes(1, 2)) * (below > 0)
