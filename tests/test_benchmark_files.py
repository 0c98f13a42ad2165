"""Files are written whole or not at all, and say what wrote them."""

from __future__ import annotations

from pathlib import Path

import pytest

from wgp_agents.benchmark.files import versions, write_whole


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a"
    path.write_text("old", "utf-8")

    def _full(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:1])
        raise OSError("No space left on device")

    monkeypatch.setattr(Path, "write_bytes", _full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new")
    assert path.read_text("utf-8") == "old"


def test_versions_name_the_package_and_what_is_asked_for() -> None:
    found = versions(["pytest"])
    assert found["pytest"] == pytest.__version__
    assert {"wgp-gym", "numpy", "gymnasium", "python"} <= set(found)
