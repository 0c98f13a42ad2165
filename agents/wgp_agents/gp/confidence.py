"""The confidence width beta_t of B learners: from a norm bound by theory, or as it was given."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from wgp_agents.gp.model import GPModel
from wgp_agents.gp.width import (
    CONFIDENCE,
    Confidence,
    SelfNormalised,
    WidthForm,
    WidthTerms,
    check_spending,
    deng_width,
    given_terms,
    self_normalised,
    step_delta,
)
from wgp_agents.parameters import norm_bounds, not_drawn, per_learner
from wgp_gym.arrays import kept
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Indices, Mask
from wgp_gym.validation import check_choice, reject

__all__ = ["ConfidenceWidth", "GivenWidth", "NormBound", "checked_width"]

GivenWidth = ArrayLike | Callable[[Indices], ArrayLike]
"""A name that the agent knows, a number, one for each learner, or a function of the number of
observations so far, `(B,)`."""


class NormBound:
    """The norm bound B of every learner: as given, or as the problem states it at a restart.

    Args:
        owner: The agent's name, for errors.
        given: B in [0, 1e30], a number or `(B,)`; None: the problem's.
        problem: The problem.

    Attributes:
        given: As it was given.
        values: B of every learner, `(B,)`; 0 where it is not known.

    Raises:
        ValueError: If a number is out of its range.
    """

    def __init__(self, owner: str, given: ArrayLike | None, problem: BanditProblem) -> None:
        self._owner, self.given = owner, kept(given)
        norm_bounds(owner, self.given, problem, problem.batch_size or 1)  # checks it now
        self.values = np.zeros(problem.batch_size or 1)

    def read(self, problem: BanditProblem, mask: Mask, *, needed: bool = True) -> Array | None:
        """Read B of the learners in `mask` anew, and return that of all; None where it is unknown.

        Raises:
            RuntimeError: If it is needed, and not drawn yet.
        """
        bound = norm_bounds(self._owner, self.given, problem, len(mask))
        if bound is None and needed:
            not_drawn("norm bound", "norm_bound")
        if bound is not None:
            self.values[mask] = bound[mask]
        return bound


class ConfidenceWidth:
    """beta_t of B learners.

    Args:
        owner: The agent's name, for errors.
        problem: The problem.
        model: The noise and regularization.
        given: `confidence_width` of `GPAgent`.
        form: The formula of "theory".
        norm_bound, delta, confidence: See `GPAgent`.

    Attributes:
        form: As given.
        norm_bound: B.
        delta: As given, `(B,)`.

    Raises:
        ValueError: If a parameter is out of its range.
    """

    def __init__(
        self,
        owner: str,
        problem: BanditProblem,
        model: GPModel,
        given: GivenWidth,
        *,
        form: WidthForm = deng_width,
        norm_bound: ArrayLike | None = None,
        delta: ArrayLike = 0.1,
        confidence: Confidence = "paper",
    ) -> None:
        batch = problem.batch_size or 1
        self._owner, self._model, self.form, self._horizon = owner, model, form, problem.horizon
        self.norm_bound = NormBound(owner, norm_bound, problem)
        self.delta = per_learner(owner, "delta", delta, batch, 0.0, 1.0, "neither")
        self._given = checked_width(owner, given, batch)
        self._confidence = check_choice("confidence", confidence, owner, CONFIDENCE)
        if self.by_theory:
            check_spending(owner, self._confidence, problem)

    @property
    def by_theory(self) -> bool:
        """Whether beta is that of the formula, which needs B."""
        return isinstance(self._given, str)

    @property
    def knows_bound(self) -> bool:
        """Whether B is not needed, or was given."""
        return self.norm_bound.given is not None or not self.by_theory

    def restart(self, problem: BanditProblem, mask: Mask) -> Array | None:
        """Read B of the learners in `mask`; return that of all, None where it is unknown."""
        return self.norm_bound.read(problem, mask, needed=self.by_theory)

    def terms(
        self, steps: Callable[[], Indices], gain: Callable[[], Array] | None = None
    ) -> WidthTerms:
        """Return what beta_t is made of.

        Args:
            steps: Returns the number of observations so far, `(B,)`.
            gain: Returns the information gain of "theory", `(B,)`.
        """
        given, model = self._given, self._model
        if isinstance(given, str):
            delta, form = self.delta, self.form
            if self._confidence != "paper":
                delta = step_delta(self._confidence, delta, steps(), self._horizon)
            known = np.zeros(len(delta)) if gain is None else gain()
            bound, scale, lam = self.norm_bound.values, model.noise_scale, model.regularization
            if type(form) is SelfNormalised:
                return form.terms(bound, scale, lam, delta, known)
            own = np.broadcast_to(form(bound, scale, lam, delta, known), delta.shape)
            return given_terms(np.array(own, float))
        if callable(given):
            found, batch = given(steps().copy()), len(self.delta)
            given = per_learner(
                self._owner, "confidence_width", found, batch, 0.0, math.inf, "left"
            )
        return given_terms(given)

    def __call__(
        self, steps: Callable[[], Indices], gain: Callable[[], Array] | None = None
    ) -> Array:
        """Return beta_t, `(B,)`, from what `terms` takes."""
        return self_normalised(self.terms(steps, gain))


def checked_width(
    owner: str, given: GivenWidth, batch: int
) -> str | Array | Callable[[Indices], ArrayLike]:
    """Return `confidence_width` as "theory", a function, or an array `(B,)`.

    Raises:
        ValueError: If it is none of these.
    """
    if callable(given) or (isinstance(given, str) and given == "theory"):
        return given
    if isinstance(given, str):
        reject("confidence_width", owner, "'theory', a number or a function", given)
    return per_learner(owner, "confidence_width", given, batch, 0.0, math.inf, "left")
