"""A unit's file: an ordinary .npz archive of arrays that shows what was done to it.

The archive's own checksums (CRC-32) show damage. Anybody can reckon a checksum, though: nothing is
taken from a file, and no memory for it, that is not of the very type and shape that is asked for.
"""

from __future__ import annotations

import io
import json
import math
import zipfile
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgp_agents.benchmark.files import Damaged, Row
from wgp_agents.benchmark.layout import Arrays, Layout
from wgp_agents.benchmark.output import LONGEST, diff_values
from wgp_agents.core.zips import array_header, plainly_packed
from wgp_gym.validation import cut

__all__ = ["pack", "room_for", "unpack"]

IDENTITY = "identity"  # the array that says what the unit is, in JSON
ROOM = 1 << 16  # bytes for headers, and for the identity of another unit


def pack(arrays: Arrays, identity: Row) -> bytes:
    """Return the bytes of a unit's file."""
    buffer = io.BytesIO()
    np.savez(
        buffer,
        allow_pickle=False,
        **arrays,
        **{IDENTITY: np.frombuffer(written(identity), np.uint8)},
    )
    return buffer.getvalue()


def written(identity: Row) -> bytes:
    """Return what is written of an identity."""
    return json.dumps(identity, sort_keys=True).encode()


def room_for(layout: Layout, identity: Row) -> int:
    """Return how many bytes a unit's file has at most."""
    sizes = [dtype.itemsize * math.prod(shape) for dtype, shape in layout.values()]
    return sum(sizes) + len(written(identity)) + ROOM


def unpack(data: bytes, layout: Layout, identity: Row, names: Iterable[str]) -> Arrays:
    """Return the named arrays of a unit's file, from its bytes; they cannot be written to.

    Raises:
        Damaged: If it is not the file of this unit, as `pack` writes it.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as stored:
            if not plainly_packed(stored):
                raise Damaged("is packed in a way that may need any memory.")
            held = sorted(name.removesuffix(".npy") for name in stored.namelist())
            if held != sorted([*layout, IDENTITY]):
                raise Damaged(f"holds other arrays: {cut(', '.join(held), LONGEST)}.")
            check_identity(stored, identity)
            return {name: member(stored, name, *layout[name]) for name in names}
    except Damaged:
        raise
    except Exception as error:  # whatever a file makes zipfile, numpy and json raise
        fault = cut(f"{type(error).__name__}: {error}", LONGEST)
        raise Damaged(f"is damaged, or no archive of arrays ({fault}).") from error


def check_identity(stored: zipfile.ZipFile, identity: Row) -> None:
    """Check that a file is that of a unit."""
    with stored.open(f"{IDENTITY}.npy") as file:
        (length,), _, dtype = array_header(file)
        if dtype != np.uint8 or length > len(written(identity)) + ROOM:
            raise Damaged("does not say what unit it is of.")
        found, meant = json.loads(file.read(length)), json.loads(written(identity))
    if not isinstance(found, dict):
        raise Damaged("does not say what unit it is of.")
    for what in diff_values(found, meant, "its"):
        raise Damaged(f"holds the results of another unit: {what}.")


def member(
    stored: zipfile.ZipFile, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]
) -> NDArray[Any]:
    """Return an array, of the one type and shape that it may have."""
    with stored.open(f"{name}.npy") as file:
        if array_header(file) != (shape, False, dtype):
            raise Damaged(f"holds {name!r} of another type or shape.")
        size = dtype.itemsize * math.prod(shape)
        data = file.read(size + 1)  # to its end, where its own checksum is compared
    if len(data) != size:
        raise Damaged(f"holds {name!r} of another type or shape.")
    return np.frombuffer(data, dtype).reshape(shape)
