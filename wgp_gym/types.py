"""The types of arrays, here and in the agents."""

from __future__ import annotations

from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["Action", "Array", "Floats32", "Indices", "Mask", "Observation", "Reward"]

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]
"""Numbers that count or point: arms, steps, places in an array."""
Floats32 = NDArray[np.float32]
"""As an observation shows them."""
Action = Any
"""As an environment takes it: an int or a point `(d,)`, or an array of one for each of B."""
Reward = ArrayLike | SupportsFloat | None
"""As it comes from outside: a number, or one for each of B; None, which is refused, is missing."""
Observation = Any
"""As an environment returns it. Gymnasium leaves the type of both open."""
