"""Arms that are drawn anew at each step, under a kernel with infinitely many features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wgp_agents.gp.action_sets import ERROR_POINTS, ActionSet, FeatureSource, Plays, Points
from wgp_agents.kernels import blas
from wgp_gym.features import Extension, Features, exact_features
from wgp_gym.kernels import Categorical, Empirical, Kernel, OnColumns, Product, Sum
from wgp_gym.types import Action, Array, Indices, Mask

__all__ = ["MAX_FEATURES", "NystromArms", "between", "coded_columns"]

MAX_FEATURES = 128  # of each kernel; the residual counts as noise of each arm


class NystromArms(ActionSet):
    """Arms that are drawn anew at each step, with features made on points that stand for them.

    The features, at most 128, are those of a pivoted Cholesky factorisation on the stand-ins,
    continued to any other point: see `Extension`. As on a box, what they leave out of k(x, x) is
    added to the variance, and to the noise variance of a play: see `wgp_agents.gp.box.Box`.

    Args:
        source: The kernel, or the feature map in its place.
        domain: Points that are shown before any arms are, `(n, d)`.
        stand_ins: Points spread over all places where arms may stand, `(q, d)`.
        regularization: lambda of every learner, `(B,)`.
        max_features: The largest number of features; default 128.
    """

    stays = False
    exact = False
    _constants = ("_domain", "_spread", "_extend", "_kernel")

    def __init__(
        self,
        source: FeatureSource,
        domain: Array,
        stand_ins: Array,
        regularization: Array,
        max_features: int | None = None,
    ) -> None:
        tolerances = np.clip(1e-6 * regularization, 1e-12, 1e-8)
        most = MAX_FEATURES if max_features is None else max_features
        with blas.single_thread():
            found = exact_features(source, stand_ins, float(tolerances.min()), most)
            extend = Extension(found, source, stand_ins)
        first = int(found.prior.argmax())  # the basis is that of one stand-in
        one = Features(
            found.table[[first]], found.residuals, found.prior[[first]], np.zeros(1, np.intp)
        )
        super().__init__(one, domain[:1], regularization, tolerances)
        self._spread, self._extend = stand_ins, extend
        self._kernel = source if isinstance(source, Kernel) else None
        self._domain = np.broadcast_to(domain, (len(regularization), *domain.shape))
        self.show(None)

    def _at(self, places: Array, learner: int) -> tuple[Array, Array]:
        """Return the features of points `(q, d)` for one learner, `(q, m)`, and what they leave."""
        rank = int(self.basis.rank[learner])
        rows, prior = self._extend(places, rank)
        features = np.zeros((len(places), len(self.basis.phi)))
        features[:, :rank] = rows
        return features, np.maximum(prior - np.sum(rows**2, axis=1), 0.0)

    def show(self, arms: Array | None, allowed: Mask | None = None) -> None:
        """Set the arms of the next step, `(B, n, d)`; None sets the points of the domain."""
        super().show(arms, allowed)
        places = self._domain if arms is None else arms
        with blas.single_thread():  # one learner after the other: alike for any B
            found = [self._at(own, i) for i, own in enumerate(places)]
        rows, residual = (np.stack(part) for part in zip(*found, strict=True))
        features = np.ascontiguousarray(rows.transpose(0, 2, 1))
        self.candidates = Points(places, features, residual)

    def embed(self, actions: Action) -> Plays:
        """Return points `(B, d)` with their features."""
        with blas.single_thread():
            found = [self._at(point[None], i) for i, point in enumerate(actions)]
        features, left = (np.concatenate(part) for part in zip(*found, strict=True))
        return Plays(actions, features, left)

    def domain_features(self, rows: Indices) -> Array:
        """Return all features of points of the domain, by their index, `(len(rows), m)`."""
        return self._extend(self._domain[0, rows])[0]

    def measured(self, domain: Array) -> tuple[Array, Array]:
        """Return stand-ins and points between them, with all their features."""
        places = between(self._spread, self._kernel)
        return places, self._extend(places)[0]


def between(stand_ins: Array, kernel: Kernel | None) -> Array:
    """Return some of the stand-ins `(q, d)`, and 256 other points where arms may stand.

    They are spread from the least to the largest of each coordinate; one that stands for categories
    by the kernel has the stand-ins' own values alone.
    """
    from scipy.stats import qmc  # a second to import, which fixed arms do without

    size, dim = ERROR_POINTS // 2, stand_ins.shape[1]
    rows = np.linspace(0, len(stand_ins) - 1, min(len(stand_ins), size)).astype(np.intp)
    spread = qmc.Sobol(dim, scramble=False).random(2**8)
    coded = set() if kernel is None else coded_columns(kernel, range(dim))
    for axis, column in enumerate(stand_ins.T):
        values, share = np.unique(column), spread[:, axis]
        if axis in coded:
            spread[:, axis] = values[(share * len(values)).astype(np.intp)]
        else:
            spread[:, axis] = values[0] + share * (values[-1] - values[0])
    return np.concatenate([stand_ins[rows], spread])


def coded_columns(kernel: Kernel, columns: Sequence[int]) -> set[int]:
    """Return which of these columns, those of the kernel's points, stand for categories."""
    if isinstance(kernel, Categorical | Empirical):
        return set(columns)
    if isinstance(kernel, OnColumns):
        return coded_columns(kernel.kernel, [columns[c] for c in kernel.places])
    if isinstance(kernel, Sum | Product):
        return set().union(*(coded_columns(part, columns) for part in kernel.kernels))
    return set()
