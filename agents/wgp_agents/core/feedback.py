"""What an agent is told, checked before anything changes and before a compiled loop sees it.

Each function returns what it was given as arrays for B learners, and raises ValueError where there
is not one value for each learner, or one is not what it must be.
"""

from __future__ import annotations

from typing import TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from wgp_gym.problem import BanditProblem
from wgp_gym.types import Action, Actions, Array, Mask, Reward
from wgp_gym.validation import as_floats, reject

__all__ = [
    "checked_actions",
    "checked_allowed",
    "checked_arms",
    "checked_elapsed",
    "checked_learners",
    "checked_rewards",
    "checked_starts",
    "clipped",
    "of_active",
]

LARGEST = 1e140  # rewards beyond it count as it: squares over a small lambda must be numbers
LONGEST = 2.0**53  # steps that may go by at once: a clock still counts single ones
OBSERVE = "observe"
INTS = int, np.int64  # not bool
NUMBER, ARM = np.zeros(1), np.zeros(1, np.int64)  # to be copied: faster than `np.empty`


def checked_rewards(reward: Reward, shape: tuple[int, ...]) -> Array:
    """Return the rewards that `observe` was given, `(B,)`: see `clipped`.

    Args:
        reward: A number or a truth value; of a batch, an array of them.
        shape: What its shape must be: (), or `(B,)`.
    """
    if shape == () and isinstance(reward, float) and -LARGEST <= reward <= LARGEST:
        number = NUMBER.copy()  # the usual case, at once
        number[0] = reward
        return number
    if is_plain(reward, np.float64, shape) and abs(reward).max() <= LARGEST:
        return reward.copy()
    rule = "a finite number" if shape == () else f"finite numbers, in an array {shape}"
    rewards = as_floats("reward", truth_as_numbers(reward), OBSERVE, rule)
    if rewards.shape != shape or not np.isfinite(rewards).all():
        reject("reward", OBSERVE, rule, reward)
    return clipped(rewards).reshape(-1)


def checked_elapsed(name: str, owner: str, steps: ArrayLike, active: Mask) -> Array | None:
    """Return the steps that go by, `(B,)`, 1 for the inactive; None where all are 1.

    Args:
        name: What the parameter is called.
        owner: Whose it is.
        steps: A number in [0, 2^53], or one for each learner; those of the inactive are not read.
        active: Who learns, `(B,)`, at least one.
    """
    if type(steps) in (int, float) and steps == 1:
        return None  # the usual case, at once
    rule = f"in [0, 2^53], a number or an array ({len(active)},)"
    given = steps if np.ndim(steps) == 0 else of_active(steps, active)
    numbers = as_floats(name, given, owner, rule)
    if numbers.shape not in ((), active.shape):
        reject(name, owner, rule, steps)
    elapsed = np.where(active, numbers, 1.0)
    if not (elapsed.min() >= 0 and elapsed.max() <= LONGEST):
        reject(name, owner, rule, steps)
    return None if (elapsed == 1).all() else elapsed


def is_plain(given: object, dtype: type, shape: tuple[int, ...]) -> TypeGuard[Array]:
    """Return whether this is a numpy array of just this shape and type, nothing masked."""
    return type(given) is np.ndarray and given.dtype == dtype and given.shape == shape != ()


def clipped(rewards: Array) -> Array:
    """Return rewards as learners take them, none beyond 1e140."""
    return np.minimum(np.maximum(rewards, -LARGEST), LARGEST)


def truth_as_numbers(value: object) -> object:
    """Return 0 or 1 in the place of a truth value: a click is a reward."""
    if isinstance(value, (list, tuple)):
        truth = all(isinstance(one, (bool, np.bool_)) for one in value)
    else:
        truth = isinstance(value, bool) or getattr(value, "dtype", None) is np.dtype(bool)
    return np.asarray(value, float) if truth and not np.ma.is_masked(value) else value


def checked_actions(action: Action, problem: BanditProblem, owner: str = OBSERVE) -> Actions:
    """Return the actions that a method was given: arms `(B,)`, or points `(B, d)`."""
    usual = type(action) in INTS and problem.batch_size is None and not problem.continuous
    if usual and 0 <= action < len(problem.domain):  # at once
        arm: Actions = ARM.copy()
        arm[0] = action
        return arm
    batch = () if problem.batch_size is None else (problem.batch_size,)
    plain = is_plain(action, np.int64, batch) and not problem.continuous
    if plain and action.min() >= 0 and action.max() < len(problem.domain):
        arms: Actions = action.copy()
        return arms
    point = (problem.domain.shape[1],) if problem.continuous else ()
    shape, top = batch + point, 1.0 if problem.continuous else len(problem.domain) - 1
    rule = "in [0, 1]" if problem.continuous else f"an int in [0, {top}]"
    rule += f", in an array {shape}" if shape else ""
    numbers = as_floats("action", action, owner, rule)
    whole = problem.continuous or np.asarray(action).dtype.kind in "iu"
    if numbers.shape != shape or not whole or not (numbers.min() >= 0 and numbers.max() <= top):
        reject("action", owner, rule, action)
    dtype = np.float64 if problem.continuous else np.int64
    return numbers.astype(dtype).reshape(-1, *point)


def checked_arms(arms: ArrayLike, problem: BanditProblem, owner: str = OBSERVE) -> Array:
    """Return the arms that feedback speaks of, `(B, n, d)`; of a single learner also `(n, d)`."""
    if not problem.contextual:
        reject("arms", owner, "left out where arms stay the same", arms)
    n, d = problem.domain.shape
    single = problem.batch_size is None and np.ndim(arms) != 3
    shape = (n, d) if single else (problem.batch_size or 1, n, d)
    rule = f"places in [0, 1]^{d}, in an array {shape}"
    places = as_floats("arms", arms, owner, rule)
    if places.shape != shape or not (places.min() >= 0 and places.max() <= 1):
        reject("arms", owner, rule, arms)
    return places.reshape(-1, n, d)


def checked_learners(name: str, owner: str, given: ArrayLike | None, learners: int) -> Mask:
    """Return which learners are meant, `(B,)`: as given, for each or for all; None is all."""
    if given is None:
        return np.ones(learners, bool)
    rule = f"True or False, in an array ({learners},)"
    mask = as_truth(name, owner, given, rule)
    if mask.shape not in ((), (learners,)):
        reject(name, owner, rule, given)
    return np.broadcast_to(mask, learners).copy()


def checked_allowed(given: ArrayLike, shape: tuple[int, int]) -> Mask:
    """Return which arms each learner may play now, `(B, n)`: at least one."""
    rule = f"True for at least one arm of each learner, in an array {shape[1:]} or {shape}"
    mask = as_truth("allowed", "act", given, rule)
    if mask.shape not in (shape, shape[1:]) or not mask.any(axis=-1).all():
        reject("allowed", "act", rule, given)
    return np.broadcast_to(mask, shape).copy()  # the caller may change its own


def checked_starts(episode_start: ArrayLike, learners: int) -> Mask:
    """Return whose episodes have just begun, `(B,)`."""
    rule = f"True or False, in an array ({learners},)"
    starts = np.atleast_1d(as_truth("episode_start", "predict", episode_start, rule))
    if starts.shape != (learners,):
        reject("episode_start", "predict", rule, episode_start)
    return starts


def as_truth(name: str, owner: str, given: object, rule: str) -> Mask:
    """Return truth values, given as such or as 0 and 1; anything else raises `ValueError`."""
    try:
        truth = np.asarray(given)
    except Exception:  # there is no end to what an object may raise
        reject(name, owner, rule, given)
    if truth.dtype.kind == "b" and not np.ma.is_masked(given):
        return truth
    numbers = as_floats(name, given, owner, rule)
    if not np.isin(numbers, (0.0, 1.0)).all():
        reject(name, owner, rule, given)
    return numbers.astype(bool)


def of_active(values: Action, active: Mask) -> Action:
    """Return what was told of all learners; in the place of inactive ones what an active one has.

    Of the inactive nothing is looked at, not even whether it is a number.

    Args:
        values: `(B, ...)`; anything else is returned as it is, and refused later.
        active: Who learns, `(B,)`, at least one.
    """
    if active.all():
        return values
    try:
        rows = list(values)
    except Exception:  # no list of anything, whatever it raises
        return values
    if len(rows) != len(active):
        return values
    first = rows[int(active.argmax())]
    return [one if learns else first for one, learns in zip(rows, active, strict=True)]
