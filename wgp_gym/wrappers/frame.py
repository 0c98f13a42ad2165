"""Where the last observation stands in one that a wrapper shows, so that it can be read off it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wgp_gym.types import Array

__all__ = ["Frame"]


@dataclass(frozen=True)
class Frame:
    """The last observation of the environment inside, as a part of what a wrapper shows.

    Attributes:
        size: The numbers in what the wrapper shows.
        start: Where the part begins.
        stop: Where it ends, exclusive.
        reward_scale: What the last reward, the part's last number, was divided by.
        one_hot: Whether the part shows the last arm as a one-hot row, not its place.
    """

    size: int
    start: int
    stop: int
    reward_scale: float = 1.0
    one_hot: bool = False

    def read(self, rows: Array, places: Array) -> Array:
        """Return the last observations, of what the wrapper shows of each learner.

        Args:
            rows: What it shows, flat, `(B, size)`.
            places: The arms' places in [0, 1]^d, `(n, d)`.

        Raises:
            ValueError: If an arm's row is not one-hot, or not empty where there is no last arm.
        """
        part = rows[:, self.start : self.stop]
        if self.one_hot:
            part = self._placed(part, places)
        if self.reward_scale == 1:
            return part
        # Rounded as the task rounds: a scale that is a power of 2 loses nothing.
        last = (part[:, -1:] * self.reward_scale).astype(np.float32)
        return np.concatenate([part[:, :-1], last], axis=1)

    def _placed(self, part: Array, places: Array) -> Array:
        """Return [t / T, 1, one-hot row, reward] with the arm's place for its row."""
        has, arms = part[:, 1:2], part[:, 2:-1]
        if not (((arms == 0) | (arms == 1)).all() and (arms.sum(1) == has[:, 0]).all()):
            raise ValueError("An observation must show its last arm as a one-hot row. It does not.")
        place = np.where(has == 1, places[arms.argmax(axis=1)], 0.0)
        return np.concatenate([part[:, :2], place, part[:, -1:]], axis=1)
