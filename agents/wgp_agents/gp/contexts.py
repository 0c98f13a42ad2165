"""Arms that are drawn anew at each step, as B learners' memories see them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.core.argmax import argmax
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.acquisition import upper_bounds
from wgp_agents.gp.action_sets import ActionSet, Arms, Box, Predicted
from wgp_agents.kernels import gram as compiled
from wgp_agents.kernels.arrays import DiscountArrays, DriftArrays
from wgp_agents.kernels.drift import context_drift
from wgp_gym.features import FeatureMap, Features
from wgp_gym.kernels import FeatureKernel, Kernel
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array

if TYPE_CHECKING:
    from wgp_agents.gp.surrogates.weighted import Surrogate

__all__ = ["ChangingArms", "action_set_of"]


class ChangingArms(ActionSet):
    """Arms that each learner is shown before it chooses, with features of finite number.

    A play is the place of the arm: the next step has others at its index.

    Args:
        source: A kernel with features, or a feature map.
        domain: Stand-ins for the arms, `(n, d)`.
        regularization: lambda of every learner, `(B,)`.
    """

    def __init__(self, source: Kernel | FeatureMap, domain: Array, regularization: Array) -> None:
        self._map: FeatureMap
        if isinstance(source, Kernel):
            assert isinstance(source, FeatureKernel)  # `feature_source` has refused any other
            self._map = source.features
        else:
            self._map = source
        self._stand_ins = np.broadcast_to(domain, (len(regularization), *domain.shape))
        self.play_shape = (domain.shape[1],)
        first = self._map(domain[:1])  # the memories keep the posterior of one stand-in
        left, prior = np.ones(first.shape[1] + 1), np.sum(first**2, axis=1)
        features = Features(first, left, prior, np.zeros(1, np.intp))
        super().__init__(features, regularization, np.zeros_like(regularization))
        self.show(None)

    def show(self, arms: Array | None) -> None:
        """Show the arms that the next choice is from, `(B, n, d)`; None shows the stand-ins."""
        places = self._stand_ins if arms is None else arms
        batch, n, dim = places.shape
        table = self._map(places.reshape(-1, dim)).reshape(batch, n, -1)
        self._tables = np.ascontiguousarray(table.transpose(0, 2, 1))

    def embed(self, plays: NDArray[Any]) -> tuple[Array, None]:
        """Return the features of places `(B, d)`."""
        return self._map(plays), None

    def choose(
        self,
        surrogate: Surrogate,
        width: Array,
        uniform: UniformStreams,
        weights: Array | None = None,
    ) -> NDArray[Any]:
        """Return the arms, `(B,)`."""
        mean, _, bound_variance = self._predict(surrogate)
        scores = np.empty_like(mean)
        if weights is None:
            upper_bounds(mean, bound_variance, width, scores)
        else:
            scores = mean + width[:, None] * np.einsum("bm,bmn->bn", weights, self._tables)
        return argmax(scores, uniform.draw())

    def _predict(self, surrogate: Surrogate) -> Predicted:
        """Return means, variances and the bound's variances of the arms shown, `(B, n)` each."""
        arrays = surrogate.arrays
        mean, variance, tight = np.empty((3, len(self._tables), self._tables.shape[2]))
        if isinstance(arrays, DiscountArrays):
            wanted = tight if surrogate.bound_variance is not surrogate.variance else tight[:, :0]
            compiled.context_posteriors(self._tables, self.basis, arrays, mean, variance, wanted)
            return mean, variance, tight if wanted is tight else variance
        assert isinstance(arrays, DriftArrays)
        context_drift(self._tables, self.basis.rank, arrays, mean, variance)
        return mean, variance, variance

    def table(self, domain: Array, rows: NDArray[np.intp]) -> Array:
        """Return the features of these points."""
        return self._map(domain[rows])

    def posterior(self, surrogate: Surrogate, domain: Array) -> Predicted:
        """Return the posteriors of the arms that were last shown."""
        del domain
        return self._predict(surrogate)


def action_set_of(problem: BanditProblem) -> type[Arms | Box | ChangingArms]:
    """Return how memories see the set that a problem's actions are from."""
    if problem.contextual:
        return ChangingArms
    return Box if problem.continuous else Arms
