"""Adaptive WGP-UCB: learns the rate of change and the unit of the rewards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.base import Agent, locked
from wgp_agents.core.access import EnvLike
from wgp_agents.core.argmax import TIE, argmax
from wgp_agents.core.made_for import MadeFor
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.action_sets import ActionSet, Points
from wgp_agents.gp.bands import band_of, squared_errors
from wgp_agents.gp.box import BareBox, make_action_set
from wgp_agents.gp.model import Posterior, posterior_of
from wgp_agents.gp.nystrom import coded_columns
from wgp_agents.gp.surrogates.bank import ModelBank
from wgp_agents.gp.surrogates.kernel_features import KernelFeatures, kernel_features, kernels_of
from wgp_agents.gp.surrogates.lazy_bank import LazyBank, make_bank
from wgp_agents.parameters import LARGEST, checked_grid, checked_indices
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Actions, Array, Indices, Mask, PerLearner
from wgp_gym.validation import as_floats, check_float, check_size, reject

__all__ = ["AdaptiveWGPUCB", "Belief"]

DRIFTS = (0.0, 0.0005, 0.0025, 0.0125, 0.0625)  # in a step, whatever T is
NOISE_RATIOS = (1e-3, 0.01, 0.05, 0.2, 0.7, 2.5, 10.0)
FACTORS = (1.0, 0.5)
LOW, HIGH = 1e-9, 1e9  # of noise ratios; beyond, results are rounding errors
SHORTEST, LONGEST = 1e-6, 1e6  # factors of the lengthscale
MOST_MODELS = 2_000  # each of m^2 numbers a learner
STILL = 2.0  # stands for (log(1 / eps))^{1/2} where eps = 0


class Belief(NamedTuple):
    """The parameters of each learner's chosen model, numbers or `(B,)`.

    Attributes:
        drift: eps.
        memory: The number of steps for which an observation counts: at most 2 / eps, and at most
            the plays since the model was last restarted.
        noise_ratio: The variance of the noise over that of the function.
        lengthscale: The factor of the kernel's lengthscale; where it has one for each dimension,
            `(d,)` or `(B, d)`.
        scale: The function's standard deviation, in the unit of rewards.
    """

    drift: PerLearner
    memory: PerLearner
    noise_ratio: PerLearner
    lengthscale: PerLearner
    scale: PerLearner


class AdaptiveWGPUCB(Agent):
    """The upper confidence bound of the model, of a bank, that the rewards speak for most.

    The models are all triples of a drift eps, a noise ratio lambda and a lengthscale, under two
    rules of when they restart: see `ModelBank`. The chosen one plays argmax of
    mean + kappa (1 + 1 / n)^{1/2} s std, with kappa = width (log(1 / eps))^{1/2} as in
    `ConstantWidth`, or 2 width where eps = 0, and n the number of plays from which the function's
    scale s was learned. The agent knows the arms and the kernel; no T, noise, norm, unit or zero of
    the rewards, and no rate of change. The same rewards in another unit give the same plays. On a
    box it plays any point, found as `Box` describes, and where it explores random points of the
    problem's grid; of a box whose coordinates stand for categories that grid alone.

    Deviation: [Deng22] has weights eta^{-t}; for a bank of those see docs/adaptive.md. In these
    models the uncertainty of an arm that is not played grows at the rate eps; with weights it grows
    only once its last observations have faded.

    Args:
        env: The environment to play, or the `BanditProblem` alone.
        drifts: The values of eps in a step, each in [0, 1]. With the other two grids there are at
            most 2,000 triples.
        noise_ratios: The values of lambda, each in [1e-9, 1e9].
        lengthscales: Factors of the kernel's lengthscales, if it has some, in [1e-6, 1e6], `(G,)`;
            or a row of one for each dimension, `(G, d)`.
        width: Factor >= 0 of the confidence width.
        exploration: The probability in [0, 1) with which it plays a random arm. Without it, while
            the arm that it plays stays as it is, it may never see that another has become better.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    takes_units = False
    takes_allowed = True
    takes_elapsed = True
    learns_by_acting = False
    _constants: ClassVar[tuple[str, ...]] = ("learns_by_acting",)
    _form = 2  # states of the first bank cannot be followed

    def __init__(
        self,
        env: EnvLike,
        *,
        drifts: ArrayLike = DRIFTS,
        noise_ratios: ArrayLike = NOISE_RATIOS,
        lengthscales: ArrayLike = FACTORS,
        width: float = 0.9,
        exploration: float = 0.0,
    ) -> None:
        super().__init__(env)
        owner = "AdaptiveWGPUCB"
        grid = checked_grid("drifts", drifts, owner, 0.0, 1.0).tolist()
        ratios = checked_grid("noise_ratios", noise_ratios, owner, LOW, HIGH).tolist()
        factors = checked_factors(owner, lengthscales, self.problem.domain.shape[1])
        counts = {"drifts": len(grid), "noise_ratios": len(ratios), "lengthscales": len(factors)}
        check_size(owner, counts, {"drifts": 5, "noise_ratios": 7, "lengthscales": 1}, MOST_MODELS)
        check_float("width", width, owner, 0.0, LARGEST)
        self._exploration = check_float("exploration", exploration, owner, 0.0, 1.0, closed="left")
        self.action_set, starts = own_action_set(self.problem)
        self._made_for = MadeFor(owner, self.problem, with_noise=False)
        kernels = kernels_of(self.problem.kernel, factors.tolist())
        features = kernel_features(self.problem, kernels, starts)
        self.bank = self._make_bank(features, grid, ratios)
        self.learns_by_acting = isinstance(self.bank, LazyBank)
        self._factors = factors
        eps = self.bank.models.drift
        with np.errstate(divide="ignore"):
            self._width = width * np.where(eps > 0, np.sqrt(-np.log(eps)), STILL)

    def _make_bank(
        self, features: KernelFeatures, drifts: tuple[float, ...], noise_ratios: tuple[float, ...]
    ) -> ModelBank:
        return make_bank(self.action_set, features, drifts, noise_ratios)

    def _restart(self, mask: Mask) -> None:
        self.bank.restart(mask)
        if self.arms is None:
            self.action_set.show(None)

    def _choose(self, uniform: UniformStreams) -> Actions:
        self.action_set.show(self.arms, self.allowed)
        picked = self.action_set.maximise(self._leading_scores, uniform)
        return picked if self._exploration == 0.0 else self._explored(picked, uniform.draw())

    def _domain(self) -> Points:
        """Return the arms, or the points of a box's grid, of which the bank has the features."""
        if isinstance(self.action_set, BareBox):
            return self.action_set.at(self.problem.domain, 0)
        return self.action_set.candidates

    def _scores(self, points: Points, learners: Indices | None = None) -> Array:
        """Return the upper bounds of points in the function's own unit, `(k, q)`."""
        return self.bank.bounds(points, self._width, learners)

    def _leading_scores(self, points: Points, learners: Indices | None = None) -> Array:
        """Return `_scores` of which each learner's best are right, if all learners look."""
        if learners is not None:
            return self._scores(points, learners)
        return self.bank.leading_bounds(points, self._width, self.allowed)

    @locked
    def bounds(self) -> Array:
        """Return the upper bounds of all arms, `(n,)` or `(B, n)`, in the unit of the rewards.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        found = self.bank.zero[:, None] + self.bank.scale[:, None] * self._scores(self._domain())
        return found if self.batched else found[0]

    @locked
    def propensities(self) -> Array | None:
        """Return the probabilities of the last choice; None without exploration.

        On a box they are those of a choice from its grid.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        if self._exploration == 0.0:
            return None
        scores = self._scores(self._domain())
        there = np.ones(scores.shape, bool) if self.allowed is None else self.allowed
        best = np.where(there, scores, -np.inf).max(axis=1, keepdims=True)
        tied = there & (scores >= best - TIE)
        share = self._exploration
        found: Array = (1.0 - share) * tied / tied.sum(axis=1, keepdims=True)
        found += share * there / there.sum(axis=1, keepdims=True)
        return found if self.batched else found[0]

    def _explored(self, best: Actions, uniform: Array) -> Actions:
        """Return the best actions, or random ones with the probability of exploration."""
        explores = uniform < self._exploration
        share = np.divide(uniform, self._exploration, out=np.zeros_like(uniform), where=explores)
        equal = np.zeros((len(best), len(self.problem.domain)))
        other = argmax(equal, share, self.allowed)
        if self.problem.continuous:
            return np.where(explores[:, None], self.problem.domain[other].astype(best.dtype), best)
        return np.where(explores, other, best)

    def _learn(self, actions: Actions, rewards: Array, active: Mask) -> None:
        self.bank.update(self.action_set.embed(actions), rewards, active)

    def _learn_elapsed(
        self, actions: Actions, rewards: Array, active: Mask, elapsed: Array
    ) -> None:
        self.bank.update(self.action_set.embed(actions), rewards, active, elapsed)

    def _elapse(self, steps: Array, active: Mask) -> None:
        self.bank.elapse(steps, active)

    def _hallucinate(self, actions: Actions, active: Mask) -> None:
        self.bank.hallucinate(self.action_set.embed(actions), active)

    @locked
    def posterior(self) -> Posterior:
        """Return the chosen model's posterior on the domain, `(n,)` each, or `(B, n)`.

        It is in the unit of the rewards.

        Raises:
            RuntimeError: If `reset` was not called before.
            ValueError: If it is not finite.
        """
        self._require_reset()
        mean, variance, _ = self.bank.standardised(self._domain())
        mean += self.bank.zero[:, None]
        return posterior_of(mean, self.bank.scale[:, None] * np.sqrt(variance), self.batched)

    @locked
    def bands(self, arms: Sequence[int] | None = None) -> Posterior:
        """Return the posterior's mean on the domain, and a std that can be believed.

        mean -+ 1.96 std is meant to hold the function at 95 % of the arms: it takes all models, not
        the chosen one alone, and what is not known of their scales. See `wgp_agents.gp.bands`. The
        std of `posterior`, on which the plays rest, is the chosen model's own. Before two rewards
        differ this one is infinite.

        Args:
            arms: The arms that are asked for, `(q,)`, which costs less than all. Default: all.

        Raises:
            RuntimeError: If `reset` was not called before.
            ValueError: If `arms` are no indices of arms.
        """
        self._require_reset()
        mean = self.bank.means(self._domain())
        some = None if arms is None else checked_indices("arms", arms, "bands", mean.shape[1])
        mean = mean if some is None else np.take(mean, some, axis=1)
        square = squared_errors(self.bank, self._domain(), mean, some)
        return band_of(mean, square, self.batched)

    @locked
    def feature_error(self) -> PerLearner:
        """Return the largest |k(x, y) - phi(x)^T phi(y)| of the chosen model's kernel.

        It is a float, or `(B,)`, measured on the domain; where arms are drawn anew, on stand-ins
        and between them, and on a box on its candidates and between them. What the features leave
        out of k(x, x) counts as noise of each play, and is part of the variance.
        """
        tables = self.bank.models.table[self.bank.block].tolist()
        found = {g: self.bank.features.error(g) for g in set(tables)}
        errors = np.array([found[g] for g in tables])
        return errors if self.batched else float(errors[0])

    @locked
    def belief(self) -> Belief:
        """Return the parameters of the chosen model of each learner.

        Raises:
            RuntimeError: If `reset` was not called before.
        """
        self._require_reset()
        models, g, drift = self.bank.models, self.bank.block, self.bank.drift
        with np.errstate(divide="ignore", over="ignore"):
            memory = np.minimum(2.0 / drift, self.bank.age)
        found = (drift, memory, models.noise[g], self._factors[models.table[g]], self.bank.scale)
        # One number, or a row of one for each dimension.
        return Belief(*(a if self.batched else a[0] if a.ndim > 1 else float(a[0]) for a in found))


def own_action_set(problem: BanditProblem) -> tuple[ActionSet, Array | None]:
    """Return what is chosen from, and the candidates of a box, `(q, d)`; None of arms.

    Of a box where coordinates stand for categories only the grid is played.
    """
    kernel, unit = problem.kernel, np.ones(problem.batch_size or 1)
    if problem.continuous and not coded_columns(kernel, range(problem.domain.shape[1])):
        box = BareBox(kernel, problem.domain, unit)
        return box, box.candidates.places[0]
    # The models have their own features, so the action set needs only one.
    return make_action_set(kernel, problem, unit, grid=True, max_features=1), None


def checked_factors(owner: str, given: ArrayLike, dim: int) -> Array:
    """Return the factors of the lengthscales, `(G,)` or `(G, d)`.

    Raises:
        ValueError: If they are not of this kind.
    """
    try:
        flat = np.ndim(given) < 2
    except ValueError:  # rows of unequal length
        flat = True
    if flat:
        return checked_grid("lengthscales", given, owner, SHORTEST, LONGEST)
    rule = f"a list of numbers in [{SHORTEST:g}, {LONGEST:g}], or of rows of {dim} such numbers"
    rows = as_floats("lengthscales", given, owner, rule)
    fit = rows.ndim == 2 and rows.size and rows.shape[1] == dim
    if not fit or not ((rows >= SHORTEST) & (rows <= LONGEST)).all():
        reject("lengthscales", owner, rule, given)
    return rows
