"""Which parameters an environment takes."""

from __future__ import annotations

import inspect
from typing import Any

from wgp_agents.parameters import keywords
from wgp_gym.envs.catalogue import TASKS
from wgp_gym.registration import ENVIRONMENTS

__all__ = ["environment_parameters"]


def environment_parameters(name: str) -> list[str]:
    """Return the names of the keyword arguments that an environment takes.

    Args:
        name: An id of `wgp_gym.registration.ENVIRONMENTS`.
    """
    (entry,) = (one for one in ENVIRONMENTS if one.id == name)
    made: Any = TASKS[entry.kwargs["task"]]
    made = getattr(made, "func", made)  # a class behind a partial
    return keywords(made.__init__ if inspect.isclass(made) else made)
