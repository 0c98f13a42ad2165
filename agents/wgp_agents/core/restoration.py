"""The state of an agent, brought back into one that was made alike."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, NoReturn

import numpy as np

from wgp_agents.core.state import (
    KINDS,
    ROOT,
    SAME,
    TEXT,
    WORD,
    State,
    attributes,
    is_constant,
    is_streams,
    named,
    refuse,
    root_of,
)
from wgp_gym.types import AnyArray
from wgp_gym.validation import cut, shown

__all__ = ["Restoration"]

PLAIN = (type(None), bool, int, float, np.generic, str)
NOWHERE = object()  # in the place of what an agent does not have


class Place(NamedTuple):
    """What is known of a place in an agent.

    Attributes:
        make: What makes a part for it, if there is none.
        grows: Whether its arrays may be longer or shorter along their second axis.
        free: Whether they may have any shape.
    """

    make: Callable[[], object] | None = None
    grows: bool = False
    free: bool = False


class Restoration:
    """The changes that bring an agent to a state; none is made before all of it is checked.

    Parts stay the objects that they are. Arrays are replaced: whoever else holds one, as the
    caller that gave it, keeps it as it was. What was one array or part in two places is one again.

    Args:
        agent: An agent, made alike.
        state: Its state.

    Raises:
        ValueError: If it is not the state of such an agent.
    """

    def __init__(self, agent: object, state: State) -> None:
        self._state, self._left = state, dict.fromkeys(state)
        self._made: dict[str, object] = {}
        self._claimed: set[int] = set()
        self._changes: list[tuple[Callable[[], object], Callable[[], object]]] = []  # and back
        self._checks: list[Callable[[], object]] = []
        self._kept: list[object] = []  # so that no `id` is used again
        self._restore(agent, ROOT, Place())
        if self._left:
            self._fault(min(self._left), "is nothing that this agent has")

    def apply(self) -> None:
        """Make the changes, or none if the parts refuse what they then hold."""
        try:
            for change, _ in self._changes:
                change()
            for check in self._checks:
                check()
        except BaseException:
            for _, back in reversed(self._changes):
                back()
            raise

    def _fault(self, path: str, fault: str) -> NoReturn:
        refuse("that of an agent made alike", f"one whose {cut(path)} {fault}")

    def _restore(self, now: object, path: str, place: Place) -> object:
        """Return what is to stand at a path, where `now` does."""
        if path not in self._state:
            if not is_constant(now):
                self._fault(path, "is missing")
            return now
        entry = self._state[path]
        self._left.pop(path, None)
        if isinstance(entry, str) and entry.startswith(SAME):
            other = self._made.get(entry.removeprefix(SAME), NOWHERE)
            if other is NOWHERE or not alike(other, now, place):
                self._fault(path, "is the same as another part")
            return other
        if isinstance(entry, np.ndarray):
            found = self._array(entry, now, path, place)
        elif isinstance(entry, str) and not entry.startswith(TEXT):
            return self._collection(entry, now, path, place)
        else:
            found = entry.removeprefix(TEXT) if isinstance(entry, str) else entry
            fits = isinstance(now, PLAIN) or now is NOWHERE
            if entry is None:
                fits = fits or isinstance(now, (np.ndarray, tuple))
            elif isinstance(now, str) != isinstance(found, str):
                fits = now is None or now is NOWHERE
            if type(now) is int and not place.free:  # it may count what is in an array
                fits = type(found) is int
            if not fits:
                self._fault(path, f"is {shown(found)}")
        self._made[path] = found
        return found

    def _array(self, entry: AnyArray, now: object, path: str, place: Place) -> object:
        if entry.dtype.kind not in KINDS:
            self._fault(path, f"holds {entry.dtype}")
        if is_streams(now):
            return self._streams(entry, now, path)
        if isinstance(now, np.ndarray):
            if not alike(entry, now, place):
                self._fault(path, f"is an array {entry.shape} of {entry.dtype}")
            if not now.flags.writeable and np.array_equal(entry, now):
                return now
            return np.array(entry, order="C" if now.flags.c_contiguous else "K")
        number = isinstance(now, (bool, int, float, np.generic)) and entry.ndim == 0
        if not (number or now is None or now is NOWHERE):
            self._fault(path, f"is an array {entry.shape}")
        return np.array(entry, order="K") if entry.ndim else entry[()]

    def _streams(self, entry: AnyArray, now: object, path: str) -> object:
        """Set the states of generators."""
        generators = now if isinstance(now, list) else [now]
        shape = (len(generators), 6) if isinstance(now, list) else (6,)
        if entry.dtype != np.uint64 or entry.shape != shape:
            self._fault(path, f"is an array {entry.shape} of {entry.dtype}")
        for generator, words in zip(generators, entry.reshape(-1, 6).tolist(), strict=True):
            if not (words[3] % 2 and words[4] < 2 and words[5] < 2**32):
                self._fault(path, "is no state of a generator")
            bits = generator.bit_generator
            change = partial(setattr, bits, "state", generator_state(words))
            self._changes.append((change, partial(setattr, bits, "state", bits.state)))
        return now

    def _collection(self, entry: str, now: object, path: str, place: Place) -> object:
        mark, _, said = entry.partition(" ")
        if mark == "@tuple":
            return self._tuple(self._count(said, path), now, path, place)
        if mark == "@list":
            return self._list(self._count(said, path), now, path, place)
        if mark == "@dict":
            return self._dict(said, now, path, place)
        if mark != "@part":
            self._fault(path, f"is {shown(entry)}")
        return self._part(said, now, path, place)

    def _count(self, said: str, path: str) -> int:
        """Return how many items a collection has, at most as many as there are entries."""
        if not (said.isascii() and said.isdigit() and len(said) < 10):
            self._fault(path, f"has {shown(said)} items")
        return min(int(said), len(self._state))

    def _claim(self, now: object, path: str) -> None:
        """Take a part for this path; no other path may have it, unless the state says so."""
        if id(now) in self._claimed:
            self._fault(path, "is apart from others that are one here")
        self._claimed.add(id(now))
        self._kept.append(now)
        self._made[path] = now

    def _items(self, now: Sequence[object], names: list[str], place: Place) -> list[object]:
        held = [*now[: len(names)], *[NOWHERE] * (len(names) - len(now))]
        return [self._restore(one, name, place) for one, name in zip(held, names, strict=True)]

    def _tuple(self, count: int, now: object, path: str, place: Place) -> object:
        if not isinstance(now, tuple) and place.make is not None:
            now = place.make()
        held = now if isinstance(now, tuple) else ()
        fields = getattr(now, "_fields", None)
        wrong = not isinstance(now, tuple) and now is not None and now is not NOWHERE
        if wrong or (fields is not None and len(fields) != count):
            self._fault(path, f"is a tuple of {count}")
        names = [f"{path}.{n}" for n in fields or ()] or [f"{path}[{i}]" for i in range(count)]
        items = self._items(held, names, place)
        if len(items) != len(held) or any(a is not b for a, b in zip(items, held, strict=True)):
            held = type(held)(*items) if fields else tuple(items)  # type: ignore[arg-type]
        self._made[path] = held
        return held

    def _list(self, count: int, now: object, path: str, place: Place) -> object:
        if now is None or now is NOWHERE:
            now = []
        if not isinstance(now, (list, deque)):
            self._fault(path, "is a list")
        self._claim(now, path)
        items = self._items([*now], [f"{path}[{i}]" for i in range(count)], place)
        self._changes.append((partial(refill, now, items), partial(refill, now, [*now])))
        return now

    def _dict(self, said: str, now: object, path: str, place: Place) -> object:
        if now is None or now is NOWHERE:
            now = {}
        try:
            keys = json.loads(said)
        except ValueError:
            keys = None
        known = isinstance(keys, list) and all(type(key) in (str, int) for key in keys)
        if not isinstance(now, dict) or not known:
            self._fault(path, "is a dict")
        self._claim(now, path)
        held = {key: now.get(key, NOWHERE) for key in keys}
        items = {k: self._restore(v, f"{path}[{k!r}]", place) for k, v in held.items()}
        self._changes.append((partial(refill, now, items), partial(refill, now, {**now})))
        return now

    def _part(self, said: str, now: object, path: str, place: Place) -> object:
        if (now is None or now is NOWHERE) and place.make is not None:
            now = place.make()
        kind = type(now)
        if kind.__qualname__ != said or not hasattr(now, "__dict__") or is_constant(now):
            self._fault(path, f"is a {cut(said, 80)}")
        self._claim(now, path)
        maker, stores = getattr(now, "_make_part", None), named(kind, "_stores")
        free, held = root_of(kind) != "wgp_agents", vars(now)
        for name, value in attributes(now, path).items():
            below = Place(maker and partial(maker, name), name in stores, free)
            made = self._restore(value, f"{path}.{name}", below)
            change = partial(held.__setitem__, name, made)
            self._changes.append((change, partial(held.__setitem__, name, held[name])))
        if hasattr(now, "_check_state"):
            self._checks.append(now._check_state)
        return now


def refill(now: object, items: object) -> None:
    """Give a list, a deque or a dict other items."""
    if isinstance(now, dict) and isinstance(items, dict):
        now.clear()
        now.update(items)
    elif isinstance(now, (list, deque)) and isinstance(items, list):
        now.clear()
        now.extend(items)


def alike(found: object, now: object, place: Place) -> bool:
    """Tell whether one part may stand in the place of another, or of none."""
    if now is None or now is NOWHERE:
        return True
    if not (isinstance(found, np.ndarray) and isinstance(now, np.ndarray)):
        return type(found) is type(now)
    if found.dtype != now.dtype or found.ndim != now.ndim:
        return False
    shapes = found.shape, now.shape
    if place.grows:
        shapes = shapes[0][:1] + shapes[0][2:], shapes[1][:1] + shapes[1][2:]
    return place.free or shapes[0] == shapes[1]


def generator_state(words: list[int]) -> dict[str, object]:
    """Return a generator's state from its words."""
    high, low, up, down, has, left = words
    state = {"state": high * WORD + low, "inc": up * WORD + down}
    return {"bit_generator": "PCG64", "state": state, "has_uint32": has, "uinteger": left}
