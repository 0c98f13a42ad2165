"""OPKB: plays designs that solve optimisation problems, and replays old ones to detect a change."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.algorithms.adaptive.design import design_factors, optimal_designs
from wgp_agents.algorithms.adaptive.opkb_blocks import OPKBConstants, checked_constants, opkb_blocks
from wgp_agents.algorithms.adaptive.replays import Replays
from wgp_agents.base import Agent
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import seeds_of
from wgp_agents.core.units import RewardBounds
from wgp_agents.gp.action_sets import Arms
from wgp_agents.gp.grid import Grid
from wgp_agents.kernels.basis import Basis
from wgp_agents.parameters import checked_ends, model_noise, per_learner, reward_ends
from wgp_gym.types import Array, Indices, Mask
from wgp_gym.validation import reject

__all__ = ["OPKB", "OPKBConstants"]


class OPKB(Agent):
    """Optimisation-based kernel bandit (Hong, Li and Tewari 2023); it knows nothing of changes.

    With S(p) = sum_a p_a phi_a phi_a^T + (lambda / T) I, OP(Delta, beta) is the distribution p that
    minimises sum_a (beta Delta_a / 2) p_a - log det S(p). With n arms, pi = OP(0, 1) and
        gamma_T = 1/2 log det(I + (T / lambda) sum_a pi_a phi_a phi_a^T),
        l = log(8 n T log2(T) / delta),
        E = ceil(4 gamma_T l),  alpha = lambda / (4 l),  mu_j = 2^{-j/2} / 2,
        eps_j = (40 + 16 alpha^{1/2}) mu_j,  beta_j = 2 gamma_T / eps_j,
    it plays blocks of order m = 0, 1, ... of E 2^m steps, with arms drawn from p_m; p_0 = pi.
    At a block's end the means of phi_a^T S(p)^{-1} phi y over its steps, p being what the arm of
    the step was drawn from, estimate all rewards, hence the gaps Delta^m to the best, and
        p_{m+1} = (1 - mu_{m+1}) ((1 - c) OP(Delta^m, beta_{m+1}) + c pi_G) + mu_{m+1} pi,
    pi_G the design pi on the arms of Delta^m <= alpha eps_{m+1} alone. Within, each interval of
    E 2^j steps, j < m, is a replay of p_j with probability 2^{(j-m)/2} (of several at once the
    smallest j plays). At its end it gives gaps Delta of its own, and where for some k < m
        max_a max(Delta^k - 4 Delta, Delta - 4 Delta^k) > 2 (eps_k + eps_j)
    f has changed: all is forgotten, and block 0 begins.

    The algorithm is that of the authors' published code. Deviation: arms in G keep all their
    features, where that code cuts the Cholesky factor's columns to G; it also stops testing after
    100 changes, which this does not. Deviation: replays are drawn where an interval begins, not
    ahead, so that the state has one size (the law is the same); in the place of blocks that would
    begin after T, the last one is repeated. A play that it did not choose counts as one of its own.

    Rewards are shifted and scaled to [-1, 1], as in the experiments, from `reward_range`.
    Deviation: noise may carry them beyond; they are not cut off, which would bias the estimates.

    A step costs O(q^2 + n), with q features; a block's end two designs: see `optimal_designs`. On a
    box it plays the points of `problem.domain`, and what is played beside them counts for the
    nearest one.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        constants: "practical": the multiples of E, beta, mu, the test's threshold and G's with
            which the authors ran changing tasks (0.01, 50, 0.2, 0.005, 0.05), c = 0.2, and
            replays and tests of orders j, k >= 4 alone; "theory": all multiples 1, c = 0, all
            orders, whose E exceeds most horizons; or an `OPKBConstants`.
        regularization: lambda in [1e-9, 1e60], for rewards in [-1, 1]. The experiments, of
            T = 10,000 all, have 100.
        delta: In (0, 1), the probability with which the confidence bounds may fail. The
            experiments have 1e-4.
        reward_range: The two numbers that expected rewards lie between. Default: the problem's
            `reward_range`; where it has none, [-B, B].

    Attributes:
        changes: How many changes each learner has detected since its restart, `(B,)`.
        information_gain: gamma_T, `(B,)`.
        block_length: E with its multiple, in steps, `(B,)`.

    Raises:
        ValueError: If a parameter is out of its range, or arms are drawn anew at each step.

    Source: Hong, Li, Tewari. An Optimization-based Algorithm for Non-stationary Kernel Bandits
    without Prior Knowledge. AISTATS 2023.
    """

    def __init__(
        self,
        env: Any,
        *,
        constants: str | OPKBConstants = "practical",
        regularization: Any = 100.0,
        delta: Any = 1e-4,
        reward_range: Any = None,
    ) -> None:
        super().__init__(env)
        problem, batch = self.problem, self.num_learners
        if problem.contextual:
            reject("env", "OPKB", "a task whose arms stay", "arms that are drawn anew")
        constants = checked_constants(constants)
        self.regularization = model_noise("OPKB", regularization, batch)
        self.delta = per_learner("OPKB", "delta", delta, batch, 0.0, 1.0, "neither")
        self._given_range = checked_ends("OPKB", reward_range)
        self.takes_units = reward_range is None
        regularization = self.regularization / problem.horizon
        self.basis = basis = Arms(problem.kernel, problem.domain, regularization).basis
        self._design, self.information_gain = explorations(basis)
        n, T = len(problem.domain), problem.horizon
        self._blocks = blocks = opkb_blocks(
            constants, n, T, self.regularization, self.delta, self.information_gain
        )
        self.block_length = blocks.length
        self.gaps = np.zeros((batch, blocks.mu.shape[1], n))
        self.replays = Replays(
            basis, self._design, blocks.length, blocks.mu.shape[1], blocks.smallest_replay
        )
        self._grid = Grid(problem)
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

    def _reward_bounds(self) -> RewardBounds:
        low, high = self._centre - self._unit, self._centre + self._unit
        noise = np.broadcast_to(np.asarray(self.problem.noise_scale, float), low.shape)
        return RewardBounds(low, high, noise, "its 'reward_range' and the problem's R")

    def _forget(self, mask: Mask) -> None:
        rows = self._rows[mask]
        self.replays.begin(rows, np.zeros_like(rows))

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        return self._grid.played(self.replays.choose(seeds_of(uniform)))

    def _learn(self, actions: NDArray[Any], rewards: Array, active: Mask) -> None:
        arms, scaled = self._grid.numbers(actions), (rewards - self._centre) / self._unit
        ended = self.replays.learn(arms, scaled, active)
        if ended.any():
            self._close(ended)

    def _close(self, ended: Mask) -> None:
        """Test the replays and follow up the blocks that have `ended`, `(B, M + 1)`."""
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
        """Return the gaps that an interval shows which has just ended, `(b, n)`."""
        rewards = self.replays.estimates(rows, orders)
        gaps: Array = rewards.max(axis=1, keepdims=True) - rewards
        return gaps

    def _differs(self, rows: Indices, j: int) -> Mask:
        """Return whether a replay of order j contradicts the gaps of an earlier block, `(b,)`."""
        order, threshold = self.replays.arrays.order, self._blocks.threshold[rows]
        gaps, found = self._estimated_gaps(rows, np.full_like(rows, j)), np.zeros(len(rows), bool)
        for k in range(self._blocks.smallest_replay, int(order.max())):
            known = self.gaps[rows, k]
            excess = np.maximum(known - 4 * gaps, gaps - 4 * known).max(axis=1)
            found |= (k < order[rows]) & (excess > threshold[:, k] + threshold[:, j])
        return found

    def _advance(self, rows: Indices) -> None:
        """Let learners whose block has ended begin the next one."""
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
        mu = blocks.mu[rows, orders][:, None]
        return (1 - mu) * mixed + mu * self._design[rows]

    def _designs_among(self, rows: Indices, near: Mask) -> Array:
        """Return the design pi on the arms in `near` `(b, n)` alone, `(b, n)`."""
        basis, designs, some = self.basis, self._design[rows], ~near.all(axis=1)
        rank, regularization = basis.rank[rows[some]], basis.regularization[rows[some]]
        costs = np.where(near[some], 0.0, np.inf)
        designs[some] = optimal_designs(basis.phi, rank, regularization, costs).probabilities
        return designs


def explorations(basis: Basis) -> tuple[Array, Array]:
    """Return the design pi of every learner, `(B, n)`, and its information gain, `(B,)`.

    Learners of the same regularization share the work.
    """
    regularization, first, which = np.unique(
        basis.regularization, return_index=True, return_inverse=True
    )
    rank, nothing = basis.rank[first], np.zeros((len(regularization), basis.phi.shape[1]))
    designs = optimal_designs(basis.phi, rank, regularization, nothing).probabilities
    factors = design_factors(basis.phi, rank, regularization, designs)
    roots = [np.log(R.diagonal()[:m]).sum() for R, m in zip(factors, rank, strict=True)]
    gains = np.array(roots) - 0.5 * rank * np.log(regularization)
    return designs[which], gains[which]
