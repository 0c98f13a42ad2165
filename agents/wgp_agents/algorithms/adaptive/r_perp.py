"""R-PERP: phased elimination, each batch in random order, begun anew every H steps."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from wgp_agents.core.access import problem_reader
from wgp_agents.core.argmax import TIE
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import Seeds, fill_uniform, seeds_of
from wgp_agents.core.units import RewardBounds, bounds_by_norm
from wgp_agents.gp.gain_bounds import computed_gain
from wgp_agents.gp.grid import GridAgent, GridParameters
from wgp_agents.gp.tuning import MAX_RATE, Forgetting, stated_budget
from wgp_agents.gp.width import deng_width
from wgp_agents.kernels.elimination import (
    batch_lengths,
    batch_posteriors,
    batches_within,
    draw_planned,
    plan_batches,
)
from wgp_agents.parameters import norm_bounds, not_drawn, per_learner
from wgp_gym.arrays import kept
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Mask
from wgp_gym.validation import check_names, reject

__all__ = ["RPERP"]


class RPERP(GridAgent):
    """Restarting phased elimination with random permutation (Iwazaki and Takeno 2025).

    Every H steps it begins anew with all n points. Within, batch i has
    N_i = ceil((H N_{i-1})^{1/2}) plays, N_0 = 1, cut at the end of the H steps. They are chosen
    by maximum variance reduction over the points that are left, without a look at rewards, and
    played in uniformly random order, so that a drift within the batch is noise around the mean of
    its functions. Then the posterior of this batch alone leaves
    {x: mean + beta std >= max of mean - beta std}.

    H = gamma^{1/3} (T / V_T)^{2/3}, at least 2, which balances T (gamma / H)^{1/2} and H V_T in
    the regret; V_T is the sum over t of max |f_{t+1}(x) - f_t(x)|. Deviation: where the problem's
    budget is asked for it is B_T max k(x, x)^{1/2}, which is never smaller: that is what a problem
    states.

    beta = B + ((R^2 + D^2) / lambda)^{1/2} (2 log(2 n Q / delta))^{1/2}, Q the batches up to T.
    Deviation: its constants are those of this argument, not of the paper: weights of a posterior
    mean have a norm of at most std / lambda^{1/2}, noise deviates by R times that, and functions
    that stay within D of each other, in random order, by D times that, as Hoeffding's lemma gives
    where the places are dealt out one by one. With D = min(V_T, 2 B max k(x, x)^{1/2}), that is
    "theory", next to nothing is eliminated within some hundred steps. "heuristic" has D = 0, as if
    nothing moved within a batch.

    A step costs O(n), the plan of a batch O(m n) for each of its plays.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        restart_period: H >= 1 itself, in steps. Whatever it is, no more than T.
        variation_budget: V_T >= 0; "known": from the problem; "unknown": 1 in its place, in H.
        information_gain: gamma in the default of H: see `Forgetting`.
        confidence_width: beta: "heuristic", "theory" or a number >= 0.
        delta: The probability in (0, 1) with which the bound of "theory" may fail.
        norm_bound: B in [0, 1e30]. Default: the problem's, read at each restart.
        **common: See `GridAgent`.

    Attributes:
        surviving: The points that the batch at hand is from, `(B, n)`.
        restart_period: H of each learner, `(B,)`.

    Raises:
        ValueError: If a parameter is out of its range, or arms are drawn anew at each step.

    Source: Iwazaki, Takeno. Near-Optimal Algorithm for Non-Stationary Kernelized Bandits.
    AISTATS 2025.
    """

    def __init__(
        self,
        env: Any,
        *,
        restart_period: Any = None,
        variation_budget: Any = "unknown",
        information_gain: Any = "order",
        confidence_width: Any = "heuristic",
        delta: Any = 0.1,
        norm_bound: Any = None,
        **common: Unpack[GridParameters],
    ) -> None:
        owner = "RPERP"
        check_names(common, owner, GridParameters.__annotations__)
        if problem_reader(env)().contextual:
            reject("env", owner, "a task whose arms stay", "arms that are drawn anew")
        super().__init__(env, **common)
        batch, n = self.num_learners, len(self.problem.domain)
        forgetting = Forgetting(
            "restart_period", restart_period, variation_budget, information_gain, perp_rate
        )
        forgetting.check(owner, batch)
        if forgetting.gain_is_computed:
            gains = computed_gain(self.action_set.basis, self.problem.horizon)
            forgetting = replace(forgetting, information_gain=gains)
        self._forgetting = forgetting
        self.confidence_width = checked_width(owner, confidence_width, batch)
        self.delta = per_learner(owner, "delta", delta, batch, 0.0, 1.0, "neither")
        norm_bounds(owner, norm_bound, self.problem, batch)
        self._given_norm_bound, self.norm_bound = kept(norm_bound), np.zeros(batch)
        bound_given = norm_bound is not None or not isinstance(self.confidence_width, str)
        self.takes_units = common.get("noise_scale") is None or not bound_given
        self.surviving = np.ones((batch, n), bool)
        self.restart_period, self.width = np.ones((2, batch))
        self.planned, self._counts = np.zeros((2, batch, n), np.int64)
        self._sums = np.zeros((batch, n))
        self._length, self._held, self._used, self._previous = np.zeros((4, batch), np.int64)

    def _restart(self, mask: Mask) -> None:
        period = self._periods()
        width = self._widths(period)
        self.restart_period[mask], self.width[mask] = period[mask], width[mask]
        if self._knows_bound():
            self.norm_bound[mask] = np.broadcast_to(self._bound(), mask.shape)[mask]
        self.surviving[mask], self._previous[mask] = True, 1
        for array in (self.planned, self._counts, self._sums):
            array[mask] = 0
        for array in (self._length, self._held, self._used):
            array[mask] = 0

    def _largest(self) -> float:
        """Return max k(x, x)^{1/2}: no function of norm 1 is larger anywhere."""
        return math.sqrt(self.action_set.basis.prior.max())

    def _budget(self) -> Any:
        """Return V_T, a number or `(B,)`; None where it is unknown.

        Raises:
            RuntimeError: If the known budget is asked for before an episode is drawn.
        """
        given = self._forgetting.variation_budget
        stated = stated_budget(given, self.problem)
        return stated * self._largest() if isinstance(given, str) and stated is not None else stated

    def _periods(self) -> Array:
        """Return H of every learner, `(B,)`."""
        forgetting = self._forgetting
        if forgetting.given is None:
            budget = self._budget()
            forgetting = replace(forgetting, variation_budget=1.0 if budget is None else budget)
        return np.minimum(forgetting(self.problem, self.num_learners), self.problem.horizon)

    def _widths(self, period: Array) -> Array:
        """Return beta of every learner, `(B,)`.

        Raises:
            RuntimeError: If it rests on a bound that is not drawn yet.
        """
        if not isinstance(self.confidence_width, str):
            widths: Array = self.confidence_width
            return widths
        bound = self._bound()
        moved: Any = 0.0
        if self.confidence_width == "theory":
            budget = self._budget()
            moved = np.minimum(math.inf if budget is None else budget, 2 * bound * self._largest())
        tests = 2 * self.surviving.shape[1] * batches_within(period, self.problem.horizon)
        scale = np.hypot(self.noise_scale, moved)
        return deng_width(bound, scale, self.regularization, self.delta / tests, np.zeros(1))

    def _bound(self) -> Array:
        """Return B of every learner, `(B,)`.

        Raises:
            RuntimeError: If it is not drawn yet.
        """
        owner, given = type(self).__name__, self._given_norm_bound
        bound = norm_bounds(owner, given, self.problem, self.num_learners)
        if bound is None:
            not_drawn("norm bound", "norm_bound")
        return bound

    def _knows_bound(self) -> bool:
        return isinstance(self.confidence_width, str) or self._given_norm_bound is not None

    def _reward_bounds(self) -> RewardBounds | None:
        bound = self.norm_bound if self._knows_bound() else None
        return bounds_by_norm(self.problem, bound, self.noise_scale, self._largest() ** 2)

    def _pick(self, uniform: UniformStreams) -> NDArray[np.int64]:
        seeds = seeds_of(uniform)
        due = np.flatnonzero(self._held >= self._length)
        if due.size:
            self._eliminate(due)
            self._begin_batch(due)
        fresh = np.flatnonzero(self._held == 0)
        if fresh.size:  # planned anew by the draw at hand until the first play
            self._plan(fresh, seeds[fresh])
        picked = np.zeros(self.num_learners, np.int64)
        draw_planned(self.planned, seeds.astype(float) * 2.0**-53, picked)
        return picked

    def _eliminate(self, due: NDArray[np.intp]) -> None:
        """End a batch: leave what may be the best, or all where the period is over."""
        mean, variance = self._posteriors(due)
        alive, half = self.surviving[due], self.width[due, None] * np.sqrt(variance)
        best = np.where(alive, mean - half, -math.inf).max(axis=1)
        self._used[due] += self._held[due]
        over = self._used[due] >= self.restart_period[due]
        self.surviving[due] = (alive & (mean + half >= best[:, None])) | over[:, None]
        anew = due[over]
        self._used[anew], self._previous[anew] = 0, 1

    def _begin_batch(self, due: NDArray[np.intp]) -> None:
        lengths = batch_lengths(self._previous[due], self._used[due], self.restart_period[due])
        self._length[due] = self._previous[due] = lengths
        self._held[due], self._counts[due], self._sums[due] = 0, 0, 0.0

    def _plan(self, learners: NDArray[np.intp], seeds: Seeds) -> None:
        """Choose the points of a batch from those that are left, ties broken by the seeds."""
        lengths, basis = self._length[learners], self.action_set.basis
        draws = np.empty((len(learners), lengths.max()))
        fill_uniform(seeds, draws)
        plan_batches(learners, lengths, draws, TIE, basis, self.surviving, self.planned)

    def _take(self, plays: NDArray[Any], rewards: Array, active: Mask) -> None:
        rows, plays = self._rows[active], plays[active]
        self._counts[rows, plays] += 1
        self._sums[rows, plays] += rewards[active]
        self.planned[rows, plays] -= self.planned[rows, plays] > 0  # none for another's play
        self._held += active

    def _posteriors(self, learners: NDArray[np.intp]) -> tuple[Array, Array]:
        mean, variance = np.empty((2, len(learners), self.surviving.shape[1]))
        basis = self.action_set.basis
        batch_posteriors(learners, basis, self._counts, self._sums, mean, variance)
        return mean, variance

    def _moments(self) -> tuple[Array, Array]:
        return self._posteriors(self._rows)


def perp_rate(problem: BanditProblem, gain: Array, variation_budget: Array) -> Array:
    """Return 1 / H = gamma^{-1/3} (V_T / T)^{2/3}, within [0, 1/2]: see `RPERP`."""
    rate = gain ** (-1 / 3) * (variation_budget / problem.horizon) ** (2 / 3)
    return np.minimum(rate, MAX_RATE)


def checked_width(owner: str, value: Any, batch: int) -> Any:
    """Return `confidence_width` as "heuristic", "theory", or an array `(B,)`.

    Raises:
        ValueError: If it is none of these.
    """
    if not isinstance(value, str):
        return per_learner(owner, "confidence_width", value, batch, 0.0, math.inf, "left")
    if value not in ("heuristic", "theory"):
        reject("confidence_width", owner, "'heuristic', 'theory' or a number", value)
    return value
