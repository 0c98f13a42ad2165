"""The bank behind a gate: its best models are mixed, with weights that a small network corrects."""

from __future__ import annotations

from functools import partial
from typing import ClassVar, NamedTuple

import numpy as np

from wgp_agents.gp.action_sets import ActionSet, Plays, Points
from wgp_agents.gp.surrogates.bank import RATES, ModelBank
from wgp_agents.gp.surrogates.base import Prediction
from wgp_agents.gp.surrogates.kernel_features import KernelFeatures, Seen
from wgp_agents.kernels.bank_arrays import BankRates
from wgp_agents.kernels.gate import INPUTS, GateInputs, GateWeights, gate_look, gate_weigh
from wgp_agents.kernels.gate_mixture import gate_hallucinate, gate_mixture, gate_moments
from wgp_gym.threads import over_parts
from wgp_gym.types import Array, Indices, Mask

__all__ = ["SHORTLIST", "GatedBank", "Moments"]

SHORTLIST = 8  # models that a gate looks at


class Moments(NamedTuple):
    """What the models of shortlists say of points, in the unit of `GatedBank.scale`.

    Attributes:
        mean: mu, from `GatedBank.zero`, `(k, K, q)`.
        variance: s^2 v, `(k, K, q)`.
    """

    mean: Array
    variance: Array


class GatedBank(ModelBank):
    """A bank whose posterior is a mixture of its best models: see `wgp_agents.kernels.gate`.

    A learner whose chosen model has no unit yet goes by that model alone, as in `ModelBank`. What a
    block's features leave out of k(x, x) is part of no variance here: the standard deviations of
    posterior and bound are the same.

    Args:
        action_set: What is chosen from.
        features: Its features, by kernel.
        drifts: As in `ModelBank`, and so are the last two.
        noise_ratios: lambda of the models.
        gate: The network's weights.
        rates: How fast to forget.

    Attributes:
        last: z^2 = nu^2 / (s^2 v) of each learner's last reward by each model, where s^2 is its
            scale of all innovations before that reward, `(B, Q)`.
        lately: Their mean, fading as F does, `(B, Q)`.
    """

    _constants: ClassVar[tuple[str, ...]] = ("_gate", "_count")

    def __init__(
        self,
        action_set: ActionSet,
        features: KernelFeatures,
        drifts: tuple[float, ...],
        noise_ratios: tuple[float, ...],
        gate: GateWeights,
        rates: BankRates = RATES,
    ) -> None:
        super().__init__(action_set, features, drifts, noise_ratios, rates)
        self._gate, self._count = gate, min(SHORTLIST, len(self.models.prior))
        self.last, self.lately = np.zeros((2, *self.kept.square.shape))

    def restart(self, mask: Mask, forgetting: Array | None = None) -> None:
        """Forget all that the learners in `mask` `(B,)` know; `forgetting` is not used."""
        super().restart(mask)
        self.last[mask] = self.lately[mask] = 0.0

    def update(
        self, plays: Plays, rewards: Array, active: Mask, elapsed: Array | None = None
    ) -> None:
        """Learn from one play of every learner in `active`; scores count plays, drifts time."""
        half, count = self.kept.square.copy(), self.kept.shape.copy()
        super().update(plays, rewards, active, elapsed)
        told = active & (count > 0.0) & (half > 0.0).all(axis=1)
        # b <- rho b + z / 2, and z in the unit b / a is the innovation squared, standardised.
        z = 2.0 * np.maximum(self.kept.square[told] - self._rates.scale * half[told], 0.0)
        self.last[told] = np.minimum(z * (count[told, None] / half[told]), 1e6)
        fade = self._rates.recent
        self.lately[told] = fade * self.lately[told] + (1.0 - fade) * self.last[told]

    def hallucinate(self, plays: Plays, active: Mask) -> None:
        """Count a play in the variances of the models by which the next choice is made."""
        features, left = self.features.embed(plays)
        shortlist = self.look(self._rows).models
        gate_hallucinate(features, left, active, shortlist, self.models, self.kept)

    def look(self, learners: Indices) -> GateInputs:
        """Return what the gate is shown of some learners, `(k,)`."""
        shape = len(learners), self._count
        found = GateInputs(
            models=np.empty(shape, np.int64),
            score=np.empty(shape),
            deviation=np.empty(shape),
            inputs=np.empty((*shape, INPUTS)),
        )
        gate_look(learners, self.last, self.lately, self.models, self._rates, self.kept, found)
        return found

    def moments(self, points: Points, learners: Indices, models: Indices, weight: Array) -> Moments:
        """Return what models say of points; learners have a unit.

        Args:
            points: The points.
            learners: Who looks at them, `(k,)`.
            models: The models of each, `(k, K)`.
            weight: Theirs: those of weight 0 are left out, `(k, K)`.
        """
        size = points.places.shape[1]
        found = Moments(*np.zeros((2, *models.shape, size)))
        for g in range(len(self.features.rank)):
            seen = self.features.see(points, np.full(len(learners), g))
            fill = partial(self._fill_moments, g, seen, learners, models, weight, found)
            over_parts(fill, len(learners), seen.features.shape[1] ** 2 * size)
        return found

    def _fill_moments(
        self,
        g: int,
        seen: Seen,
        learners: Indices,
        models: Indices,
        weight: Array,
        found: Moments,
        part: slice[int, int, None],
    ) -> None:
        """Do `moments` for the models of table g, and for a part of the learners."""
        gate_moments(
            g,
            seen.features,
            seen.which[part],
            seen.residual,
            learners[part],
            models[part],
            weight[part],
            self.models,
            self.kept,
            found.mean[part],
            found.variance[part],
        )

    def _mixture(self, points: Points, rows: Indices) -> tuple[Array, Array]:
        """Return means from `zero` and variances in the unit of `scale`, `(k, q)` each."""
        shown = self.look(rows)
        weight, factor = np.empty((2, *shown.score.shape))
        gate_weigh(shown, self._gate, weight, factor)
        means, variances = self.moments(points, rows, shown.models, weight)
        mean, variance = np.empty((2, len(rows), means.shape[2]))
        gate_mixture(means, variances, weight, factor, mean, variance)
        return mean, variance

    def _with_unit(self, points: Points, learners: Indices) -> tuple[Points, Indices]:
        """Return the points of those who know a unit, and who of `learners` they are."""
        known = np.flatnonzero(self.scale[learners] > 0.0)
        if len(points.places) > 1 and known.size < len(learners):  # each looks at its own
            points = points._replace(places=points.places[known])
        return points, known

    def standardised(self, points: Points, learners: Indices | None = None) -> Prediction:
        """Return means less the zero, and variances in the unit s^2, of points, `(k, q)` each."""
        rows = self._rows if learners is None else learners
        found = super().standardised(points, learners)
        theirs, known = self._with_unit(points, rows)
        if known.size:
            mean, variance = self._mixture(theirs, rows[known])
            found.mean[known] = self.scale[rows[known], None] * mean
            found.variance[known] = found.bound_variance[known] = variance
        return found

    def means(self, points: Points) -> Array:
        """Return the means of `predict` alone, `(B, q)`."""
        return self.standardised(points).mean + self.zero[:, None]

    def bounds(self, points: Points, width: Array, learners: Indices | None = None) -> Array:
        """Return the upper bounds of points in the unit of `scale`, `(k, q)`.

        A bound is that of the mixture, mean + width std.

        Args:
            points: The points.
            width: By model of a block, `(K,)`, and alike for all of them.
            learners: Who looks at them, `(k,)`; None: all.
        """
        rows = self._rows if learners is None else learners
        theirs, known = self._with_unit(points, rows)
        if known.size < len(rows):
            found = super().bounds(points, width, learners)
        else:
            found = np.empty((len(rows), points.places.shape[1]))
        if known.size:
            mean, variance = self._mixture(theirs, rows[known])
            found[known] = mean + width[0] * np.sqrt(variance)
        return found
