"""Information gains that are known before any play: greedy gains and upper bounds.

References:
    [AYPS11] Abbasi-Yadkori, Pal, Szepesvari. Improved Algorithms for Linear Stochastic Bandits.
        NeurIPS 2011.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal, get_args

import numpy as np

from wgp_agents.gp.action_sets import FeatureSource
from wgp_agents.gp.gain import gain_bound, greedy_gains, weight_sums
from wgp_agents.gp.spectrum import mercer_spectrum
from wgp_agents.gp.tuning import Forgetting
from wgp_agents.kernels.basis import Basis
from wgp_agents.kernels.scores import fill_known
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Indices, Mask
from wgp_gym.validation import reject

__all__ = [
    "GAINS",
    "GainBounds",
    "GainChoice",
    "check_gains",
    "checked_forgetting",
    "computed_gain",
]

GainChoice = Literal["realised", "greedy", "bound", "determinant"]
"""The information gain in beta: see `GPAgent`."""
GAINS: tuple[GainChoice, ...] = get_args(GainChoice)
FIRST_STEPS = 1_000  # that gains are known for at first where T is unknown


class GainBounds:
    """The double-weighted information gains of B learners after 0 ... T observations.

    Args:
        kind: "greedy", a lower bound of the maximum over all plays; "bound", an upper one; or
            "determinant", another upper one, m / 2 log(1 + L^2 sum of w^2 / (lambda m)) with m
            features: Lemma 10 of [AYPS11]. L^2 = max(1, max k(x, x)).
        basis: The features of the points.
        source: The kernel, or the feature map in its place.
        problem: The problem.
    """

    _constants = ("basis", "_grows")
    _stores = ("gains",)

    def __init__(
        self, kind: str, basis: Basis, source: FeatureSource, problem: BanditProblem
    ) -> None:
        self._kind, self.basis = kind, basis
        self._spectrum = mercer_spectrum(source, problem.domain) if kind == "bound" else None
        self._grows = problem.horizon is None
        self.gains = np.zeros((len(basis.regularization), (problem.horizon or FIRST_STEPS) + 1))

    def restart(self, mask: Mask, ratios: Array) -> None:
        """Compute the gains of the learners in `mask` from their surrogate's `ratios`, `(B, L)`."""
        horizon, regularization = self.gains.shape[1] - 1, self.basis.regularization[mask]
        if self._kind == "determinant":
            m = self.basis.rank[mask][:, None]
            sums = max(1.0, self.basis.prior.max()) * weight_sums(ratios[mask], horizon)
            gains = 0.5 * m * np.log1p(sums / (regularization[:, None] * m))
        elif self._spectrum is not None:
            sums = weight_sums(ratios[mask], horizon)
            gains = gain_bound(self._spectrum, sums, regularization[:, None]).value
        else:
            assert ratios.shape[1] == 1  # else the weights of t steps are no prefix of those of T
            weights = ratios ** (2.0 * np.arange(horizon))
            gains = greedy_of(self.basis, weights, np.flatnonzero(mask))
        self.gains[mask, 1:] = gains

    def after(self, held: Indices, ratios: Array) -> Array:
        """Return the gains after `held` observations, `(B,)`; beyond T, those after T.

        `ratios` are those of the last restarts, for more steps where T is unknown.
        """
        if self._grows and held.max() >= self.gains.shape[1]:
            steps = 2 * max(int(held.max()), self.gains.shape[1])
            self.gains = np.zeros((len(self.gains), steps + 1))
            self.restart(np.ones(len(held), bool), ratios)
        gains = np.empty(len(held))
        fill_known(held, self.gains, gains)
        return gains


def computed_gain(basis: Basis, horizon: int) -> Array:
    """Return the unweighted gain gamma_T of T greedy plays, `(B,)`."""
    learners = np.arange(len(basis.regularization))
    return greedy_of(basis, np.ones((len(learners), horizon)), learners)[:, -1]


def checked_forgetting(
    owner: str, forgetting: Forgetting, basis: Basis, problem: BanditProblem
) -> Forgetting:
    """Return a checked forgetting parameter, with a number in the place of "computed".

    Raises:
        ValueError: If it is out of its range, or follows from T, which is unknown.
    """
    forgetting.check(owner, len(basis.regularization))
    if forgetting.given is not None:
        return forgetting
    horizon = problem.known_horizon(owner, forgetting.parameter)
    if not forgetting.gain_is_computed:
        return forgetting
    return replace(forgetting, information_gain=computed_gain(basis, horizon))


def greedy_of(basis: Basis, weights: Array, learners: Indices) -> Array:
    """Return the greedy gains of the k `learners`, each on its own features, `(k, t)`."""

    def _gains(i: int) -> Array:
        table = basis.phi[: basis.rank[i]].T
        return greedy_gains(table, weights[i], float(basis.regularization[i])).gains

    return np.stack([_gains(i) for i in learners.tolist()])


def check_gains(owner: str, gain: GainChoice, forgetting: Forgetting | None) -> None:
    """Check that no gain of known arms is asked for where arms are drawn anew at each step."""
    if gain in ("greedy", "bound"):
        reject("gain", owner, "'realised' or 'determinant' where arms are drawn anew", gain)
    if forgetting is not None and forgetting.gain_is_computed:
        rule = "'order' or a number where arms are drawn anew"
        reject("information_gain", owner, rule, "computed")
