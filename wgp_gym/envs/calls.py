"""What both environments make of how they are called: a specification in JSON, and options."""

from __future__ import annotations

import os
from enum import Enum
from typing import Any

import numpy as np
from gymnasium.envs.registration import EnvSpec

from wgp_gym.validation import check_names, reject

__all__ = ["PlainSpec", "check_options"]


def plain(value: Any) -> Any:
    """Return a keyword's value as JSON can write it: numpy's numbers and arrays as Python's."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Enum):
        return value.value
    return os.fspath(value) if isinstance(value, os.PathLike) else value


class PlainSpec:
    """A base of environments whose specification can be written as JSON, whatever made them.

    Gymnasium puts the keywords in there as they were given, and `spec.to_json()` would fail.
    """

    _spec: EnvSpec | None = None

    @property
    def spec(self) -> EnvSpec | None:
        """What `gymnasium.make` made the environment from."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        if spec is not None:
            spec.kwargs = plain(spec.kwargs)
        self._spec = spec


def check_options(options: Any, owner: str, known: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the options of a reset, none for None.

    Raises:
        ValueError: If they are no dict, or there is one that the environment does not know.
    """
    if options is None:
        return {}
    if not isinstance(options, dict):
        reject("options", owner, "None or a dict", options)
    check_names(options, f"The 'options' of {owner}", known)
    return options
