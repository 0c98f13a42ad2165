"""A store in a database: SQLite or PostgreSQL, by SQLAlchemy, with the same statements."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sql
from sqlalchemy import URL, Connection
from sqlalchemy.exc import ArgumentError

from wgp_agents.live.database_session import DatabaseSession
from wgp_agents.live.engines import Database, database_of
from wgp_agents.live.tables import prepare
from wgp_agents.live.turns import Turns
from wgp_gym.validation import reject

__all__ = ["DatabaseStore", "open_database"]

RULE = "None (memory), a file, 'sqlite:///file.db' or 'postgresql+psycopg://user@host/database'"
FILES = ("sqlite", "sqlite+pysqlite")
SERVERS = ("postgres", "postgresql", "postgresql+psycopg")


def open_database(
    storage: str | os.PathLike[str], name: str, owner: str, timeout: float, new: bool
) -> DatabaseStore:
    """Return the store of a bandit in a database, whose tables are made if they are missing.

    Raises:
        ValueError, ConnectionError, TimeoutError, ModuleNotFoundError: See `storage.open_store`.
    """
    url = url_of(storage, owner)
    file = url.database or ""
    if not (new or url.drivername not in FILES or file.startswith("file:") or Path(file).exists()):
        reject("storage", f"{owner}.open", "a file that is there", file)
    try:
        database = database_of(url, timeout, owner)
    except ImportError as error:  # psycopg may be there and lack the library that it wraps
        message = f"The 'storage' parameter of {owner} needs a driver of PostgreSQL: {error}."
        raise ModuleNotFoundError(f"{message} Run: pip install 'wgp-gym[postgres]'.") from error
    store = DatabaseStore(database, name)
    if not database.prepared:
        with store.transaction() as connection:
            prepare(connection, database.place)
        database.prepared = True
    return store


def url_of(storage: str | os.PathLike[str], owner: str) -> URL:
    """Return the URL that names a database, a file's with its full path; else raise ValueError."""
    if not isinstance(storage, (str, os.PathLike)) or not os.fspath(storage):
        reject("storage", owner, RULE, storage)
    text = os.fspath(storage)
    secret = re.sub(r"(://[^:/@]*:).*@", r"\1***@", text)  # a message shows no password
    try:
        url = sql.make_url(text) if "://" in text else URL.create("sqlite", database=text)
    except (ArgumentError, ValueError):
        reject("storage", owner, RULE, secret)
    if url.drivername in SERVERS:
        return url.set(drivername="postgresql+psycopg")
    file = url.database or ":memory:"
    if url.drivername not in FILES or file == ":memory:":
        reject("storage", owner, RULE, secret)
    return url if file.startswith("file:") else url.set(database=str(Path(file).absolute()))


class DatabaseStore:
    """The log of one bandit in a database.

    Args:
        database: The database, which has its tables.
        name: The bandit's name.
    """

    def __init__(self, database: Database, name: str) -> None:
        self._database: Database | None = database
        self._name = name
        self._turns = database.turns if database.exclusive else Turns(f"bandit {name!r}")

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Wait for this thread's turn, then open a transaction."""
        database = self._database
        if database is None:
            raise RuntimeError(f"The store of the bandit {self._name!r} is closed.")
        with self._turns.turn(database.timeout), database.transaction() as connection:
            yield connection

    @contextmanager
    def session(self) -> Iterator[DatabaseSession]:
        """Open a session: see `storage.Store`."""
        with self.transaction() as connection:
            session = DatabaseSession(connection, self._name)
            yield session
            if not session.made:  # its row is there for the lock alone
                connection.rollback()

    def close(self) -> None:
        """Let go of the database, which is closed with the last of its stores."""
        self._database = None
