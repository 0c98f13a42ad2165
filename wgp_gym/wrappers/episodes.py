"""The episodes of given seeds, one after the other, whoever calls `reset`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium

from wgp_gym.types import Info
from wgp_gym.validation import reject, seed_list

__all__ = ["SeededEpisodes"]

RULE = "a list or a range of at least one int of at least 0"


class SeededEpisodes(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Plays the episodes of given seeds, one at each `reset` that names none, then again.

    For harnesses that call `reset` themselves and name no seed, as stable-baselines3's
    `evaluate_policy` does: what it plays is then exactly what was asked for. A `reset` that names
    a seed plays that one, and does not move in the list.

    Args:
        env: The environment.
        seeds: The seeds, ints of at least 0. A range may be of any length.

    Attributes:
        seeds: The seeds, a tuple, or the range.
        played: How many of them, counted on through repetitions, were begun.

    Raises:
        ValueError: If there is no seed, or one is no int of at least 0.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], seeds: Sequence[int]) -> None:
        checked = checked_seeds(seeds)
        gymnasium.utils.RecordConstructorArgs.__init__(self, seeds=checked)
        gymnasium.Wrapper.__init__(self, env)
        self.seeds, self.played = checked, 0

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Begin the episode of the next seed, or of `seed`."""
        if seed is None:
            seed = self.seeds[self.played % len(self.seeds)]
            self.played += 1
        return self.env.reset(seed=seed, options=options)


def checked_seeds(seeds: Sequence[int]) -> range | tuple[int, ...]:
    """Return the seeds, checked; a range as it is, since it may be too long for a tuple."""
    if not isinstance(seeds, Iterable) or (isinstance(seeds, range) and not seeds):
        reject("seeds", "SeededEpisodes", RULE, seeds)
    if isinstance(seeds, range):
        seed_list([seeds[0], seeds[-1]], 2)  # the least is one of its ends
        return seeds
    listed = list(seeds)
    if not listed:
        reject("seeds", "SeededEpisodes", RULE, seeds)
    return tuple(seed for seed in seed_list(listed, len(listed)) if seed is not None)
