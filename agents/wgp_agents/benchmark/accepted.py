"""Which parameters an agent or an environment takes."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from typing import Any

from wgp_agents.registry import AGENTS, agent_class
from wgp_gym.envs.catalogue import TASKS
from wgp_gym.registration import ENVIRONMENTS

__all__ = ["agent_parameters", "environment_parameters"]


def agent_parameters(name: str) -> list[str]:
    """Return the names of the parameters that an agent takes.

    Raises:
        ValueError: If there is no such agent.
        ModuleNotFoundError: If the extra that it needs is not installed.
    """
    made = agent_class(name)
    fixed = {"algo"} if AGENTS[name].extra else set()  # it is the agent's name
    return [parameter for parameter in keywords(made.__init__) if parameter not in fixed]


def environment_parameters(name: str) -> list[str]:
    """Return the names of the keyword arguments that an environment takes.

    Args:
        name: An id of `wgp_gym.registration.ENVIRONMENTS`.
    """
    (entry,) = (one for one in ENVIRONMENTS if one.id == name)
    made: Any = TASKS[entry.kwargs["task"]]
    made = getattr(made, "func", made)  # a class behind a partial
    return keywords(made.__init__ if inspect.isclass(made) else made)


def keywords(function: Callable[..., Any]) -> list[str]:
    """Return a function's keyword-only parameters, and those that it unpacks from a TypedDict."""
    found = []
    hints = typing.get_type_hints(function)
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY:
            found.append(name)
        elif parameter.kind is parameter.VAR_KEYWORD:
            (shared,) = typing.get_args(hints[name])
            found += typing.get_type_hints(shared)
    return found
