"""What a store keeps beside the events, and what it counts: snapshots and summaries."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from wgp_gym.types import Json

__all__ = ["KEPT", "ArmCount", "Snapshot", "Summary"]

KEPT = 4  # snapshots of one bandit: some, as an amended reward may drop the newest


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A learner's state after so many events of its log.

    Attributes:
        seq: The number of the last event that it knows.
        data: The state, opaque to the store.
        version: Of whoever wrote the state: another version's is not read.
        fingerprint: Of what the state was made with, likewise.
    """

    seq: int
    data: bytes
    version: str
    fingerprint: str

    def digest(self) -> str:
        """Return the SHA-256 of all that it holds, in hexadecimal."""
        head = f"{self.seq}\n{len(self.version)}\n{self.version}\n{self.fingerprint}\n"
        found = hashlib.sha256(head.encode())
        found.update(self.data)
        return found.hexdigest()


@dataclass(frozen=True, slots=True)
class ArmCount:
    """How often, and when last, an arm stands in the log in events of one kind.

    Attributes:
        arm: What `data["arm"]` was.
        kind: The events' kind.
        count: How many there are, those retracted later included.
        seq: The number of the last of them.
        time: The latest of the user's times; None: none was given.
        at: The latest of the times at which they were written, in seconds since the epoch.
    """

    arm: Json
    kind: str
    count: int
    seq: int
    time: float | None
    at: float


@dataclass(frozen=True, slots=True)
class Summary:
    """What a log holds.

    Attributes:
        kinds: The number of events of each kind that there is.
        arms: The counts of each arm and kind, in the order in which they were last written; without
            arms whose JSON is longer than 500 characters.
    """

    kinds: Mapping[str, int]
    arms: tuple[ArmCount, ...]
