"""PE-GP-UCB: holds several models of the drift, and eliminates those that the data refute."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.base import Agent, locked
from wgp_agents.core.access import EnvLike
from wgp_agents.core.argmax import argmax
from wgp_agents.core.made_for import MadeFor
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.units import RewardBounds
from wgp_agents.gp.action_sets import ActionSet
from wgp_agents.gp.bands import PlayRecord
from wgp_agents.gp.bayes_width import FiniteWidth, bayes_width
from wgp_agents.gp.confidence import ConfidenceWidth, GivenWidth
from wgp_agents.gp.model import ModelParameters, Posterior, gp_model, posterior_of
from wgp_agents.gp.surrogates.base import Surrogate
from wgp_agents.gp.surrogates.drift import EPS_GRID, DriftSurrogate
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate
from wgp_agents.parameters import SMALLEST, checked_grid, per_learner
from wgp_gym.types import Actions, Array, Mask
from wgp_gym.validation import check_choice, check_names

__all__ = ["PEGPUCB"]

KINDS: dict[str, Callable[[ActionSet], Surrogate]] = {
    "drift": DriftSurrogate,
    "discount": DiscountSurrogate,
}
GRIDS = {"drift": EPS_GRID[:7], "discount": tuple(1 - eps for eps in EPS_GRID[:7])}
SAME = 1e-6  # points this close are the same: observations have single precision


class PEGPUCB(Agent):
    """Prior-elimination GP-UCB (Ziomek, Adachi and Osborne 2025).

    Its candidates p are priors, one of which the function is drawn from. Each round it plays the
    pair (x, p) of the largest mean_p(x) + beta_t^{1/2} std_p(x) among the surviving candidates, and
    adds eta = y - mean_p(x) to the sum of p. It eliminates p once, over the rounds S_p in which p
    was chosen,
        |sum of eta| > (xi_t |S_p|)^{1/2} + sum of beta^{1/2} std_p(x).
    What the data don't refute stays: optimism then plays by the most uncertain candidate, so the
    largest drift among the candidates matters most.

    Here the candidates are drifts eps of the model of [BSC16], or discounts eta. The paper has any
    priors, which discounts are not. Deviation: where all are eliminated, all begin again with empty
    sums; in the paper the true one survives.

    xi_t = 2 R^2 log(2 P pi^2 t^2 / (3 delta)) with P candidates, a union bound over candidates and
    rounds for the noise. "theory" has beta_t = 2 log(n pi^2 t^2 / (3 delta)), for the true prior;
    each has half of delta. Deviation: these constants are those of union bounds written out here.
    "heuristic" is beta_t = 0.8 log(4 t), of the experiments of [BSC16]: it learns faster, and
    eliminates a true prior more often than delta says.

    A play that it did not choose updates the posteriors but tests none. `posterior` is that of the
    last chosen candidate.

    References:
        [BSC16] Bogunovic, Scarlett, Cevher. Time-Varying Gaussian Process Bandit Optimization.
            AISTATS 2016.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        candidates: "drift" or "discount".
        values: The candidates, eps in [0, 1] or eta in (0, 1]. Default: 0 and six values from
            1e-4 to 0.03, or 1 less these.
        confidence_width: beta_t^{1/2}: "heuristic", "theory", a number, or a function of the
            number of observations so far.
        delta: The probability in (0, 1) with which the bounds may fail.
        **common: `regularization`, `noise_scale` and `features`, as in `GPAgent`.

    Attributes:
        values: The candidates, `(P,)`.
        surviving: Which are left, `(B, P)`.

    Raises:
        ValueError: If a parameter is out of its range.

    Source: Ziomek, Adachi, Osborne. Time-Varying Gaussian Process Bandits with Unknown Prior.
    AISTATS 2025.
    """

    takes_allowed = True

    def __init__(
        self,
        env: EnvLike,
        *,
        candidates: Literal["drift", "discount"] = "drift",
        values: ArrayLike | None = None,
        confidence_width: GivenWidth = "heuristic",
        delta: ArrayLike = 0.1,
        **common: Unpack[ModelParameters],
    ) -> None:
        owner = "PEGPUCB"
        check_names(common, owner, ModelParameters.__annotations__)
        super().__init__(env)
        self.model = gp_model(owner, self.problem, grid=True, **common)
        self._made_for = MadeFor(owner, self.problem, common.get("noise_scale") is None)
        self.action_set = self.model.action_set
        batch = self.num_learners
        self._rows, self._record = np.arange(batch), PlayRecord(self.problem)
        check_choice("candidates", candidates, owner, KINDS)
        values = GRIDS[candidates] if values is None else values
        closed = "both" if candidates == "drift" else "right"
        self.values = checked_grid("values", values, owner, 0.0, 1.0, closed)
        self._surrogates: list[Surrogate] = [
            KINDS[candidates](self.action_set) for _ in self.values
        ]
        self.delta = per_learner(owner, "delta", delta, batch, 0.0, 1.0, "neither")
        half = np.maximum(self.delta / 2, SMALLEST)
        self.width = self._confidence_width(confidence_width, half)
        self._steps, self.chosen = np.zeros((2, batch), np.int64)
        self.surviving = np.ones((batch, len(self.values)), bool)
        self.rounds, self._sums, self._sum_half = np.zeros((3, batch, len(self.values)))
        self._pending = np.zeros(batch, bool)
        place = self.problem.domain.shape[1:] if self.problem.contextual else ()
        self._play: Actions = np.zeros((batch, *place), float if place else np.int64)
        self.mean, self.half = np.zeros((2, batch))

    def _confidence_width(self, given: GivenWidth, delta: ArrayLike) -> ConfidenceWidth:
        """Return beta_t^{1/2}."""
        n, problem = len(self.problem.domain), self.problem
        width = bayes_width(
            "PEGPUCB", problem, given, delta, lambda delta, _: FiniteWidth(delta, n)
        )
        return ConfidenceWidth("PEGPUCB", problem, self.model, width, delta=self.delta)

    def _restart(self, mask: Mask) -> None:
        for surrogate, value in zip(self._surrogates, self.values, strict=True):
            surrogate.restart(mask, np.full(self.num_learners, value))
        self.surviving[mask], self._pending[mask] = True, False
        for array in (self._steps, self.chosen, self.rounds, self._sums, self._sum_half):
            array[mask] = 0
        self._record.clear(mask)
        if self.arms is None:
            self.action_set.show(None)

    def _reward_bounds(self) -> RewardBounds | None:
        return self.model.reward_bounds(self.problem, None)

    def _posteriors(self) -> Array:
        """Return means, variances and the bound's variances by candidate, `(3, P, B, n)`."""
        points = self.action_set.candidates
        found = [surrogate.predict(points) for surrogate in self._surrogates]
        return np.stack(found, axis=1)

    def _choose(self, uniform: UniformStreams) -> Actions:
        self.action_set.show(self.arms, self.allowed)
        mean, _, bound_variance = self._posteriors()
        half = self.width(lambda: self._steps)[:, None] * np.sqrt(bound_variance)
        there = mean + half
        if self.allowed is not None:
            there = np.where(self.allowed, there, -math.inf)
        tops = np.where(self.surviving, there.max(axis=2).T, -math.inf)
        chosen, rows = argmax(np.ascontiguousarray(tops), uniform.draw()), self._rows
        mean, half = mean[chosen, rows], half[chosen, rows]
        picked = argmax(mean + half, uniform.draw(), self.allowed)
        self.mean, self.half = mean[rows, picked], half[rows, picked]
        self.chosen, self._pending[:] = chosen, True
        self._play = picked.copy() if self.arms is None else self.arms[rows, picked]
        return self.action_set.actions_of(picked)

    def _learn(self, actions: Actions, rewards: Array, active: Mask) -> None:
        plays = self.action_set.embed(actions)
        self._steps += active
        apart = np.abs(plays.actions - self._play).reshape(len(active), -1).max(axis=1)
        self._test(active & self._pending & (apart <= SAME), rewards)
        self._pending &= ~active
        for surrogate in self._surrogates:
            surrogate.update(plays, rewards, active)
        self._record.add(actions, rewards, active)

    def _hallucinate(self, actions: Actions, active: Mask) -> None:
        plays = self.action_set.embed(actions)
        for surrogate in self._surrogates:
            surrogate.hallucinate(plays, active)

    def _test(self, tested: Mask, rewards: Array) -> None:
        """Eliminate the chosen candidates of the learners in `tested` where refuted."""
        rows, p = self._rows[tested], self.chosen[tested]
        # |sum of eta| > (xi_t |S_p|)^{1/2} + sum of beta^{1/2} std_p(x)
        self.rounds[rows, p] += 1
        self._sums[rows, p] += (rewards - self.mean)[tested]
        self._sum_half[rows, p] += self.half[tested]
        noise = np.sqrt(self._noise_bound()[tested] * self.rounds[rows, p])
        refuted = np.abs(self._sums[rows, p]) > noise + self._sum_half[rows, p]
        self.surviving[rows[refuted], p[refuted]] = False
        none = ~self.surviving.any(axis=1)
        self.surviving[none] = True
        for array in (self.rounds, self._sums, self._sum_half):
            array[none] = 0.0

    def _noise_bound(self) -> Array:
        """Return xi_t, `(B,)`."""
        squares = (math.pi * np.maximum(self._steps, 1)) ** 2
        logarithm = np.log(2 * len(self.values) * squares / (3 * self.delta))
        xi: Array = 2 * self.model.noise_scale**2 * logarithm
        return xi

    @locked
    def posterior(self) -> Posterior:
        """Return the posterior of the last chosen candidate on the domain, `(n,)` or `(B, n)`.

        Raises:
            RuntimeError: If `reset` was not called before.
            ValueError: If it is not finite.
        """
        self._require_reset()
        mean, variance, _ = self._posteriors()[:, self.chosen, self._rows]
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
