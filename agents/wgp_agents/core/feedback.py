"""What an agent is told, checked before anything changes and before a compiled loop sees it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgp_gym.problem import BanditProblem
from wgp_gym.types import Array, Mask
from wgp_gym.validation import as_floats, reject

__all__ = [
    "checked_actions",
    "checked_allowed",
    "checked_arms",
    "checked_learners",
    "checked_rewards",
    "checked_starts",
    "clipped",
    "of_active",
]

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


def checked_learners(name: str, owner: str, given: ArrayLike | None, learners: int) -> Mask:
    """Return which learners are meant, `(B,)`.

    Args:
        name: The parameter's name.
        owner: The method whose parameter it is.
        given: True or False for each learner, `(B,)`, or for all; None is all.
        learners: B.

    Raises:
        ValueError: If there is not one for each learner.
    """
    if given is None:
        return np.ones(learners, bool)
    rule = f"True or False, in an array ({learners},)"
    mask = as_truth(name, owner, given, rule)
    if mask.shape not in ((), (learners,)):
        reject(name, owner, rule, given)
    return np.broadcast_to(mask, learners).copy()


def checked_allowed(given: ArrayLike, shape: tuple[int, int]) -> Mask:
    """Return which arms each learner may play now, `(B, n)`.

    Args:
        given: True or False for each arm, `(n,)`, or for each learner too, `(B, n)`.
        shape: B and n.

    Raises:
        ValueError: If it has another shape, or leaves a learner no arm.
    """
    rule = f"True for at least one arm of each learner, in an array {shape[1:]} or {shape}"
    mask = as_truth("allowed", "act", given, rule)
    if mask.shape not in (shape, shape[1:]) or not mask.any(axis=-1).all():
        reject("allowed", "act", rule, given)
    return np.broadcast_to(mask, shape)


def as_truth(name: str, owner: str, given: ArrayLike, rule: str) -> Mask:
    """Return truth values, given as such or as 0 and 1.

    Raises:
        ValueError: If they are none.
    """
    numbers = as_floats(name, truth_as_numbers(np.asarray(given)), owner, rule)
    if not np.isin(numbers, (0.0, 1.0)).all():
        reject(name, owner, rule, given)
    return numbers.astype(bool)


def of_active(values: Any, active: Mask) -> Any:
    """Return what was told of all learners; in the place of inactive ones what an active one has.

    Of these nothing is looked at, not even whether it is a number.

    Args:
        values: `(B, ...)`; anything else is returned as it is, and refused later.
        active: Who learns, `(B,)`; not all.
    """
    if not hasattr(values, "__len__") or len(values) != len(active):
        return values
    first = values[int(active.argmax())]
    return [one if learns else first for one, learns in zip(values, active, strict=True)]


def checked_starts(episode_start: ArrayLike, learners: int) -> Mask:
    """Return whose episodes have just begun, `(B,)`.

    Args:
        episode_start: True or False, or 1 or 0, for each learner.
        learners: B.

    Raises:
        ValueError: If there is not one for each learner.
    """
    rule = f"True or False, in an array ({learners},)"
    starts = np.atleast_1d(as_truth("episode_start", PREDICT, episode_start, rule))
    if starts.shape != (learners,):
        reject("episode_start", PREDICT, rule, episode_start)
    return starts
