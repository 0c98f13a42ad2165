"""Ask and tell on a running system: a front door to the agents, with a log that is kept.

Nothing here is an algorithm. What a bandit was asked and told is a log of events (`events`), which
a store keeps (`storage`): in memory, in a SQLite file or in PostgreSQL. SQLAlchemy is imported with
the first database. The classes are imported when first asked for.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wgp_agents.live.events import Event
    from wgp_agents.live.records import Snapshot, Summary
    from wgp_agents.live.storage import open_store

HOMES = {"Event": "events", "Snapshot": "records", "Summary": "records", "open_store": "storage"}
"""The module of each public name."""

__all__ = ["Event", "Snapshot", "Summary", "open_store"]


def __getattr__(name: str) -> object:
    """Import what is public by its name."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{HOMES[name]}"), name)
