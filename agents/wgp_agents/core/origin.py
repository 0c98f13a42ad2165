"""What an agent was made as, in a few numbers: an agent that was made otherwise has others."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple
from zlib import crc32

import numpy as np

from wgp_agents.core.access import Reader
from wgp_agents.core.functions import BYTECODE, Code, inside, name_of
from wgp_agents.core.state import CONSTANT, FOREIGN, ROOT, root_of
from wgp_gym.types import AnyArray

__all__ = ["Origin", "Trace", "differences", "origin_of"]


class Trace(NamedTuple):
    """A few numbers that tell an array, a number or a text from others.

    Attributes:
        kind: Of its type and shape, or of a text.
        total: A weighted sum of some of its numbers.
        size: The sum of their absolute values.
        held: Its bytes.
    """

    kind: float
    total: float = 0.0
    size: float = 0.0
    held: int = 0


Origin = dict[str, Trace]
"""The traces of all that is in an agent, by path."""

NO_PART = ("_lock", "_made_for")  # of an agent; the latter is its problem once more
LEFT_OUT = {  # what differs from episode to episode, and how observations are shown, by class
    "BanditProblem": ("norm_bound", "variation_budget"),
    "Wrapped": ("frames", "shape", "late"),
}
PLAIN = (str, bool, int, float, np.ndarray, np.generic, Code)
SAMPLE = 1000  # numbers of an array that are looked at
WEIGHTS = np.cos(np.arange(SAMPLE))
MOST, DEEPEST = 10_000, 50  # parts, and attributes of attributes, of whatever a user's own holds
CLOSE = 1e-6  # of the sum of sizes: another processor rounds otherwise
CODE = -1.0  # the kind of code, whose size is the version that it was compiled for


def origin_of(agent: object) -> Origin:
    """Return what an agent that has just been made is: its parameters, its problem and tables."""
    origin: Origin = {}
    for path, value in islice(leaves(agent, ROOT, {}), MOST):
        if isinstance(value, (np.ndarray, bool, int, float, np.generic)):
            origin[path] = traced(np.asarray(value))
        elif isinstance(value, Code):
            origin[path] = Trace(CODE, float(crc32(value.text.encode())), BYTECODE)
        else:
            origin[path] = Trace(float(crc32(str(value).encode())))
    return origin


def leaves(value: object, path: str, seen: dict[int, object]) -> Iterator[tuple[str, object]]:
    """Yield the arrays, numbers and texts of a part, by path; of others the name of their kind."""
    if value is None or isinstance(value, PLAIN):
        yield path, value
    elif id(value) not in seen and not isinstance(value, Reader) and path.count(".") < DEEPEST:
        seen[id(value)] = value
        yield path, name_of(value if isinstance(value, CONSTANT) else type(value))
        for name, child in below(value).items():
            yield from leaves(child, f"{path}.{name}", seen)


def below(value: object) -> dict[object, object]:
    """Return what is in a collection or an object, by name."""
    if isinstance(value, dict):
        return value
    if isinstance(value, (list, tuple)):
        return dict(enumerate(value))
    if isinstance(value, CONSTANT) or root_of(type(value)) in FOREIGN:
        return inside(value, FOREIGN)
    left = LEFT_OUT.get(type(value).__name__, ())
    held = getattr(value, "__dict__", {})
    return {name: one for name, one in held.items() if name not in (*left, *NO_PART)}


def traced(array: AnyArray) -> Trace:
    """Return the trace of an array."""
    kind = kind_of(array.dtype.kind, array.shape)
    if array.dtype.kind not in "biuf":
        return Trace(kind)
    looked_at = array.flat[:: 1 + array.size // SAMPLE]  # each agent does so at its first reset
    flat = looked_at.astype(float)
    if not np.isfinite(flat).all():
        flat = np.nan_to_num(flat, nan=-1.5)
    tame = np.arcsinh(flat)  # no sum of numbers of any size overflows
    weights = WEIGHTS[: flat.size]
    return Trace(kind, float(weights @ tame), float(np.abs(tame).sum()), array.nbytes)


@functools.cache
def kind_of(letter: str, shape: tuple[int, ...]) -> float:
    """Return what tells arrays of one type and shape from others."""
    return float(crc32(f"{letter}{shape}".encode()))


def differences(mine: Origin, others: AnyArray) -> str | None:
    """Return the first path at which another origin, its rows `(L, 3)`, differs; None: nowhere."""
    if others.shape != (len(mine), 3):
        return ROOT
    for (path, trace), (kind, total, size) in zip(mine.items(), others.tolist(), strict=True):
        if trace.kind == kind == CODE and trace.size != size:
            continue  # another Python's, which cannot be compared
        if trace.kind != kind or not abs(trace.total - total) <= CLOSE * max(trace.size, CLOSE):
            return path
    return None
