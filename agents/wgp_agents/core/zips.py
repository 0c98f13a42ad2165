"""What is asked of zip archives that may come from anybody."""

from __future__ import annotations

import zipfile
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

__all__ = ["array_header", "plainly_packed"]

MOST_HEADER = 256  # characters of an array's header: numpy writes 118 for arrays of few dimensions


def plainly_packed(archive: zipfile.ZipFile) -> bool:
    """Tell whether all is stored or deflated: to unpack other things may need any memory."""
    plain = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
    return all(entry.compress_type in plain for entry in archive.infolist())


def array_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Return the shape, whether it is in Fortran order, and the type of an array in a file.

    Raises:
        ValueError: If it is no array in the one format that numpy writes such arrays in.
    """
    if npy.read_magic(file) != (1, 0):
        raise ValueError("it holds an array of another format")
    found: tuple[tuple[int, ...], bool, np.dtype[Any]]
    found = npy.read_array_header_1_0(file, max_header_size=MOST_HEADER)
    return found
