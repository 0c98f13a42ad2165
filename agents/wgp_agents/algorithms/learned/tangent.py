"""How unsure a network is, by the gradients of its output: the neural tangent kernel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from wgp_agents.algorithms.learned.network import Network, backward, forward
from wgp_agents.kernels.blas import blocks, single_thread
from wgp_gym.types import Array, Floats32, Mask

__all__ = ["tangent_deviations"]

LEAST = 1e-12  # of the trace, added to the diagonal: rounding has spoilt what is smaller


class Tangents(NamedTuple):
    """The gradients g(x; theta) of M inputs, as the factors of each layer's outer product."""

    below: list[Array]  # (B, M, rows) of each layer
    slopes: list[Array]  # (B, M, columns)

    def kernel(self, other: Tangents) -> Array:
        """Return g(x)^T g(x') for all pairs, `(B, M, M')`; no gradient is written out.

        The inner product of two outer products is the product of the inner ones; the offsets'
        gradients, whose factor from below is 1, add 1 to that from below.
        """
        pairs = zip(self.below, self.slopes, other.below, other.slopes, strict=True)
        terms = [(a @ t(c) + 1.0) * (b @ t(d)) for a, b, c, d in pairs]
        total: Array = terms[0] + terms[1] + terms[2]
        return total

    def squares(self) -> Array:
        """Return g(x)^T g(x), `(B, M)`."""
        terms = [
            ((a * a).sum(-1) + 1.0) * (b * b).sum(-1)
            for a, b in zip(self.below, self.slopes, strict=True)
        ]
        total: Array = terms[0] + terms[1] + terms[2]
        return total


def t(factor: Array) -> Array:
    """Return the transpose of each matrix of a stack."""
    return factor.swapaxes(-1, -2)


def tangents(parts: list[Array], inputs: Floats32) -> Tangents:
    """Return the gradients at inputs `(M, p)` of all learners, or `(B, M, p)` of each."""
    given = inputs.astype(float)
    one, two, out = forward(parts, given)
    factors = list(backward(parts, (given, one, two), np.ones_like(out)))
    return Tangents([below for _, below, _ in factors], [slope for _, _, slope in factors])


def tangent_deviations(
    network: Network, arms: Floats32, seen: Floats32, kept: Mask, regularization: Array
) -> Array:
    """Return the standard deviations of the network's output at the arms, `(B, n)`.

    sigma^2(x) = lambda g(x)^T U^{-1} g(x) / m, where U = lambda I + sum of g g^T / m over the plays
    and m is the width of the hidden layers. U has as many rows as there are weights, so it is
    inverted by Woodbury's identity, whose matrix has as many rows as there are plays M:
    sigma^2(x) = k(x, x) - k(x)^T (K + lambda I)^{-1} k(x), k = g^T g / m.

    Args:
        network: The network of B learners, with m units in each hidden layer.
        arms: What it sees of the arms, `(n, p)`.
        seen: And of the plays, `(B, M, p)`.
        kept: Which of these there are, `(B, M)`.
        regularization: lambda, `(B,)`.

    Source: [Zhang21] and [Zhou20], Algorithm 1, of `wgp_agents.algorithms.learned.neural_bound`.
    """
    with single_thread(scipy_too=False):
        return np.concatenate(list(_blocks(network, arms, seen, kept, regularization)), axis=1)


def _blocks(
    network: Network, arms: Floats32, seen: Floats32, kept: Mask, regularization: Array
) -> Iterator[Array]:
    """Yield the deviations of a block of arms after the other."""
    parts = [part.astype(float) for part in network.split(network.weights)]
    plays = tangents(parts, seen)
    K = plays.kernel(plays) / network.hidden * (kept[:, :, None] & kept[:, None, :])
    every = np.arange(K.shape[1])
    trace = K[:, every, every].sum(axis=1)
    K[:, every, every] += np.maximum(regularization, LEAST * trace)[:, None]
    for block in blocks(len(arms)):
        places = tangents(parts, arms[block])
        cross = plays.kernel(places) / network.hidden * kept[:, :, None]
        told = (cross * np.linalg.solve(K, cross)).sum(axis=1)
        yield np.sqrt(np.maximum(places.squares() / network.hidden - told, 0.0))
