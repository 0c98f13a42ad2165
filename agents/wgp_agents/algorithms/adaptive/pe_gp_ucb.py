"""PE-GP-UCB: several models of the drift at once, those that the data refute are dropped."""

from __future__ import annotations

import math
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from wgp_agents.core.argmax import argmax
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.agent import checked_width
from wgp_agents.gp.bayes_width import FiniteWidth, bayes_width
from wgp_agents.gp.contexts import ChangingArms
from wgp_agents.gp.grid import GridAgent, GridParameters
from wgp_agents.gp.surrogates.drift import EPS_GRID, DriftSurrogate
from wgp_agents.gp.surrogates.weighted import DiscountSurrogate, Surrogate
from wgp_agents.parameters import SMALLEST, per_learner
from wgp_gym.types import Array, Mask
from wgp_gym.validation import as_floats, check_choice, check_names, reject

__all__ = ["PEGPUCB"]

KINDS: dict[str, Any] = {"drift": DriftSurrogate, "discount": DiscountSurrogate}
GRIDS = {"drift": EPS_GRID[:7], "discount": tuple(1 - eps for eps in EPS_GRID[:7])}
SAME = 1e-6  # places this close are one: observations have them in single precision


class PEGPUCB(GridAgent):
    """Prior-elimination GP-UCB (Ziomek, Adachi and Osborne 2025).

    Its candidates p are priors, one of which the function is drawn from. Each round it plays the
    pair (x, p) of the largest mean_p(x) + beta_t^{1/2} std_p(x) among the candidates that are
    left, and adds eta = y - mean_p(x) to the sum of p. p is dropped once, over the rounds S_p in
    which it was chosen,
        |sum of eta| > (xi_t |S_p|)^{1/2} + sum of beta^{1/2} std_p(x).
    What the data don't refute stays: optimism then plays by the candidate that is least certain,
    so that the largest drift of the candidates is the one that matters most.

    Here the candidates are drifts eps of the model of [BSC16], or discounts eta. Its paper has any
    priors, which discounts are not. Deviation: where all are dropped, all begin again with empty
    sums; its paper has one that is true, which stays.

    xi_t = 2 R^2 log(2 P pi^2 t^2 / (3 delta)) with P candidates, a union bound over candidates
    and rounds for the noise. "theory" has beta_t = 2 log(n pi^2 t^2 / (3 delta)), for the true
    prior; each has half of delta. Deviation: these constants are those of union bounds written out
    here. "heuristic" is beta_t = 0.8 log(4 t), of the experiments of [BSC16]: it learns faster, and
    drops a true prior more often than delta says.

    A play that it did not choose updates the posteriors but tests none. `posterior` is that of the
    candidate that it last played by.

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
        **common: See `GridAgent`.

    Attributes:
        values: The candidates, `(P,)`.
        surviving: Which are left, `(B, P)`.

    Raises:
        ValueError: If a parameter is out of its range.

    Source: Ziomek, Adachi, Osborne. Time-Varying Gaussian Process Bandits with Unknown Prior.
    AISTATS 2025.
    """

    def __init__(
        self,
        env: Any,
        *,
        candidates: str = "drift",
        values: Any = None,
        confidence_width: Any = "heuristic",
        delta: Any = 0.1,
        **common: Unpack[GridParameters],
    ) -> None:
        owner = "PEGPUCB"
        check_names(common, owner, GridParameters.__annotations__)
        super().__init__(env, **common)
        batch = self.num_learners
        check_choice("candidates", candidates, owner, KINDS)
        self.values = checked_values(candidates, GRIDS[candidates] if values is None else values)
        self._surrogates: list[Surrogate] = [
            KINDS[candidates](self.action_set) for _ in self.values
        ]
        self.delta = per_learner(owner, "delta", delta, batch, 0.0, 1.0, "neither")
        self.confidence_width = self._checked_width(confidence_width)
        self._steps, self.chosen = np.zeros((2, batch), np.int64)
        self.surviving = np.ones((batch, len(self.values)), bool)
        self.rounds, self._sums, self._allowed = np.zeros((3, batch, len(self.values)))
        self._pending = np.zeros(batch, bool)
        self._play: NDArray[Any] = np.zeros(batch, np.int64)
        self.mean, self.half = np.zeros((2, batch))

    def _checked_width(self, given: Any) -> Any:
        """Return beta_t^{1/2}: a function of the observations so far, or an array `(B,)`."""
        n, problem = len(self.problem.domain), self.problem
        half = np.maximum(self.delta / 2, SMALLEST)
        width = bayes_width("PEGPUCB", problem, given, half, lambda delta, _: FiniteWidth(delta, n))
        return checked_width("PEGPUCB", width, self.num_learners)

    def _restart(self, mask: Mask) -> None:
        for surrogate, value in zip(self._surrogates, self.values, strict=True):
            surrogate.restart(mask, np.full(self.num_learners, value))
        self.surviving[mask], self._pending[mask] = True, False
        for array in (self._steps, self.chosen, self.rounds, self._sums, self._allowed):
            array[mask] = 0
        if isinstance(self.action_set, ChangingArms) and self.arms is None:
            self.action_set.show(None)

    def _widths(self) -> Array:
        """Return beta_t^{1/2} of every learner, `(B,)`."""
        width = self.confidence_width
        if callable(width):
            given, batch = width(self._steps.copy()), self.num_learners
            return per_learner("PEGPUCB", "confidence_width", given, batch, 0.0, math.inf, "left")
        widths: Array = width
        return widths

    def _posteriors(self) -> Array:
        """Return means, variances and the bound's variances by candidate, `(3, P, B, n)`."""
        domain = self.problem.domain
        found = [self.action_set.posterior(surrogate, domain) for surrogate in self._surrogates]
        return np.stack(found, axis=1)

    def _pick(self, uniform: UniformStreams) -> NDArray[np.int64]:
        if isinstance(self.action_set, ChangingArms):
            self.action_set.show(self.arms)
        mean, _, bound_variance = self._posteriors()
        half = self._widths()[:, None] * np.sqrt(bound_variance)
        tops = np.where(self.surviving, (mean + half).max(axis=2).T, -math.inf)
        chosen, rows = argmax(np.ascontiguousarray(tops), uniform.draw()), self._rows
        mean, half = mean[chosen, rows], half[chosen, rows]
        picked = argmax(mean + half, uniform.draw())
        self.mean, self.half = mean[rows, picked], half[rows, picked]
        self.chosen, self._pending[:] = chosen, True
        self._play = picked.copy() if self.arms is None else self.arms[rows, picked]
        return picked

    def _take(self, plays: NDArray[Any], rewards: Array, active: Mask) -> None:
        self._steps += active
        apart = np.abs(plays - self._play).reshape(len(plays), -1).max(axis=1)
        self._test(active & self._pending & (apart <= SAME), rewards)
        self._pending &= ~active
        for surrogate in self._surrogates:
            surrogate.update(plays, rewards, active)

    def _test(self, tested: Mask, rewards: Array) -> None:
        """Drop the candidates that played, of the learners in `tested`, if refuted."""
        rows, p = self._rows[tested], self.chosen[tested]
        self.rounds[rows, p] += 1
        self._sums[rows, p] += (rewards - self.mean)[tested]
        self._allowed[rows, p] += self.half[tested]
        noise = np.sqrt(self._noise_bound()[tested] * self.rounds[rows, p])
        refuted = np.abs(self._sums[rows, p]) > noise + self._allowed[rows, p]
        self.surviving[rows[refuted], p[refuted]] = False
        none = ~self.surviving.any(axis=1)
        self.surviving[none] = True
        for array in (self.rounds, self._sums, self._allowed):
            array[none] = 0.0

    def _noise_bound(self) -> Array:
        """Return xi_t, `(B,)`."""
        squares = (math.pi * np.maximum(self._steps, 1)) ** 2
        logarithm = np.log(2 * len(self.values) * squares / (3 * self.delta))
        xi: Array = 2 * self.noise_scale**2 * logarithm
        return xi

    def _moments(self) -> tuple[Array, Array]:
        mean, variance, _ = self._posteriors()[:, self.chosen, self._rows]
        return mean, variance


def checked_values(candidates: str, given: Any) -> Array:
    """Return the candidates, `(P,)`.

    Raises:
        ValueError: If they are not numbers of the right range.
    """
    left = "[" if candidates == "drift" else "("
    rule = f"at least one number in {left}0, 1]"
    values = as_floats("values", given, "PEGPUCB", rule)
    inside = (values > 0) | (values == 0) & (candidates == "drift")
    if values.ndim != 1 or not values.size or not (inside & (values <= 1)).all():
        reject("values", "PEGPUCB", rule, given)
    return values.copy()
