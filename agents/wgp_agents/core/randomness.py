"""One independent random stream for each learner of a batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wgp_agents.core.state import check_counts
from wgp_gym.types import Array, Mask

__all__ = ["UniformStreams"]

AGENT = (1,)  # an environment with the same seed has another stream
BLOCK = 256  # draws fetched at a time: one call per learner and block, not per step


class UniformStreams:
    """B streams of uniform numbers from [0, 1). Stream i does not depend on B.

    Args:
        seeds: One seed for each stream; None takes fresh entropy.
    """

    def __init__(self, seeds: Sequence[int | None]) -> None:
        self._generators = [stream(seed) for seed in seeds]
        self._block = np.zeros((BLOCK, len(seeds)))
        self._used = BLOCK

    def _check_state(self) -> None:
        check_counts(self, "used", np.array([self._used]), BLOCK)

    def reseed(self, seeds: Sequence[int | None], mask: Mask) -> None:
        """Restart the streams in `mask` `(B,)` from their seeds, `(B,)`."""
        for i in np.flatnonzero(mask).tolist():
            self._generators[i] = stream(seeds[i])
            self._block[self._used :, i] = self._generators[i].random(BLOCK - self._used)

    def draw(self) -> Array:
        """Return the next number of every stream, `(B,)`."""
        if self._used == BLOCK:
            for i, generator in enumerate(self._generators):
                self._block[:, i] = generator.random(BLOCK)
            self._used = 0
        row: Array = self._block[self._used].copy()
        self._used += 1
        return row


def stream(seed: int | None) -> np.random.Generator:
    """Return the generator of a learner's stream; None takes fresh entropy."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=AGENT))
