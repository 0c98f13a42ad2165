"""The three tables of a database of bandits, and how they come to be."""

from __future__ import annotations

import sqlalchemy as sql
from sqlalchemy import Column, Connection, Index, Table

__all__ = ["FORMAT", "bandits", "events", "prepare", "snapshots"]

FORMAT = 1  # of the tables and of what stands in them: another one is not read
CREATION = 0x77677067796D  # PostgreSQL's lock of who creates the tables: any number of our own

_METADATA = sql.MetaData()

bandits = Table(
    "wgp_bandits",
    _METADATA,
    Column("id", sql.Integer, primary_key=True),
    Column("name", sql.Text, nullable=False, unique=True),
    Column("settings", sql.Text, comment="JSON"),
    Column("format", sql.Integer, nullable=False),
)

events = Table(
    "wgp_events",
    _METADATA,
    Column("bandit", sql.Integer, sql.ForeignKey(bandits.c.id), primary_key=True),
    Column("seq", sql.BigInteger, primary_key=True, comment="1, 2, 3, ... without gaps"),
    Column("kind", sql.Text, nullable=False),
    Column("decision", sql.Text),
    Column("data", sql.Text, nullable=False, comment="JSON"),
    Column("time", sql.Double, comment="by the user's clock"),
    Column("key", sql.Text),
    Column("at", sql.Double, nullable=False, comment="written, in seconds since the epoch"),
    Column("arm", sql.Text, comment="data's arm as JSON, if it is not long"),
)
Index("wgp_events_of_decision", events.c.bandit, events.c.decision, events.c.seq)
Index(
    "wgp_events_by_key",
    events.c.bandit,
    events.c.key,
    unique=True,
    sqlite_where=events.c.key.is_not(None),
    postgresql_where=events.c.key.is_not(None),
)
# That has all that a summary reads:
Index(
    "wgp_events_by_arm",
    *(events.c[name] for name in ("bandit", "kind", "arm", "seq", "time", "at")),
)

snapshots = Table(
    "wgp_snapshots",
    _METADATA,
    Column("bandit", sql.Integer, sql.ForeignKey(bandits.c.id), primary_key=True),
    Column("seq", sql.BigInteger, primary_key=True),
    Column("version", sql.Text, nullable=False),
    Column("fingerprint", sql.Text, nullable=False),
    Column("digest", sql.Text, nullable=False, comment="SHA-256, see Snapshot.digest"),
    Column("data", sql.LargeBinary, nullable=False),
)


def prepare(connection: Connection, place: str) -> None:
    """Create the tables that are missing, or see that they are ours.

    Of two processes that do it at once the second waits: SQLite's transactions are exclusive.

    Raises:
        ValueError: If there are tables of these names with other columns.
    """
    if not missing(connection, place):
        return
    if connection.dialect.name == "postgresql":
        connection.execute(sql.select(sql.func.pg_advisory_xact_lock(CREATION)))
    if missing(connection, place):
        _METADATA.create_all(connection)


def missing(connection: Connection, place: str) -> bool:
    """Return whether a table is missing; raise ValueError if one has other columns."""
    inspector = sql.inspect(connection)
    there = set(inspector.get_table_names())
    for table in _METADATA.sorted_tables:
        if table.name not in there:
            continue
        found = {column["name"] for column in inspector.get_columns(table.name)}
        if found != set(table.c.keys()):
            raise ValueError(
                f"The table {table.name} in the database {place!r} is of another format than "
                f"{FORMAT}, the one that this version of wgp-gym reads. Use the version that wrote "
                "it, or another database."
            )
    return not there.issuperset(_METADATA.tables)
