"""A session of a store in a database: its statements, the same for SQLite and PostgreSQL."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping

import sqlalchemy as sql
from sqlalchemy import Connection, bindparam
from sqlalchemy.dialects.postgresql import insert as insert_or_leave  # SQLite writes the same

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
from wgp_agents.live.tables import FORMAT, bandits, events, snapshots
from wgp_gym.types import Json

__all__ = ["DatabaseSession"]

AT_ONCE = 500  # values in one statement

BANDIT = (
    sql.select(bandits.c.id, bandits.c.format, bandits.c.settings.is_not(None).label("made"))
    .where(bandits.c.name == bindparam("name"))
    .with_for_update()  # SQLite has no such lock and needs none
)
NEW_BANDIT = insert_or_leave(bandits).on_conflict_do_nothing()

MINE = events.c.bandit == bindparam("bandit")
FIELDS = ("kind", "decision", "data", "time", "key", "seq", "at")  # in the order of Event's
LOG = sql.select(*(events.c[name] for name in FIELDS)).where(MINE).order_by(events.c.seq)
SINCE = LOG.where(events.c.seq > bindparam("after"))
UPTO = SINCE.where(events.c.seq <= bindparam("upto"))
OF_DECISION = LOG.where(events.c.decision == bindparam("decision"))
BY_KEY = LOG.where(events.c.key == bindparam("key"))
KNOWN_KEYS = sql.select(events.c.key).where(
    MINE, events.c.key.in_(bindparam("keys", expanding=True))
)
NEW_EVENTS = sql.insert(events)
LAST = sql.select(sql.func.max(events.c.seq)).where(MINE)
COUNTS = (
    sql.select(
        events.c.arm,
        events.c.kind,
        sql.func.count().label("number"),
        sql.func.max(events.c.seq).label("seq"),
        sql.func.max(events.c.time).label("time"),
        sql.func.max(events.c.at).label("at"),
    )
    .where(MINE)
    .group_by(events.c.kind, events.c.arm)
    .order_by(sql.func.max(events.c.seq))
)

MY_SNAPSHOT = snapshots.c.bandit == bindparam("bandit")
SNAPSHOT_SEQS = sql.select(snapshots.c.seq).where(MY_SNAPSHOT).order_by(snapshots.c.seq.desc())
SNAPSHOT = sql.select(snapshots).where(MY_SNAPSHOT, snapshots.c.seq == bindparam("number"))
DROP_SNAPSHOTS = sql.delete(snapshots).where(MY_SNAPSHOT)
SAME_PLACE = DROP_SNAPSHOTS.where(snapshots.c.seq == bindparam("number"))
UP_TO = DROP_SNAPSHOTS.where(snapshots.c.seq <= bindparam("number"))
FROM = DROP_SNAPSHOTS.where(snapshots.c.seq >= bindparam("number"))


class DatabaseSession:
    """One use of a log in a database, within its transaction: see `storage.Session`.

    Attributes:
        made: Whether there is a bandit of this name; else all is undone at the end.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        self._connection, self._name = connection, name
        bandit, self.made = self._claim()
        self._me = {"bandit": bandit}
        # Only now: what is read after the lock was granted is what the one before left.
        self._last = int(connection.execute(LAST, self._me).scalar_one() or 0)

    def _claim(self) -> tuple[int, bool]:
        """Lock the bandit's row until the transaction ends; return its id and whether it was made.

        Of two that make one of the same name, the second waits for the first.
        """
        me = {"name": self._name}
        while (row := self._connection.execute(BANDIT, me).one_or_none()) is None:
            self._connection.execute(NEW_BANDIT, {**me, "format": FORMAT})
        if row.format != FORMAT:
            raise ValueError(
                f"The bandit {self._name!r} is kept in the format {row.format}; this version of "
                f"wgp-gym reads {FORMAT}. Use the version that wrote it."
            )
        return int(row.id), bool(row.made)

    @property
    def last(self) -> int:
        """The number of the last event; 0 if there is none."""
        return self._last

    def settings(self) -> Mapping[str, Json] | None:
        """Return what the bandit was made with; None if it is new."""
        mine = sql.select(bandits.c.settings).where(bandits.c.id == self._me["bandit"])
        text = self._connection.execute(mine).scalar_one()
        return None if text is None else from_text(text)

    def create(self, settings: Mapping[str, Json]) -> None:
        """Make a new bandit."""
        if self.made:
            raise ValueError(f"There is a bandit of the name {self._name!r} already.")
        text = as_text(settings, "settings", "create")
        mine = sql.update(bandits).where(bandits.c.id == self._me["bandit"])
        self._connection.execute(mine.values(settings=text))
        self.made = True

    def events(self, after: int = 0, upto: int | None = None) -> list[Event]:
        """Return the events with after < seq <= upto, in order."""
        if upto is None:
            return self._read(SINCE, after=after)
        return self._read(UPTO, after=after, upto=upto)

    def of_decision(self, decision: str) -> list[Event]:
        """Return all events of one decision, in order."""
        return self._read(OF_DECISION, decision=check_text("decision", decision, "Event"))

    def by_key(self, key: str) -> Event | None:
        """Return the event that was asked with this key."""
        found = self._read(BY_KEY, key=check_text("key", key, "Event"))
        return found[0] if found else None

    def _read(self, statement: sql.Executable, **where: int | str) -> list[Event]:
        """Return the events that a statement finds."""
        rows = self._connection.execute(statement, self._me | where)
        try:
            return [
                Event(kind, decision, from_text(data), time, key, seq, at)
                for kind, decision, data, time, key, seq, at in rows
            ]
        except json.JSONDecodeError as error:
            raise ValueError(f"The log of the bandit {self._name!r} is damaged: {error}") from error

    def append(self, event: Event) -> Event:
        """Append one event and return it with its `seq` and `at`."""
        return self.extend([event])[0]

    def extend(self, events: Iterable[Event]) -> list[Event]:
        """Append many events, all or none."""
        if not self.made:
            raise ValueError("No bandit of this name was made: call `create` first.")
        found = numbered(events, self._last)
        self._refuse_known([event.key for event, _ in found if event.key is not None])
        if found:
            self._connection.execute(NEW_EVENTS, [self._row(*one) for one in found])
            self._last = found[-1][0].seq
        return [event for event, _ in found]

    def _refuse_known(self, keys: list[str]) -> None:
        """Raise ValueError if a key is in the log."""
        for start in range(0, len(keys), AT_ONCE):
            some = {"keys": keys[start : start + AT_ONCE]}
            known = self._connection.execute(KNOWN_KEYS, self._me | some).scalars().first()
            if known is not None:
                known_key(known)

    def _row(self, event: Event, text: str) -> dict[str, object]:
        """Return an event as a row of its table."""
        row: dict[str, object] = {name: getattr(event, name) for name in FIELDS}
        return row | self._me | {"data": text, "arm": arm_text(event)}

    def summary(self) -> Summary:
        """Count the log's events."""
        kinds, arms = Counter[str](), []
        for arm, kind, number, seq, time, at in self._connection.execute(COUNTS, self._me):
            kinds[kind] += number
            if arm is not None:
                arms.append(ArmCount(json.loads(arm), kind, number, seq, time, at))
        return Summary(dict(kinds), tuple(arms))

    def snapshot(
        self,
        upto: int | None = None,
        *,
        version: str | None = None,
        fingerprint: str | None = None,
    ) -> Snapshot | None:
        """Return the newest whole snapshot with seq <= upto and, where given, of this version."""
        for seq in self._connection.execute(SNAPSHOT_SEQS, self._me).scalars().all():
            if upto is None or seq <= upto:
                row = self._connection.execute(SNAPSHOT, self._me | {"number": seq}).one()
                found = Snapshot(seq, row.data, row.version, row.fingerprint)
                right = version in (None, row.version) and fingerprint in (None, row.fingerprint)
                if right and found.digest() == row.digest:
                    return found
        return None

    def keep(self, snapshot: Snapshot) -> None:
        """Keep a snapshot, and drop all but the newest few."""
        self._connection.execute(SAME_PLACE, self._me | {"number": snapshot.seq})
        row = {name: getattr(snapshot, name) for name in ("seq", "version", "fingerprint", "data")}
        row |= {"digest": snapshot.digest()}
        self._connection.execute(sql.insert(snapshots), row | self._me)
        seqs = self._connection.execute(SNAPSHOT_SEQS, self._me).scalars().all()
        if len(seqs) > KEPT:
            self._connection.execute(UP_TO, self._me | {"number": seqs[KEPT]})

    def drop_snapshots(self, since: int) -> None:
        """Drop those with seq >= since."""
        self._connection.execute(FROM, self._me | {"number": since})
