"""What the single and the vector environment share: spaces, checks and the specification."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec

from wgp_gym.arrays import kept
from wgp_gym.envs.dynamics import REWARD_LIMIT, Dynamics
from wgp_gym.envs.laws import RATE, TIMES, is_random, settable
from wgp_gym.envs.random_task import RandomTask, make_task
from wgp_gym.envs.task import Task, load_task
from wgp_gym.types import Action, Actions, Array, Info, Json
from wgp_gym.validation import MAX_BATCH_NUMBERS, check_names, misread, reject, shown

VECTOR = "BanditVectorEnv"

__all__ = [
    "TaskPlayer",
    "action_space",
    "check_options",
    "checked_actions",
    "observation_space",
    "with_horizon",
]


def observation_space(task: Task) -> spaces.Space[Any]:
    """Return the space of [t / T, has_last, last action in [0, 1]^d, last reward].

    Where arms are drawn anew at each step, theirs follows, [0, 1]^(n d).
    """
    n, d = task.domain.shape
    arms = n * d if task.contextual else 0
    low = np.array([0.0] * (2 + d) + [-REWARD_LIMIT] + [0.0] * arms, np.float32)
    high = np.array([1.0] * (2 + d) + [REWARD_LIMIT] + [1.0] * arms, np.float32)
    return spaces.Box(low, high, dtype=np.float32)


def action_space(task: Task) -> spaces.Space[Any]:
    """Return the space of arms, or the box [0, 1]^d."""
    if task.continuous:
        return spaces.Box(0.0, 1.0, (task.domain.shape[1],), np.float32)
    return spaces.Discrete(len(task.domain))


def checked_actions(space: spaces.Space[Any], action: Action) -> Actions:
    """Return an action, or a batch of them, as the array that the dynamics take.

    Points are rounded to single precision, the precision of their space.

    Args:
        space: The action space, single or batched: `Box`, `Discrete` or `MultiDiscrete`.
        action: What was asked for.

    Raises:
        ValueError: If it is not in the space.
    """
    if isinstance(space, spaces.Discrete) and type(action) in (int, np.int64):
        inside = 0 <= action < space.n  # at a tenth of the cost of what follows
        if inside:
            return np.array(action)
    array = np.array(None)
    with contextlib.suppress(TypeError, ValueError, RuntimeError):  # as rows of unequal length
        array = array if misread(action) else np.asarray(action)
    number = array.dtype.kind in "iuf"  # a bool would pass for 0 or 1, a text for what it reads as
    if number and isinstance(space, spaces.Box):
        with np.errstate(over="ignore"):  # to infinity, which is outside
            array = array.astype(np.float32)
    if not number or not is_in(space, array):
        raise ValueError(f"The action must be in {shown(space)}. Got {shown(action)} instead.")
    return array if isinstance(space, spaces.Box) else array.astype(np.int64, copy=False)


def is_in(space: spaces.Space[Any], array: Actions) -> bool:
    """Return whether a number or an array is in the space."""
    if not isinstance(space, spaces.MultiDiscrete):
        return space.contains(array)
    # `MultiDiscrete.contains` takes six times as long, a third of a whole batched step.
    if array.shape != space.shape or array.dtype.kind not in "iu":
        return False
    # Read without a sign, what is negative is the largest.
    return bool(array.astype(np.int64, copy=False).view(np.uint64).max() < space.nvec[0])


def with_horizon(task: str | Task, parameters: dict[str, Json], owner: str) -> dict[str, Json]:
    """Return a task's parameters with `max_episode_steps`, Gymnasium's word, as the horizon T.

    Raises:
        ValueError: As `make_task` does, or if `max_episode_steps` and another horizon are given.
    """
    others = {name: value for name, value in parameters.items() if name != "max_episode_steps"}
    steps = parameters.get("max_episode_steps")
    if steps is None:
        return others
    settled = isinstance(task, Task) or "horizon" in others
    horizon = make_task(task, **others).horizon  # a task of your own may take none
    if settled and steps != horizon:
        reject("max_episode_steps", owner, f"the horizon, {horizon}, if both", steps)
    return others if steps == horizon else others | {"horizon": steps}


def plain(value: Any) -> Any:
    """Return a keyword's value as JSON can write it: numpy's numbers and arrays as Python's."""
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Enum):
        return value.value
    return os.fspath(value) if isinstance(value, os.PathLike) else value


class TaskPlayer:
    """A base of the environments of a task.

    Its specification can be written as JSON, whatever made it: Gymnasium puts the keywords in
    there as they were given, and `spec.to_json()` would fail. Its `max_episode_steps` is T.
    """

    task: Task
    dynamics: Dynamics
    _spec: EnvSpec | None = None

    def _begin(
        self, task: str | Task, parameters: dict[str, Json], batch: int, render_mode: str | None
    ) -> None:
        """Make the task, and what plays it.

        Raises:
            ValueError: If a parameter is out of its range, or B episodes are too large to hold.
        """
        self._made_of = task, {name: kept(value) for name, value in parameters.items()}
        made = None if isinstance(task, Task) else load_task(task)
        self._settable = settable(getattr(made, "drawable", {}))  # by the options of a reset
        self.task = make_task(task, **parameters)
        self._size = batch, render_mode is not None
        self.dynamics = self._usual = self._player(self.task)

    def _player(self, task: Task) -> Dynamics:
        """Return what plays a task, of episodes that can be held together."""
        batch, record = self._size
        check_batch(batch, task)
        return Dynamics(task, batch, record=record)

    def _taken(self, options: Info) -> Dynamics:
        """Return what plays the next episodes with these parameters, or as the task was made.

        Raises:
            ValueError: If a parameter is out of its range.
        """
        named, parameters = self._made_of
        changed = parameters | options
        if RATE not in options and not is_random(changed.get(TIMES)):
            changed.pop(RATE, None)  # of change points that were drawn
        return self._player(make_task(named, **changed)) if options else self._usual

    @property
    def spec(self) -> EnvSpec | None:
        """What `gymnasium.make` made the environment from."""
        return self._spec

    @spec.setter
    def spec(self, spec: EnvSpec | None) -> None:
        if spec is not None:
            spec.kwargs = plain(spec.kwargs)
            spec.max_episode_steps = self.task.horizon
        self._spec = spec

    def drawn_norm_bound(self) -> Array:
        """Return B of every episode, `(B,)`, for the scorer, whatever learners are told."""
        return self.dynamics.bounds[0]

    def drawn_variation_budget(self) -> Array:
        """Return B_T of every episode likewise."""
        return self.dynamics.bounds[1]

    def fork(self) -> Dynamics:
        """Return what is left of the episodes, the same functions and noise, as a batch.

        Playing it moves nothing here. For reference agents that read the truth.

        Raises:
            ResetNeeded: If there was no reset yet.
        """
        return self.dynamics.fork()


def check_batch(count: int, task: Task) -> None:
    """Check that B episodes can be held together, and learners be told of them.

    Raises:
        ValueError: If they are too large, or each of several would be told a kernel of its own.
    """
    if count * task.kept_numbers > MAX_BATCH_NUMBERS:
        rule = f"at most {MAX_BATCH_NUMBERS // task.kept_numbers:,} for episodes of this size"
        reject("num_envs", VECTOR, rule, count)
    if count > 1 and isinstance(task, RandomTask) and not task.tells_one_kernel:
        rule = '"law" where kernels are drawn for several episodes: their learners share one'
        reject("told", VECTOR, rule, task.told)


def check_options(options: object, owner: str, known: Sequence[str]) -> Info:
    """Return the options of a reset, none for None; raise ValueError if one is unknown."""
    if options is None:
        return {}
    if not isinstance(options, dict):
        reject("options", owner, "None or a dict", options)
    check_names(options, f"The 'options' of {owner}", known)
    return options
