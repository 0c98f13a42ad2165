"""OPKB: plays optimal designs, and replays earlier ones to detect changes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.algorithms.adaptive.replays import Designs, Replays, optimal_designs
from wgp_agents.base import Agent
from wgp_agents.core.access import EnvLike
from wgp_agents.core.made_for import MadeFor
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import seeds_of
from wgp_agents.core.units import RewardBounds
from wgp_agents.gp.action_sets import check_arms_stay
from wgp_agents.gp.box import make_action_set
from wgp_agents.kernels.basis import Basis
from wgp_agents.parameters import (
    LARGEST,
    LARGEST_COUNT,
    SMALLEST,
    checked_ends,
    model_noise,
    per_learner,
    reward_ends,
)
from wgp_gym.types import Actions, Array, Indices, Mask
from wgp_gym.validation import check_choice, check_float, check_int

__all__ = ["OPKB", "OPKBBlocks", "OPKBConstants", "checked_constants", "opkb_blocks"]


class OPKB(Agent):
    """Optimisation-based kernel bandit (Hong, Li and Tewari 2023); it needs no variation budget.

    With S(p) = sum_a p_a phi_a phi_a^T + (lambda / T) I, OP(Delta, beta) is the distribution p that
    minimises sum_a (beta Delta_a / 2) p_a - log det S(p). With n arms, pi = OP(0, 1) and
        gamma_T = 1/2 log det(I + (T / lambda) sum_a pi_a phi_a phi_a^T),
        l = log(8 n T log2(T) / delta),
        E = ceil(4 gamma_T l),  alpha = lambda / (4 l),  mu_j = 2^{-j/2} / 2,
        eps_j = (40 + 16 alpha^{1/2}) mu_j,  beta_j = 2 gamma_T / eps_j,
    it plays blocks of order m = 0, 1, ... of E 2^m steps, with arms drawn from p_m; p_0 = pi. At a
    block's end the means of phi_a^T S(p)^{-1} phi y over its steps, p being what the arm of the
    step was drawn from, estimate all rewards, hence the gaps Delta^m to the best, and
        p_{m+1} = (1 - mu_{m+1}) ((1 - c) OP(Delta^m, beta_{m+1}) + c pi_G) + mu_{m+1} pi,
    pi_G the design pi on the arms of Delta^m <= alpha eps_{m+1} alone. Within the block, each
    interval of E 2^j steps, j < m, is a replay of p_j with probability 2^{(j-m)/2} (of several at
    once the smallest j plays). At its end it gives gaps Delta of its own, and where for some k < m
        max_a max(Delta^k - 4 Delta, Delta - 4 Delta^k) > 2 (eps_k + eps_j)
    f has changed: all is forgotten, and block 0 begins.

    The algorithm is that of the authors' published code. Deviation: arms in G keep all their
    features, where that code cuts the Cholesky factor's columns to G; and testing goes on after 100
    changes. Deviation: replays are drawn where an interval begins, not ahead, so that the state has
    one size (the law is the same); blocks that would begin after T are replaced by the last one. A
    play that it did not choose counts as one of its own; where it begins an interval, the replay is
    drawn at the next choice.

    Rewards are shifted and scaled to [-1, 1], as in the experiments, from `reward_range`.
    Deviation: rewards with noise beyond that are not clipped, which would bias the estimates.

    A step costs O(q^2 + n), with q features; a block's end two designs: see `optimal_designs`. On a
    box it plays the points of `problem.domain`; another's play counts as the nearest of them.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        constants: "practical": the multiples of E, beta, mu, the test's threshold and G's with
            which the authors ran changing tasks (0.01, 50, 0.2, 0.005, 0.05), c = 0.2, and
            replays and tests of orders j, k >= 4 alone; "theory": all multiples 1, c = 0, all
            orders, whose E exceeds most horizons; or an `OPKBConstants`.
        regularization: lambda in [1e-9, 1e60], for rewards in [-1, 1]; 100 in the experiments, all
            of T = 10,000.
        delta: In (0, 1), the probability with which the confidence bounds may fail; 1e-4 in the
            experiments.
        reward_range: The two numbers that expected rewards lie between. Default: the problem's
            `reward_range`; where it has none, [-B, B].

    Attributes:
        changes: The changes that each learner has detected since its restart, `(B,)`.
        information_gain: gamma_T, `(B,)`.
        block_length: E with its multiple, in steps, `(B,)`.

    Raises:
        ValueError: If a parameter is out of its range, or arms are drawn anew at each step.

    Source: Hong, Li, Tewari. An Optimization-based Algorithm for Non-stationary Kernel Bandits
    without Prior Knowledge. AISTATS 2023.
    """

    _constants = ("basis", "_design", "_blocks")

    def __init__(
        self,
        env: EnvLike,
        *,
        constants: Literal["practical", "theory"] | OPKBConstants = "practical",
        regularization: ArrayLike = 100.0,
        delta: ArrayLike = 1e-4,
        reward_range: Sequence[float] | None = None,
    ) -> None:
        super().__init__(env)
        problem, batch = self.problem, self.num_learners
        check_arms_stay("OPKB", problem)
        T = problem.known_horizon("OPKB")
        constants = checked_constants(constants)
        self.regularization = model_noise("OPKB", regularization, batch)
        self.delta = per_learner("OPKB", "delta", delta, batch, 0.0, 1.0, "neither")
        self._given_range = checked_ends("OPKB", reward_range)
        self.takes_units = reward_range is None
        regularization = self.regularization / T
        self._made_for = MadeFor("OPKB", problem, with_noise=False)
        self.action_set = make_action_set(problem.kernel, problem, regularization, grid=True)
        self.basis = basis = self.action_set.basis
        first, self.information_gain = explorations(basis)
        self._design = first.probabilities
        n = len(problem.domain)
        self._blocks = blocks = opkb_blocks(
            constants, n, T, self.regularization, self.delta, self.information_gain
        )
        self.block_length = blocks.length
        self.gaps = np.zeros((batch, blocks.mu.shape[1], n))
        self.replays = Replays(
            basis, first, blocks.length, blocks.mu.shape[1], blocks.smallest_replay
        )
        self._rows = np.arange(batch)
        self._centre, self._unit = np.zeros(batch), np.ones(batch)
        self.changes = np.zeros(batch, np.int64)

    def _restart(self, mask: Mask) -> None:
        given, problem = self._given_range, self.problem
        low, high = reward_ends(given, problem, problem.norm_bound, self.num_learners)
        self._centre[mask] = ((low + high) / 2)[mask]
        self._unit[mask] = ((high - low) / 2)[mask]
        self.changes[mask] = 0
        self._forget(mask)

    def _reward_bounds(self) -> RewardBounds | None:
        if self.problem.noise_scale is None:
            return None
        low, high = self._centre - self._unit, self._centre + self._unit
        noise = np.broadcast_to(np.asarray(self.problem.noise_scale, float), low.shape)
        return RewardBounds(low, high, noise, "its 'reward_range' and the problem's R")

    def _forget(self, mask: Mask) -> None:
        rows = self._rows[mask]
        self.replays.begin(rows, np.zeros_like(rows))

    def _choose(self, uniform: UniformStreams) -> Actions:
        return self.action_set.actions_of(self.replays.choose(seeds_of(uniform)))

    def _learn(self, actions: Actions, rewards: Array, active: Mask) -> None:
        arms, scaled = self.action_set.embed(actions).actions, (rewards - self._centre) / self._unit
        ended = self.replays.learn(arms, scaled, active)
        if ended.any():
            self._close(ended)

    def _close(self, ended: Mask) -> None:
        """Test the replays that have ended and advance the blocks that have, `(B, M + 1)`."""
        order, changed = self.replays.arrays.order, np.zeros(self.num_learners, bool)
        for j in np.flatnonzero(ended.any(axis=0)).tolist():
            rows = self._rows[ended[:, j] & (order > j)]
            changed[rows] |= self._differs(rows, j)
        done = ended[self._rows, order] & ~changed
        self.changes += changed
        self._forget(changed)
        if done.any():
            self._advance(self._rows[done])

    def _estimated_gaps(self, rows: Indices, orders: Indices) -> Array:
        """Return the gaps estimated from intervals that have just ended, `(b, n)`."""
        rewards = self.replays.estimates(rows, orders)
        gaps: Array = rewards.max(axis=1, keepdims=True) - rewards
        return gaps

    def _differs(self, rows: Indices, j: int) -> Mask:
        """Return whether a replay of order j contradicts the gaps of an earlier block, `(b,)`."""
        order, threshold = self.replays.arrays.order, self._blocks.threshold[rows]
        gaps, found = self._estimated_gaps(rows, np.full_like(rows, j)), np.zeros(len(rows), bool)
        for k in range(self._blocks.smallest_replay, int(order.max())):
            known = self.gaps[rows, k]
            # max_a max(Delta^k - 4 Delta, Delta - 4 Delta^k) > 2 (eps_k + eps_j)
            excess = np.maximum(known - 4 * gaps, gaps - 4 * known).max(axis=1)
            found |= (k < order[rows]) & (excess > threshold[:, k] + threshold[:, j])
        return found

    def _advance(self, rows: Indices) -> None:
        """Begin the next block of learners whose block has ended."""
        order = self.replays.arrays.order[rows]
        following = np.minimum(order + 1, self._blocks.largest[rows])
        gaps = self._estimated_gaps(rows, order)
        self.gaps[rows, order] = gaps
        self.replays.follow(rows, following, self._strategies(rows, following, gaps))
        self.replays.begin(rows, following)

    def _strategies(self, rows: Indices, orders: Indices, gaps: Array) -> Array:
        """Return p of these orders `(b,)` from the gaps `(b, n)` of the block before, `(b, n)`."""
        blocks, basis = self._blocks, self.basis
        phi, rank, regularization = basis.phi, basis.rank[rows], basis.regularization[rows]
        costs = blocks.beta[rows, orders][:, None] / 2 * gaps
        mixed = optimal_designs(phi, rank, regularization, costs).probabilities
        if blocks.mixture > 0:
            near = gaps <= blocks.near[rows, orders][:, None]
            among = self._designs_among(rows, near)
            mixed = (1 - blocks.mixture) * mixed + blocks.mixture * among
        mu = blocks.mu[rows, orders][:, None]  # p = (1 - mu) (OP and pi_G) + mu pi
        return (1 - mu) * mixed + mu * self._design[rows]

    def _designs_among(self, rows: Indices, near: Mask) -> Array:
        """Return the design pi on the arms in `near` alone, `(b, n)`."""
        basis, designs, some = self.basis, self._design[rows], ~near.all(axis=1)
        rank, regularization = basis.rank[rows[some]], basis.regularization[rows[some]]
        costs = np.where(near[some], 0.0, np.inf)
        designs[some] = optimal_designs(basis.phi, rank, regularization, costs).probabilities
        return designs


def explorations(basis: Basis) -> tuple[Designs, Array]:
    """Return the designs pi of all learners and their information gains, `(B,)`.

    Learners of the same regularization share the work.
    """
    regularization, first, which = np.unique(
        basis.regularization, return_index=True, return_inverse=True
    )
    rank, nothing = basis.rank[first], np.zeros((len(regularization), basis.phi.shape[1]))
    designs = optimal_designs(basis.phi, rank, regularization, nothing)
    roots = [np.log(R.diagonal()[:m]).sum() for R, m in zip(designs.factors, rank, strict=True)]
    gains = np.array(roots) - 0.5 * rank * np.log(regularization)
    return Designs(*(part[which] for part in designs)), gains[which]


class OPKBConstants(NamedTuple):
    """The multiples of theory's quantities in `OPKB`.

    Attributes:
        length: Of E, > 0.
        beta: Of beta_j, > 0.
        exploration: Of mu_j, in [0, 1].
        threshold: Of the test's threshold, >= 0.
        mixture: c in [0, 1], the share of the design on nearly optimal arms.
        nearness: Of the gap up to which an arm is nearly optimal, >= 0.
        smallest_replay: The smallest order of replays, >= 0.
    """

    length: float
    beta: float
    exploration: float
    threshold: float
    mixture: float
    nearness: float
    smallest_replay: int


CONSTANTS = {
    "practical": OPKBConstants(0.01, 50.0, 0.2, 0.005, 0.2, 0.05, 4),
    "theory": OPKBConstants(1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0),
}


class OPKBBlocks(NamedTuple):
    """The quantities of each order j = 0 ... M, for B learners.

    Attributes:
        length: E, `(B,)`.
        largest: The order of the last block, `(B,)`.
        mu: The share of pi in p_j, `(B, M + 1)`.
        beta: beta_j, `(B, M + 1)`.
        near: The gap up to which an arm is nearly optimal, `(B, M + 1)`.
        threshold: 2 eps_j, `(B, M + 1)`; the test's threshold is the sum of two.
        mixture: c.
        smallest_replay: The smallest order of replays.
    """

    length: Indices
    largest: Indices
    mu: Array
    beta: Array
    near: Array
    threshold: Array
    mixture: float
    smallest_replay: int


def opkb_blocks(
    constants: OPKBConstants,
    arms: int,
    horizon: int,
    regularization: Array,
    delta: Array,
    information_gain: Array,
) -> OPKBBlocks:
    """Return the blocks of B learners, by the formulas in `OPKB`; delta and gamma_T are `(B,)`.

    Deviation: log2(T), which is 0 at T = 1, is at least 1, and so is E.
    """
    # l, alpha, E, mu_j and eps_j of `OPKB`
    logarithm = np.log(8 * arms * horizon * max(math.log2(horizon), 1.0) / delta)
    alpha = (regularization / (4 * logarithm))[:, None]
    length = np.ceil(constants.length * 4 * information_gain * logarithm)
    length = np.clip(length, 1.0, LARGEST_COUNT).astype(np.int64)
    largest = largest_orders(length, horizon)
    mu = np.tile(0.5 * 2.0 ** (-0.5 * np.arange(largest.max() + 1)), (len(delta), 1))
    epsilon = (40 + 16 * np.sqrt(alpha)) * mu
    return OPKBBlocks(
        length=length,
        largest=largest,
        mu=constants.exploration * mu,
        beta=constants.beta * 2 * information_gain[:, None] / epsilon,
        near=constants.nearness * alpha * epsilon,
        threshold=constants.threshold * 2 * epsilon,
        mixture=constants.mixture,
        smallest_replay=constants.smallest_replay,
    )


def checked_constants(given: str | OPKBConstants) -> OPKBConstants:
    """Return the constants by their name, or as given."""
    if not isinstance(given, OPKBConstants):
        return CONSTANTS[check_choice("constants", given, "OPKB", CONSTANTS)]
    for name in ("length", "beta"):
        check_float(name, getattr(given, name), "OPKBConstants", SMALLEST, LARGEST)
    for name in ("threshold", "nearness"):
        check_float(name, getattr(given, name), "OPKBConstants", 0.0, LARGEST)
    for name in ("exploration", "mixture"):
        check_float(name, getattr(given, name), "OPKBConstants", 0.0, 1.0)
    check_int("smallest_replay", given.smallest_replay, "OPKBConstants", 0, LARGEST_COUNT)
    return given


def largest_orders(length: Indices, horizon: int) -> Indices:
    """Return the order of the block with step T if nothing changes, at least 1, `(B,)`."""
    orders = np.arange(1, max(horizon.bit_length(), 2))
    reached = length[:, None] * (2 ** (orders + 1) - 1) >= horizon
    largest: Indices = orders[reached.argmax(axis=1)]
    return largest
