"""The one table of environment ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import gymnasium

__all__ = ["ENVIRONMENTS", "EnvironmentEntry", "register"]


@dataclass(frozen=True)
class EnvironmentEntry:
    """One environment id.

    Attributes:
        id: The id that `gymnasium.make` takes.
        summary: One line that says what it is.
        kwargs: The arguments that make it so: the task's name, and its parameters.
    """

    id: str
    summary: str
    kwargs: dict[str, Any] = field(default_factory=dict)


ENVIRONMENTS = (
    EnvironmentEntry(
        "WGPBandit-Abrupt-v0",
        "RKHS functions that jump at 0.2 T and 0.4 T",
        {"task": "abrupt"},
    ),
    EnvironmentEntry(
        "WGPBandit-Slow-v0",
        "RKHS functions that move along two straight lines",
        {"task": "slow"},
    ),
    EnvironmentEntry(
        "WGPBandit-Stationary-v0",
        "one RKHS function that never changes",
        {"task": "stationary"},
    ),
    EnvironmentEntry(
        "WGPBandit-Stock-v0",
        "which of 29 stocks to hold today, on real prices",
        {"task": "stock"},
    ),
    EnvironmentEntry(
        "WGPBandit-Table-v0",
        "any CSV table of times x arms",
        {"task": "table"},
    ),
    EnvironmentEntry(
        "WGPBandit-Parking-v0",
        "which of 16 car parks has the largest free share now",
        {"task": "table", "table": "parking", "reward": "complement"},
    ),
    EnvironmentEntry(
        "WGPBandit-LinearAbrupt-v0",
        "linear functions that jump at T/6, T/3 and T/2",
        {"task": "linear_abrupt"},
    ),
    EnvironmentEntry(
        "WGPBandit-LinearSlow-v0",
        "linear functions that turn for T/2 steps, then rest",
        {"task": "linear_slow"},
    ),
    EnvironmentEntry(
        "WGPBandit-LinearContextual-v0",
        "linear functions that jump, new arms at each step",
        {"task": "linear_abrupt", "contextual": True},
    ),
    EnvironmentEntry(
        "WGPBandit-ArmsAbrupt-v0",
        "independent arms that pay 0 or 1, with jumping means",
        {"task": "arms_abrupt"},
    ),
    EnvironmentEntry(
        "WGPBandit-ArmsDrift-v0",
        "independent arms that pay 0 or 1, with means in waves",
        {"task": "arms_drift"},
    ),
)


def register() -> None:
    """Register every id with Gymnasium; a second call changes nothing."""
    for entry in ENVIRONMENTS:
        if entry.id not in gymnasium.registry:
            gymnasium.register(
                id=entry.id,
                entry_point="wgp_gym.envs:BanditEnv",
                vector_entry_point="wgp_gym.envs:BanditVectorEnv",
                kwargs=dict(entry.kwargs),
            )
