"""How large a task may be: what cannot be held is refused before anything is computed."""

from __future__ import annotations

import math
from fractions import Fraction

from wgp_gym.validation import reject

__all__ = ["MAX_BATCH_NUMBERS", "MAX_NUMBERS", "MAX_WORK", "check_size"]

MAX_NUMBERS = 50_000_000  # of an episode: to draw it takes 24 to 41 bytes for each, up to 2 GB
MAX_BATCH_NUMBERS = 500_000_000  # that the episodes of one batch keep, 4 GB
MAX_WORK = 5_000_000_000  # products that one episode is summed up from: some seconds


def check_size(
    owner: str, sizes: dict[str, int], usual: dict[str, int], limit: int = MAX_NUMBERS
) -> None:
    """Check that an episode of so many numbers can be held.

    Args:
        owner: The task.
        sizes: The parameters whose product the numbers are; ints of any size.
        usual: Their defaults. The one that is furthest above its own is named: it was given.
        limit: The largest product.

    Raises:
        ValueError: If there are too many.
    """
    if math.prod(sizes.values()) > limit:
        name = max(sizes, key=lambda one: Fraction(sizes[one], usual[one]))
        reject(name, owner, f"such that {' x '.join(sizes)} is at most {limit:,}", sizes[name])
