"""Regrets as shares of random play's, so that tasks of different scales can be taken together."""

from __future__ import annotations

import numpy as np

from wgp_agents.benchmark.results import Results
from wgp_agents.benchmark.statistics import share_of
from wgp_gym.types import Array

__all__ = ["competitors", "relative_regrets", "scored", "yardstick"]


def competitors(results: Results) -> list[str]:
    """Return the labels of the agents that do not read the truth."""
    return [agent.label for agent in results.experiment.agents if not agent.reference]


def yardstick(results: Results, task: str) -> Array:
    """Return the regrets that count as 1: random play's, or without it every competitor's.

    Returns:
        `(runs,)`, or `(agents * runs,)`.
    """
    chance = results.random()
    labels = competitors(results) if chance is None else [chance]
    return np.concatenate([results.final_regret(task, label) for label in labels])


def scored(results: Results) -> list[str]:
    """Return the tasks in which there is a regret to divide by."""
    if not competitors(results):
        return []
    return [task for task in results.tasks if yardstick(results, task).mean() > 0]


def relative_regrets(results: Results) -> dict[str, list[Array]]:
    """Return each agent's final regrets, 0 for the oracle and 1 for the mean of the yardstick.

    Returns:
        `(runs,)` for each of the tasks that are scored.
    """
    units = {task: yardstick(results, task) for task in scored(results)}
    return {
        label: [share_of(results.final_regret(task, label), unit) for task, unit in units.items()]
        for label in results.agents
    }
