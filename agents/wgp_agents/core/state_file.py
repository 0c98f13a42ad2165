"""The file of a state: an ordinary .npz archive without pickle, which anybody may have made."""

from __future__ import annotations

import io
import json
import math
import os
import zipfile
from pathlib import Path
from typing import NoReturn

import numpy as np
from numpy.lib import format as npy

from wgp_agents.core.state import KINDS, Entry, State
from wgp_agents.core.zips import array_header
from wgp_gym.types import AnyArray
from wgp_gym.validation import cut

__all__ = ["packed", "read_state", "unpacked", "write_file"]

PLAIN = "plain"  # the array that holds all that is no array, in JSON
ROOM = 1 << 26  # bytes, and so many times what the agent itself holds, that a file may have
TIMES = 64
SINCE = (1980, 1, 1, 0, 0, 0)  # so that the same state is the same file


def write_file(state: State, path: Path) -> None:
    """Write a state, whole or not at all."""
    data = packed(state)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with part.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def packed(state: State) -> bytes:
    """Return the bytes of a state's file."""
    plain = {name: entry for name, entry in state.items() if not isinstance(entry, np.ndarray)}
    arrays = {name: entry for name, entry in state.items() if isinstance(entry, np.ndarray)}
    arrays[PLAIN] = np.frombuffer(json.dumps(plain).encode(), np.uint8)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:  # stored, not packed: it is read so, too
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy", SINCE)
            with archive.open(entry, "w", force_zip64=True) as member:
                npy.write_array(member, array, (1, 0), allow_pickle=False)
    return file.getvalue()


def read_state(path: Path, held: int) -> State:
    """Return the state in a file, for an agent whose own state has `held` bytes.

    No more memory is taken than the file has bytes, and no file is read that has far more than the
    agent.

    Raises:
        ValueError: If it is no file of a state, or damaged.
        OSError: If it cannot be opened.
    """
    with path.open("rb") as file:
        size, most = os.fstat(file.fileno()).st_size, ROOM + TIMES * held
        if size > most:
            bad(path, f"it has {size:,} bytes, and the state of such an agent at most {most:,}")
        data = file.read(most + 1)
    try:
        return unpacked(data)
    except ValueError as error:
        bad(path, str(error))


def unpacked(data: bytes) -> State:
    """Return the state that `packed` made bytes of.

    Raises:
        ValueError: If they are others, or damaged.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return entries(archive, len(data))
    except Exception as error:  # whatever bytes make zipfile, numpy and json raise
        raise ValueError(f"{type(error).__name__}: {error}") from None


def bad(path: Path, fault: str) -> NoReturn:
    """Raise the ValueError of a file that is none."""
    raise ValueError(
        f"The 'path' parameter of load must be the file of a state, as save writes it. Got "
        f"{cut(str(path), 200)!r} instead, damaged or another file: {cut(fault, 200)}."
    ) from None


def entries(archive: zipfile.ZipFile, size: int) -> State:
    """Return the entries of a state's file, which has `size` bytes."""
    members = archive.infolist()
    names = [member.filename.removesuffix(".npy") for member in members]
    stored = all(member.compress_type == zipfile.ZIP_STORED for member in members)
    if not stored or sum(member.file_size for member in members) > size:
        raise ValueError("it is packed in a way that may need any memory")
    if len(set(names)) < len(names):
        raise ValueError("it holds two arrays of one name")
    arrays = {n: array_of(archive, member) for n, member in zip(names, members, strict=True)}
    plain = json.loads(arrays.pop(PLAIN).tobytes())
    if not isinstance(plain, dict) or {*plain} & {*arrays}:
        raise ValueError("its plain entries are no table")
    kinds = {type(value) for value in plain.values()}
    if not kinds <= {bool, int, float, str, type(None)}:
        raise ValueError("its plain entries are no numbers and texts")
    state: dict[str, Entry] = {**plain, **arrays}
    return state


def array_of(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> AnyArray:
    """Return an array of an archive; it cannot be written to."""
    with archive.open(member) as file:
        shape, fortran, dtype = array_header(file)
        data = file.read()  # to its end, where its own checksum is compared
    whole = all(n >= 0 for n in shape) and len(data) == dtype.itemsize * math.prod(shape)
    if dtype.kind not in KINDS or not whole:
        raise ValueError(f"{member.filename} is no array of numbers of its size")
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")
