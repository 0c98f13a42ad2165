"""The types of arrays, here and in the agents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, SupportsFloat

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Action",
    "Actions",
    "AnyArray",
    "Array",
    "Floats32",
    "Indices",
    "Info",
    "Json",
    "Mask",
    "Numbers",
    "Observation",
    "PerLearner",
    "Reward",
]

Array = NDArray[np.float64]
AnyArray = NDArray[Any]
"""An array of any type."""
Mask = NDArray[np.bool_]
Indices = NDArray[np.int64]
"""Numbers that count or point: arms, steps, places in an array."""
Numbers = float | Sequence[float] | Array | Indices
"""A number, or one for each of B learners; unlike numpy's ArrayLike, no text."""
Floats32 = NDArray[np.float32]
"""As an observation shows them."""
Json = bool | int | float | str | Sequence["Json"] | Mapping[str, "Json"] | None
"""An argument of an environment, as a specification or an experiment file holds it."""
Action = Any
"""As an environment takes it: an int or a point `(d,)`, or an array of one for each of B."""
Actions = NDArray[Any]
"""Those of B learners, checked: arms `(B,)` of ints, or places `(B, d)` of floats."""
PerLearner = Any
"""What an agent tells of its learners: a number of a single one, an array `(B,)` of a batch."""
Reward = ArrayLike | SupportsFloat | None
"""As it comes from outside: a number, or one for each of B; None, which is refused, is missing."""
Info = dict[str, Any]
"""What `reset` and `step` tell the scorer, by name."""
Observation = Any
"""As an environment returns it. Gymnasium leaves the type of both open."""
