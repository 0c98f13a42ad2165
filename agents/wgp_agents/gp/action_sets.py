"""Action sets: what learners choose from at a step, and its features."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import ClassVar, NamedTuple

import numpy as np

from wgp_agents.core.argmax import argmax
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.kernels import blas
from wgp_agents.kernels.basis import make_basis
from wgp_gym.features import FeatureMap, Features, exact_features, may_be_blocked
from wgp_gym.kernels import Kernel
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Action, Actions, Array, Indices, Mask
from wgp_gym.validation import reject

__all__ = [
    "ERROR_POINTS",
    "ActionSet",
    "BoxGrid",
    "ChangingArms",
    "FeatureSource",
    "FixedArms",
    "Plays",
    "Points",
    "Score",
    "check_arms_stay",
]


ERROR_POINTS = 1_000

FeatureSource = Kernel | FeatureMap
"""The kernel, or the feature map in its place."""


class Points(NamedTuple):
    """Points that k learners look at, with their features.

    Attributes:
        places: The points in [0, 1]^d, `(k, q, d)`; `(1, q, d)` where all look at the same.
        features: phi, `(k, m, q)` or `(1, m, q)`. Learner i uses the first `basis.rank[i]`.
        residual: k(x, x) - phi^T phi, `(k, q)`.
        shared: Whether these are the candidates that all learners look at, at every step.
    """

    places: Array
    features: Array
    residual: Array
    shared: bool = False


class Plays(NamedTuple):
    """One play of each of B learners, with its features.

    Attributes:
        actions: Arms `(B,)`, or points `(B, d)`.
        features: phi of each, `(B, m)`.
        residual: k(x, x) - phi^T phi, `(B,)`.
        domain: The points of the arms, `(n, d)`; None where the actions are points.
    """

    actions: Actions
    features: Array
    residual: Array
    domain: Array | None = None

    @property
    def arms(self) -> Indices | None:
        """The arms, `(B,)`; None where the actions are points."""
        return None if self.domain is None else self.actions

    @property
    def places(self) -> Array:
        """The points played, in [0, 1]^d, `(B, d)`."""
        places: Array = self.actions if self.domain is None else self.domain[self.actions]
        return places


def check_arms_stay(owner: str, problem: BanditProblem) -> None:
    """Check that a task does not draw its arms anew at each step."""
    if problem.contextual:
        reject("env", owner, "a task whose arms stay", "arms that are drawn anew at each step")


Score = Callable[[Points, Indices | None], Array]
"""The scores `(k, q)` of points for the learners with these indices (None: all)."""


class ActionSet(ABC):
    """What B learners choose from, with features.

    Args:
        features: The features of n points: all arms, or the candidates of a box.
        places: These points, `(n, d)`.
        regularization: lambda of every learner, `(B,)`.
        tolerances: How much of k(x, x) each learner may leave out, `(B,)`.

    Attributes:
        basis: The features as each learner uses them.
        candidates: All arms, or the points of a box from which a search starts.
        unused: Which features a learner does not use, `(B, m)`.
        allowed: Which arms may be chosen, `(B, n)`; None: all.
    """

    stays: ClassVar[bool] = True
    """Whether the candidates are the same at each step, so that a posterior of them can be kept."""
    _constants: ClassVar[tuple[str, ...]] = ("basis", "unused", "_nothing")
    exact: ClassVar[bool] = True
    """Whether the features of plays leave out nothing to speak of."""

    def __init__(
        self, features: Features, places: Array, regularization: Array, tolerances: Array
    ) -> None:
        self.basis = make_basis(features, regularization, tolerances)
        self.unused = np.arange(len(self.basis.phi)) >= self.basis.rank[:, None]
        phi, residual = self.basis.phi[None], self.basis.residual
        self.candidates = Points(places[None], phi, residual, shared=True)
        self.allowed: Mask | None = None

    def show(self, arms: Array | None, allowed: Mask | None = None) -> None:
        """Set what the next action is chosen from.

        Args:
            arms: The arms of this step, `(B, n, d)`; None: they stay, or are not known yet.
            allowed: Which of them may be chosen, `(B, n)`; None: all.
        """
        self.allowed = allowed

    @abstractmethod
    def embed(self, actions: Action) -> Plays:
        """Return actions with their features: arms `(B,)`, or points `(B, d)`."""

    def recall(self, actions: Actions) -> Plays:
        """Return earlier plays with their features, from their `Plays.actions`."""
        return self.embed(actions)

    def actions_of(self, arms: Indices) -> Actions:
        """Return the actions of candidates, given by their index."""
        return arms

    def maximise(self, score: Score, uniform: UniformStreams) -> Actions:
        """Return each learner's action: a maximum of its score, ties broken by its stream.

        Raises:
            ValueError: If a score is not a number.
        """
        return self.actions_of(argmax(score(self.candidates, None), uniform.draw(), self.allowed))

    @abstractmethod
    def domain_features(self, rows: Indices) -> Array:
        """Return all features of points of the domain, by their index, `(len(rows), m)`."""

    def measured(self, domain: Array) -> tuple[Array, Array]:
        """Return points at which to measure the features' error, `(q, d)`, and their features.

        Args:
            domain: The problem's domain, of which they are some, evenly.
        """
        size = min(len(domain), ERROR_POINTS)
        rows = np.linspace(0, len(domain) - 1, size).astype(np.intp)
        return domain[rows], self.domain_features(rows)

    def on_domain(self) -> Iterator[tuple[Points, Indices | None]]:
        """Yield the points of the domain, with the learners that look at them (None: all)."""
        yield self.candidates, None


class FixedArms(ActionSet):
    """A finite set of arms that stay the same.

    Their features are exact to clip(1e-8 lambda, 1e-14, 1e-10).

    Args:
        source: The kernel, or the feature map in its place.
        domain: The points of the arms, `(n, d)`.
        regularization: lambda of every learner, `(B,)`.
        max_features: The largest number of features, which overrides the tolerance.
    """

    _constants = ("candidates", "_domain", "_rows", "_by_rows", "_points")

    def __init__(
        self,
        source: FeatureSource,
        domain: Array,
        regularization: Array,
        max_features: int | None = None,
    ) -> None:
        tolerances = np.clip(1e-8 * regularization, 1e-14, 1e-10)
        # The last bits depend on how many threads there are.
        with blas.single_thread(scipy_too=may_be_blocked(len(domain))):
            features = exact_features(source, domain, float(tolerances.min()), max_features)
        super().__init__(features, domain, regularization, tolerances)
        self._domain = domain
        self._rows = features.table  # each step reads a row
        self._by_rows = self._rows.flags.c_contiguous
        self._nothing = np.zeros(len(regularization))  # what they leave out is negligible

    def embed(self, actions: Action) -> Plays:
        """Return arms `(B,)` with their features."""
        return Plays(actions, self.domain_features(actions), self._nothing, self._domain)

    def domain_features(self, rows: Indices) -> Array:
        """Return all features of arms, by their index, `(len(rows), m)`."""
        if self._by_rows:
            return self._rows.take(rows, 0)
        return np.ascontiguousarray(self.basis.phi.take(rows, axis=1).T)


class BoxGrid(FixedArms):
    """A grid in a box, for agents that choose from finitely many points.

    A play off the grid counts as the nearest grid point. Parameters as in `FixedArms`.
    """

    def __init__(
        self,
        source: FeatureSource,
        domain: Array,
        regularization: Array,
        max_features: int | None = None,
    ) -> None:
        super().__init__(source, domain, regularization, max_features)
        self._points = domain.astype(np.float32)
        from scipy.spatial import KDTree  # slow to import, and fixed arms do without

        self._tree = KDTree(domain)

    def embed(self, actions: Action) -> Plays:
        """Return the grid points nearest to the points `(B, d)`, as arms."""
        return super().embed(np.asarray(self._tree.query(actions)[1], np.int64))

    def recall(self, actions: Actions) -> Plays:
        """Return earlier plays, given as indices of the grid, `(B,)`."""
        return super().embed(actions)

    def actions_of(self, arms: Indices) -> Actions:
        """Return grid points in single precision, as the environment plays them."""
        return self._points[arms]


class ChangingArms(ActionSet):
    """Arms that are drawn anew at each step and shown to each learner before it chooses.

    The kernel needs finitely many features; of others see `NystromArms`. A play is recorded as a
    point, since an index means another arm at the next step.

    Args:
        source: A kernel with features, or a feature map.
        domain: Stand-ins for the arms, `(n, d)`.
        regularization: lambda of every learner, `(B,)`.
    """

    stays = False
    _constants = ("_map", "_stand_ins")

    def __init__(self, source: FeatureSource, domain: Array, regularization: Array) -> None:
        self._map: Callable[[Array], Array]
        if isinstance(source, Kernel):
            found = source.feature_map()
            assert found is not None  # `feature_source` has refused any other
            self._map = found
        else:
            self._map = source
        self._stand_ins = np.broadcast_to(domain, (len(regularization), *domain.shape))
        first = self._map(domain[:1])  # the basis is that of one stand-in
        left, prior = np.ones(first.shape[1] + 1), np.sum(first**2, axis=1)
        features = Features(first, left, prior, np.zeros(1, np.intp))
        super().__init__(features, domain[:1], regularization, np.zeros_like(regularization))
        self._nothing = np.zeros(len(regularization))
        self.show(None)

    def show(self, arms: Array | None, allowed: Mask | None = None) -> None:
        """Set the arms of the next step, `(B, n, d)`; None sets the stand-ins."""
        super().show(arms, allowed)
        places = self._stand_ins if arms is None else arms
        batch, n, dim = places.shape
        rows = self._map(places.reshape(-1, dim)).reshape(batch, n, -1)
        features = np.ascontiguousarray(rows.transpose(0, 2, 1))
        self.candidates = Points(places, features, np.zeros((batch, n)))

    def embed(self, actions: Action) -> Plays:
        """Return points `(B, d)` with their features."""
        return Plays(actions, self._map(actions), self._nothing)

    def domain_features(self, rows: Indices) -> Array:
        """Return all features of stand-ins, by their index, `(len(rows), m)`."""
        return self._map(self._stand_ins[0, rows])
