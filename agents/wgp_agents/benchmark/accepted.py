"""Which environments there are, and which parameters they take."""

from __future__ import annotations

import importlib
import re
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

import wgp_gym  # noqa: F401  (registers its ids)
from wgp_agents.core.keywords import keywords
from wgp_gym.envs.laws import law_keywords
from wgp_gym.envs.task import load_task
from wgp_gym.validation import near_miss, reject

__all__ = ["check_id", "environment_parameters", "environment_spec"]

ID = re.compile(r"([^\W\d][\w.]*:)?([\w-]+/)?[\w.-]+")  # as "module:namespace/Name-v0"


def check_id(name: object, owner: str) -> None:
    """Check that a name is that of an environment; nothing is imported.

    Args:
        name: An id of Gymnasium's registry; or "module:id", whose module registers it.
        owner: Whose 'id' it is, for errors.

    Raises:
        ValueError: If it is none.
    """
    known = list(gymnasium.registry)
    if (
        not isinstance(name, str)
        or not ID.fullmatch(name)
        or (":" not in name and name not in known)
    ):
        rule = "an id of Gymnasium's registry, or 'module:id' of a module that registers it"
        reject("id", owner, rule + near_miss(name, known), name)


def environment_spec(name: str) -> EnvSpec:
    """Return what Gymnasium knows of an environment; the module that it names is imported.

    Raises:
        ValueError: If there is none of this name, or its module cannot be imported.
    """
    check_id(name, "an [[environment]]")
    module, _, own = name.rpartition(":")
    try:
        if module:
            importlib.import_module(module)
    except Exception as error:
        why = f"({type(error).__name__}: {error})"
        rule = f"in a module that can be imported: is it on Python's path? {why}"
        raise ValueError(
            f"The 'id' parameter of an [[environment]] must be {rule}. Got {name!r} instead."
        ) from error
    check_id(own, f"the module {module!r}")
    return gymnasium.registry[own]


def environment_parameters(name: str) -> list[str]:
    """Return the names of the keyword arguments that an environment takes.

    Args:
        name: An id of Gymnasium's, as `environment_spec` takes it.

    Raises:
        ValueError: If there is none of this name, or its module cannot be imported.
    """
    spec = environment_spec(name)
    made: Any = spec.entry_point
    if made == "wgp_gym.envs:BanditEnv":  # which hands its parameters on to the task
        made = load_task(spec.kwargs["task"])
        laws = law_keywords(getattr(made, "drawable", {}))
        return [*keywords(made), *laws]
    return keywords(load_env_creator(made) if isinstance(made, str) else made)
