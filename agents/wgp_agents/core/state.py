"""The state of an agent as a flat table of arrays and plain numbers, and back into an agent.

An agent is a tree of parts: objects with attributes, lists, tuples, dicts, arrays, generators and
plain values. `Writer` names each by its path, as "agent.surrogate.held"; the way back is
`wgp_agents.core.restoration`.

| entry | what it stands for |
|---|---|
| an array, a number, True, False, None | itself; an array also for generators, PCG64's state |
| "@text abc" | a text |
| "@part Name" | an object of this class, its attributes below |
| "@list 3", "@tuple 3", "@dict [keys]" | a collection, its items below |
| "@same path" | the very object at another path |

What never changes stays out: functions, classes, environments, frozen dataclasses (kernels,
problems), parts of a class with `_constant = True`, and attributes that a class names in
`_constants`. So does what `__getstate__` leaves out. A class of ours may have three more words:
`_make_part(name)` makes a part that is there only at times; `_stores` names arrays that may grow
(of a user's class, all may); `_check_state()` refuses what would lead a compiled loop out of its
arrays.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from functools import partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import NoReturn, TypeAlias

import gymnasium
import numpy as np
from gymnasium.vector import VectorEnv

from wgp_gym.types import AnyArray
from wgp_gym.validation import shown

__all__ = [
    "CONSTANT",
    "FOREIGN",
    "KINDS",
    "PART",
    "ROOT",
    "SAME",
    "TEXT",
    "WORD",
    "Entry",
    "State",
    "Writer",
    "attributes",
    "check_counts",
    "check_rooms",
    "is_constant",
    "is_constant_kind",
    "is_streams",
    "listed",
    "named",
    "refuse",
    "root_of",
]

Entry: TypeAlias = "AnyArray | bool | int | float | str | None"
State: TypeAlias = dict[str, Entry]
"""The state of an agent by path."""

ROOT = "agent"
TEXT, PART, SAME = "@text ", "@part ", "@same "
CONSTANT = (
    *(type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, partial, np.ufunc),
    *(gymnasium.Env, VectorEnv),
)
FOREIGN = (
    *("numpy", "scipy", "torch", "gymnasium", "numba", "stable_baselines3", "sb3_contrib"),
    *("threading", "_thread", "builtins", "_io"),
)
KINDS = "biufcUS"  # of arrays that can be written without pickle
WORD = 2**64


def refuse(rule: str, fault: str) -> NoReturn:
    """Raise the ValueError of a state that cannot be loaded."""
    raise ValueError(f"The 'state' of an agent must be {rule}. Got {fault} instead.")


def check_counts(owner: object, name: str, values: AnyArray, most: int) -> None:
    """Refuse a state whose counts or indices are not from 0 to `most`."""
    if values.size and not (values.min() >= 0 and values.max() <= most):
        where = f"{type(owner).__name__}.{name}"
        refuse(f"of an agent made alike: {where} in [0, {most}]", shown(values.tolist()))


def check_rooms(owner: object, *stores: AnyArray) -> None:
    """Refuse a state whose stores, which grow together along their second axis, do not agree."""
    if len({store.shape[1] for store in stores}) > 1:
        where = type(owner).__name__
        refuse("of an agent made alike", f"stores of unlike size in a {where}")


def is_constant(value: object) -> bool:
    """Tell whether a part never changes once it is made."""
    return is_constant_kind(type(value))


def is_constant_kind(kind: type) -> bool:
    """Tell whether objects of a class never change once they are made."""
    if issubclass(kind, CONSTANT) or getattr(kind, "_constant", False):
        return True
    if kind.__name__ == "KDTree" and root_of(kind) == "scipy":  # by name: it is slow to import
        return True
    frozen = getattr(getattr(kind, "__dataclass_params__", None), "frozen", False)
    return bool(frozen) or (hasattr(kind, "__call__") and root_of(kind) == "numba")  # noqa: B004


def root_of(kind: type) -> str:
    """Return the package that a class comes from."""
    return kind.__module__.partition(".")[0]


def attributes(part: object, path: str) -> dict[str, object]:
    """Return the attributes of an object that belong to its state, as `__getstate__` says."""
    try:
        held = part.__getstate__() or {}
    except Exception:  # as of an open file
        held = None
    if root_of(type(part)) in FOREIGN or not isinstance(held, dict):
        raise TypeError(
            f"{path} must be made of arrays, generators, numbers, texts, lists, dicts and objects "
            f"that have such attributes, to be written down. Got {shown(part)}."
        )
    left = named(type(part), "_constants")
    return {name: value for name, value in held.items() if name not in left}


def named(kind: type, word: str) -> set[str]:
    """Return the attributes that a class and its bases name under a word."""
    return {name for one in kind.__mro__ for name in vars(one).get(word, ())}


def is_streams(value: object) -> bool:
    """Tell whether a part is a generator, or a list of several."""
    return bool(value is not None and listed(value)) and all(
        isinstance(one, np.random.Generator) for one in listed(value)
    )


def listed(value: object) -> list[object]:
    """Return the items of a list, or of one that holds this part alone."""
    return value if isinstance(value, list) else [value]


def generator_words(generator: object, path: str) -> list[int]:
    """Return the state of a generator as six words of 64 bits."""
    assert isinstance(generator, np.random.Generator)
    held = generator.bit_generator.state
    if held["bit_generator"] != "PCG64":
        raise TypeError(f"{path} must be a generator of numpy's default kind, PCG64.")
    numbers = held["state"]["state"], held["state"]["inc"]
    words = [word for number in numbers for word in divmod(number, WORD)]
    return [*words, held["has_uint32"], held["uinteger"]]


def children(value: object, path: str) -> tuple[str, Iterator[tuple[str, object]]]:
    """Return the mark of a collection or an object, and what is in it, by path."""
    if isinstance(value, (list, tuple, deque)):
        names = getattr(value, "_fields", None) or [f"[{i}]" for i in range(len(value))]
        dots = "." if hasattr(value, "_fields") else ""
        mark = f"@{'tuple' if isinstance(value, tuple) else 'list'} {len(value)}"
        return mark, ((f"{path}{dots}{n}", v) for n, v in zip(names, value, strict=True))
    if isinstance(value, dict):
        if not all(type(key) in (str, int) for key in value):
            raise TypeError(f"{path} must have texts or ints as keys, to be written down.")
        return f"@dict {json.dumps([*value])}", ((f"{path}[{k!r}]", v) for k, v in value.items())
    held = attributes(value, path)
    return PART + type(value).__qualname__, ((f"{path}.{n}", v) for n, v in held.items())


class Writer:
    """Writes parts into a table, each once.

    Args:
        state: The table.
    """

    def __init__(self, state: State) -> None:
        self._state = state
        self._seen: dict[int, tuple[str, object]] = {}  # what was written, by `id`
        self._memory: dict[int, list[tuple[str, AnyArray]]] = {}  # arrays, by their base

    def write(self, value: object, path: str) -> None:
        """Write a part and all below it.

        Raises:
            TypeError: If a part is of a kind that cannot be written down.
        """
        if is_constant(value):
            return
        if value is None or isinstance(value, (bool, int, float)):
            self._state[path] = value.item() if isinstance(value, np.generic) else value
        elif isinstance(value, str):
            self._state[path] = TEXT + value
        elif isinstance(value, np.generic):
            self._state[path] = copied(value, path)
        elif id(value) in self._seen:
            self._state[path] = SAME + self._seen[id(value)][0]
        else:
            self._seen[id(value)] = path, value
            self._write_new(value, path)

    def _write_new(self, value: object, path: str) -> None:
        if isinstance(value, np.ndarray):
            self._check_memory(value, path)
            self._state[path] = copied(value, path)
        elif is_streams(value):
            words = [generator_words(one, path) for one in listed(value)]
            rows = words if isinstance(value, list) else words[0]
            self._state[path] = np.array(rows, np.uint64)
        else:
            self._state[path], inside = children(value, path)
            for below, child in inside:
                self.write(child, below)

    def _check_memory(self, value: AnyArray, path: str) -> None:
        """Refuse arrays of which one is a part of another: apart, they would change apart."""
        base = value
        while isinstance(base.base, np.ndarray):
            base = base.base
        others = self._memory.setdefault(id(base), [])
        for other, array in others:
            if value.flags.writeable and np.may_share_memory(value, array):
                raise TypeError(f"{path} must not share memory with {other}, to be written down.")
        others.append((path, value))


def copied(value: object, path: str) -> AnyArray:
    """Return a copy of an array, in its own order."""
    array: AnyArray = np.array(value, order="K", subok=False)
    if array.dtype.kind not in KINDS:
        raise TypeError(
            f"{path} must be an array of numbers, to be written down. Got {array.dtype}."
        )
    return array
