"""Reading an attribute of an environment, whatever it is wrapped in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import gymnasium

from wgp_gym.problem import BanditProblem

__all__ = ["changes_reader", "environment_id", "optimum_reader", "problem_reader", "truth_reader"]


@dataclass(frozen=True)
class Reader:
    """A function of an environment.

    A copied agent reads the same environment, or the copy that was made of it just before in
    the same call of `copy.deepcopy`.

    Attributes:
        function: What is called.
        arguments: Its arguments.
    """

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __call__(self) -> Any:
        """Read."""
        return self.function(*self.arguments)

    def __deepcopy__(self, memo: dict[int, Any]) -> Reader:
        """Return this reader, of the environment's copy where there is one already."""
        return Reader(self.function, tuple(memo.get(id(one), one) for one in self.arguments))


def problem_reader(source: Any) -> Reader:
    """Return a function that reads what a learner may know of the episode being played.

    Args:
        source: A `BanditProblem`; a Gymnasium environment or vector environment over tasks of
            `wgp_gym`, wrapped or not; or a stable-baselines3 vector environment over them.

    Raises:
        TypeError: If it is none of these.
    """
    if isinstance(source, BanditProblem):
        return Reader(given_problem, (source,))
    if isinstance(source, gymnasium.Env) and source.has_wrapper_attr("problem"):
        return Reader(wrapped_problem, (source,))
    if isinstance(source, gymnasium.vector.VectorEnv):
        base: Any = source.unwrapped
        if hasattr(base, "problem"):
            return Reader(getattr, (base, "problem"))
        if hasattr(base, "get_attr"):
            return Reader(stacked_problem, (base,))
    elif hasattr(source, "env_method"):  # stable-baselines3's vector environments
        return Reader(stacked_problem, (source,))
    raise TypeError(
        f"An agent is made from a BanditProblem or from an environment of wgp_gym. Got {source!r}."
    )


def optimum_reader(env: Any) -> Reader:
    """Return a function that reads the action with the largest expected reward, for oracles.

    Args:
        env: An environment as `problem_reader` takes it.

    Raises:
        TypeError: If it is not an environment.
    """
    return truth_reader(env, "optimal_action")


def changes_reader(env: Any) -> Reader:
    """Return a function that reads whether the next action meets a new function, for oracles.

    Args:
        env: An environment as `problem_reader` takes it.

    Raises:
        TypeError: If it is not an environment.
    """
    return truth_reader(env, "function_changes")


def truth_reader(env: Any, method: str) -> Reader:
    """Return a function that reads what a method of the bare environment returns.

    Raises:
        TypeError: If it is not an environment.
    """
    if isinstance(env, gymnasium.Env):
        return Reader(call, (env, "get_wrapper_attr", method))
    if isinstance(env, gymnasium.vector.VectorEnv):
        base: Any = env.unwrapped
        if hasattr(base, method):
            return Reader(call, (base, method))
        return Reader(call, (base, "call", method))
    if hasattr(env, "env_method"):
        return Reader(call, (env, "env_method", method))
    raise TypeError(f"An oracle needs an environment, to read the truth from. Got {env!r}.")


def environment_id(source: Any) -> str | None:
    """Return the id that an environment was made from, or None: of a problem, or if unknown."""
    spec = None if hasattr(source, "env_method") else getattr(source, "spec", None)
    if spec is None and hasattr(source, "get_attr"):  # vector environments of single ones
        spec = source.get_attr("spec")[0]
    return spec.id if spec else None


def given_problem(problem: BanditProblem) -> BanditProblem:
    """Return the problem itself."""
    return problem


def wrapped_problem(env: Any) -> BanditProblem:
    """Return the problem of the environment inside all wrappers."""
    problem: BanditProblem = env.get_wrapper_attr("problem")
    return problem


def stacked_problem(env: Any) -> BanditProblem:
    """Return the problems of all sub-environments as one."""
    return BanditProblem.stack(list(env.get_attr("problem")))


def call(env: Any, method: str, *arguments: str) -> Any:
    """Return what a method returns; of a method that it looks up, what that one returns."""
    found = getattr(env, method)(*arguments)
    return found() if callable(found) else found
