"""The box as an action set: any point of [0, 1]^d may be chosen."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from wgp_agents.core.argmax import TIE, argmax
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.gp.action_sets import (
    ActionSet,
    BoxGrid,
    ChangingArms,
    FeatureSource,
    FixedArms,
    Plays,
    Points,
    Score,
)
from wgp_agents.gp.nystrom import MAX_FEATURES, NystromArms
from wgp_agents.kernels import blas
from wgp_gym.features import Extension, exact_features
from wgp_gym.fourier import FourierFeatures
from wgp_gym.kernels import Kernel
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Action, Actions, Array, Floats32, Indices

__all__ = ["BareBox", "Box", "make_action_set"]

MAX_BOX_FEATURES = 200
MAX_CANDIDATES = 2_048
NEIGHBOURS = 8  # of each of as many best candidates
STEP = 1e-5  # of central differences; their error is 1e-10 l^-3, their rounding 1e-11


class Box(ActionSet):
    """The box [0, 1]^d: Sobol candidates, then a bounded quasi-Newton search from the best.

    The features, at most 200, are built on the candidates and extended to any other point. What
    they leave out of k(x, x) is added to the variance, and to the noise variance of a play, as in
    [SG06]. The confidence bounds are those of the features, so they hold where the rest is small.

    Deviation: with weights w the noise variance of a play is (lambda + r) / w, r the part left out;
    [SG06] would give lambda / w + r, which has no recursion of fixed size and would not forget.

    Source: [SG06] Snelson, Ghahramani. Sparse Gaussian processes using pseudo-inputs. NIPS 2006.

    Args:
        source: The kernel, or the feature map in its place.
        domain: The problem's grid, `(n, d)`, on which posteriors are shown.
        regularization: lambda of every learner, `(B,)`.
        max_features: The largest number of features; default 200.
    """

    exact = False
    _constants = ("candidates", "_places", "_domain", "_extend", "_around", "_stencil")

    def __init__(
        self,
        source: FeatureSource,
        domain: Array,
        regularization: Array,
        max_features: int = MAX_BOX_FEATURES,
    ) -> None:
        from scipy.stats import qmc  # a second to import, which other action sets do without

        dim = domain.shape[1]
        tolerances = np.clip(1e-6 * regularization, 1e-12, 1e-8)
        size = min(2 ** (7 + dim), MAX_CANDIDATES)
        inside = qmc.Sobol(dim, scramble=False).random(size)
        # Stretched, so that a twelfth of them lies on each face, where many maxima are.
        self._places: Array = np.clip(1.2 * inside - 0.1, 0.0, 1.0)
        with blas.single_thread():
            features = exact_features(source, self._places, float(tolerances.min()), max_features)
            self._extend = Extension(features, source, self._places)
        super().__init__(features, self._places, regularization, tolerances)
        self._domain = domain
        around = qmc.Sobol(dim, scramble=False).random(NEIGHBOURS)
        self._around = (2 * around - 1) * size ** (-1 / dim)
        unit = STEP * np.eye(dim)
        self._stencil = np.concatenate([np.zeros((1, dim)), unit, -unit])

    def at(self, places: Array, learner: int) -> Points:
        """Return points `(q, d)` with the features of one learner."""
        rows, prior = self._extend(places, int(self.basis.rank[learner]))
        phi = rows.T
        residual = np.maximum(prior - np.einsum("ij,ij->j", phi, phi), 0.0)
        return Points(places[None], phi[None], residual[None])

    def embed(self, actions: Action) -> Plays:
        """Return points `(B, d)` with their features, computed one by one: alike for any B."""
        features, left = np.zeros((len(actions), len(self.basis.phi))), np.zeros(len(actions))
        with blas.single_thread():
            for i, (point, rank) in enumerate(zip(actions, self.basis.rank.tolist(), strict=True)):
                phi, prior = self._extend(point[None], rank)
                features[i, :rank] = phi[0]
                left[i] = max(prior[0] - phi[0] @ phi[0], 0.0)
        return Plays(actions, features, left)

    def domain_features(self, rows: Indices) -> Array:
        """Return all features of grid points, by their index, `(len(rows), m)`."""
        return self._extend(self._domain[rows])[0]

    def maximise(self, score: Score, uniform: UniformStreams) -> Actions:
        """Return the points, `(B, d)`, in single precision, as the environment plays them."""
        scores = score(self.candidates, None)
        best = argmax(scores, uniform.draw())
        with blas.single_thread():
            found = [self._climb(i, score, scores[i], top) for i, top in enumerate(best.tolist())]
        return np.stack(found)

    def on_domain(self) -> Iterator[tuple[Points, Indices | None]]:
        """Yield the problem's grid for one learner after the other."""
        with blas.single_thread():
            for i in range(len(self.basis.rank)):
                yield self.at(self._domain, i), np.array([i])

    def _climb(self, learner: int, score: Score, known: Array, start: int) -> Floats32:
        """Return a local maximum of a learner's score, `(d,)`, near the candidate `start`.

        `known` are its scores of the candidates, `(n,)`.
        """
        from scipy.optimize import minimize  # slow to import, and other action sets do without

        alone = np.array([learner])

        def _values(X: Array) -> Array:
            values: Array = score(self.at(X, learner), alone)[0]
            return values

        def _descent(x: Array) -> tuple[float, Array]:
            value = _values(x + self._stencil)
            up, down = np.split(value[1:], 2)
            return -value[0], (down - up) / (2 * STEP)

        tops = self._neighbourhood(known, start)
        values = _values(tops)
        first = tops[int(values.argmax()) if values.max() > values[0] + TIE else 0]
        bounds = [(0.0, 1.0)] * len(first)
        end = minimize(_descent, first, jac=True, method="L-BFGS-B", bounds=bounds).x
        both = np.stack([tops[0], np.clip(end, 0.0, 1.0)]).astype(np.float32)
        chosen: Floats32 = both[int(_values(both.astype(float)).argmax())]
        return chosen

    def _neighbourhood(self, known: Array, start: int) -> Array:
        """Return the candidate `start` and points around the best few candidates, `(q, d)`.

        A peak between the candidates may be higher than the one next to the best of them.
        """
        best = np.argpartition(known, -NEIGHBOURS)[-NEIGHBOURS:]
        around = self._places[best][:, None] + self._around
        return np.concatenate([self._places[[start]], np.vstack(np.clip(around, 0.0, 1.0))])


class BareBox(Box):
    """A box for learners with features of their own, under several kernels: it makes none.

    Parameters as in `Box`.
    """

    def __init__(self, source: FeatureSource, domain: Array, regularization: Array) -> None:
        super().__init__(source, domain, regularization, 1)

    def at(self, places: Array, learner: int) -> Points:
        """Return points `(q, d)` without features."""
        return Points(places[None], np.zeros((1, 0, len(places))), np.zeros((1, len(places))))

    def embed(self, actions: Action) -> Plays:
        """Return points `(B, d)` without features."""
        return Plays(actions, np.zeros((len(actions), 0)), np.zeros(len(actions)))


def make_action_set(
    source: FeatureSource,
    problem: BanditProblem,
    regularization: Array,
    *,
    grid: bool = False,
    max_features: int | None = None,
    nystrom: bool = False,
) -> ActionSet:
    """Return the action set of a problem.

    Args:
        source: The kernel, or the feature map in its place.
        problem: The problem.
        regularization: lambda of every learner, `(B,)`.
        grid: Whether only the problem's grid is played on a box.
        max_features: The largest number of features of arms that stay, default no limit, or of
            Nystrom features.
        nystrom: Whether arms that are drawn anew have Nystrom features even where the kernel has
            finitely many of its own.
    """
    if problem.contextual:
        if nystrom or is_large(source, problem) or isinstance(source, FourierFeatures):
            stand_ins = problem.spread
            return NystromArms(source, problem.domain, stand_ins, regularization, max_features)
        return ChangingArms(source, problem.domain, regularization)
    if problem.continuous and not grid:
        return Box(source, problem.domain, regularization)
    arms = BoxGrid if problem.continuous else FixedArms
    return arms(source, problem.domain, regularization, max_features)


def is_large(source: FeatureSource, problem: BanditProblem) -> bool:
    """Tell whether a kernel has more features of its own than Nystrom ones would be made."""
    if not isinstance(source, Kernel):
        return False
    own = source.feature_map()
    return own is None or own(problem.domain[:1]).shape[1] > MAX_FEATURES
