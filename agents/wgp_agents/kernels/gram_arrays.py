"""What is kept of discounted data, in notation as in `wgp_agents.kernels.gram`."""

from __future__ import annotations

from typing import NamedTuple

from wgp_agents.kernels.handle import MODEL, cube_at, matrix_at, vector_at
from wgp_agents.kernels.jit import subroutine
from wgp_gym.types import Array, Indices

__all__ = ["DiscountArrays", "arrays_at"]


class DiscountArrays(NamedTuple):
    """What is kept of discounted data.

    Attributes:
        gram: A, `(B, m, m)`.
        target: b, `(B, m)`.
        lost: What rounding has taken from it where nothing fades, `(B, m)`.
        double_gram: A2, `(B, m, m)`.
        mean: Posterior means, `(B, n)`.
        variance: Posterior variances, `(B, n)`.
        gain: Double-weighted information gains, `(B,)`.
        tight: Variances of [Deng22] Theorem 2 of all arms, `(B, n)`; `(B, 0)` if not wanted.
    """

    gram: Array
    target: Array
    lost: Array
    double_gram: Array
    mean: Array
    variance: Array
    gain: Array
    tight: Array


@subroutine
def arrays_at(table: Indices) -> DiscountArrays:
    """Return a model's arrays from the table of its handle."""
    return DiscountArrays(
        cube_at(table, MODEL),
        matrix_at(table, MODEL + 1),
        matrix_at(table, MODEL + 2),
        cube_at(table, MODEL + 3),
        matrix_at(table, MODEL + 4),
        matrix_at(table, MODEL + 5),
        vector_at(table, MODEL + 6),
        matrix_at(table, MODEL + 7),
    )
