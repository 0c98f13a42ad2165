"""Blocks of randomised plays, replays of earlier strategies within, and estimates from them.

A block of order m has E 2^m steps. Learners stand at different places of different blocks, so each
has its own clock. An interval of order j < m begins wherever E 2^j divides the clock, and is a
replay with probability 2^{(j-m)/2}; the block itself is the interval of order m. At each step the
live interval of the smallest order plays its strategy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wgp_agents.algorithms.adaptive.design import design_factors
from wgp_agents.core.sampling import Seeds, fill_uniform
from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array, Indices, Mask

__all__ = ["ReplayArrays", "Replays"]


class ReplayArrays(NamedTuple):
    """What B learners keep: M + 1 orders, n arms, q features.

    Attributes:
        length: E, `(B,)`.
        order: m, the order of the block at hand, `(B,)`.
        clock: Steps of it so far, `(B,)`.
        due: Whether the intervals that begin now have still to be drawn, `(B,)`.
        live: Which orders have an interval that is going on and counts, `(B, M + 1)`.
        strategies: p_j, `(B, M + 1, n)`.
        factors: R of S(p_j) = R^T R, `(B, M + 1, q, q)`.
        sums: Of S(p)^{-1} phi y over the steps of each live interval, p being what the arm was
            drawn from, `(B, M + 1, q)`.
    """

    length: Indices
    order: Indices
    clock: Indices
    due: Mask
    live: Mask
    strategies: Array
    factors: Array
    sums: Array


class Replays:
    """The plays and estimates of B learners.

    Args:
        basis: The features, and sigma in S(p) = sum_a p_a phi_a phi_a^T + sigma I.
        first: p_0, the strategy of every first block, `(B, n)`.
        length: E >= 1, `(B,)`.
        orders: M + 1, how many orders there are. After a block of order M comes another one.
        smallest: The smallest order of which there are replays.

    Attributes:
        arrays: What is kept.
    """

    def __init__(
        self,
        basis: Basis,
        first: Array,
        length: Indices,
        orders: int,
        smallest: int,
    ) -> None:
        (q, n), batch = basis.phi.shape, len(basis.rank)
        self.basis, self._smallest = basis, smallest
        order, clock = np.zeros((2, batch), np.int64)
        strategies, factors = np.zeros((batch, orders, n)), np.zeros((batch, orders, q, q))
        strategies[:, 0] = first
        factors[:, 0] = design_factors(basis.phi, basis.rank, basis.regularization, first)
        due, live = np.zeros(batch, bool), np.zeros((batch, orders), bool)
        sums = np.zeros((batch, orders, q))
        self.arrays = ReplayArrays(length, order, clock, due, live, strategies, factors, sums)

    def begin(self, rows: Indices, orders: Indices) -> None:
        """Let some learners begin a block.

        Args:
            rows: Which learners, `(b,)`.
            orders: The order of the block of each, `(b,)`.
        """
        arrays = self.arrays
        arrays.order[rows], arrays.clock[rows], arrays.due[rows] = orders, 0, True
        arrays.live[rows], arrays.sums[rows] = False, 0.0
        arrays.live[rows, orders] = True

    def follow(self, rows: Indices, orders: Indices, strategies: Array) -> None:
        """Set the strategies `(b, n)` of some orders `(b,)` of some learners `(b,)`."""
        phi, rank, regularization = (
            self.basis.phi,
            self.basis.rank[rows],
            self.basis.regularization[rows],
        )
        self.arrays.strategies[rows, orders] = strategies
        self.arrays.factors[rows, orders] = design_factors(phi, rank, regularization, strategies)

    def choose(self, seeds: Seeds) -> Indices:
        """Draw the replays that are due, and an arm for every learner, `(B,)`."""
        draws, arms = np.empty(self.arrays.live.shape), np.zeros(len(seeds), np.int64)
        fill_uniform(seeds, draws)  # the first for the arm, one for each order below the largest
        draw_arms(draws, self._smallest, self.arrays, arms)
        return arms

    def learn(self, arms: Indices, rewards: Array, active: Mask) -> Mask:
        """Take in one play of every learner in `active`.

        Returns:
            Which live intervals have come to their end, `(B, M + 1)`. A block that has ended must
            be followed by another one.
        """
        ended = np.zeros(self.arrays.live.shape, bool)
        take_plays(arms, rewards, active, self.basis.phi, self.basis.rank, self.arrays, ended)
        return ended

    def estimates(self, rows: Indices, orders: Indices) -> Array:
        """Return the mean of phi_a^T S(p)^{-1} phi y over an interval that has ended, `(b, n)`.

        Args:
            rows: Which learners, `(b,)`.
            orders: The order of the interval of each, `(b,)`.
        """
        phi = self.basis.phi
        found = np.zeros((len(rows), phi.shape[1]))
        steps = self.arrays.length[rows] * 2.0**orders
        fill_estimates(self.arrays.sums[rows, orders] / steps[:, None], phi, found)
        return found


@compiled
def first_live(live: Mask) -> int:
    """Return the smallest order that is live; one always is."""
    j = 0
    while not live[j]:
        j += 1
    return j


@compiled
def draw_arms(draws: Array, smallest: int, arrays: ReplayArrays, arms: Indices) -> None:
    """Draw what is due, and fill in an arm of every learner. See `Replays`.

    Args:
        draws: Uniform numbers: for the arm, and for each order below the largest, `(B, M + 1)`.
        smallest: The smallest order of replays.
        arrays: What the learners keep.
        arms: Where the arms go, `(B,)`.
    """
    for i in range(len(draws)):
        live, m = arrays.live[i], arrays.order[i]
        if arrays.due[i]:
            arrays.due[i] = False
            for j in range(smallest, m):
                if arrays.clock[i] % (arrays.length[i] << j) == 0:
                    live[j] = draws[i, j + 1] < 2.0 ** (0.5 * (j - m))
                    arrays.sums[i, j] = 0.0
        p = arrays.strategies[i, first_live(live)]
        reached = 0.0
        for a in range(len(p)):
            if p[a] > 0.0:  # also where rounding leaves the sum below the draw
                arms[i] = a
                reached += p[a]
                if reached > draws[i, 0]:
                    break


@compiled
def weigh(R: Array, phi: Array, m: int, arm: int, u: Array) -> None:
    """Compute u = (R^T R)^{-1} phi_a in its first m places."""
    for i in range(m):
        u[i] = phi[i, arm]
    for i in range(m):
        u[i] /= R[i, i]
        for j in range(i + 1, m):
            u[j] -= R[i, j] * u[i]
    for i in range(m - 1, -1, -1):
        for j in range(i + 1, m):
            u[i] -= R[i, j] * u[j]
        u[i] /= R[i, i]


@compiled
def take_plays(
    arms: Indices,
    rewards: Array,
    active: Mask,
    phi: Array,
    rank: Indices,
    arrays: ReplayArrays,
    ended: Mask,
) -> None:
    """Add a play of every active learner, and mark the live intervals that end with it."""
    u = np.zeros(len(phi))
    for i in range(len(arms)):
        if not active[i]:
            continue
        live, m, length = arrays.live[i], arrays.order[i], arrays.length[i]
        k = first_live(live)
        weigh(arrays.factors[i, k], phi, rank[i], arms[i], u)
        for j in range(k, m + 1):
            if live[j]:
                for h in range(rank[i]):
                    arrays.sums[i, j, h] += u[h] * rewards[i]
        arrays.clock[i] += 1
        arrays.due[i] = arrays.clock[i] % length == 0
        for j in range(k, m + 1):
            if live[j] and arrays.clock[i] % (length << j) == 0:
                ended[i, j] = True
                live[j] = j == m


@compiled
def fill_estimates(weights: Array, phi: Array, found: Array) -> None:
    """Add phi^T w of every learner, `(b, n)`, for weights `(b, q)`."""
    for i in range(len(weights)):
        for j in range(len(phi)):
            for a in range(phi.shape[1]):
                found[i, a] += weights[i, j] * phi[j, a]
