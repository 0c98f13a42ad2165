"""What is asked of zip archives that may come from anybody."""

from __future__ import annotations

import zipfile

__all__ = ["plainly_packed"]


def plainly_packed(archive: zipfile.ZipFile) -> bool:
    """Tell whether all is stored or deflated: to unpack other things may need any memory."""
    plain = zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED
    return all(entry.compress_type in plain for entry in archive.infolist())
