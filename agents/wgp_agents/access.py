"""Reading an attribute of an environment, whatever it is wrapped in.

The readers are partial functions, not closures, so that an agent can be copied and pickled.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
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
        return partial(given_problem, source)
    if isinstance(source, gymnasium.Env) and source.has_wrapper_attr("problem"):
        return partial(source.get_wrapper_attr, "problem")
    if isinstance(source, gymnasium.vector.VectorEnv):
        base: Any = source.unwrapped
        if hasattr(base, "problem"):
            return partial(getattr, base, "problem")
        if hasattr(base, "get_attr"):
            return partial(stacked_problem, base)
    elif hasattr(source, "env_method"):  # stable-baselines3's vector environments
        return partial(stacked_problem, source)
    raise TypeError(
        f"An agent is made from a BanditProblem or from an environment of wgp_gym. Got {source!r}."
    )


def optimum_reader(env: Any) -> Callable[[], Any]:
    """Return a function that reads the action with the largest expected reward, for oracles.

    Args:
        env: An environment as `problem_reader` takes it.

    Raises:
        TypeError: If it is not an environment.
    """
    if isinstance(env, gymnasium.Env):
        return partial(call, env, "get_wrapper_attr", "optimal_action")
    if isinstance(env, gymnasium.vector.VectorEnv):
        base: Any = env.unwrapped
        if hasattr(base, "optimal_action"):
            return partial(call, base, "optimal_action")
        return partial(call, base, "call", "optimal_action")
    if hasattr(env, "env_method"):
        return partial(call, env, "env_method", "optimal_action")
    raise TypeError(f"An oracle needs an environment, to read the truth from. Got {env!r}.")


def given_problem(problem: BanditProblem) -> BanditProblem:
    """Return the problem itself."""
    return problem


def stacked_problem(env: Any) -> BanditProblem:
    """Return the problems of all sub-environments as one."""
    return BanditProblem.stack(list(env.get_attr("problem")))


def call(env: Any, method: str, *arguments: str) -> Any:
    """Return what a method returns; of a method that it looks up, what that one returns."""
    found = getattr(env, method)(*arguments)
    return found() if callable(found) else np.array(found)
