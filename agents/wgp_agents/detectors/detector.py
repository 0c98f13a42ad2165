"""The base of change detectors."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike

from wgp_gym.types import Array, Mask
from wgp_gym.validation import as_floats, reject

__all__ = ["Detector"]


class Detector(ABC):
    """Tests streams of numbers for a change of their mean, each on its own.

    An alarm changes nothing by itself: whoever asks decides which streams then `restart`.

    Args:
        shape: The shape of the streams, such as `(B, K)`.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    @abstractmethod
    def _forget(self, mask: Mask) -> None:
        """Make the streams in `mask`, of the streams' shape, forget all."""

    @abstractmethod
    def _test(self, values: Array, active: Mask) -> Mask:
        """Take in one value of the active streams and test them; all arrays are `(S,)`."""

    def restart(self, mask: ArrayLike = True) -> None:
        """Make streams forget all.

        Args:
            mask: Which, in a shape that broadcasts to that of the streams; default: all.

        Raises:
            ValueError: If it does not.
        """
        self._forget(self._shaped("mask", mask).astype(bool))

    def update(self, values: ArrayLike, active: ArrayLike = True) -> Mask:
        """Take in one value of every active stream.

        Args:
            values: One for each stream; those not active do not count.
            active: Which streams have a new value; default: all. Both broadcast to the shape of
                the streams.

        Returns:
            Which of them have changed, of the streams' shape; False where not active.

        Raises:
            ValueError: If they do not, or the value of an active stream is not finite. Nothing has
                changed then.
        """
        given, new = self._shaped("values", values), self._shaped("active", active)
        flat, mask = given.astype(float).ravel(), new.astype(bool).ravel()
        if not np.isfinite(flat[mask]).all():
            raise ValueError(f"Values of active streams must be finite. Got {values!r} instead.")
        return self._test(flat, mask).reshape(self.shape)

    def _shaped(self, name: str, given: ArrayLike) -> Array | Mask:
        """Return an array of the streams' shape; raise ValueError if it does not broadcast."""
        try:
            return np.broadcast_to(np.asarray(given), self.shape)
        except ValueError:
            raise ValueError(
                f"The {name!r} of {type(self).__name__} must broadcast to {self.shape}. "
                f"Got {given!r} instead."
            ) from None

    def _per_stream(
        self, name: str, value: ArrayLike, low: float, high: float = np.inf, *, whole: bool = False
    ) -> Array:
        """Return a finite parameter of every stream, above `low`; one that is whole may be `low`.

        Raises:
            ValueError: If a number is out of range, or it does not broadcast to the streams' shape.
        """
        owner = type(self).__name__
        end = f"{high:g}{']' if np.isfinite(high) else ')'}"
        kind, left = ("whole numbers", "[") if whole else ("numbers", "(")
        rule = f"{kind} in {left}{low:g}, {end} that broadcast to {self.shape}"
        array = as_floats(name, value, owner, rule)
        above = (array >= low) & (array == np.floor(array)) if whole else array > low
        if not (np.isfinite(array) & above & (array <= high)).all():
            reject(name, owner, rule, value)
        try:
            return np.broadcast_to(array, self.shape).copy()
        except ValueError:
            reject(name, owner, rule, value)
