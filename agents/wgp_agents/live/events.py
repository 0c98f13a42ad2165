"""The events of a bandit's log, and their form as text.

The log is the truth: it is only ever appended to, and all that a learner knows follows from it. An
event's `data` is plain JSON, so that any program can read a log, and nothing that is read runs
code. Floats come back exactly: JSON's text of a float is the shortest that names it.

    >>> told = Event("told", "d1", {"reward": 41320.0})
    >>> as_text(told.data)
    '{"reward":41320.0}'

One name in `data` has a meaning for stores: what "arm" holds is what a `Summary` counts by.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NoReturn, get_args

from wgp_gym.types import Json
from wgp_gym.validation import check_choice, check_float, cut, reject, shown

__all__ = [
    "BATCH",
    "KINDS",
    "LONGEST",
    "Event",
    "Kind",
    "arm_text",
    "as_text",
    "check_event",
    "check_text",
    "from_text",
    "known_key",
    "numbered",
    "told",
]

Kind = Literal["asked", "told", "amended", "retracted", "arms"]
KINDS: tuple[Kind, ...] = get_args(Kind)
BATCH = "\x1f"  # behind a key that several decisions share: which of them
LONGEST = 500  # characters of a name or a key: an index of PostgreSQL holds 2,704 bytes
DEEPEST = 100  # levels of `data`
ENCODE = json.JSONEncoder(allow_nan=False, separators=(",", ":"), default=dict).encode


@dataclass(frozen=True, slots=True)
class Event:
    """One line of a bandit's log.

    Attributes:
        kind: What happened: a decision was "asked", its reward "told", "amended" or "retracted", or
            the "arms" changed.
        decision: The id of the decision, of at most 500 characters; None for "arms".
        data: The rest, plain JSON: finite numbers, texts, bools, None, and lists and mappings by
            texts of these.
        time: When it happened by the user's clock, as a number (dates: seconds since the epoch).
        key: For "asked": the user's key, under which the same question is answered once.
        seq: Its number in the bandit's log, 1, 2, 3, ... without gaps; the store gives it.
        at: When it was written, in seconds since the epoch; the store gives it. It is for people:
            no learner reads it.
    """

    kind: Kind
    decision: str | None
    data: Mapping[str, Json]
    time: float | None = None
    key: str | None = None
    seq: int = 0
    at: float = 0.0


def told(asked: Event, reward: float | None, time: float | None = None) -> Event:
    """Return the event that says what a decision paid; None: that will never be known."""
    return Event("told", asked.decision, {"reward": reward, "arm": asked.data["arm"]}, time)


def check_event(event: Event) -> None:
    """Raise ValueError unless a store can keep all of an event but `data`, see `as_text`."""
    check_choice("kind", event.kind, "Event", KINDS)
    if event.kind == "arms":
        if event.decision is not None:
            reject("decision", "Event", "None for the kind 'arms'", event.decision)
    else:
        check_text("decision", event.decision, "Event")
    if event.time is not None:
        check_float("time", event.time, "Event")
    if event.key is not None:
        if event.kind != "asked":
            reject("key", "Event", f"None for the kind {event.kind!r}", event.key)
        check_text("key", event.key, "Event")


def numbered(events: Iterable[Event], last: int) -> list[tuple[Event, str]]:
    """Return events as a log that ends at `last` keeps them, each with its `data` as text.

    Their data are copies: what the user changes later is the user's.

    Raises:
        ValueError: If one is malformed, or two have the same key.
    """
    now, found, keys = time.time(), [], set[str]()
    for seq, event in enumerate(events, last + 1):
        check_event(event)
        if event.key in keys:
            known_key(event.key)
        if event.key is not None:
            keys.add(event.key)
        moment, text = event.time if event.time is None else float(event.time), as_text(event.data)
        kept = Event(event.kind, event.decision, from_text(text), moment, event.key, seq, now)
        found.append((kept, text))
    return found


def known_key(key: str | None) -> NoReturn:
    """Raise the ValueError of a key that is in the log already."""
    reject("key", "Event", "new in the bandit's log", key)


def check_text(name: str, value: object, owner: str) -> str:
    """Return a text that every database can hold and find; else raise ValueError."""
    rule = f"a text of 1 to {LONGEST} characters, without NUL or half a surrogate pair"
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST or "\0" in value:
        reject(name, owner, rule, value)
    if not whole(value):
        reject(name, owner, rule, value)
    return value


def whole(text: str) -> bool:
    """Return whether a text is Unicode, without half a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def as_text(data: Mapping[str, Json], name: str = "data", owner: str = "Event") -> str:
    """Return plain JSON as text in ASCII, from which `from_text` makes the same values.

    Raises:
        ValueError: If something in it is not plain JSON; the message says where.
    """
    fault = unlike_json(data)
    if fault is None and not isinstance(data, Mapping):
        fault = ("", data)
    if fault is not None:
        where, value = fault
        place = f" at {cut(where)}" if where else ""
        rule = f"a mapping of plain JSON (finite numbers, no other types){place}"
        reject(name, owner, rule, value)
    return ENCODE(data)


def from_text(text: str) -> dict[str, Json]:
    """Return what `as_text` wrote."""
    data: dict[str, Json] = json.loads(text)
    return data


def arm_text(event: Event) -> str | None:
    """Return the arm that a summary counts an event for, as JSON; None: none, or one too long."""
    if "arm" not in event.data:
        return None
    text = ENCODE(event.data["arm"])
    return text if len(text) <= LONGEST else None


def unlike_json(value: object, where: str = "", depth: int = 0) -> tuple[str, object] | None:
    """Return the first value that JSON would lose or change, after its place; None: all is plain.

    `json.dumps` by itself writes NaN, and the key 1 as "1".
    """
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return None if value.isascii() or whole(value) else (where, value)
    if isinstance(value, (int, float)):
        fits = math.isfinite(value) if isinstance(value, float) else value.bit_length() <= 1024
        return None if fits else (where, value)
    if depth == DEEPEST or not isinstance(value, (list, tuple, Mapping)):
        return where, value
    mapping = isinstance(value, Mapping)
    for key, part in value.items() if isinstance(value, Mapping) else enumerate(value):
        if mapping and not (isinstance(key, str) and whole(key)):
            return where, key
        fault = unlike_json(part, f"{where}[{shown(key)}]", depth + 1)
        if fault:
            return fault
    return None
