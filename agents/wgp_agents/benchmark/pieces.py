"""Units in pieces, so that at the end of a run no process waits long for another's last unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from wgp_agents.benchmark.experiment import Unit
from wgp_agents.benchmark.parallel import Workers
from wgp_agents.benchmark.play import Outcome
from wgp_gym.registration import ENVIRONMENTS

__all__ = ["Pieces"]

SMALLEST = 10  # runs of a piece: each takes the time anew that a step takes however many there are
OURS = {entry.id for entry in ENVIRONMENTS}

Place = tuple[str, str, int]
"""A task's name, an agent's label, and the number of the first run."""


class Pieces:
    """Units to play, of which the last two for each process are cut into one piece for each.

    Args:
        work: The units.
        workers: Where they are played; where not on several processes of this machine, all stay
            whole.

    Attributes:
        work: What is played, in the order of the units.
    """

    def __init__(self, work: Sequence[Unit], workers: Workers) -> None:
        whole = len(work) - 2 * workers.jobs * workers.beside
        self.work: list[Unit] = []
        self._unit_of: dict[Place, Unit] = {}
        self._done: dict[Place, list[Outcome]] = {}
        for number, unit in enumerate(work):
            for piece in cut(unit, workers.jobs if number >= whole else 1):
                self.work.append(piece)
                self._unit_of[place(piece)] = unit

    def joined(self, outcome: Outcome) -> Outcome | None:
        """Return what has become of a unit, with its last piece; None with another."""
        unit = self._unit_of.pop(place(outcome.unit))
        parts = self._done.setdefault(place(unit), [])
        parts.append(outcome)
        if sum(len(part.unit.runs) for part in parts) < len(unit.runs):
            return None
        return join(unit, self._done.pop(place(unit)))


def place(unit: Unit) -> Place:
    """Return what tells a unit from others of its experiment."""
    return unit.task.name, unit.agent.label, unit.runs.start


def cut(unit: Unit, most: int) -> Iterator[Unit]:
    """Yield a unit in at most so many pieces; whole, if that might change its numbers.

    Run i of what this package has is the same whatever is played with it. Of others' environments
    and agents, and of trained networks, nobody knows.
    """
    entry = unit.agent.entry
    ours = unit.task.id in OURS and entry.entry_point.startswith("wgp_agents.")
    ours = ours and not (entry.extra or entry.objects)
    count = max(min(most, len(unit.runs) // SMALLEST), 1) if ours else 1
    ends = np.linspace(0, len(unit.runs), count + 1).astype(int).tolist()
    for start, stop in pairwise(ends):
        yield replace(unit, runs=unit.runs[start:stop])


def join(unit: Unit, parts: list[Outcome]) -> Outcome:
    """Return what has become of a unit, as if it had been played at once by one process."""
    parts = sorted(parts, key=lambda part: part.unit.runs.start)
    played, arrays = [part.arrays for part in parts if part.arrays is not None], None
    if len(played) == len(parts):
        arrays = {name: np.concatenate([one[name] for one in played]) for name in played[0]}
    return Outcome(
        unit,
        arrays,
        seconds=sum(part.seconds for part in parts),
        peak_memory=max(part.peak_memory for part in parts),
        worker=parts[0].worker,
        error=next((part.error for part in parts if part.error), ""),
        warnings=list(dict.fromkeys(text for part in parts for text in part.warnings)),
    )
