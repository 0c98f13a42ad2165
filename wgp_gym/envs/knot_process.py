"""Which functions a synthetic task has at the knots of its schedule.

References:
    [Deng22]: see `wgp_gym.kernels`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import scipy

from wgp_gym.features import exact_features
from wgp_gym.rkhs import DomainKernel, Functions
from wgp_gym.types import Array, Indices

__all__ = ["HiddenChanges", "IndependentFunctions", "KnotProcess", "RecurringFunctions"]

QUIET_RADIUS = 0.1  # around an optimum, in which a hidden change does not show
QUIET = 1e-6  # of the kernel's diagonal: the variance that the points held there leave around them
MOST_HELD = 40  # points that hold a function still


class KnotProcess(ABC):
    """The functions at the K knots of a schedule."""

    @abstractmethod
    def draw(self, generators: Sequence[np.random.Generator]) -> Functions:
        """Draw the functions of an episode from each of B generators."""


class IndependentFunctions(KnotProcess):
    """K functions as [Deng22] Section 7 draws them.

    Args:
        kernel: The kernel on the domain.
        count: K.
        terms: The terms of each function.
    """

    def __init__(self, kernel: DomainKernel, count: int, terms: int) -> None:
        self._kernel, self._count, self._terms = kernel, count, terms

    def draw(self, generators: Sequence[np.random.Generator]) -> Functions:
        """Draw the functions of an episode from each generator."""
        return Functions.draw_batch(generators, self._kernel, self._count, self._terms)


class RecurringFunctions(KnotProcess):
    """The same W functions that take turns: at knot k, counted from 0, the one of number k mod W.

    Args:
        kernel: The kernel on the domain.
        count: K.
        terms: The terms of each function.
        worlds: W.
    """

    def __init__(self, kernel: DomainKernel, count: int, terms: int, worlds: int) -> None:
        self._worlds = IndependentFunctions(kernel, worlds, terms)
        self._turns = np.arange(count) % worlds

    def draw(self, generators: Sequence[np.random.Generator]) -> Functions:
        """Draw the functions of an episode from each generator."""
        return self._worlds.draw(generators)[self._turns]


class HiddenChanges(KnotProcess):
    """A first function as [Deng22] Section 7 draws it, on which bumps grow where nobody plays.

    With x* the arm where f_k is largest, and P points of the domain around it, x* among them,
    f_{k+1} = f_k + a h, h = k(., c) - k(., P) K_P^{-1} k(P, c): k(., c) less its projection on what
    the values at P determine. So h is 0 at P, and h(c) is the variance that a Gaussian process has
    left at c where it was seen at P. c is uniform among the points where at least half of the
    largest such variance is left, and a makes f_{k+1}(c) = f_k(x*) + rise (max f_1 - min f_1): by
    so much or more the next optimum is better.

    P are points within 0.1 of x*, of which no other there has more than 1e-6 of its variance left
    (or 40 of them). By Cauchy and Schwarz f moves there by at most 1e-3 of its rise at c, over
    h(c)^{1/2}.

    Args:
        kernel: The kernel on the domain.
        count: K.
        terms: The terms of the first function.
        rise: How far each optimum is above the one before it, in ranges of f_1.
    """

    def __init__(self, kernel: DomainKernel, count: int, terms: int, rise: float) -> None:
        self._kernel, self._count, self._rise = kernel, count, rise
        self._first = IndependentFunctions(kernel, 1, terms)
        self._every = np.arange(len(kernel.domain))
        self._prior = kernel.kernel.diagonal(kernel.domain)

    @staticmethod
    def most_centres(count: int, terms: int) -> int:
        """Return how many centres an episode's functions have at most."""
        return terms + (count - 1) * (1 + MOST_HELD)

    def draw(self, generators: Sequence[np.random.Generator]) -> Functions:
        """Draw the functions of an episode from each generator."""
        first = self._first.draw(generators)
        uniform = [rng.random(self._count - 1) for rng in generators]
        return Functions.stack(
            [self._grown(first.of_episode(i), drawn) for i, drawn in enumerate(uniform)]
        )

    def largest_left(self, arm: int) -> float:
        """Return the largest variance that a point has left with an optimum here."""
        _, _, left = self._around(arm)
        return float(left.max())

    def _grown(self, first: Functions, uniform: Array) -> Functions:
        """Return all functions of an episode: the first one, and one more for each number."""
        functions = self._rested(first)
        centres, coefficients, values = functions.centres, functions.coefficients, functions.values
        rise = self._rise * float(values[0].max() - values[0].min())
        free = len(first.centres)
        for k, u in enumerate(uniform, start=1):
            points, weights, bump = self._bump(values[k - 1], rise, float(u))
            values[k] = values[k - 1] + bump
            coefficients[k] = coefficients[k - 1]
            if len(centres) == len(self._every):
                np.add.at(coefficients[k], points, weights)
                continue
            place = slice(free, free + len(points))
            centres[place], coefficients[k, place] = points, weights
            free += 1 + MOST_HELD
        return functions

    def _rested(self, first: Functions) -> Functions:
        """Return the first function K times, with room for the centres of bumps.

        All episodes have as many: the points of the domain, or, where these are more, those that
        bumps may take.
        """
        n, count, terms = len(self._every), self._count, len(first.centres)
        most = self.most_centres(count, terms)
        dense = most >= n
        centres = self._every if dense else np.zeros(most, np.intp)
        coefficients = np.zeros((count, len(centres)))
        if dense:
            np.add.at(coefficients[0], first.centres, first.coefficients[0])
        else:
            centres[:terms], coefficients[0, :terms] = first.centres, first.coefficients[0]
        return Functions(centres, coefficients, np.repeat(first.values, count, axis=0))

    def _bump(self, values: Array, rise: float, uniform: float) -> tuple[Indices, Array, Array]:
        """Return the centres of a h, its coefficients and its values, of f_k's values `(n,)`."""
        best = int(values.argmax())
        held, z, left = self._around(best)
        apart = np.flatnonzero(left >= left.max() / 2)
        c = int(apart[int(uniform * len(apart))])
        height = (values[best] + rise - values[c]) / left[c]
        h = self._kernel.rows(np.array([c]))[0] - z[:, c] @ z
        weights = scipy.linalg.solve_triangular(z[:, held].T, z[:, c], trans="T", lower=True)
        return np.append(c, held), height * np.append(1.0, -weights), height * h

    def _around(self, best: int) -> tuple[Indices, Array, Array]:
        """Return P around an optimum, L^{-1} k(P, .) `(P, n)` with K_P = L L^T, and what is left.

        That is the variance of each point given the values at P, `(n,)`.
        """
        domain = self._kernel.domain
        near = np.linalg.norm(domain - domain[best], axis=1) <= QUIET_RADIUS
        near[best] = False
        around = np.append(best, np.flatnonzero(near))
        features = exact_features(self._kernel.kernel, domain[around], QUIET, MOST_HELD)
        held = around[features.pivots]
        L = features.table[features.pivots]
        z = scipy.linalg.solve_triangular(L, self._kernel.rows(held), lower=True)
        return held, z, self._prior - np.sum(z**2, axis=0)
