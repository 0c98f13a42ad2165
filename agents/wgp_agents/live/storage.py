"""Where a bandit's log is kept: a `Store` for each bandit, used in sessions.

    >>> from wgp_agents.live.events import Event
    >>> store = open_store(None, "espresso")  # memory; "sqlite:///shop.db" or "shop.db" keep it
    >>> with store.session() as session:
    ...     if session.settings() is None:  # a new bandit
    ...         session.create({"agent": "adaptive-wgp-ucb"})
    ...     asked = session.append(Event("asked", "d1", {"arm": 12.99}, key="order-17"))
    >>> asked.seq
    1

**Sessions.** A session has the bandit for itself among all threads and processes. What happened in
it is kept once its `with` block has ended, whatever kills the process then, and none of it if the
block raises. So each `ask` or `tell` is one session: read the events since the last that this
process knows (`session.events(after=known)`), learn them, append, leave. Keep it short: in SQLite
all bandits of one file wait for each other, in PostgreSQL those of one name. A session belongs to
the thread that opened it; to open a second one inside it, or a store of the same SQLite file, is an
error. A session that only reads writes nothing.

**Processes.** A store may be used on both sides of `os.fork`. Do not fork within a session.

**Fleets.** `session.extend(events)` appends many at once.

**Snapshots** save time, no more: `session.snapshot()` returns None rather than one that is damaged,
and the log has everything. A store does not know which versions its user can read: it passes over
others where `version` and `fingerprint` are given.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from wgp_agents.live.events import Event, check_text
from wgp_agents.live.memory import MemoryStore
from wgp_agents.live.records import Snapshot, Summary
from wgp_gym.types import Json

__all__ = ["TIMEOUT", "Session", "Snapshot", "Store", "Summary", "open_store"]

TIMEOUT = 30.0  # seconds that a session waits for others


class Session(Protocol):
    """One use of a bandit's log, alone among all threads and processes."""

    @property
    def last(self) -> int:
        """The number of the last event; 0 if there is none."""

    def settings(self) -> Mapping[str, Json] | None:
        """Return what the bandit was made with; None if it is new."""

    def create(self, settings: Mapping[str, Json]) -> None:
        """Make a new bandit.

        Raises:
            ValueError: If there is one already, or the settings are not plain JSON.
        """

    def events(self, after: int = 0, upto: int | None = None) -> list[Event]:
        """Return the events with after < seq <= upto, in order; None: to the last."""

    def append(self, event: Event) -> Event:
        """Append one event and return it with its `seq` and `at`.

        Raises:
            ValueError: If it is malformed, its key is in the log, or no bandit was made.
        """

    def extend(self, events: Iterable[Event]) -> list[Event]:
        """Append many events, all or none, as `append` does one."""

    def of_decision(self, decision: str) -> list[Event]:
        """Return all events of one decision, in order; raise ValueError if it can be no id."""

    def by_key(self, key: str) -> Event | None:
        """Return the event that was asked with this key; raise ValueError if it can be none."""

    def summary(self) -> Summary:
        """Count the log's events; it takes time in proportion to their number."""

    def snapshot(
        self,
        upto: int | None = None,
        *,
        version: str | None = None,
        fingerprint: str | None = None,
    ) -> Snapshot | None:
        """Return the newest whole snapshot with seq <= upto and, where given, of this version."""

    def keep(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, in the place of one with its seq, and drop all but the newest few."""

    def drop_snapshots(self, since: int) -> None:
        """Drop those with seq >= since: events before it mean something else now."""


class Store(Protocol):
    """The log of one bandit, by its name."""

    def session(self) -> AbstractContextManager[Session]:
        """Open a session, kept at the end of its block, undone if that raises.

        Raises:
            TimeoutError: If others did not let go of the bandit in 30 seconds.
            RuntimeError: If this thread is in a session already, or the store is closed.
        """

    def close(self) -> None:
        """Let go of the database. To close twice is fine."""


def open_store(
    storage: str | os.PathLike[str] | None,
    name: str,
    *,
    owner: str = "LiveBandit",
    timeout: float = TIMEOUT,
    new: bool = True,
) -> Store:
    """Return the store of the bandit of this name; it need not exist.

    Args:
        storage: None: memory, nothing is kept. A file or "sqlite:///shop.db" (made where there is
            none), or "postgresql+psycopg://user@host/database".
        name: The bandit's name, any text of 1 to 500 characters.
        owner: Who asks, for messages.
        timeout: Seconds that a session waits for others.
        new: Whether a file is made where there is none.

    Raises:
        ValueError: If there is no such database, or it is of another format.
        ConnectionError: If the server cannot be reached.
        TimeoutError: If others hold the database all the time.
        ModuleNotFoundError: If an extra is missing: "live" brings SQLite, "postgres" PostgreSQL.
    """
    check_text("name", name, owner)
    if storage is None:
        return MemoryStore(timeout)
    try:
        from wgp_agents.live.database import open_database
    except ModuleNotFoundError as error:
        if error.name != "sqlalchemy":
            raise
        message = f"The 'storage' parameter of {owner} needs SQLAlchemy: {error}."
        raise ModuleNotFoundError(f"{message} Run: pip install 'wgp-gym[live]'.") from error
    return open_database(storage, name, owner, timeout, new)
