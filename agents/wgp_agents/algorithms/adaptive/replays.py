"""The plays of OPKB: optimal designs, blocks and replays drawn from them, and estimates.

A block of order m has E 2^m steps. Each learner has its own block and clock. An interval of order
j < m begins wherever E 2^j divides the clock, and is a replay with probability 2^{(j-m)/2}; the
block itself is the interval of order m. At each step the live interval of the smallest order plays
its strategy.

Notation, for one learner: phi_a `(m,)` are the features of arm a, p a distribution of plays,
S(p) = sum_a p_a phi_a phi_a^T + sigma I = R^T R, v_a = phi_a^T S(p)^{-1} phi_a.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wgp_agents.core.sampling import Seeds, fill_uniform
from wgp_agents.core.state import check_counts
from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.design import fill_designs, fill_factors
from wgp_agents.kernels.jit import compiled, subroutine
from wgp_agents.kernels.linalg import FIRST, backward, forward
from wgp_gym.types import Array, Indices, Mask

__all__ = ["Designs", "ReplayArrays", "Replays", "design_factors", "optimal_designs"]


class Designs(NamedTuple):
    """Designs p of B learners.

    Attributes:
        probabilities: p, `(B, n)`.
        gaps: Bounds on F(p) less its minimum, `(B,)`.
        factors: R of S(p) = R^T R, upper, `(B, m, m)`.
    """

    probabilities: Array
    gaps: Array
    factors: Array


def optimal_designs(phi: Array, rank: Indices, regularization: Array, costs: Array) -> Designs:
    """Return, for every learner, the p that minimises F(p) = sum_a p_a c_a - log det S(p).

    With c_a = beta Delta_a / 2 it is OP(Delta, beta) of Hong, Li and Tewari (2023); with c = 0 the
    regularised D-optimal design, that of the largest information gain.

    F is convex with the gradient c - v, so that no p is better by more than the gap
        max_a (v_a - c_a) - sum_a p_a (v_a - c_a):
    the search stops where that is at most 1e-9 max(1, sum_a p_a v_a). It alternates pairwise
    Frank-Wolfe steps, which move weight from the arm of the smallest v - c that has some to that of
    the largest, with Newton steps on the arms that have weight. Neither increases F, -log det being
    self-concordant.
    Deviation: the authors' code follows the central path of a barrier on all arms; the minimum is
    the same.

    Args:
        phi: Column a is phi_a, `(m, n)`.
        rank: The number of features that each learner uses, `(B,)`.
        regularization: sigma > 0, `(B,)`.
        costs: c, `(B, n)`; infinity for an arm that must not be played. One at least is finite.
    """
    m, batch = len(phi), len(rank)
    designs = Designs(np.zeros(costs.shape), np.zeros(batch), np.zeros((batch, m, m)))
    fill_designs(phi, rank, regularization, costs, *designs)
    return designs


def design_factors(phi: Array, rank: Indices, regularization: Array, probabilities: Array) -> Array:
    """Return R, upper with S(p) = R^T R in its leading rank x rank part, `(B, m, m)`."""
    factors = np.zeros((len(rank), len(phi), len(phi)))
    fill_factors(phi, rank, regularization, probabilities, factors)
    return factors


class ReplayArrays(NamedTuple):
    """The state of B learners, with M + 1 orders, n arms, q features.

    Attributes:
        length: E, `(B,)`.
        order: m, the order of the current block, `(B,)`.
        clock: Steps of it so far, `(B,)`.
        due: Of which orders an interval has begun and is still to be drawn, `(B, M + 1)`.
        live: Which orders have an interval that is going on and counts, `(B, M + 1)`.
        strategies: p_j, `(B, M + 1, n)`.
        factors: R of S(p_j) = R^T R, `(B, M + 1, q, q)`.
        sums: Of S(p)^{-1} phi y since each order's interval began, p being what the arm was drawn
            from, `(B, M + 1, q)`.
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
        first: The designs p_0, the strategies of every first block.
        length: E >= 1, `(B,)`.
        orders: M + 1, the number of orders. A block of order M is followed by another one.
        smallest: The smallest order of replays.

    Attributes:
        arrays: The state.
    """

    _constants = ("basis",)

    def __init__(
        self,
        basis: Basis,
        first: Designs,
        length: Indices,
        orders: int,
        smallest: int,
    ) -> None:
        (q, n), batch = basis.phi.shape, len(basis.rank)
        self.basis, self._smallest = basis, smallest
        order, clock = np.zeros((2, batch), np.int64)
        strategies, factors = np.zeros((batch, orders, n)), np.zeros((batch, orders, q, q))
        strategies[:, 0], factors[:, 0] = first.probabilities, first.factors
        due, live = np.zeros((2, batch, orders), bool)
        sums = np.zeros((batch, orders, q))
        self.arrays = ReplayArrays(length, order, clock, due, live, strategies, factors, sums)

    def _check_state(self) -> None:
        check_counts(self, "order", self.arrays.order, self.arrays.live.shape[1] - 1)
        check_counts(self, "length", self.arrays.length - 1, 2**62)

    def begin(self, rows: Indices, orders: Indices) -> None:
        """Begin a block of these orders `(b,)` for the learners `rows` `(b,)`."""
        arrays = self.arrays
        arrays.order[rows], arrays.clock[rows], arrays.due[rows] = orders, 0, True
        arrays.live[rows], arrays.sums[rows] = False, 0.0
        arrays.live[rows, orders] = True

    def follow(self, rows: Indices, orders: Indices, strategies: Array) -> None:
        """Set the strategies `(b, n)` of these orders `(b,)` for the learners `rows` `(b,)`."""
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
        """Learn from one play of every learner in `active`.

        Returns:
            The live intervals that have ended, `(B, M + 1)`. After a block has ended, `begin` must
            be called.
        """
        ended = np.zeros(self.arrays.live.shape, bool)
        take_plays(arms, rewards, active, self.basis.phi, self.basis.rank, self.arrays, ended)
        return ended

    def estimates(self, rows: Indices, orders: Indices) -> Array:
        """Return the means of phi_a^T S(p)^{-1} phi y over intervals that have ended, `(b, n)`."""
        phi = self.basis.phi
        found = np.zeros((len(rows), phi.shape[1]))
        steps = self.arrays.length[rows] * 2.0**orders
        fill_estimates(self.arrays.sums[rows, orders] / steps[:, None], phi, found)
        return found


@subroutine
def first_live(live: Mask) -> int:
    """Return the smallest order that is live; one always is."""
    j = 0
    while not live[j]:
        j += 1
    return j


@compiled
def draw_arms(draws: Array, smallest: int, arrays: ReplayArrays, arms: Indices) -> None:
    """Draw what is due, and fill in an arm of every learner, `(B,)`. See `Replays`.

    `draws` are uniform numbers: for the arm, and for each order below the largest, `(B, M + 1)`.
    """
    for i in range(len(draws)):
        live, m = arrays.live[i], arrays.order[i]
        for j in range(smallest, m):  # an interval is a replay with probability 2^{(j-m)/2}
            if arrays.due[i, j]:
                live[j] = draws[i, j + 1] < 2.0 ** (0.5 * (j - m))
        arrays.due[i, :] = False
        p = arrays.strategies[i, first_live(live)]
        reached = 0.0
        for a in range(len(p)):
            if p[a] > 0.0:  # the last of these, if rounding leaves the sum below the draw
                arms[i] = a
                reached += p[a]
                if reached > draws[i, 0]:
                    break


@subroutine
def weigh(R: Array, phi: Array, m: int, arm: int, u: Array) -> None:
    """Compute u = (R^T R)^{-1} phi_a in its first m entries."""
    for i in range(m):
        u[i] = phi[i, arm]
    forward(R, FIRST, u[:m])
    backward(R, u[:m])


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
        for j in range(m + 1):  # S(p)^{-1} phi y, also of intervals that are still to be drawn
            if arrays.clock[i] % (length << j) == 0:
                arrays.sums[i, j] = 0.0
            for h in range(rank[i]):
                arrays.sums[i, j, h] += u[h] * rewards[i]
        arrays.clock[i] += 1
        for j in range(m + 1):
            if arrays.clock[i] % (length << j) == 0:
                arrays.due[i, j] = True
                ended[i, j] = live[j]
                live[j] = j == m


@compiled
def fill_estimates(weights: Array, phi: Array, found: Array) -> None:
    """Add phi^T w of every learner, `(b, n)`, for weights `(b, q)`."""
    for i in range(len(weights)):
        for j in range(len(phi)):
            for a in range(phi.shape[1]):
                found[i, a] += weights[i, j] * phi[j, a]
