"""What a picture or a text of a moment shows: f_t, its optimum, the plays so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wgp_gym.types import Array

if TYPE_CHECKING:
    from wgp_gym.envs.dynamics import Dynamics

__all__ = ["View", "arm_positions", "has_plays", "in_order", "plays", "positions", "title", "view"]


@dataclass(frozen=True)
class View:
    """What a picture shows, of one episode.

    Attributes:
        t: Steps played.
        horizon: T.
        domain: The arms' places, `(n, d)`.
        names: The arms' names, or None where they have coordinates.
        rewards: The function that the next action meets, on the domain, `(n,)`.
        best: Where it is largest, `(d,)`.
        best_reward: How large it is there.
        drawn_anew: Whether the arms are others at each step.
        continuous: Whether any point may be played; the domain then is a grid.
        played: The places played so far, `(t, d)`.
        paid: Their rewards, `(t,)`.
        cumulative_regret: The regret up to now.
    """

    t: int
    horizon: int
    domain: Array
    names: list[str] | None
    rewards: Array
    best: Array
    best_reward: float
    drawn_anew: bool
    continuous: bool
    played: Array
    paid: Array
    cumulative_regret: float


def view(dynamics: Dynamics, i: int) -> View:
    """Return the view of episode i of a batch that records its history."""
    task, history = dynamics.task, dynamics.history or []
    best, arms = dynamics.optimal_actions()[i], dynamics.arms()[i].astype(float)
    played = np.array([places[i] for places, _ in history], float)
    return View(
        t=dynamics.t,
        horizon=task.horizon,
        domain=arms,
        names=task.arm_names,
        rewards=dynamics.expected_rewards()[i],
        best=best if task.continuous else arms[best],
        best_reward=dynamics.optimal_reward(i),
        drawn_anew=task.contextual,
        continuous=task.continuous,
        played=played.reshape(-1, arms.shape[1]),
        paid=np.array([paid[i] for _, paid in history]),
        cumulative_regret=float(dynamics.info()["cumulative_regret"][i]),
    )


def title(seen: View) -> str:
    """Return the line above a picture."""
    last = f", last reward {seen.paid[-1]:.2f}" if len(seen.paid) else ""
    if last and seen.names:
        last += f" from {seen.names[int(np.rint(seen.played[-1, 0] * (len(seen.names) - 1)))]}"
    return f"step {seen.t} of {seen.horizon}{last}, regret so far {seen.cumulative_regret:.1f}"


def has_plays(seen: View) -> bool:
    """Return whether past plays have a place on one axis: not on one that counts today's arms."""
    return not seen.drawn_anew or seen.domain.shape[1] == 1


def plays(seen: View) -> tuple[Array, Array]:
    """Return where the plays that have a place on one axis stand, and what they were paid."""
    if has_plays(seen):
        return positions(seen, seen.played), seen.paid
    return np.zeros(0), np.zeros(0)


def positions(seen: View, points: Array) -> Array:
    """Return where `points` `(p, d)` stand on one axis: their coordinate, or the nearest arm."""
    if seen.domain.shape[1] == 1:
        return points[:, 0]
    distances = np.sum((points[:, None] - seen.domain) ** 2, axis=2)
    nearest: Array = distances.argmin(axis=1).astype(float)
    return nearest


def arm_positions(seen: View) -> Array:
    """Return where the arms themselves stand on that axis, `(n,)`."""
    if seen.domain.shape[1] == 1:
        return seen.domain[:, 0]
    return np.arange(len(seen.domain), dtype=float)


def in_order(seen: View) -> bool:
    """Return whether a line from arm to arm says something: there is one coordinate."""
    return seen.names is None and seen.domain.shape[1] == 1
