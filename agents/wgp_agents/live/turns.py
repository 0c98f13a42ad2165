"""Whose turn it is: a lock among threads, with a time limit, that survives a fork."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["Turns"]


class Turns:
    """One thread at a time, for at most so long a wait.

    A child process is born with a copy of the lock, perhaps held by a thread that it does not have:
    it gets a new one.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._lock = threading.Lock()
        self._owner: int | None = None
        _ALL.add(self)

    def mine(self) -> bool:
        """Return whether this thread has its turn now."""
        return self._owner == threading.get_ident()

    def take(self, timeout: float) -> bool:
        """Wait for the turn, and return whether it came."""
        if not self._lock.acquire(timeout=min(timeout, threading.TIMEOUT_MAX)):
            return False
        self._owner = threading.get_ident()
        return True

    def leave(self) -> None:
        """Let the next one in."""
        self._owner = None
        self._lock.release()

    @contextmanager
    def turn(self, timeout: float) -> Iterator[None]:
        """Wait for the turn, and leave when the block ends.

        Raises:
            RuntimeError: If this thread has it already: it would wait for itself.
            TimeoutError: If it did not come.
        """
        if self.mine():
            raise RuntimeError(f"This thread is in a session of the {self._what} already.")
        if not self.take(timeout):
            raise TimeoutError(
                f"The {self._what} is locked: another thread had it for {timeout:g} seconds."
            )
        try:
            yield
        finally:
            self.leave()

    def renew(self) -> None:
        """Forget, in a child process, the turn of a thread of its parent."""
        if not self.mine():
            self._lock, self._owner = threading.Lock(), None


_ALL: weakref.WeakSet[Turns] = weakref.WeakSet()


def _renew_all() -> None:
    for turns in list(_ALL):
        turns.renew()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_renew_all)
