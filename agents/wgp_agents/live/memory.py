"""A store in memory: as a database behaves, but nothing is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from wgp_agents.live.events import (
    Event,
    arm_text,
    as_text,
    check_text,
    from_text,
    known_key,
    numbered,
)
from wgp_agents.live.records import KEPT, ArmCount, Snapshot, Summary
from wgp_agents.live.turns import Turns
from wgp_gym.types import Json

__all__ = ["MemorySession", "MemoryStore"]


@dataclass
class Log:
    """What a store in memory holds; `decisions` and `keys` point into `events`."""

    settings: str | None = None
    events: list[Event] = field(default_factory=list)
    decisions: dict[str, list[int]] = field(default_factory=dict)
    keys: dict[str, int] = field(default_factory=dict)
    snapshots: dict[int, Snapshot] = field(default_factory=dict)


class MemoryStore:
    """The log of one bandit, in this process alone.

    Args:
        timeout: Seconds that a session waits for other threads.
    """

    def __init__(self, timeout: float) -> None:
        self._log, self._timeout, self._open = Log(), timeout, True
        self._turns = Turns("bandit")

    @contextmanager
    def session(self) -> Iterator[MemorySession]:
        """Open a session: see `storage.Store`."""
        with self._turns.turn(self._timeout):
            if not self._open:
                raise RuntimeError("The bandit's store is closed.")
            session = MemorySession(self._log)
            try:
                yield session
            except BaseException:
                session.undo()
                raise

    def close(self) -> None:
        """Take no more sessions."""
        self._open = False


class MemorySession:
    """One use of a log in memory: see `storage.Session`."""

    def __init__(self, log: Log) -> None:
        self._log, self._start = log, len(log.events)
        self._settings, self._snapshots = log.settings, dict(log.snapshots)

    def undo(self) -> None:
        """Leave the log as the session found it."""
        log = self._log
        log.settings, log.snapshots = self._settings, self._snapshots
        while len(log.events) > self._start:
            event = log.events.pop()
            if event.decision is not None:
                log.decisions[event.decision].pop()
            if event.key is not None:
                del log.keys[event.key]

    @property
    def last(self) -> int:
        """The number of the last event; 0 if there is none."""
        return len(self._log.events)

    def settings(self) -> Mapping[str, Json] | None:
        """Return what the bandit was made with; None if it is new."""
        text = self._log.settings
        return None if text is None else from_text(text)

    def create(self, settings: Mapping[str, Json]) -> None:
        """Make a new bandit."""
        if self._log.settings is not None:
            raise ValueError("There is a bandit of this name already.")
        self._log.settings = as_text(settings, "settings", "create")

    def events(self, after: int = 0, upto: int | None = None) -> list[Event]:
        """Return the events with after < seq <= upto, in order."""
        return self._log.events[max(after, 0) : None if upto is None else max(upto, 0)]

    def append(self, event: Event) -> Event:
        """Append one event and return it with its `seq` and `at`."""
        return self.extend([event])[0]

    def extend(self, events: Iterable[Event]) -> list[Event]:
        """Append many events, all or none."""
        if self._log.settings is None:
            raise ValueError("No bandit of this name was made: call `create` first.")
        log, found = self._log, numbered(events, self.last)
        for event, _ in found:
            if event.key in log.keys:
                known_key(event.key)
        for event, _ in found:
            log.events.append(event)
            if event.decision is not None:
                log.decisions.setdefault(event.decision, []).append(event.seq)
            if event.key is not None:
                log.keys[event.key] = event.seq
        return [event for event, _ in found]

    def of_decision(self, decision: str) -> list[Event]:
        """Return all events of one decision, in order."""
        seqs = self._log.decisions.get(check_text("decision", decision, "Event"), [])
        return [self._log.events[seq - 1] for seq in seqs]

    def by_key(self, key: str) -> Event | None:
        """Return the event that was asked with this key."""
        seq = self._log.keys.get(check_text("key", key, "Event"))
        return None if seq is None else self._log.events[seq - 1]

    def summary(self) -> Summary:
        """Count the log's events."""
        found: dict[tuple[str, str], ArmCount] = {}
        for event in self._log.events:
            text = arm_text(event)
            if text is None:
                continue
            place = (text, event.kind)
            old = found.get(place)
            before, count, at = (None, 0, 0.0) if old is None else (old.time, old.count, old.at)
            times = [one for one in (event.time, before) if one is not None]
            latest, at = max(times, default=None), max(at, event.at)
            arm = event.data["arm"]
            found[place] = ArmCount(arm, event.kind, count + 1, event.seq, latest, at)
        kinds = Counter[str](event.kind for event in self._log.events)
        return Summary(dict(kinds), tuple(sorted(found.values(), key=lambda one: one.seq)))

    def snapshot(
        self,
        upto: int | None = None,
        *,
        version: str | None = None,
        fingerprint: str | None = None,
    ) -> Snapshot | None:
        """Return the newest snapshot with seq <= upto and, where given, of this version."""
        for seq in sorted(self._log.snapshots, reverse=True):
            found = self._log.snapshots[seq]
            right = version in (None, found.version) and fingerprint in (None, found.fingerprint)
            if right and (upto is None or seq <= upto):
                return found
        return None

    def keep(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, and drop all but the newest few."""
        kept = self._log.snapshots | {snapshot.seq: snapshot}
        self._log.snapshots = {seq: kept[seq] for seq in sorted(kept)[-KEPT:]}

    def drop_snapshots(self, since: int) -> None:
        """Drop those with seq >= since."""
        kept = self._log.snapshots
        self._log.snapshots = {seq: kept[seq] for seq in kept if seq < since}
