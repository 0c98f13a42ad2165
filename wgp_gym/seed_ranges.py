"""Ranges of seeds that nobody's training, choice of a model and test share."""

from __future__ import annotations

from typing import Literal

from wgp_gym.validation import check_choice

__all__ = ["SeedsOf", "seeds"]

SeedsOf = Literal["train", "validation", "test"]
RANGES = {
    "train": range(10**9, 10**15),
    "validation": range(10**15, 2 * 10**15),
    "test": range(2 * 10**15, 3 * 10**15),
}


def seeds(purpose: SeedsOf) -> range:
    """Return the seeds of environments for one purpose; those of others are other ones.

    Seeds below 10^9 are free for everybody's own runs. The package trains its own policies,
    chooses among them and compares them on these.

    Args:
        purpose: "train"; "validation": learning curves, and choices that follow from them;
            "test": what is reported.

    Raises:
        ValueError: If there is no such purpose.
    """
    return RANGES[check_choice("purpose", purpose, "seeds", RANGES)]
