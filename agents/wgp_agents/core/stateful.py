"""What holds a state: it is copied, written down, read, and locked against other threads.

Its random streams are part of it.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from os import PathLike
from pathlib import Path
from typing import ClassVar, Concatenate, ParamSpec, Self, TypeVar

from numpy.typing import ArrayLike

from wgp_agents.core.feedback import checked_learners
from wgp_agents.core.origin import Origin, origin_of
from wgp_agents.core.randomness import UniformStreams
from wgp_agents.core.resume import restoration, state_of
from wgp_agents.core.state import Entry, State
from wgp_agents.core.state_file import read_state, write_file
from wgp_gym.validation import seed_list

__all__ = ["Stateful", "locked"]

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S", bound="Stateful")


def locked(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """Let one thread at a time into a method that reads or changes an agent."""

    @wraps(method)
    def _held(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with self._lock:
            return method(self, *args, **kwargs)

    return _held


class Stateful:
    """An agent, as to what it knows: see `wgp_agents.core.state`."""

    _constants: ClassVar[tuple[str, ...]] = ("_origin",)
    """Attributes of its class that are no part of its state: see `wgp_agents.core.state`."""
    _form: ClassVar[int] = 1
    """Of its state; a class whose states of before cannot be followed has the next."""
    num_learners: int

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._streams: UniformStreams | None = None
        self._origin: Origin | None = None  # what it was before its first `reset`

    def __getstate__(self) -> dict[str, object]:
        """Return all but the lock, which belongs to this process."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        """Restore a state, with a new lock."""
        self.__dict__.update(state)
        self._lock = threading.RLock()

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Return a copy of the state at one moment, whatever other threads do."""
        with self._lock:
            memo[id(self)] = copied = type(self).__new__(type(self))
            copied.__setstate__(copy.deepcopy(self.__getstate__(), memo))
            return copied

    def _known_origin(self) -> Origin:
        """Return what this agent was made as."""
        if self._origin is None:
            self._origin = origin_of(self)
        return self._origin

    def _make_part(self, name: str) -> object:
        """Return a new part for the attribute `name`, which a state has, and this agent not yet."""
        return UniformStreams([0] * self.num_learners) if name == "_streams" else None

    def _require_reset(self) -> UniformStreams:
        if self._streams is None:
            raise RuntimeError(f"Call {type(self).__name__}.reset() before it plays.")
        return self._streams

    @locked
    def reseed(
        self, seed: int | Sequence[int] | None = None, *, learners: ArrayLike | None = None
    ) -> None:
        """Draw from other random streams from now on; all that is known stays.

        Args:
            seed: As in `reset`; None takes fresh entropy.
            learners: Whose, `(B,)`. Default: all.

        Raises:
            RuntimeError: If `reset` was not called before.
            ValueError: As `reset` does.
        """
        mask = checked_learners("learners", "reseed", learners, self.num_learners)
        self._require_reset().reseed(seed_list(seed, self.num_learners), mask)

    @locked
    def state_dict(self) -> State:
        """Return all that the learners know, as arrays and plain values by name.

        Functions, the problem and what follows from the parameters are no part of it. The arrays
        are copies.

        Raises:
            RuntimeError: If `reset` was not called before.
            TypeError: If a part of your own holds what cannot be written down; the error names it.
        """
        self._require_reset()
        return state_of(self, self._known_origin())

    @locked
    def load_state_dict(self, state: Mapping[str, Entry]) -> None:
        """Go on from the state of an agent of the same class, parameters and problem.

        Until the next `reset` it plays just as that one would, whatever its seed and past were.
        B and B_T are those of the episode in which the state was taken.

        Args:
            state: What `state_dict` returned.

        Raises:
            ValueError: If it is the state of another agent, or none, or of another format. The
                agent is then as it was.
        """
        restoration(self, state, self._known_origin()).apply()

    def save(self, path: str | PathLike[str]) -> None:
        """Write `state_dict` to a file, whole or not at all: an .npz archive without pickle.

        Raises:
            RuntimeError: If `reset` was not called before.
            TypeError: If a part of your own holds what cannot be written down; the error names it.
            OSError: If the file cannot be written.
        """
        write_file(self.state_dict(), Path(path))

    @locked
    def load(self, path: str | PathLike[str]) -> None:
        """Go on from a file that `save` wrote: see `load_state_dict`. No code in a file is run.

        Raises:
            ValueError: If it is no such file, damaged, or far larger than one of this agent, or the
                state of another agent or format. The agent is then as it was.
            OSError: If the file cannot be read.
        """
        held = sum(trace.held for trace in self._known_origin().values())
        self.load_state_dict(read_state(Path(path), held))
