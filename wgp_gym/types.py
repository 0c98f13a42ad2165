"""The types of arrays, here and in the agents."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["Array", "Floats32", "Indices", "Mask"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]
"""Numbers that count or point: arms, steps, places in an array."""
Floats32 = NDArray[np.float32]
"""As an observation shows them."""
