"""A checkpoint: a fast copy of all that changes in an agent, to go back to.

It walks through the same parts as `wgp_agents.core.state`, but keeps objects where they are. Of
each part it keeps which objects its attributes are, and of each array a copy of its numbers. So
what is one array in two places stays one, and what an agent has replaced meanwhile comes back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from wgp_agents.core.state import FOREIGN, attributes, is_constant_kind, named, root_of
from wgp_agents.core.stateful import Stateful
from wgp_gym.types import AnyArray
from wgp_gym.validation import reject

__all__ = ["Checkpoint"]

PLAIN = (type(None), int, float, str, bytes, np.generic)


class Checkpoint:
    """What an agent knows at one moment; `restore` brings it back, as often as is wanted.

    Between the two anything may be called: `act`, `observe`, `reset`, `load_state_dict`. It
    belongs to this very agent and this process: `state_dict` is for others. Parts of your own need
    nothing for it, as in `state_dict`.

    Args:
        agent: The agent.

    Raises:
        ValueError: If it is no agent.
        TypeError: If a part of your own holds what cannot be written down; the error names it.
    """

    def __init__(self, agent: Stateful) -> None:
        if not isinstance(agent, Stateful):
            reject("agent", "Checkpoint", "an agent", agent)
        self._agent = agent
        self._parts: list[tuple[dict[str, object], dict[str, object]]] = []
        self._arrays: list[tuple[AnyArray, AnyArray]] = []
        self._others: list[Callable[[], None]] = []  # what brings back lists, dicts and streams
        with agent._lock:
            self._keep_all(agent)

    def _keep_all(self, agent: Stateful) -> None:
        """Keep an agent and all its parts, each once."""
        seen: set[int] = set()
        found: list[object] = [agent]
        while found:
            value = found.pop()
            kind = type(value)
            if kind not in KEEPERS:
                KEEPERS[kind] = keeper_of(kind)
            keep = KEEPERS[kind]
            if keep is not None and id(value) not in seen:
                seen.add(id(value))
                keep(self, value, found)

    def _keep_array(self, array: object, found: list[object]) -> None:
        assert isinstance(array, np.ndarray)
        if array.flags.writeable:
            self._arrays.append((array, array.copy("K")))

    def _keep_stream(self, stream: object, found: list[object]) -> None:
        assert isinstance(stream, np.random.Generator)
        bits, state = stream.bit_generator, stream.bit_generator.state

        def _back() -> None:
            bits.state = state

        self._others.append(_back)

    def _keep_tuple(self, items: object, found: list[object]) -> None:
        assert isinstance(items, tuple)
        found.extend(items)

    def _keep_list(self, now: object, found: list[object]) -> None:
        assert isinstance(now, (list, deque))
        items = [*now]
        found.extend(items)

        def _back() -> None:
            now.clear()
            now.extend(items)

        self._others.append(_back)

    def _keep_dict(self, now: object, found: list[object]) -> None:
        assert isinstance(now, dict)
        items = {**now}
        found.extend(items.values())

        def _back() -> None:
            now.clear()
            now.update(items)

        self._others.append(_back)

    def _keep_part(self, part: object, found: list[object]) -> None:
        now, kind = vars(part), type(part)
        if kind not in PLAIN_PARTS:
            PLAIN_PARTS[kind] = named(kind, "_constants") if is_plain_part(kind) else None
        constants = PLAIN_PARTS[kind]
        if constants is None:
            held = attributes(part, kind.__name__)
            found.extend(held.values())
            self._parts.append((now, {**now, **held}))
        else:
            found.extend([value for name, value in now.items() if name not in constants])
            self._parts.append((now, {**now}))

    def restore(self) -> None:
        """Bring the agent back to what it was."""
        with self._agent._lock:
            for now, kept in self._parts:
                now.update(kept)
                if len(now) > len(kept):
                    for name in now.keys() - kept.keys():
                        del now[name]
            for array, numbers in self._arrays:
                array[...] = numbers
            for back in self._others:
                back()


Keeper: TypeAlias = Callable[[Checkpoint, object, list[object]], None]
KEEPERS: dict[type, Keeper | None] = {}  # by class, as they are met; None: never changes
PLAIN_PARTS: dict[type, set[str] | None] = {}  # the `_constants` of those


def keeper_of(kind: type) -> Keeper | None:
    """Return what keeps objects of a class; None for what never changes."""
    keepers: tuple[tuple[type | tuple[type, ...], Keeper | None], ...] = (
        (PLAIN, None),
        (np.ndarray, Checkpoint._keep_array),
        (np.random.Generator, Checkpoint._keep_stream),
        (tuple, Checkpoint._keep_tuple),
        ((list, deque), Checkpoint._keep_list),
        (dict, Checkpoint._keep_dict),
    )
    for base, keep in keepers:
        if issubclass(kind, base):
            return keep
    return None if is_constant_kind(kind) else Checkpoint._keep_part


def is_plain_part(kind: type) -> bool:
    """Tell whether the state of objects of a class is what they hold, but for constants."""
    own = any(
        "__getstate__" in vars(one) or vars(one).get("__slots__") for one in kind.__mro__[:-1]
    )
    return not own and root_of(kind) not in FOREIGN
