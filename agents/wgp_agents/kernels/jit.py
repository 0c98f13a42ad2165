"""The compiler of every compiled loop, and the cache that keeps machine code for later processes.

Numba's own cache looks at one source file alone, and raises where it cannot write or read. This
one keeps the code of all loops in one folder that is named by a hash of all their sources, so a
loop may call another file's. Where that cannot be done, every process compiles anew.

What is read from the cache is run. So the folder is the user's own, and is left alone where
others may write to it. A folder named in NUMBA_CACHE_DIR is taken at the user's word: it may be
shared, and filled beforehand and then only read.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import os
import shutil
import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

try:  # they are numba's own, so another version may have none; `keep` notices
    from numba.core.caching import CompileResultCacheImpl, FunctionCache
    from numba.core.runtime.nrt import rtsys
except (ImportError, AttributeError):
    CompileResultCacheImpl = FunctionCache = object  # type: ignore[misc, assignment]

__all__ = ["compiled", "subroutine"]

LOG = logging.getLogger(__name__)
F = TypeVar("F", bound=Callable[..., Any])
PACKAGE = Path(__file__).parents[1]
COMPILED_FROM = (
    b"@compiled",
    b"@subroutine",
    b"(NamedTuple)",
)  # loops, and the layout of what they are given
settings: Any = numba.config
KEPT = 8  # folders of versions that stay in the user's cache


def compiled(function: F, **options: Any) -> F:
    """Compile a function of this package with numba, and keep the machine code where possible."""
    how = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, **options}
    machine: Any = numba.njit(**how)(function)
    if machine is not function and cache_folder() is not None:  # the same: NUMBA_DISABLE_JIT
        keep(machine, function)
    return cast(F, machine)


def subroutine(function: F) -> F:
    """Compile a function that only compiled ones call: faster, as Python's way in is left out."""
    return compiled(function, no_cpython_wrapper=True)


def keep(machine: Any, function: Callable[..., Any]) -> None:
    """Give a compiled function its cache; warn if this version of numba has another kind."""
    try:
        if not (hasattr(machine, "_cache") and hasattr(FunctionCache, "_load_overload")):
            raise AttributeError("a compiled function has no _cache, or one of another kind")
        machine._cache = KernelCache(function)  # type: ignore[no-untyped-call]
    except Exception as error:  # there is no end to what another version may raise
        LOG.debug("No cache of %s: %r", function.__qualname__, error)
        warn(f"the cache of numba {numba.__version__} is of an unknown kind")


@functools.cache
def cache_folder() -> Path | None:
    """Return the folder of this version's machine code; None, with a warning, if there is none."""
    try:
        if getattr(settings, "CACHE_LOCATOR_CLASSES", ""):  # they would look at one file alone
            raise FileNotFoundError("NUMBA_CACHE_LOCATOR_CLASSES is set")
        given = settings.CACHE_DIR
        if given:
            folder = Path(given) / f"wgp-gym-{version()}"
            folder.mkdir(parents=True, exist_ok=True)
        else:
            folder = users_cache() / version()
            make_private(folder)
            os.utime(folder)  # it is in use
            drop_old(folder.parent)
    except OSError as error:
        warn(error)
        return None
    return folder


def version() -> str:
    """Return a hash of all compiled sources and of the settings that they are compiled with.

    Raises:
        OSError: If there are no sources, as in an archive.
    """
    found = hashlib.sha256(f"{numba.__version__} {settings.BOUNDSCHECK}".encode())
    sources = [path.read_bytes() for path in sorted(PACKAGE.rglob("*.py"))]
    if not sources:
        raise FileNotFoundError(f"no source files in {PACKAGE}")
    for source in sources:
        if any(mark in source for mark in COMPILED_FROM):
            found.update(source)
    return found.hexdigest()[:16]


def users_cache() -> Path:
    """Return this package's folder in the user's cache directory.

    Raises:
        OSError: If the user has no home.
    """
    if sys.platform == "win32":
        place = os.environ.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        place = "~/Library/Caches"
    else:
        place = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    folder = Path(os.path.expanduser(place), "wgp-gym", "kernels")
    if not folder.is_absolute():
        raise FileNotFoundError("no home directory")
    make_private(folder)
    return folder


def make_private(folder: Path) -> None:
    """Make a folder that nobody else may write to.

    Raises:
        OSError: If that cannot be done, or the folder is there and others may write to it.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.stat()
    if os.name == "posix" and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
        raise PermissionError(f"others may write to {folder}")


def drop_old(parent: Path) -> None:
    """Remove all but the folders of machine code that were last in use."""
    with suppress(OSError):  # another process may do the same
        for folder in sorted(parent.iterdir(), key=lambda place: place.stat().st_mtime)[:-KEPT]:
            shutil.rmtree(folder, ignore_errors=True)


def warn(reason: object) -> None:
    """Say that machine code is not kept; Python shows a text once in a process."""
    warnings.warn(
        f"Compiled code cannot be kept ({reason}), so each process compiles it anew. Set "
        "NUMBA_CACHE_DIR to a folder that can be written.",
        RuntimeWarning,
        stacklevel=1,
    )


class Place:
    """Where numba keeps a function's code: its "cache locator"."""

    def __init__(self, function: Callable[..., Any]) -> None:
        code = function.__code__
        self.folder = str(cache_folder())
        self.name = f"{function.__module__}-{code.co_firstlineno}"

    @classmethod
    def from_function(cls, function: Callable[..., Any], file: str) -> Place:
        """Return a function's place."""
        del file
        return cls(function)

    def get_cache_path(self) -> str:
        """Return the folder."""
        return self.folder

    def ensure_cache_path(self) -> None:
        """Make the folder, should it have been removed."""
        os.makedirs(self.folder, mode=0o700, exist_ok=True)

    def get_source_stamp(self) -> str:
        """Return what tells sources apart: nothing, as the folder's name does."""
        return ""

    def get_disambiguator(self) -> str:
        """Return what tells functions of one name apart."""
        return self.name


class KernelCacheImpl(CompileResultCacheImpl):
    """What numba keeps of a function, at its `Place`."""

    _locator_classes: Any = (Place,)


class KernelCache(FunctionCache):
    """The kept code of one function. A cache that fails costs time, never a play."""

    _impl_class = KernelCacheImpl

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the code for a signature, None if there is none that can be read."""
        try:
            # numba's own first loads all that it compiles with, for 0.3 s. What is compiled already
            # calls numba's runtime, and else what numba has loaded when it was imported.
            found = None
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                found = self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]
            # two processes that write at once may leave one's code under the other's signature
            if found is None or found.signature.args == tuple(sig):
                return found
            reason: Any = "it is for other arguments"
        except OSError as error:  # out of reach for now: what others keep there may be whole
            LOG.debug("Compiled code in %s cannot be read: %r", self.cache_path, error)
            return None
        except Exception as error:  # a damaged file may raise anything
            reason = error
        LOG.debug("Compiled code in %s is damaged: %r", self.cache_path, reason)
        with suppress(OSError):
            self.flush()  # type: ignore[no-untyped-call] # a damaged index would bar new code
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep the code for a signature, if possible."""
        try:
            super().save_overload(sig, data)  # type: ignore[no-untyped-call]
        except Exception as error:
            warn(f"{getattr(error, 'strerror', None) or error!r} in {self.cache_path}")
