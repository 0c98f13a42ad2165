"""What the commands say, on any terminal, and the pictures that they draw last."""

from __future__ import annotations

import io
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO

from wgp_agents.cli.arguments import UNEXPECTED, WRONG_REQUEST
from wgp_gym.validation import cut

__all__ = ["complain", "discard", "drawn", "prepare_streams", "refused", "say"]

EXTRAS = {
    "distributed": "dask",
    "ray": "ray",
    "pandas": "tables",
    "pyarrow": "tables",
    "torch": "rl",
    "stable_baselines3": "rl",
    "sb3_contrib": "rl",
}


def prepare_streams() -> None:
    """Let nothing that is said fail: letters that a terminal lacks are spelt out.

    A stream that the caller has closed is replaced by one that discards everything.
    """
    for number, stream in ((1, sys.stdout), (2, sys.stderr)):
        if stream is None:
            fill(number)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def fill(number: int) -> None:
    """Open a closed descriptor, unless another file has taken it: a worker must inherit one."""
    try:
        os.fstat(number)
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
        os.set_inheritable(number, True)


def say(text: str, end: str = "\n") -> None:
    """Print what a command has found; its reader, as `head`, may have seen enough."""
    try:
        print(text, end=end, flush=True)
    except BrokenPipeError:
        discard(sys.stdout)


def complain(command: str, text: str) -> None:
    """Print a line that says what went wrong."""
    print(f"wgp-gym {command}: {text}", file=sys.stderr, flush=True)


def refused(command: str, error: Exception) -> int:
    """Say why a request cannot be met; return the exit code."""
    remedy = ""
    package = (error.name or "").partition(".")[0] if isinstance(error, ImportError) else ""
    if package in EXTRAS:
        remedy = f" Install wgp-gym[{EXTRAS[package]}]."
    complain(command, f"error: {error}{remedy}")
    return WRONG_REQUEST


def discard(stream: IO[str]) -> None:
    """Discard all that is written to a stream from now on."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def drawn(command: str, draw: Callable[[], object], *pictures: Path) -> int:
    """Draw the pictures of a command, when all else is written and said; return the exit code.

    Where they cannot be drawn, their files are removed: an older picture beside new tables would
    mislead.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        try:
            remove(pictures)
            draw()
        except Exception as error:  # whatever it is, the results are there
            remove(pictures)
            text = " ".join(f"{type(error).__name__}: {error}".split())
            complain(command, f"error: the pictures were not drawn: {cut(text)}")
            return UNEXPECTED
    if pictures:
        say(f"Drawn: {', '.join(path.name for path in pictures)}")
    texts = list(dict.fromkeys(str(one.message) for one in caught))
    if texts:
        more = f" (and {len(texts) - 1} more)" if len(texts) > 1 else ""
        complain(command, f"warning: {cut(texts[0])}{more}")
    return 0


def remove(pictures: Iterable[Path]) -> None:
    """Remove what there is of pictures; what cannot be removed cannot be drawn either."""
    for path in pictures:
        with suppress(OSError):
            path.unlink()
