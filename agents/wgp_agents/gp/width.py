"""Confidence widths beta_t: how many standard deviations the bound stands above the mean."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from wgp_gym.kernels import Array

__all__ = ["WidthForm", "chowdhury_width", "deng_width"]


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


def deng_width(
    norm_bound: Array, noise_scale: Array, regularization: Array, delta: Array, gain: Array
) -> Array:
    """Return beta_t = B + R / sqrt(lambda) sqrt(2 log(1 / delta) + 2 gain), [Deng22] Algorithm 1.

    Args:
        norm_bound: B.
        noise_scale: R.
        regularization: lambda.
        delta: The probability with which the bound may fail, at a fixed t.
        gain: The realised double-weighted gain. Deviation: [Deng22] has its maximum over all
            plays, gamma-bar, which cannot be computed and is never smaller; the self-normalised
            inequality behind the bound holds for the realised one.
    """
    width: Array = norm_bound + noise_scale * np.sqrt(
        2 * (np.log(1 / delta) + gain) / regularization
    )
    return width


def chowdhury_width(
    norm_bound: Array, noise_scale: Array, regularization: Array, delta: Array, gain: Array
) -> Array:
    """Return beta_t = B + R sqrt(2 (gain + 1 + log(1 / delta))), Theorem 2 of [CG17].

    It belongs to lambda = 1 + 2 / T. Arguments as in `deng_width`.

    Source: [CG17] Chowdhury, Gopalan. On Kernelized Multi-armed Bandits. ICML 2017.
    """
    del regularization
    width: Array = norm_bound + noise_scale * np.sqrt(2 * (gain + 1 + np.log(1 / delta)))
    return width
