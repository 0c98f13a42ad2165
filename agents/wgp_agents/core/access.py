"""What agents are made from, and reading an attribute of it, whatever it is wrapped in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

import gymnasium
from gymnasium.vector import VectorEnv

from wgp_gym.problem import BanditProblem

__all__ = ["EnvLike", "StackedEnvs", "environment_id", "problem_reader", "truth_reader"]

Read = TypeVar("Read")


class StackedEnvs(Protocol):
    """A vector environment of stable-baselines3, as far as agents look at it."""

    num_envs: int

    def get_attr(self, attr_name: str) -> list[Any]:
        """Return an attribute of each sub-environment."""

    def env_method(self, method_name: str, *method_args: Any) -> list[Any]:
        """Return what a method of each sub-environment returns."""


EnvLike = gymnasium.Env[Any, Any] | VectorEnv[Any, Any, Any] | StackedEnvs | BanditProblem
"""What an agent is made from: an environment, a vector environment, or the `BanditProblem` alone.

Environments may be wrapped; the bare one has a `problem`.
"""


@dataclass(frozen=True)
class Reader(Generic[Read]):
    """A function of an environment.

    A copied agent reads the same environment, or the copy that was made of it just before in
    the same call of `copy.deepcopy`.

    Attributes:
        function: What is called.
        arguments: Its arguments.
    """

    function: Callable[..., Read]
    arguments: tuple[Any, ...]

    def __call__(self) -> Read:
        """Read."""
        return self.function(*self.arguments)

    @property
    def follows(self) -> bool:
        """Whether it reads an environment, where the next episode is another one."""
        return self.function is not given_problem

    def __deepcopy__(self, memo: dict[int, Any]) -> Reader[Read]:
        """Return this reader, of the environment's copy where there is one already."""
        return Reader(self.function, tuple(memo.get(id(one), one) for one in self.arguments))


def problem_reader(source: EnvLike) -> Reader[BanditProblem]:
    """Return a function that reads what a learner may know of the episode being played.

    Raises:
        TypeError: If an agent cannot be made from this.
    """
    if isinstance(source, BanditProblem):
        return Reader(given_problem, (source,))
    if isinstance(source, gymnasium.Env) and source.has_wrapper_attr("problem"):
        return Reader(wrapped_problem, (source,))
    if isinstance(source, VectorEnv):
        base: Any = source.unwrapped
        if hasattr(base, "problem"):
            return Reader(getattr, (base, "problem"))
        if hasattr(base, "get_attr") and tells_problem(base):
            return Reader(stacked_problem, (base,))
    elif hasattr(source, "env_method"):  # stable-baselines3's vector environments
        return Reader(stacked_problem, (source,))
    raise TypeError(
        "An agent is made from a BanditProblem or from an environment of wgp_gym (or another "
        f"whose bare environment has a `problem`). Got {source!r}."
    )


def truth_reader(env: EnvLike, method: str) -> Reader[Any]:
    """Return a function that reads what a method of the bare environment returns, for oracles.

    Args:
        env: What the oracle is made from.
        method: As "optimal_action", the action with the largest expected reward, or
            "function_changes", whether the next action meets a new function.

    Raises:
        TypeError: If it is not an environment.
    """
    if isinstance(env, gymnasium.Env):
        return Reader(call, (env, "get_wrapper_attr", method))
    if isinstance(env, VectorEnv):
        base: Any = env.unwrapped
        if hasattr(base, method):
            return Reader(call, (base, method))
        return Reader(call, (base, "call", method))
    if hasattr(env, "env_method"):
        return Reader(call, (env, "env_method", method))
    raise TypeError(f"An oracle needs an environment, to read the truth from. Got {env!r}.")


def environment_id(source: EnvLike) -> str | None:
    """Return the id that an environment was made from, or None: of a problem, or if unknown."""
    spec = None if hasattr(source, "env_method") else getattr(source, "spec", None)
    if spec is None and hasattr(source, "get_attr"):  # vector environments of single ones
        spec = source.get_attr("spec")[0]
    return spec.id if spec else None


def tells_problem(env: Any) -> bool:
    """Tell whether the sub-environments of a vector environment have a `problem`."""
    try:
        env.get_attr("problem")
    except AttributeError:
        return False
    return True


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
    try:
        found = getattr(env, method)(*arguments)
    except AttributeError as error:
        name = arguments[0] if arguments else method
        if name not in str(error):
            raise
        raise TypeError(
            f"The oracle needs an environment that tells the truth, by a method {name!r}. "
            f"Got {env!r}."
        ) from error
    return found() if callable(found) else found
