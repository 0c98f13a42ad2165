"""The blocks of OPKB: how long they are, and how boldly each order plays and tests."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgp_agents.parameters import LARGEST, LARGEST_COUNT, SMALLEST
from wgp_gym.types import Array
from wgp_gym.validation import check_choice, check_float, check_int

__all__ = ["OPKBBlocks", "OPKBConstants", "checked_constants", "opkb_blocks"]


class OPKBConstants(NamedTuple):
    """What OPKB multiplies theory's quantities by. See `wgp_agents.algorithms.adaptive.opkb.OPKB`.

    Attributes:
        length: Of E, > 0.
        beta: Of beta_j, > 0.
        exploration: Of mu_j, in [0, 1].
        threshold: Of the test's threshold, >= 0.
        mixture: c in [0, 1], the share of the design on arms that are nearly best.
        nearness: Of the gap up to which an arm is one of these, >= 0.
        smallest_replay: The smallest order of replays, >= 0.
    """

    length: float
    beta: float
    exploration: float
    threshold: float
    mixture: float
    nearness: float
    smallest_replay: int


CONSTANTS = {
    "practical": OPKBConstants(0.01, 50.0, 0.2, 0.005, 0.2, 0.05, 4),
    "theory": OPKBConstants(1.0, 1.0, 1.0, 1.0, 0.0, 1.0, 0),
}


class OPKBBlocks(NamedTuple):
    """What each order j = 0 ... M has, of B learners.

    Attributes:
        length: E, `(B,)`.
        largest: The order of the last block, `(B,)`.
        mu: The share of pi in p_j, `(B, M + 1)`.
        beta: beta_j, `(B, M + 1)`.
        near: The gap up to which an arm is nearly best, `(B, M + 1)`.
        threshold: Half of that of a test, 2 eps_j, `(B, M + 1)`.
        mixture: c.
        smallest_replay: The smallest order of replays.
    """

    length: NDArray[np.int64]
    largest: NDArray[np.int64]
    mu: Array
    beta: Array
    near: Array
    threshold: Array
    mixture: float
    smallest_replay: int


def opkb_blocks(
    constants: OPKBConstants,
    arms: int,
    horizon: int,
    regularization: Array,
    delta: Array,
    information_gain: Array,
) -> OPKBBlocks:
    """Return the blocks of B learners. The formulas are in `OPKB`.

    Deviation: log2(T), which is 0 at T = 1, is at least 1, and so is E.

    Args:
        constants: What theory's quantities are multiplied by.
        arms: n.
        horizon: T.
        regularization: lambda, `(B,)`.
        delta: The probability with which confidence bounds may fail, `(B,)`.
        information_gain: gamma_T, `(B,)`.
    """
    logarithm = np.log(8 * arms * horizon * max(math.log2(horizon), 1.0) / delta)
    alpha = (regularization / (4 * logarithm))[:, None]
    length = np.ceil(constants.length * 4 * information_gain * logarithm)
    length = np.clip(length, 1.0, LARGEST_COUNT).astype(np.int64)
    largest = largest_orders(length, horizon)
    mu = np.tile(0.5 * 2.0 ** (-0.5 * np.arange(largest.max() + 1)), (len(delta), 1))
    epsilon = (40 + 16 * np.sqrt(alpha)) * mu
    return OPKBBlocks(
        length=length,
        largest=largest,
        mu=constants.exploration * mu,
        beta=constants.beta * 2 * information_gain[:, None] / epsilon,
        near=constants.nearness * alpha * epsilon,
        threshold=constants.threshold * 2 * epsilon,
        mixture=constants.mixture,
        smallest_replay=constants.smallest_replay,
    )


def checked_constants(given: Any) -> OPKBConstants:
    """Return the constants.

    Raises:
        ValueError: If they are none, or one is out of its range.
    """
    if not isinstance(given, OPKBConstants):
        return CONSTANTS[check_choice("constants", given, "OPKB", CONSTANTS)]
    for name in ("length", "beta"):
        check_float(name, getattr(given, name), "OPKBConstants", SMALLEST, LARGEST)
    for name in ("threshold", "nearness"):
        check_float(name, getattr(given, name), "OPKBConstants", 0.0, LARGEST)
    for name in ("exploration", "mixture"):
        check_float(name, getattr(given, name), "OPKBConstants", 0.0, 1.0)
    check_int("smallest_replay", given.smallest_replay, "OPKBConstants", 0, LARGEST_COUNT)
    return given


def largest_orders(length: NDArray[np.int64], horizon: int) -> NDArray[np.int64]:
    """Return the order of the block in which step T lies if nothing changes, at least 1, `(B,)`.

    Args:
        length: E >= 1, `(B,)`.
        horizon: T.
    """
    orders = np.arange(1, max(horizon.bit_length(), 2))
    reached = length[:, None] * (2 ** (orders + 1) - 1) >= horizon
    largest: NDArray[np.int64] = orders[reached.argmax(axis=1)]
    return largest
