"""Reading an attribute of an environment, whatever it is wrapped in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from wgp_gym.problem import BanditProblem

__all__ = ["optimum_reader", "problem_reader"]


def problem_reader(source: Any) -> Callable[[], BanditProblem]:
    """Return a function that reads what a learner may know of the episode being played.

    Args:
        source: A `BanditProblem`; a Gymnasium environment or vector environment over tasks of
            `wgp_gym`, wrapped or not; or a stable-baselines3 vector environment over them.

    Raises:
        TypeError: If it is none of these.
    """
    if isinstance(source, BanditProblem):
        return lambda: source
    read = attribute_reader(source, "problem")

    def read_problem() -> BanditProblem:
        found = read()
        return found if isinstance(found, BanditProblem) else BanditProblem.stack(found)

    return read_problem


def optimum_reader(env: Any) -> Callable[[], Any]:
    """Return a function that reads the action with the largest expected reward, for oracles.

    Args:
        env: An environment as `problem_reader` takes it.

    Raises:
        TypeError: If it is not an environment.
    """
    if isinstance(env, gymnasium.Env):
        return lambda: env.get_wrapper_attr("optimal_action")()
    if isinstance(env, gymnasium.vector.VectorEnv):
        base: Any = env.unwrapped
        if hasattr(base, "optimal_action"):
            return lambda: base.optimal_action()
        return lambda: np.array(base.call("optimal_action"))
    if hasattr(env, "env_method"):
        return lambda: np.array(env.env_method("optimal_action"))
    raise TypeError(f"An oracle needs an environment, to read the truth from. Got {env!r}.")


def attribute_reader(env: Any, name: str) -> Callable[[], Any]:
    """Return a function that reads an attribute: one value, or one for each sub-environment.

    Raises:
        TypeError: If `env` has no such attribute.
    """
    if isinstance(env, gymnasium.Env) and env.has_wrapper_attr(name):
        return lambda: env.get_wrapper_attr(name)
    if isinstance(env, gymnasium.vector.VectorEnv):
        base: Any = env.unwrapped
        if hasattr(base, name):
            return lambda: getattr(base, name)
        if hasattr(base, "get_attr"):
            return lambda: list(base.get_attr(name))
    elif hasattr(env, "env_method"):  # stable-baselines3's vector environments
        return lambda: list(env.get_attr(name))
    raise TypeError(
        f"An agent is made from a BanditProblem or from an environment of wgp_gym. Got {env!r}."
    )
