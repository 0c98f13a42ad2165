"""The draw of an arm by its probability."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wgp_gym.types import Array

__all__ = ["sample_categorical"]


def sample_categorical(probabilities: Array, uniform: Array) -> NDArray[np.int64]:
    """Return an arm of every learner, drawn with its probabilities, `(B,)`.

    Args:
        probabilities: `(B, K)`; rows add up to 1, up to rounding.
        uniform: One draw from [0, 1) for each learner, `(B,)`.
    """
    reached = probabilities.cumsum(axis=1)
    chosen: NDArray[np.int64] = (reached <= (uniform * reached[:, -1])[:, None]).sum(axis=1)
    return np.minimum(chosen, np.int64(probabilities.shape[1] - 1))
