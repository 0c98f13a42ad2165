"""What is left of a weight, and what a drift has grown to, when any number of steps has gone by.

One step gives the very number that it is of, and rows do not depend on how many there are.
"""

from __future__ import annotations

import math

import numpy as np

from wgp_agents.kernels.jit import compiled
from wgp_gym.types import Array, Indices, Mask

__all__ = ["count", "drifted", "faded", "find_expired"]


def faded(discount: Array, steps: Array) -> Array:
    """Return eta^steps, `(B, J)`.

    Args:
        discount: eta in [0, 1] of each step, `(B, J)`, or `(1, J)` of all learners.
        steps: At least 0, `(B,)`.
    """
    left = np.empty((len(steps), discount.shape[1]))
    fade_rates(discount, steps, left)
    return left


def drifted(eps: Array, steps: Array) -> Array:
    """Return 1 - (1 - eps)^steps, `(B, J)`; for eps and steps see `faded`."""
    grown = np.empty((len(steps), eps.shape[1]))
    grow_rates(eps, steps, grown)
    return grown


@compiled
def count(active: Mask, counts: Indices) -> None:
    """Add 1 to the counts of the active, `(B,)`: numpy takes four times as long for few."""
    for i in range(len(active)):
        counts[i] += active[i]


@compiled
def fade_rates(discount: Array, steps: Array, left: Array) -> None:
    """Fill `left` with eta^steps."""
    for i in range(len(steps)):
        rates = discount[i % len(discount)]
        for j in range(len(rates)):
            left[i, j] = rates[j] if steps[i] == 1.0 else math.pow(rates[j], steps[i])


@compiled
def grow_rates(eps: Array, steps: Array, grown: Array) -> None:
    """Fill `grown` with 1 - (1 - eps)^steps."""
    for i in range(len(steps)):
        rates = eps[i % len(eps)]
        for j in range(len(rates)):
            if steps[i] == 1.0 or rates[j] == 0.0:
                grown[i, j] = rates[j]
            elif steps[i] == 0.0 or rates[j] == 1.0:
                grown[i, j] = 0.0 if steps[i] == 0.0 else 1.0
            else:
                grown[i, j] = -math.expm1(steps[i] * math.log1p(-rates[j]))


@compiled
def find_expired(
    active: Mask,
    window: Array,
    clock: Array,
    seen: Indices,
    held: Indices,
    times: Array,
    places: Indices,
    expired: Mask,
) -> bool:
    """Fill in the place of the oldest play of each learner, and whether it has left the window.

    Args:
        active: Whose plays are looked at, `(B,)`.
        window: In steps, or infinity, `(B,)`.
        clock: The time, `(B,)`.
        seen: Plays so far, `(B,)`.
        held: How many of them are held, the last ones, `(B,)`.
        times: When they were, the k-th of all at k modulo the length, `(B, room)`.
        places: Where the places go, `(B,)`.
        expired: Where the answers go, `(B,)`.

    Returns:
        Whether any has left.
    """
    anyone = False
    for i in range(len(active)):
        places[i] = (seen[i] - held[i]) % times.shape[1]
        age = clock[i] - times[i, places[i]]
        expired[i] = active[i] and held[i] > 0 and age >= window[i]
        anyone = anyone or expired[i]
    return anyone
