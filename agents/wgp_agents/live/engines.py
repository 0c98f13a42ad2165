"""One SQLAlchemy engine for each database of this process: its settings, forks, and errors.

SQLite: a write-ahead log; every transaction begins with BEGIN IMMEDIATE, so that it has the file
for itself from its first read on; each commit waits for the disk (`synchronous=FULL`), so that not
even a power cut undoes what was returned from. PostgreSQL: READ COMMITTED, where what is read after
a lock was granted is what the one before left.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import sqlalchemy as sql
from sqlalchemy import URL, Connection, Engine, event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.exc import TimeoutError as NoConnection
from sqlalchemy.pool import ConnectionPoolEntry

from wgp_agents.live.turns import Turns
from wgp_gym.validation import reject

__all__ = ["Database", "database_of"]

RETRY = 0.01  # seconds between attempts to switch to a write-ahead log
LOCKED = "55P03"  # PostgreSQL's state when `lock_timeout` is over
BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
RULES = {
    sqlite3.SQLITE_NOTADB: "a SQLite database",
    sqlite3.SQLITE_CORRUPT: "a SQLite database that is not damaged",
    sqlite3.SQLITE_CANTOPEN: "a file in a folder that is there and may be written to",
    sqlite3.SQLITE_READONLY: "a file that may be written to",
}
"""What `storage` must be, by the code of SQLite's error."""


class Database:
    """A database and this process's connections to it.

    Args:
        url: Where it is.
        timeout: Seconds to wait for others.
        owner: Whose parameter `storage` is, for messages.

    Attributes:
        place: Where it is, for messages, without its password.
        what: The same, as a noun.
        exclusive: Whether a session has the whole database for itself (SQLite).
        prepared: Whether its tables are known to be there.
        turns: Whose turn it is among this process's threads, if so: they need not poll the file.
    """

    def __init__(self, url: URL, timeout: float, owner: str) -> None:
        self.exclusive = url.get_backend_name() == "sqlite"
        self.place = shown_url(url)
        self.timeout, self.owner = timeout, owner
        self.what = f"database {self.place!r}"
        self.turns = Turns(self.what)
        self.held = self.prepared = False
        path = url.database if self.exclusive else None
        self._path = None if path is None or path.startswith("file:") else path
        self._file: tuple[int, int] | None = None  # which file that is, since it was opened
        self.engine = sqlite_engine(url, timeout) if self.exclusive else server_engine(url, timeout)
        weakref.finalize(self, self.engine.dispose)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Open a transaction: committed at the end of its block, rolled back if that raises."""
        if self.is_gone():
            rule = "a file that stays: it was removed or replaced in use; open the bandit again"
            reject("storage", self.owner, rule, self.place)
        try:
            with self.engine.begin() as connection:
                self._file = self._file or file_of(self._path)
                yield connection
        except (DBAPIError, sqlite3.Error, NoConnection) as error:
            self.explain(error)
            raise

    def is_gone(self) -> bool:
        """Tell whether the file was removed, or is another: what is written to it is lost."""
        return self._file is not None and file_of(self._path) != self._file

    def explain(self, error: Exception) -> None:
        """Raise, instead of an expected error of a driver, one that says what to do."""
        cause = error.orig if isinstance(error, DBAPIError) else error
        state, number = getattr(cause, "sqlstate", None), code(cause)
        if isinstance(error, NoConnection) or state == LOCKED or number in BUSY:
            raise TimeoutError(
                f"The {self.what} is locked: others had it for {self.timeout:g} seconds."
            ) from error
        if number in RULES:
            reject("storage", self.owner, f"{RULES[number]} ({cause})", self.place)
        if isinstance(error, OperationalError) and number is None and state is None:
            raise ConnectionError(f"The {self.what} cannot be reached: {cause}") from error

    def before_fork(self) -> None:
        """Close what a child must not inherit: SQLite's locks belong to a process."""
        if self.exclusive:
            self.held = not self.turns.mine() and self.turns.take(self.timeout)
            self.engine.dispose()

    def after_fork(self, child: bool) -> None:
        """Go on, in the parent and in the child."""
        if self.held:
            self.held = False
            self.turns.leave()
        if child:
            self.engine.dispose(close=False)  # a server's connections stay the parent's


def file_of(path: str | None) -> tuple[int, int] | None:
    """Return which file there is at a path: its device and inode; None: none."""
    try:
        found = None if path is None else os.stat(path)
    except FileNotFoundError:
        return None
    return None if found is None else (found.st_dev, found.st_ino)


def sqlite_engine(url: URL, timeout: float) -> Engine:
    """Return an engine for a SQLite file."""
    # The driver begins no transactions by itself: `begin` does.
    arguments = {"isolation_level": None, "timeout": timeout}
    engine = sql.create_engine(url, connect_args=arguments, hide_parameters=True)

    @event.listens_for(engine, "connect")
    def connect(connection: DBAPIConnection, _: ConnectionPoolEntry) -> None:
        cursor = connection.cursor()
        end = time.monotonic() + timeout
        while True:  # beside another's BEGIN IMMEDIATE the switch fails at once, timeout or not
            try:
                cursor.execute("PRAGMA journal_mode=WAL")
                break
            except sqlite3.OperationalError as error:
                if code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                    raise
                time.sleep(RETRY)
        cursor.execute("PRAGMA synchronous=FULL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def server_engine(url: URL, timeout: float) -> Engine:
    """Return an engine for a PostgreSQL server."""
    given = url.query.get("options", "")
    options = f"{given if isinstance(given, str) else ' '.join(given)} "
    arguments = {"options": f"{options}-c lock_timeout={max(1, round(timeout * 1000))}"}
    return sql.create_engine(
        url,
        connect_args=arguments,
        hide_parameters=True,
        isolation_level="READ COMMITTED",
        pool_pre_ping=True,  # the server may have been started anew
        pool_timeout=timeout,
    )


def code(error: BaseException | None) -> int | None:
    """Return the primary code of an error of SQLite."""
    found: int | None = getattr(error, "sqlite_errorcode", None)
    return None if found is None else found & 0xFF


def shown_url(url: URL) -> str:
    """Return a URL as messages show it, without its password; a SQLite file's is its path."""
    if url.get_backend_name() == "sqlite" and url.database is not None:
        return url.database
    return url.render_as_string(hide_password=True)


_GUARD = threading.Lock()
_DATABASES: weakref.WeakValueDictionary[tuple[str, float, str], Database]
_DATABASES = weakref.WeakValueDictionary()
_FORKING: list[Database] = []


def database_of(url: URL, timeout: float, owner: str) -> Database:
    """Return this process's engine for a database; it lives as long as a store that uses it."""
    key = (url.render_as_string(hide_password=False), timeout, owner)
    with _GUARD:
        found = _DATABASES.get(key)
        if found is None or found.is_gone():
            found = _DATABASES[key] = Database(url, timeout, owner)
        return found


def _before_fork() -> None:
    _GUARD.acquire()
    _FORKING[:] = _DATABASES.values()
    for database in _FORKING:
        database.before_fork()


def _after_fork(child: bool) -> None:
    for database in _FORKING:
        database.after_fork(child)
    _FORKING.clear()
    _GUARD.release()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(
        before=_before_fork,
        after_in_parent=lambda: _after_fork(False),
        after_in_child=lambda: _after_fork(True),
    )
