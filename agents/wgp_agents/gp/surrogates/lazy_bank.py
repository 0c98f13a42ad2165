"""The bank with many arms: it computes the variances of those alone that may be the best.

A choice reads the chosen model's variances, v(x) = phi^T P phi for an arm x. In one step P becomes
(1 - eps) (P - u u^T / (s + lambda)) + eps I (`wgp_agents.kernels.drift`), which is at most
(1 - eps) P + eps I in the order of matrices. So

    v_new <= (1 - eps) v + eps phi^T phi,

and a play without its reward does not raise v either. As the right side rises with v, this holds of
upper bounds, too. What the features leave out of k(x, x), r, is part of the variances here: it
holds with v + r for v, and phi^T phi + r for phi^T phi. All features of a table may count in the
second place, where a block has fewer.

Such bounds are kept of the models that were chosen last, as a choice often goes back to one of
them. Where another is chosen, or it has restarted, none is known, and all variances are computed.
"""

from __future__ import annotations

import numpy as np

from wgp_agents.core.state import check_counts
from wgp_agents.gp.action_sets import ActionSet, FixedArms, Plays, Points
from wgp_agents.gp.surrogates.bank import RATES, ModelBank
from wgp_agents.gp.surrogates.kernel_features import FixedFeatures, KernelFeatures
from wgp_agents.gp.surrogates.lazy import settle
from wgp_agents.kernels import blas
from wgp_agents.kernels.bank import chosen_bounds, chosen_means
from wgp_agents.kernels.bank_arrays import BankRates
from wgp_agents.kernels.elapsed import drifted
from wgp_gym.types import Array, Indices, Mask

__all__ = ["LazyBank", "make_bank"]

NONE = -1  # in the place of a model
MODELS = 4  # of which bounds are kept
ROUNDING = 1e-13  # of k(x, x): by how much a step's rounding may change a variance, at most
LEAST_WORK = 2**26  # m^2 n from which on it pays


def make_bank(
    action_set: ActionSet,
    features: KernelFeatures,
    drifts: tuple[float, ...],
    noise_ratios: tuple[float, ...],
) -> ModelBank:
    """Return a bank of these models, a lazy one where that pays. See `ModelBank`."""
    fixed = isinstance(action_set, FixedArms) and isinstance(features, FixedFeatures)
    work = int(features.rank.max()) ** 2 * action_set.candidates.places.shape[1]
    kind = LazyBank if fixed and work >= LEAST_WORK else ModelBank
    return kind(action_set, features, drifts, noise_ratios)


class LazyBank(ModelBank):
    """A bank on fixed arms, so many that their variances are nearly all of a choice's cost.

    Its plays are those of `ModelBank`.

    Args:
        action_set: What is chosen from; `FixedArms`.
        features: Its features, by kernel; `FixedFeatures`.
        drifts: As in `ModelBank`, and so are the last two.
        noise_ratios: lambda of the models.
        rates: How fast to forget.

    Attributes:
        above: Upper bounds of the variances of all arms, by some models, `(B, MODELS, n)`.
        model: By which, `(B, MODELS)`; -1: by none.
        oldest: Which of them is the next to be given up, `(B,)`.
    """

    _constants = ("_squares", "_table")

    def __init__(
        self,
        action_set: ActionSet,
        features: KernelFeatures,
        drifts: tuple[float, ...],
        noise_ratios: tuple[float, ...],
        rates: BankRates = RATES,
    ) -> None:
        super().__init__(action_set, features, drifts, noise_ratios, rates)
        assert isinstance(features, FixedFeatures)
        self._table = features
        self._squares = np.sum(features.features**2, axis=1) + features.residual  # (G, n)
        batch, n = len(self.held), self._squares.shape[1]
        self.above = np.zeros((batch, MODELS, n))
        self.model = np.full((batch, MODELS), NONE)
        self.oldest = np.zeros(batch, np.int64)

    def _check_state(self) -> None:
        super()._check_state()
        check_counts(self, "model", self.model + 1, len(self.models.prior))
        check_counts(self, "oldest", self.oldest, MODELS - 1)

    def restart(self, mask: Mask, forgetting: Array | None = None) -> None:
        """Forget all that the learners in `mask` `(B,)` know; `forgetting` is not used."""
        super().restart(mask)
        self.model[mask] = NONE

    def update(
        self, plays: Plays, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Learn from one play of every learner in `active`; scores count plays, drifts time."""
        super().update(plays, rewards, active, elapsed)
        self._raise(np.ones(len(active)) if elapsed is None else elapsed, active)
        restarted = self.kept.age[self._rows[:, None], self.model] == 0
        self.model[active[:, None] & restarted] = NONE

    def elapse(self, steps: Array, active: Mask) -> None:
        """Let all models drift."""
        super().elapse(steps, active)
        self._raise(steps, active)

    def _raise(self, steps: Array, active: Mask) -> None:
        """Keep upper bounds what they are, after steps `(B,)` of drift."""
        eps, count = drifted(self._step, steps), len(self.models.drift)
        for i, place in np.argwhere(active[:, None] & (self.model != NONE)).tolist():
            g, k = divmod(int(self.model[i, place]), count)
            above = self.above[i, place]
            above *= 1.0 - eps[i, k]
            above += (eps[i, k] + ROUNDING) * self._squares[self.models.table[g]]

    def leading_bounds(self, points: Points, width: Array, allowed: Mask | None = None) -> Array:
        """Return `bounds`, `(B, q)`, of which each learner's best and all that tie are right."""
        bounds = np.empty((len(self.held), self.above.shape[2]))
        known = self.model == self.kept.chosen[:, None]
        with blas.single_thread():
            for i in self._rows.tolist():
                if self.kept.seen[i] == 0:  # all arms are alike
                    bounds[i] = self.bounds(points, width, self._rows[i : i + 1])[0]
                elif not known[i].any():
                    bounds[i] = self._compute_all(i, points, width)
                else:
                    above = self.above[i, known[i].argmax()]
                    mine = None if allowed is None else allowed[i]
                    bounds[i] = self._compute_leading(i, width, mine, above)
        return bounds

    def _compute_all(self, i: int, points: Points, width: Array) -> Array:
        """Return the upper bounds of all arms for learner i, and keep their variances."""
        means, _, variances = self.standardised(points, self._rows[i : i + 1])
        place = self.oldest[i]
        self.above[i, place], self.model[i, place] = variances[0], self.kept.chosen[i]
        self.oldest[i] = (place + 1) % MODELS
        return self._bounds_of(i, width, means[0], variances[0])

    def _compute_leading(self, i: int, width: Array, allowed: Mask | None, above: Array) -> Array:
        """Return learner i's upper bounds `(n,)`, right of the arms that may be the best.

        Their variances take the place of the upper bounds `above`, `(n,)`.
        """
        g = int(self.block[i])
        m, table = int(self.models.rank[g]), int(self.models.table[g])
        P, mean = np.empty((m, m)), np.empty(len(above))
        chosen_means(i, self._table.features[table], self.models, self.kept, P, mean)

        def _evaluate(arms: Indices) -> Array:
            rows, left = self._table.of_arms(table, arms)
            phi = rows[:, :m]
            squares = np.einsum("ij,ij->i", phi, phi @ P)
            above[arms] = np.maximum(squares, 0.0) + left
            return self._bounds_of(i, width, mean[arms], above[arms])

        bounds = self._bounds_of(i, width, mean.copy(), above)
        settle(bounds, allowed, _evaluate)
        return bounds

    def _bounds_of(self, i: int, width: Array, means: Array, variances: Array) -> Array:
        """Turn learner i's means of some arms into upper bounds; return them."""
        early = self._rates.warmup
        chosen_bounds(i, width, early, self.models, self.kept, means, variances)
        return means
