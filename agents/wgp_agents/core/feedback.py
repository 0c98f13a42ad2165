"""What an agent is told, checked before anything changes and before a compiled loop sees it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array
from wgp_gym.validation import as_floats, reject

__all__ = ["checked_actions", "checked_arms", "checked_rewards", "checked_starts", "clipped"]

LARGEST = 1e140  # rewards beyond it count as it: squares over a small lambda must be numbers
OBSERVE, PREDICT = "observe", "predict"


def checked_rewards(reward: Any, shape: tuple[int, ...]) -> Array:
    """Return the rewards that `observe` was given, `(B,)`: see `clipped`.

    Args:
        reward: A number or a truth value; of a batch, an array of them.
        shape: What its shape must be: (), or `(B,)`.

    Raises:
        ValueError: If there is not one for each learner, or one is missing or not finite.
    """
    if shape == () and type(reward) is float and -LARGEST <= reward <= LARGEST:
        return np.array([reward])  # the usual case, at once
    rule = "a finite number" if shape == () else f"finite numbers, in an array {shape}"
    rewards = as_floats("reward", truth_as_numbers(reward), OBSERVE, rule)
    if rewards.shape != shape or not np.isfinite(rewards).all():
        reject("reward", OBSERVE, rule, reward)
    return clipped(rewards).reshape(-1)


def clipped(rewards: Array) -> Array:
    """Return rewards as learners take them, none beyond 1e140."""
    return np.minimum(np.maximum(rewards, -LARGEST), LARGEST)


def truth_as_numbers(value: Any) -> Any:
    """Return 0 or 1 in the place of a truth value: a click is a reward."""
    if isinstance(value, (list, tuple)):
        truth = all(isinstance(one, (bool, np.bool_)) for one in value)
    else:
        truth = isinstance(value, bool) or getattr(value, "dtype", None) is np.dtype(bool)
    return np.asarray(value, float) if truth and not np.ma.is_masked(value) else value


def checked_actions(action: Any, problem: BanditProblem) -> NDArray[Any]:
    """Return the actions that `observe` was given: arms `(B,)`, or points `(B, d)`.

    Args:
        action: In the form that `act` returns.
        problem: The problem at hand.

    Raises:
        ValueError: If one does not fit the problem, or there is not one for each learner.
    """
    batch = () if problem.batch_size is None else (problem.batch_size,)
    usual = batch == () and type(action) is int and not problem.continuous
    if usual and 0 <= action < len(problem.domain):
        return np.array([action])  # at once
    point = (problem.domain.shape[1],) if problem.continuous else ()
    shape, top = batch + point, 1.0 if problem.continuous else len(problem.domain) - 1
    rule = "in [0, 1]" if problem.continuous else f"an int in [0, {top}]"
    rule += f", in an array {shape}" if shape else ""
    numbers = as_floats("action", action, OBSERVE, rule)
    whole = problem.continuous or np.asarray(action).dtype.kind in "iu"
    if numbers.shape != shape or not whole or not (numbers.min() >= 0 and numbers.max() <= top):
        reject("action", OBSERVE, rule, action)
    dtype = np.float64 if problem.continuous else np.int64
    return numbers.astype(dtype).reshape(-1, *point)


def checked_arms(arms: Any, problem: BanditProblem) -> Array:
    """Return the arms that feedback speaks of, `(B, n, d)`.

    Args:
        arms: Where they stand, `(n, d)`, or `(B, n, d)` as `Agent.arms` has them.
        problem: The problem at hand.

    Raises:
        ValueError: If the problem's arms stay the same, or these do not fit it.
    """
    if not problem.contextual:
        reject("arms", OBSERVE, "left out where arms stay the same", arms)
    n, d = problem.domain.shape
    single = problem.batch_size is None and np.ndim(arms) != 3
    shape = (n, d) if single else (problem.batch_size or 1, n, d)
    rule = f"places in [0, 1]^{shape[-1]}, in an array {shape}"
    places = as_floats("arms", arms, OBSERVE, rule)
    if places.shape != shape or not (places.min() >= 0 and places.max() <= 1):
        reject("arms", OBSERVE, rule, arms)
    return places.reshape(-1, *problem.domain.shape)


def checked_starts(episode_start: Any, learners: int) -> NDArray[np.bool_]:
    """Return whose episodes have just begun, `(B,)`.

    Args:
        episode_start: True or False, or 1 or 0, for each learner.
        learners: B.

    Raises:
        ValueError: If there is not one for each learner.
    """
    rule = f"True or False, in an array ({learners},)"
    starts = as_floats("episode_start", truth_as_numbers(episode_start), PREDICT, rule)
    starts = np.atleast_1d(starts)
    if starts.shape != (learners,) or not np.isin(starts, (0.0, 1.0)).all():
        reject("episode_start", PREDICT, rule, episode_start)
    return starts.astype(bool)
