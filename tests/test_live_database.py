"""What only databases have: their files, formats and errors, damage, and how they find a row."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from wgp_agents.live import Event, Snapshot, open_store
from wgp_agents.live.storage import Store

sql = pytest.importorskip("sqlalchemy")


def new(storage: str | Path, name: str = "espresso", count: int = 1) -> Store:
    """Return a new bandit's store, with so many events."""
    store = open_store(storage, name)
    with store.session() as session:
        session.create({})
        session.extend(Event("asked", f"d{i}", {"arm": i % 3}, key=f"k{i}") for i in range(count))
    return store


def change(storage: str, statement: str, *values: Any) -> None:
    """Change a database behind a store's back."""
    engine = sql.create_engine(storage)
    with engine.begin() as connection:
        connection.exec_driver_sql(statement, values)
    engine.dispose()


def test_a_path_and_a_url_name_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    new("a b#%.db", count=5).close()
    named: list[str | Path] = ["sqlite:///a b#%.db", tmp_path / "a b#%.db", f"{tmp_path}/a b#%.db"]
    for storage in named:
        store = open_store(storage, "espresso")
        monkeypatch.chdir("/")  # the store keeps to the file that it has opened
        with store.session() as session:
            assert session.last == 5
        store.close()
        monkeypatch.chdir(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["a b#%.db"]  # nothing is left beside it


@contextmanager
def heard(target: object, event: str) -> Iterator[list[Any]]:
    """Yield a list to which the arguments of each such event of SQLAlchemy are appended."""
    found: list[Any] = []

    def listen(*call: Any) -> None:
        found.append(call)

    sql.event.listen(target, event, listen)
    try:
        yield found
    finally:
        sql.event.remove(target, event, listen)


def test_commits_wait_for_the_disk(tmp_path: Path) -> None:
    with heard(sql.pool.Pool, "checkout") as connections:
        store = new(tmp_path / "shop.db")
    settings = ("synchronous", "journal_mode")
    found = [connections[-1][0].execute(f"PRAGMA {one}").fetchone()[0] for one in settings]
    assert found == [2, "wal"]  # FULL
    store.close()


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE wgp_snapshots SET digest = 'no' WHERE seq = 3",
        "UPDATE wgp_snapshots SET version = '2' WHERE seq = 3",
        "UPDATE wgp_snapshots SET fingerprint = 'g' WHERE seq = 3",
        "UPDATE wgp_snapshots SET seq = 4 WHERE seq = 3",
        "flip",
    ],
)
def test_a_damaged_snapshot_is_passed_over(database: str, statement: str) -> None:
    store = new(database, count=9)
    with store.session() as session:
        session.keep(Snapshot(2, b"older", "1", "f"))
        session.keep(Snapshot(3, b"newer", "1", "f"))
    if statement == "flip":
        place = "%s" if database.startswith("postgres") else "?"
        change(database, f"UPDATE wgp_snapshots SET data = {place} WHERE seq = 3", b"neweR")
    else:
        change(database, statement)
    with store.session() as session:
        assert session.snapshot() == Snapshot(2, b"older", "1", "f")
    store.close()


def test_a_bandit_of_another_format(database: str) -> None:
    store = new(database)
    change(database, "UPDATE wgp_bandits SET format = 7")
    with (
        pytest.raises(ValueError, match=r"'espresso' is kept in the format 7; .* reads 1"),
        store.session(),
    ):
        pass
    store.close()


@pytest.mark.parametrize("table", ["wgp_bandits", "wgp_events", "wgp_snapshots"])
def test_tables_of_another_format(database: str, table: str) -> None:
    change(database, f"CREATE TABLE {table} (id INTEGER)")
    with pytest.raises(ValueError, match=f"table {table} in the database .* is of another format"):
        open_store(database, "espresso")


def test_a_damaged_event(database: str) -> None:
    store = new(database, count=3)
    change(database, "UPDATE wgp_events SET data = '{' WHERE seq = 2")
    with store.session() as session:
        assert session.events(after=2)[0].decision == "d2"
        with pytest.raises(ValueError, match="log of the bandit 'espresso' is damaged"):
            session.events()
    store.close()


def test_other_tables_stay(database: str) -> None:
    change(database, "CREATE TABLE events (id INTEGER)")
    new(database).close()
    change(database, "INSERT INTO events VALUES (1)")


def test_a_session_that_only_reads_makes_no_bandit(database: str) -> None:
    store = open_store(database, "typo")
    with store.session() as session:
        assert session.settings() is None
    change(database, "INSERT INTO wgp_bandits (name, format) VALUES ('typo', 1)")  # it is unique
    store.close()


@pytest.mark.parametrize(
    ("storage", "given"),
    [
        ("mysql://me:secret@host/shop", r"mysql://me:\*\*\*@host/shop"),
        ("sqlite://", "sqlite://"),
        ("sqlite:///:memory:", "sqlite:///:memory:"),
        ("", ""),
        ("://", "://"),
        (
            "postgresql+psycopg://me:secret@host:port/x",
            r"postgresql\+psycopg://me:\*\*\*@host:port/x",
        ),
        (7, "7"),
        (":memory:", ":memory:"),
    ],
)
def test_what_names_no_database(storage: Any, given: str) -> None:
    rule = r"The 'storage' parameter of LiveBandit must be None \(memory\), a file, 'sqlite:///"
    with pytest.raises(ValueError, match=rf"{rule}.* Got '?{given}'? instead"):
        open_store(storage, "espresso")


def test_files_that_are_none(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("This is a file, but not a database. " * 100)
    for path, rule in [
        (text, r"a SQLite database \(file is not a database\)"),
        (tmp_path / "none" / "shop.db", "a file in a folder that is there"),
        (tmp_path, "a file in a folder that is there"),
    ]:
        with pytest.raises(ValueError, match=f"'storage' parameter of LiveBandits must be {rule}"):
            open_store(path, "espresso", owner="LiveBandits")
    assert text.read_text().startswith("This is a file")


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("psycopg")
    url = f"postgresql://me:secret@/shop?host={tmp_path}"
    with pytest.raises(ConnectionError, match=r"psycopg://me:\*\*\*@/shop.* cannot be reached"):
        open_store(url, "espresso")


def test_another_process_that_holds_the_file(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    new(path).close()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(TimeoutError, match=r"is locked: others had it for 0.2 seconds"):
        open_store(path, "espresso", timeout=0.2)
    other.close()
    open_store(path, "espresso", timeout=0.2).close()


def test_another_program_that_uses_the_file_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    other.execute("CREATE TABLE orders (id INTEGER)")  # without a write-ahead log, so far
    other.execute("BEGIN IMMEDIATE")
    done = threading.Timer(0.3, other.execute, ["COMMIT"])
    done.start()
    new(path).close()
    done.join()
    other.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("missing", "extra"),
    [("sqlalchemy", "live"), ("psycopg", "postgres")],
)
def test_an_extra_that_is_missing(missing: str, extra: str) -> None:
    program = (
        "import sys; from wgp_agents.live import open_store\n"
        "open_store(None, 'espresso').close()\n"
        "assert 'sqlalchemy' not in sys.modules\n"
        f"sys.modules['{missing}'] = None\n"
        "try: open_store('postgresql://host/shop', 'espresso')\n"
        "except ModuleNotFoundError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stderr == ""
    assert done.stdout.startswith("The 'storage' parameter of LiveBandit needs ")
    assert done.stdout.endswith(f"Run: pip install 'wgp-gym[{extra}]'.\n")


def test_rows_are_found_by_an_index(tmp_path: Path) -> None:
    # A first index had SQLite read a bandit's whole log to find one decision.
    path = tmp_path / "shop.db"
    store = new(path, count=30)
    with heard(sql.Engine, "before_cursor_execute") as calls, store.session() as session:
        session.of_decision("d3")
        session.by_key("k3")
        session.events(after=20)
        session.events(after=20, upto=25)
        session.append(Event("asked", "e", {"arm": 0}, key="new"))
        session.snapshot()
        session.summary()
    store.close()
    raw = sqlite3.connect(path)
    plans = [
        raw.execute(f"EXPLAIN QUERY PLAN {text}", values).fetchall()[0][3]
        for _, _, text, values, *_ in calls
        if text.startswith("SELECT") and "FROM wgp_events" in text
    ]
    raw.close()
    last, of_decision, by_key, since, upto, keys, summary = [
        plan.split("wgp_events ")[1] for plan in plans
    ]
    assert "(bandit=? AND decision=?)" in of_decision
    assert "(bandit=? AND key=?)" in by_key
    assert "(bandit=? AND key=?)" in keys
    assert "(bandit=? AND seq>?" in since
    assert "(bandit=? AND seq>?" in upto
    assert "(bandit=?)" in last  # and SQLite takes the last of an index for a maximum
    assert "COVERING INDEX wgp_events_by_arm" in summary


def test_stores_of_one_file_share_a_connection(tmp_path: Path) -> None:
    with heard(sql.pool.Pool, "connect") as connections:
        stores = [new(tmp_path / "shop.db", f"bandit {i}") for i in range(20)]
        for store in stores:
            with store.session() as session:
                assert session.last == 1
            store.close()
    assert len(connections) == 1
