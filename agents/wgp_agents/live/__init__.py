"""Ask and tell on a running system: a front door to the agents, with a log that is kept.

`LiveBandit` is the door; docs/live.md is its page. Nothing here is an algorithm. What a bandit was
asked and told is a log of `events`, which a store keeps (`storage`): in memory, in a SQLite file or
in PostgreSQL. A `learner` takes its agent through the decisions of that log. The classes are
imported when first asked for, SQLAlchemy with the first database.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wgp_agents.live.arms import Arms
    from wgp_agents.live.bandit import LiveBandit
    from wgp_agents.live.choices import Offers
    from wgp_agents.live.decision import Decision
    from wgp_agents.live.events import Event
    from wgp_agents.live.fleet import LiveBandits
    from wgp_agents.live.knobs import Knobs
    from wgp_agents.live.records import Snapshot, Summary
    from wgp_agents.live.storage import open_store

HOMES = {
    "Arms": "arms",
    "Decision": "decision",
    "Event": "events",
    "Knobs": "knobs",
    "LiveBandit": "bandit",
    "LiveBandits": "fleet",
    "Offers": "choices",
    "Snapshot": "records",
    "Summary": "records",
    "open_store": "storage",
}
"""The module of each public name."""

__all__ = [
    "Arms",
    "Decision",
    "Event",
    "Knobs",
    "LiveBandit",
    "LiveBandits",
    "Offers",
    "Snapshot",
    "Summary",
    "open_store",
]


def __getattr__(name: str) -> object:
    """Import what is public by its name."""
    if name not in HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{HOMES[name]}"), name)
