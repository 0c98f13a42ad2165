"""Stand-in."""

from __future__ import annotations

import os

from wgp_agents.live.memory import MemoryStore


def open_database(
    storage: str | os.PathLike[str], name: str, owner: str, timeout: float
) -> MemoryStore:
    """Stand-in: to come."""
    raise NotImplementedError
