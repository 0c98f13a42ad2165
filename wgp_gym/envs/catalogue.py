"""The tasks by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from wgp_gym.envs.arms import ArmsTask
from wgp_gym.envs.linear import LinearTask
from wgp_gym.envs.synthetic import SyntheticTask
from wgp_gym.envs.table import stock_task, table_task
from wgp_gym.envs.task import Task
from wgp_gym.validation import check_choice, shown

__all__ = ["TASKS", "make_task"]

TASKS: dict[str, Callable[..., Task]] = {
    "abrupt": partial(SyntheticTask, "jumps"),
    "slow": partial(SyntheticTask, "straight_lines"),
    "stationary": partial(SyntheticTask, "constant"),
    "stock": stock_task,
    "table": table_task,
    "linear_abrupt": partial(LinearTask, "jumps"),
    "linear_slow": partial(LinearTask, "rotation"),
    "arms_abrupt": partial(ArmsTask, "jumps"),
    "arms_drift": partial(ArmsTask, "waves"),
}


def make_task(task: str | Task, **parameters: Any) -> Task:
    """Return the task that is named, with its parameters; a `Task` is returned as it is.

    Raises:
        ValueError: If there is no such task, a parameter is out of its range, or a made task is
            given parameters.
    """
    if isinstance(task, Task):
        if parameters:
            given = shown(parameters)
            raise ValueError(f"A task that is made already takes no parameters: {given}.")
        return task
    return TASKS[check_choice("task", task, "the environment", TASKS)](**parameters)
