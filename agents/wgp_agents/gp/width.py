"""Formulas for confidence widths beta_t, the factor of the standard deviation in the bound.

References:
    [CG17] Chowdhury, Gopalan. On Kernelized Multi-armed Bandits. ICML 2017.
    [CSZ19] Cheung, Simchi-Levi, Zhu. Learning to Optimize under Non-Stationarity. AISTATS 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np

from wgp_agents.kernels.scores import fill_widths
from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Indices
from wgp_gym.validation import check_choice, reject

__all__ = [
    "CONFIDENCE",
    "Confidence",
    "SelfNormalised",
    "WidthForm",
    "WidthTerms",
    "check_spending",
    "cheung_width",
    "chowdhury_width",
    "deng_width",
    "given_terms",
    "self_normalised",
    "step_delta",
    "thompson_width",
]

SMALLEST_DELTA = 5e-324  # keeps shares of delta above 0
Confidence = Literal["paper", "union", "anytime"]
"""How delta is spent over time: see `step_delta`."""
CONFIDENCE: tuple[Confidence, ...] = get_args(Confidence)


class WidthForm(Protocol):
    """A formula for beta_t from what is known after t observations, elementwise in learners."""

    def __call__(
        self,
        norm_bound: Array,
        noise_scale: Array,
        regularization: Array,
        delta: Array,
        gain: Array,
    ) -> Array:
        """Return beta_t, `(B,)`."""


WidthTerms = tuple[Array, Array, Array, Array, Array, float, float]
"""The gain, B, R, lambda, delta, an offset and a factor: see `self_normalised`."""


def self_normalised(terms: WidthTerms) -> Array:
    """Return beta = B + R ((2 gain + offset + factor log(1 / delta)) / lambda)^{1/2}, `(B,)`.

    All that the self-normalised inequality gives is of this form. It is computed at each step, by
    itself or in one loop with what it is needed for: numpy would take a call for each operation.
    """
    width = np.empty(len(terms[0]))
    fill_widths(*terms, width)
    return width


def given_terms(width: Array) -> WidthTerms:
    """Return the terms of widths that are known, `(B,)`: with these R is 0."""
    zero, one = np.zeros(len(width)), np.ones(len(width))
    return zero, width, zero, one, one, 0.0, 0.0


@dataclass(frozen=True)
class SelfNormalised:
    """A `WidthForm` of the kind that `self_normalised` computes.

    Attributes:
        offset: As there.
        factor: As there.
        unit: Whether lambda counts as 1.
        share: Which part of delta counts.
    """

    offset: float = 0.0
    factor: float = 2.0
    unit: bool = False
    share: float = 1.0

    def terms(
        self,
        norm_bound: Array,
        noise_scale: Array,
        regularization: Array,
        delta: Array,
        gain: Array,
    ) -> WidthTerms:
        """Return what beta is made of, from arrays `(B,)`."""
        if self.unit:
            regularization = np.ones_like(gain)
        if self.share != 1.0:
            delta = self.share * delta
        return gain, norm_bound, noise_scale, regularization, delta, self.offset, self.factor

    def __call__(
        self,
        norm_bound: Array,
        noise_scale: Array,
        regularization: Array,
        delta: Array,
        gain: Array,
    ) -> Array:
        """Return beta_t, elementwise."""
        given = np.broadcast_arrays(norm_bound, noise_scale, regularization, delta, gain)
        terms = self.terms(*(np.array(part, float).reshape(-1) for part in given))
        return self_normalised(terms).reshape(given[0].shape)


deng_width = SelfNormalised()
"""beta_t = B + R / sqrt(lambda) sqrt(2 log(1 / delta) + 2 gain), [Deng22] Algorithm 1.

delta is the probability with which the bound may fail, at a fixed t; the gain is the realised
double-weighted one. Deviation: [Deng22] has its maximum over all plays, gamma-bar, which cannot be
computed and is never smaller; the self-normalised inequality behind the bound holds for the
realised gain.
"""

chowdhury_width = SelfNormalised(offset=2.0, unit=True)
"""B + R sqrt(2 (gain + 1 + log(1 / delta))), Theorem 2 of [CG17].

It belongs to lambda = 1 + 2 / T.
"""

thompson_width = SelfNormalised(offset=2.0, unit=True, share=0.5)
"""B + R sqrt(2 (gain + 1 + log(2 / delta))), Algorithm 2 of [CG17].

It belongs to lambda = 1 + 2 / T.
"""


def cheung_width(dim: int) -> SelfNormalised:
    """Return beta = B + R / sqrt(lambda) sqrt(2 gain + d log(1 / delta)), [CSZ19], d the dimension.

    With the gain d / 2 log(1 + w / (lambda d)) and times sqrt(lambda) it is SW-LinUCB's.
    """
    return SelfNormalised(factor=float(dim))


def step_delta(confidence: Confidence, delta: Array, steps: Indices, horizon: int | None) -> Array:
    """Return the share of delta that the bound after `steps` observations may use up.

    The self-normalised inequality holds at each fixed t. Deviation: [Deng22] uses it for all t at
    once, which fails for discounted weights: the weighted noise is a stationary process and
    eventually crosses any fixed bound. A union bound over t repairs it.

    Args:
        confidence: "paper": delta at every t, as printed; "union": delta / T, for all t up to
            T at once; "anytime": delta / (2 t (1 + log t)^2), for all t whatever T is: the
            shares sum to at most delta, since the sum of 1 / (t (1 + log t)^2) is below 2.
        delta: The probability with which the bound may fail, `(B,)`.
        steps: Observations so far, t, `(B,)`; 0, where nothing can fail, counts as 1.
        horizon: T; None: unknown, which "union" cannot do with.

    Raises:
        ValueError: If there is no such form, or it needs T.
    """
    if confidence == "paper":  # the usual case, at every step
        return delta
    check_choice("confidence", confidence, "step_delta", CONFIDENCE)
    t = np.maximum(steps, 1)
    parts: Array | int = 2 * t * (1 + np.log(t)) ** 2
    if confidence == "union":
        if horizon is None:
            reject("horizon", "step_delta", "T for 'union'", horizon)
        parts = horizon
    return np.maximum(delta / parts, SMALLEST_DELTA)


def check_spending(owner: str, confidence: Confidence, problem: BanditProblem) -> None:
    """Check that T is known where `confidence` is "union": see `step_delta`."""
    if confidence == "union":
        problem.known_horizon(owner, "confidence")
