"""Adaptive WGP-UCB: learns how fast the past ages, and in which unit rewards are paid."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgp_agents.base import Agent, locked
from wgp_agents.core.argmax import argmax
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.acquisition import upper_bounds
from wgp_agents.gp.grid import Grid
from wgp_agents.gp.posterior import Posterior, posterior_of
from wgp_agents.gp.surrogates.bank import ModelBank
from wgp_agents.gp.surrogates.places import ShownPlaces, kernels_of, places
from wgp_agents.parameters import LARGEST
from wgp_gym.sizes import check_size
from wgp_gym.types import Array, Mask
from wgp_gym.validation import as_floats, check_float, reject

__all__ = ["AdaptiveWGPUCB", "Belief"]

FASTEST = 0.3  # no drift is faster
NOISE_RATIOS = (1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0)
FACTORS = (1.0, 0.5)
LOW, HIGH = 1e-9, 1e9  # noise ratios beyond leave nothing but rounding
SHORTEST, LONGEST = 1e-6, 1e6  # factors of the lengthscale
MOST_MODELS = 2_000  # each of m^2 numbers a learner
STILL = 2.0  # (log(1 / eps))^{1/2} of a function that stays


class Belief(NamedTuple):
    """What the chosen model of each learner holds, numbers or `(B,)`.

    Attributes:
        drift: eps.
        memory: For how many steps an observation counts: at most 2 / eps, and at most the steps
            since the model last began.
        noise_ratio: The variance of the noise over that of the function.
        lengthscale: The factor of the kernel's lengthscale.
        scale: The function's standard deviation, in the unit of rewards.
    """

    drift: Any
    memory: Any
    noise_ratio: Any
    lengthscale: Any
    scale: Any


class AdaptiveWGPUCB(Agent):
    """Plays the upper confidence bound of the model that has lately foretold rewards best.

    The models are all triples of a drift eps, a noise ratio lambda and a lengthscale: see
    `ModelBank`. The one chosen plays argmax of mean + kappa s std, with
    kappa = width (log(1 / eps))^{1/2}, in the manner of the constant widths for drifting
    functions, or 2 width where eps = 0. It knows the arms, the kernel and the horizon; no
    noise, norm, unit or zero of the rewards, and no rate of change. The same rewards in another
    unit give the same plays. On a box it plays the points of the problem's grid.

    Deviation: [Deng22] has weights eta^{-t}, and a bank of those was tried: see
    docs/adaptive.md. In these models an arm that is left alone becomes uncertain at the rate
    eps, where with weights it does so only when its last observations have faded.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        drifts: The values of eps, each in [0, 1]. Default: 0, and 2 / T, 10 / T, 50 / T, ... up to
            0.3. With the other two grids there are at most 2,000 models.
        noise_ratios: The values of lambda, each in [1e-9, 1e9].
        lengthscales: Factors of the kernel's lengthscale, if it has one, in [1e-6, 1e6].
        width: Factor >= 0 of the confidence width.
        exploration: The probability in [0, 1) with which it plays an arm at random. While the arm
            that it plays stays as it is, it may never see that another has become better: a
            little exploration bounds how long.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    takes_units = False

    def __init__(
        self,
        env: Any,
        *,
        drifts: Any = None,
        noise_ratios: Any = NOISE_RATIOS,
        lengthscales: Any = FACTORS,
        width: float = 0.9,
        exploration: float = 0.0,
    ) -> None:
        super().__init__(env)
        owner = "AdaptiveWGPUCB"
        if drifts is None:
            drifts = drift_grid(self.problem.horizon)
        drifts = checked("drifts", drifts, owner, 0.0, 1.0)
        ratios = checked("noise_ratios", noise_ratios, owner, LOW, HIGH)
        factors = checked("lengthscales", lengthscales, owner, SHORTEST, LONGEST)
        counts = {"drifts": len(drifts), "noise_ratios": len(ratios), "lengthscales": len(factors)}
        check_size(owner, counts, {"drifts": 8, "noise_ratios": 7, "lengthscales": 1}, MOST_MODELS)
        check_float("width", width, owner, 0.0, LARGEST)
        self._exploration = check_float("exploration", exploration, owner, 0.0, 1.0, closed="left")
        self.places = places(
            self.problem, kernels_of(self.problem.kernel, factors), self.num_learners
        )
        self._grid = Grid(self.problem)
        self.bank = ModelBank(self.places, self.num_learners, drifts, ratios)
        self._factors = np.array(factors)
        eps = self.bank.models.drift
        with np.errstate(divide="ignore"):
            self._width = width * np.where(eps > 0, np.sqrt(-np.log(eps)), STILL)

    def _restart(self, mask: Mask) -> None:
        self.bank.restart(mask)

    def _show(self) -> None:
        if isinstance(self.places, ShownPlaces):
            self.places.show(self.arms)

    def _choose(self, uniform: UniformStreams) -> NDArray[Any]:
        self._show()
        mean, variance = self.bank.posteriors()
        scale = self.bank.scale[:, None]  # ties are told apart in the function's own unit
        known = scale > 0
        centre = np.where(known, mean / np.where(known, scale, 1.0), 0.0)
        bounds = np.empty_like(centre)
        upper_bounds(centre, variance, self._width[self.bank.chosen], bounds)
        picked = argmax(bounds, uniform.draw())
        if self._exploration > 0.0:
            picked = self._explored(picked, uniform.draw())
        return self._grid.played(picked)

    def _explored(self, best: NDArray[np.int64], uniform: Array) -> NDArray[np.int64]:
        """Return the best arms, or with the probability of exploration others, `(B,)`."""
        explores = uniform < self._exploration
        share = np.divide(uniform, self._exploration, out=np.zeros_like(uniform), where=explores)
        n = self.places.tables.shape[2]
        return np.where(explores, np.minimum(share * n, n - 1).astype(np.int64), best)

    def _learn(self, actions: NDArray[Any], rewards: Array, active: Mask) -> None:
        self.bank.update(self._grid.numbers(actions), rewards, active)

    @locked
    def posterior(self) -> Posterior:
        """Return the chosen model's posterior on the domain, `(n,)` each, or `(B, n)`.

        Both are in the unit of the rewards.

        Raises:
            RuntimeError: If `reset` was not called before.
            ValueError: If it is not finite.
        """
        self._require_reset()
        self._show()
        mean, variance = self.bank.posteriors()
        mean += self.bank.zero[:, None]
        return posterior_of(mean, self.bank.scale[:, None] * np.sqrt(variance), self.batched)

    @locked
    def belief(self) -> Belief:
        """Return what the chosen model of each learner holds.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        models, q = self.bank.models, self.bank.chosen
        drift = models.drift[q]
        with np.errstate(divide="ignore", over="ignore"):
            surrogate = np.minimum(2.0 / drift, self.bank.age)
        found = (drift, surrogate, models.noise[q], self._factors[models.table[q]], self.bank.scale)
        return Belief(*(a if self.batched else float(a[0]) for a in found))


def drift_grid(horizon: int) -> tuple[float, ...]:
    """Return 0, and 2 / T, 10 / T, 50 / T, ... up to `FASTEST`.

    A slower drift would hardly show within T steps.
    """
    grid, eps = [0.0], 2.0 / horizon
    while eps <= FASTEST:
        grid.append(eps)
        eps *= 5.0
    return tuple(grid)


def checked(name: str, values: Any, owner: str, low: float, high: float) -> tuple[float, ...]:
    """Return the values of a grid.

    Raises:
        ValueError: If they are not numbers of the right range.
    """
    rule = f"at least one number in [{low:g}, {high:g}]"
    grid = as_floats(name, values, owner, rule)
    inside = (grid >= low) & (grid <= high)
    if grid.ndim != 1 or not grid.size or not inside.all():
        reject(name, owner, rule, values)
    return tuple((grid + 0.0).tolist())  # of two zeros the one without a sign
