"""R-PERP: phased elimination with batches in random order, restarted every H steps."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.base import Agent, locked
from wgp_agents.core.access import EnvLike
from wgp_agents.core.argmax import TIE
from wgp_agents.core.made_for import MadeFor
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.sampling import Seeds, fill_uniform, seeds_of
from wgp_agents.core.units import RewardBounds
from wgp_agents.gp.action_sets import check_arms_stay
from wgp_agents.gp.bands import PlayRecord
from wgp_agents.gp.confidence import NormBound
from wgp_agents.gp.gain_bounds import checked_forgetting
from wgp_agents.gp.model import ModelParameters, Posterior, gp_model, posterior_of
from wgp_agents.gp.tuning import MAX_RATE, BudgetChoice, Forgetting, GammaChoice, stated_budget
from wgp_agents.gp.width import deng_width
from wgp_agents.kernels.elimination import (
    batch_lengths,
    batch_posteriors,
    batches_within,
    draw_planned,
    plan_batches,
)
from wgp_agents.parameters import per_learner
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Actions, Array, Indices, Mask
from wgp_gym.validation import check_names, reject

__all__ = ["RPERP"]


class RPERP(Agent):
    """Restarting phased elimination with random permutation (Iwazaki and Takeno 2025).

    Every H steps it restarts with all n points. Within, batch i has N_i = ceil((H N_{i-1})^{1/2})
    plays, N_0 = 1, cut at the end of the H steps. They are chosen by maximum variance reduction
    over the surviving points, without the rewards, and played in uniformly random order, so that a
    drift within the batch is noise around the mean of its functions. Then the posterior of this
    batch alone leaves {x: mean + beta std >= max of mean - beta std}.

    H = gamma^{1/3} (T / V_T)^{2/3}, at least 2, which balances T (gamma / H)^{1/2} and H V_T in the
    regret; V_T is the sum over t of max |f_{t+1}(x) - f_t(x)|. Deviation: the problem's known
    budget is B_T max k(x, x)^{1/2}, which is never smaller than V_T.

    beta = B + ((R^2 + D^2) / lambda)^{1/2} (2 log(2 n Q / delta))^{1/2}, Q the batches up to T.
    Deviation: these constants are those of this argument, not of the paper: the weights of a
    posterior mean have a norm of at most std / lambda^{1/2}; noise deviates by R times that, and
    functions within D of each other, in random order, by D times that, by Hoeffding's lemma applied
    draw by draw. With D = min(V_T, 2 B max k(x, x)^{1/2}), which is "theory", almost nothing is
    eliminated within some hundred steps. "heuristic" has D = 0, as if nothing changed within a
    batch.

    A step costs O(n), the plan of a batch O(m n) for each of its plays.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        restart_period: H >= 1 itself, in steps. Whatever it is, no more than T.
        variation_budget: V_T >= 0; "known": from the problem; "unknown": 1 in its place, in H.
        information_gain: gamma in the default of H: see `Forgetting`.
        confidence_width: beta: "heuristic", "theory" or a number >= 0.
        delta: The probability in (0, 1) with which the bound of "theory" may fail.
        norm_bound: B in [0, 1e30]. Default: the problem's, read at each restart.
        **common: `regularization`, `noise_scale` and `features`, as in `GPAgent`.

    Attributes:
        surviving: The points that the current batch is from, `(B, n)`.
        restart_period: H of each learner, `(B,)`.

    Raises:
        ValueError: If a parameter is out of its range, or arms are drawn anew at each step.

    Source: Iwazaki, Takeno. Near-Optimal Algorithm for Non-Stationary Kernelized Bandits. AISTATS
    2025.
    """

    def __init__(
        self,
        env: EnvLike,
        *,
        restart_period: ArrayLike | None = None,
        variation_budget: BudgetChoice = "unknown",
        information_gain: GammaChoice = "order",
        confidence_width: ArrayLike = "heuristic",
        delta: ArrayLike = 0.1,
        norm_bound: ArrayLike | None = None,
        **common: Unpack[ModelParameters],
    ) -> None:
        owner = "RPERP"
        check_names(common, owner, ModelParameters.__annotations__)
        super().__init__(env)
        check_arms_stay(owner, self.problem)
        self._horizon()
        self.model = gp_model(owner, self.problem, grid=True, **common)
        self._made_for = MadeFor(owner, self.problem, common.get("noise_scale") is None)
        self.action_set = self.model.action_set
        batch, n = self.num_learners, len(self.problem.domain)
        self._rows, self._record = np.arange(batch), PlayRecord(self.problem)
        forgetting = Forgetting(
            "restart_period", restart_period, variation_budget, information_gain, perp_rate
        )
        self._forgetting = checked_forgetting(
            owner, forgetting, self.action_set.basis, self.problem
        )
        self.confidence_width = checked_width(owner, confidence_width, batch)
        self.delta = per_learner(owner, "delta", delta, batch, 0.0, 1.0, "neither")
        self.norm_bound = NormBound(owner, norm_bound, self.problem)
        bound_given = norm_bound is not None or not isinstance(self.confidence_width, str)
        self.takes_units = common.get("noise_scale") is None or not bound_given
        self.surviving = np.ones((batch, n), bool)
        self.restart_period, self.width = np.ones((2, batch))
        self.planned, self._counts = np.zeros((2, batch, n), np.int64)
        self._sums = np.zeros((batch, n))
        self._length, self._held, self._used, self._previous = np.zeros((4, batch), np.int64)

    def _restart(self, mask: Mask) -> None:
        bound = self.norm_bound.read(self.problem, mask, needed=self._by_name())
        period = self._periods()
        width = self._widths(period, bound)
        self.restart_period[mask], self.width[mask] = period[mask], width[mask]
        self.surviving[mask], self._previous[mask] = True, 1
        state = (self.planned, self._counts, self._sums, self._length, self._held, self._used)
        for array in state:
            array[mask] = 0
        self._record.clear(mask)

    def _largest(self) -> float:
        """Return max k(x, x)^{1/2}, the largest value of functions of norm 1."""
        return math.sqrt(self.action_set.basis.prior.max())

    def _budget(self) -> Array | None:
        """Return V_T, a number or `(B,)`; None where it is unknown."""
        given = self._forgetting.variation_budget
        stated = stated_budget(given, self.problem)
        return stated * self._largest() if isinstance(given, str) and stated is not None else stated

    def _periods(self) -> Array:
        """Return H of every learner, `(B,)`."""
        forgetting = self._forgetting
        if forgetting.given is None:
            budget = self._budget()
            forgetting = replace(forgetting, variation_budget=1.0 if budget is None else budget)
        return np.minimum(forgetting(self.problem, self.num_learners), self._horizon())

    def _widths(self, period: Array, bound: Array | None) -> Array:
        """Return beta of every learner, `(B,)`."""
        width, model = self.confidence_width, self.model
        if not isinstance(width, str):
            return width
        assert bound is not None  # a width by name has asked for it
        moved: ArrayLike = 0.0
        if width == "theory":
            budget = self._budget()
            moved = np.minimum(math.inf if budget is None else budget, 2 * bound * self._largest())
        tests = 2 * self.surviving.shape[1] * batches_within(period, self._horizon())
        scale = np.hypot(model.noise_scale, moved)
        return deng_width(bound, scale, model.regularization, self.delta / tests, np.zeros(1))

    def _horizon(self) -> int:
        return self.problem.known_horizon("RPERP")

    def _by_name(self) -> bool:
        return isinstance(self.confidence_width, str)

    def _reward_bounds(self) -> RewardBounds | None:
        known = self._by_name() or self.norm_bound.given is not None
        return self.model.reward_bounds(self.problem, self.norm_bound.values if known else None)

    def _choose(self, uniform: UniformStreams) -> Actions:
        seeds = seeds_of(uniform)
        due = np.flatnonzero(self._held >= self._length)
        if due.size:
            self._eliminate(due)
            self._begin_batch(due)
        fresh = np.flatnonzero(self._held == 0)
        if fresh.size:  # until its first play, each `act` plans a batch
            self._plan(fresh, seeds[fresh])
        picked = np.zeros(self.num_learners, np.int64)
        draw_planned(self.planned, seeds.astype(float) * 2.0**-53, picked)
        return self.action_set.actions_of(picked)

    def _eliminate(self, due: Indices) -> None:
        """End a batch: keep the points that may be optimal, or all at the period's end."""
        mean, variance = self._posteriors(due)
        alive, half = self.surviving[due], self.width[due, None] * np.sqrt(variance)
        # {x: mean + beta std >= max of mean - beta std}
        best = np.where(alive, mean - half, -math.inf).max(axis=1)
        self._used[due] += self._held[due]
        over = self._used[due] >= self.restart_period[due]
        self.surviving[due] = (alive & (mean + half >= best[:, None])) | over[:, None]
        anew = due[over]
        self._used[anew], self._previous[anew] = 0, 1

    def _begin_batch(self, due: Indices) -> None:
        lengths = batch_lengths(self._previous[due], self._used[due], self.restart_period[due])
        self._length[due] = self._previous[due] = lengths
        self._held[due], self._counts[due], self._sums[due] = 0, 0, 0.0

    def _plan(self, learners: Indices, seeds: Seeds) -> None:
        """Choose the points of a batch from the surviving ones, ties broken by the seeds."""
        lengths, basis = self._length[learners], self.action_set.basis
        draws = np.empty((len(learners), lengths.max()))
        fill_uniform(seeds, draws)
        plan_batches(learners, lengths, draws, TIE, basis, self.surviving, self.planned)

    def _learn(self, actions: Actions, rewards: Array, active: Mask) -> None:
        rows, plays = self._rows[active], self.action_set.embed(actions).actions[active]
        self._counts[rows, plays] += 1
        self._sums[rows, plays] += rewards[active]
        # Another's play may not be planned.
        self.planned[rows, plays] = np.maximum(self.planned[rows, plays] - 1, 0)
        self._held += active
        self._record.add(actions, rewards, active)

    def _posteriors(self, learners: Indices) -> tuple[Array, Array]:
        mean, variance = np.empty((2, len(learners), self.surviving.shape[1]))
        basis = self.action_set.basis
        batch_posteriors(learners, basis, self._counts, self._sums, mean, variance)
        return mean, variance

    @locked
    def posterior(self) -> Posterior:
        """Return the posterior of the current batch on the domain, `(n,)` each, or `(B, n)`.

        Raises:
            RuntimeError: If `reset` was not called before.
            ValueError: If it is not finite.
        """
        self._require_reset()
        mean, variance = self._posteriors(self._rows)
        return posterior_of(mean, np.sqrt(variance), self.batched)

    @locked
    def bands(self) -> Posterior:
        """Return the mean of `posterior` on the domain, and a std that can be believed.

        It is as in `GPAgent.bands`.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        mean = np.atleast_2d(self.posterior().mean)
        return self._record.bands(mean, self.arms, self.batched)


def perp_rate(problem: BanditProblem, gain: Array, variation_budget: Array) -> Array:
    """Return 1 / H = gamma^{-1/3} (V_T / T)^{2/3}, within [0, 1/2]: see `RPERP`."""
    rate = gain ** (-1 / 3) * (variation_budget / problem.known_horizon("RPERP")) ** (2 / 3)
    return np.minimum(rate, MAX_RATE)


def checked_width(owner: str, value: ArrayLike, batch: int) -> str | Array:
    """Return `confidence_width` as "heuristic", "theory", or an array `(B,)`."""
    if not isinstance(value, str):
        return per_learner(owner, "confidence_width", value, batch, 0.0, math.inf, "left")
    if value not in ("heuristic", "theory"):
        reject("confidence_width", owner, "'heuristic', 'theory' or a number", value)
    return value
