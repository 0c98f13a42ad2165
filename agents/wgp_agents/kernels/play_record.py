"""The plays that an agent without a bank keeps, from which a small one learns when asked for bands.

See `wgp_agents.gp.bands.PlayRecord`.
"""

from __future__ import annotations

from typing import NamedTuple

from wgp_agents.kernels.jit import compiled, subroutine
from wgp_gym.types import Array, Indices, Mask

__all__ = ["PLAYS", "PlayArrays", "put_away"]

PLAYS = 128  # W: a power of 2, so that a remainder is cheap


class PlayArrays(NamedTuple):
    """The plays that are kept of B learners: W last ones, and W older ones.

    W is `PLAYS`. The play at time t, counted by the learner's own plays, is at t mod W. The one
    that it replaces goes to W + (its arm mod W).

    Attributes:
        arm: What was played, `(B, 2 W)`; where arms are drawn anew, the time in its place.
        place: Where arms are drawn anew, the points played, `(B, 2 W, d)`; else d = 0.
        reward: The rewards, `(B, 2 W)`.
        time: When, `(B, 2 W)`; -1: no play yet.
        clock: How many steps of the world had gone by then, `(B, 2 W)`.
        seen: Plays so far, `(B,)`.
    """

    arm: Indices
    place: Array
    reward: Array
    time: Indices
    clock: Array
    seen: Indices


@subroutine
def move_play(i: int, source: int, target: int, kept: PlayArrays) -> None:
    """Write a play over another one."""
    kept.arm[i, target] = kept.arm[i, source]
    kept.reward[i, target] = kept.reward[i, source]
    kept.time[i, target] = kept.time[i, source]
    kept.clock[i, target] = kept.clock[i, source]
    for j in range(kept.place.shape[2]):
        kept.place[i, target, j] = kept.place[i, source, j]


@compiled
def put_away(
    count: int,
    arms: Indices,
    places: Array,
    rewards: Array,
    active: Mask,
    steps: Array,
    time_comes_first: bool,
    clock: Array,
    kept: PlayArrays,
) -> None:
    """Take in plays of each learner, in their order, and let time go by.

    Args:
        count: How many rows of the following count, K.
        arms: What was played, `(>= K, B)`; not read where arms are drawn anew.
        places: The points then, `(>= K, B, d)`, d as in `PlayArrays.place`.
        rewards: `(>= K, B)`.
        active: Which plays count, `(>= K, B)`.
        steps: How many steps of the world go by with each, `(>= K, B)`.
        time_comes_first: Whether they go by before the play.
        clock: The steps that have gone by, `(B,)`.
        kept: Where the plays go.
    """
    dim = kept.place.shape[2]
    for i in range(rewards.shape[1]):
        for k in range(count):
            if not active[k, i]:
                continue
            before = clock[i]
            clock[i] += steps[k, i]
            t = kept.seen[i]
            j = t & (PLAYS - 1)
            if t >= PLAYS:
                move_play(i, j, PLAYS + (kept.arm[i, j] & (PLAYS - 1)), kept)
            kept.arm[i, j] = arms[k, i] if dim == 0 else t
            kept.reward[i, j], kept.time[i, j] = rewards[k, i], t
            kept.clock[i, j] = clock[i] if time_comes_first else before
            for c in range(dim):
                kept.place[i, j, c] = places[k, i, c]
            kept.seen[i] += 1
