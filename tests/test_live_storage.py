"""The contract of stores, the same for memory, SQLite and PostgreSQL."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from wgp_agents.live import Event, Snapshot, open_store
from wgp_agents.live.records import KEPT
from wgp_agents.live.storage import Store
from wgp_gym.types import Json

pytest.importorskip("sqlalchemy")

ODD_TEXTS = [
    "espresso",
    "Grüße 価格 🎲",
    "'; DROP TABLE wgp_bandits; --",
    "%s :name ?",
    " ",
    "x" * 500,
]
FLOATS = [0.1, 1 / 3, 5e-324, -0.0, math.pi * 1e300, float(np.nextafter(1.0, 2.0)), 1.0, 1e16]


@pytest.fixture
def store(storage: str | None) -> Iterator[Store]:
    """Return a new bandit's store."""
    made = open_store(storage, "espresso")
    with made.session() as session:
        session.create({"agent": "adaptive-wgp-ucb"})
    yield made
    made.close()


def asked(decision: str, arm: Any = 1.5, **more: Any) -> Event:
    return Event("asked", decision, {"arm": arm}, **more)


def log(store: Store) -> list[Event]:
    with store.session() as session:
        return session.events()


def bare(event: Event) -> Event:
    """Return an event without what the store adds."""
    return replace(event, seq=0, at=0.0)


def test_what_is_written_is_read(store: Store) -> None:
    data: dict[str, Json] = {
        "floats": FLOATS,
        "nested": {"a": [True, None, 12, "🎲\0\n"]},
        "big": 2**70,
        "": {},
    }
    written = [
        Event("arms", None, {}),
        *(asked(name, name, key=name, time=1 / 3) for name in ODD_TEXTS),
        Event("told", "espresso", data, time=-1e-7),
        Event("amended", "espresso", {"reward": 1}),
        Event("retracted", "espresso", {}, time=1),
    ]
    before = time.time()
    with store.session() as session:
        returned = [session.append(event) for event in written]
    assert [bare(event) for event in returned] == written
    assert [event.seq for event in returned] == list(range(1, len(written) + 1))
    assert all(before <= event.at <= time.time() for event in returned)
    read = log(store)
    assert read == returned
    floats = read[-3].data["floats"]
    assert isinstance(floats, list)
    assert [*map(repr, floats)] == [*map(repr, FLOATS)]
    assert type(read[-1].time) is float


def test_finding_events(store: Store) -> None:
    with store.session() as session:
        assert session.last == 0
        session.extend([asked(f"d{i % 3}", key=f"k{i}") for i in range(7)])
        assert session.last == 7
    with store.session() as session:
        assert session.last == 7
        assert [event.seq for event in session.events(after=2)] == [3, 4, 5, 6, 7]
        assert [event.seq for event in session.events(after=2, upto=5)] == [3, 4, 5]
        assert session.events(after=5, upto=5) == session.events(after=7) == []
        assert [event.seq for event in session.of_decision("d1")] == [2, 5]
        assert session.of_decision("other") == []
        assert session.by_key("k3") == session.events()[3]
        assert session.by_key("other") is None
        for text in ("", "\0", "\ud800", "x" * 501, 3):
            with pytest.raises(ValueError, match="'decision' parameter of Event must be a text"):
                session.of_decision(text)  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="'key' parameter of Event must be a text"):
                session.by_key(text)  # type: ignore[arg-type]


def test_settings_are_given_once(storage: str | None) -> None:
    store = open_store(storage, "espresso")
    with store.session() as session:
        assert session.settings() is None
        with pytest.raises(ValueError, match=r"call `create` first"):
            session.append(asked("d"))
        session.create({"discount": 0.1, "agent": "wgp-ucb"})
        assert session.settings() == {"discount": 0.1, "agent": "wgp-ucb"}
    with store.session() as session:
        assert session.settings() == {"discount": 0.1, "agent": "wgp-ucb"}
        with pytest.raises(ValueError, match="already"):
            session.create({})
    store.close()


def write_and_raise(store: Store, made: bool) -> None:
    with store.session() as session:
        if not made:
            session.create({})
        session.append(asked("d1", key="k"))
        session.keep(Snapshot(1, b"1", "1", "f"))
        raise ZeroDivisionError


def test_a_session_that_raises_leaves_nothing(storage: str | None) -> None:
    store = open_store(storage, "espresso")
    for made in (False, True):
        with pytest.raises(ZeroDivisionError):
            write_and_raise(store, made)
        with store.session() as session:
            assert session.last == 0
            assert (session.settings() is None) == (not made)
            assert session.events() == session.of_decision("d1") == []
            assert session.by_key("k") is None
            assert session.snapshot() is None
            if not made:
                session.create({})
    with store.session() as session:
        assert session.append(asked("d1", key="k")).seq == 1
    store.close()


BAD = [
    (asked("d", float("nan")), r"'data' parameter of Event .* at \['arm'\]. Got nan instead"),
    (asked("d", [1.0, {"x": math.inf}]), r" at \['arm'\]\[1\]\['x'\]. Got inf"),
    (asked("d", {1: 2}), r" at \['arm'\]. Got 1 instead"),
    (asked("d", b"x"), r"Got b'x' instead"),
    (asked("d", "\ud800"), r"Got '\\ud800' instead"),
    (asked("d", np.int64(3)), r"Got np.int64\(3\) instead"),
    (asked("d", 10**400), r"Got <an int of 1329 bits> instead"),
    (Event("asked", "d", [1]), r"a mapping of plain JSON.* Got \[1\] instead"),  # type: ignore[arg-type]
    (asked(""), "'decision' parameter of Event must be a text of 1 to 500"),
    (asked("\0"), "'decision' parameter"),
    (asked("\ud800"), "'decision' parameter"),
    (asked("d", key="x" * 501), "'key' parameter of Event must be a text of 1 to 500"),
    (asked("d", key="taken"), r"'key' parameter of Event must be new.* Got 'taken' instead"),
    (Event("told", "d", {}, key="k"), "'key' parameter of Event must be None for the kind"),
    (asked("d", time=math.nan), "'time' parameter of Event must be a float"),
    (Event("arms", "d", {}), "'decision' parameter of Event must be None"),
    (Event("ask", "d", {}), r"'kind' .* must be one of .*did you mean 'asked'"),  # type: ignore[arg-type]
]


def test_what_cannot_be_kept_is_refused(store: Store) -> None:
    with store.session() as session:
        session.append(asked("first", key="taken"))
        for event, message in BAD:
            with pytest.raises(ValueError, match=message):
                session.append(event)
            with pytest.raises(ValueError, match=message):
                session.extend([asked("second"), event])
    assert [event.decision for event in log(store)] == ["first"]


def test_data_too_deep_are_refused(store: Store) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ValueError, match="'data' parameter"), store.session() as session:
        session.append(asked("d", deep))


def test_two_of_one_key_are_refused(store: Store) -> None:
    with pytest.raises(ValueError, match="must be new"), store.session() as session:
        session.extend([asked("d1", key="k"), asked("d2", key="k")])
    assert log(store) == []


def test_what_the_user_changes_later_is_the_users(store: Store) -> None:
    arm = [1.0]
    with store.session() as session:
        session.append(asked("d", arm))
    arm.append(2.0)
    assert log(store)[0].data == {"arm": [1.0]}


def test_summary(store: Store) -> None:
    with store.session() as session:
        session.extend([asked("d1", 9.99, time=5.0), asked("d2", "A"), asked("d3", 9.99, time=3.0)])
        session.append(asked("d4", "x" * 600))  # too long to count
        session.append(Event("told", "d2", {"arm": "A", "reward": 1.0}, time=7.0))
        session.append(Event("arms", None, {"added": ["B"]}))
    with store.session() as session:
        found = session.summary()
    assert found.kinds == {"asked": 4, "told": 1, "arms": 1}
    counts = [(one.arm, one.kind, one.count, one.seq, one.time) for one in found.arms]
    assert counts == [
        ("A", "asked", 1, 2, None),
        (9.99, "asked", 2, 3, 5.0),
        ("A", "told", 1, 5, 7.0),
    ]


def snapshot(seq: int, version: str = "1", fingerprint: str = "f") -> Snapshot:
    return Snapshot(seq, bytes(range(256)) * seq, version, fingerprint)


def test_snapshots(store: Store) -> None:
    with store.session() as session:
        session.extend([asked(f"d{i}") for i in range(20)])
        assert session.snapshot() is None
        session.keep(snapshot(3))
        session.keep(snapshot(5, "2"))
        session.keep(snapshot(8, "1", "g"))
    with store.session() as session:
        assert session.snapshot() == snapshot(8, "1", "g")
        assert session.snapshot(7) == snapshot(5, "2")
        assert session.snapshot(2) is None
        assert session.snapshot(version="1", fingerprint="f") == snapshot(3)
        session.keep(snapshot(8))
        assert session.snapshot(version="1", fingerprint="f") == snapshot(8)
        session.drop_snapshots(since=5)
        assert session.snapshot() == snapshot(3)
        for seq in range(10, 20):
            session.keep(snapshot(seq))
    with store.session() as session:
        kept = [seq for seq in range(20) if session.snapshot(seq) == snapshot(seq)]
    assert kept == list(range(20 - KEPT, 20))


@pytest.mark.slow
def test_bandits_are_apart(database: str) -> None:
    stores = {name: open_store(database, name) for name in [*ODD_TEXTS, "ESPRESSO", "espresso "]}
    for name, store in stores.items():
        with store.session() as session:
            session.create({"name": name})
            session.append(asked("d", name, key="k"))
            session.keep(Snapshot(1, name.encode(), "1", "f"))
    for name in stores:
        store = open_store(database, name)
        with store.session() as session:
            assert session.settings() == {"name": name}
            assert [bare(event) for event in session.events()] == [asked("d", name, key="k")]
            assert session.snapshot() == Snapshot(1, name.encode(), "1", "f")
            assert session.summary().kinds == {"asked": 1}
            assert session.append(asked("e")).seq == 2
        store.close()


@pytest.mark.slow
def test_threads_take_turns(store: Store) -> None:
    def play(who: int) -> None:
        for i in range(10):
            with store.session() as session:
                before = session.last
                event = session.append(asked(f"{who}-{i}"))
                assert (event.seq, len(session.events())) == (before + 1, before + 1)

    threads = [threading.Thread(target=play, args=(who,)) for who in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = log(store)
    assert [event.seq for event in found] == list(range(1, 61))
    assert {event.decision for event in found} == {f"{i}-{j}" for i in range(6) for j in range(10)}


def test_sessions_within_sessions_and_after_the_end(store: Store) -> None:
    with (
        store.session(),
        pytest.raises(RuntimeError, match=r"in a session of the .* already"),
        store.session(),
    ):
        pass
    assert log(store) == []
    store.close()
    store.close()
    with pytest.raises(RuntimeError, match="closed"), store.session():
        pass


def test_a_locked_bandit_is_waited_for_and_then_an_error(storage: str | None) -> None:
    holding, done = threading.Event(), threading.Event()
    store = open_store(storage, "espresso", timeout=0.1)
    same = store if storage is None else open_store(storage, "espresso")
    with store.session() as session:
        session.create({})

    def hold() -> None:
        with same.session():
            holding.set()
            done.wait(20)

    thread = threading.Thread(target=hold)
    thread.start()
    holding.wait(20)
    with pytest.raises(TimeoutError, match=r"is locked: .* for 0.1 seconds"), store.session():
        pass
    done.set()
    thread.join()
    assert log(store) == []
    store.close()
    same.close()
