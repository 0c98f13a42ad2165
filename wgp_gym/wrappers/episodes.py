"""The episodes of given seeds, one after the other, whoever calls `reset`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium

from wgp_gym.types import Info
from wgp_gym.validation import reject, seed_list

__all__ = ["SeededEpisodes"]


class SeededEpisodes(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Plays the episodes of given seeds, one at each `reset` that names none, then again.

    For harnesses that call `reset` themselves and name no seed, as stable-baselines3's
    `evaluate_policy` does: what it plays is then exactly what was asked for. A `reset` that names
    a seed plays that one, and does not move in the list.

    Args:
        env: The environment.
        seeds: The seeds, ints of at least 0.

    Attributes:
        seeds: The seeds.
        played: How many of them, counted on through repetitions, were begun.

    Raises:
        ValueError: If there is no seed, or one is no int of at least 0.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], seeds: Sequence[int]) -> None:
        listed = list(seeds)
        if not listed:
            reject("seeds", "SeededEpisodes", "at least one int of at least 0", seeds)
        checked = [seed for seed in seed_list(listed, len(listed)) if seed is not None]
        gymnasium.utils.RecordConstructorArgs.__init__(self, seeds=checked)
        gymnasium.Wrapper.__init__(self, env)
        self.seeds, self.played = tuple(checked), 0

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Any, Info]:
        """Begin the episode of the next seed, or of `seed`."""
        if seed is None:
            seed = self.seeds[self.played % len(self.seeds)]
            self.played += 1
        return self.env.reset(seed=seed, options=options)
