"""Files are written whole or not at all, and pieces of work run with one thread."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from wgp_agents.benchmark.files import versions, write_whole
from wgp_agents.benchmark.parallel import run_in_order


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


def blas_threads(_: Any) -> list[int]:
    return [info["num_threads"] for info in threadpool_info() if info["user_api"] == "blas"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_piece_of_work_has_one_blas_thread(jobs: int) -> None:
    with threadpool_limits(2, "blas"):
        for found in run_in_order(blas_threads, [0, 1], jobs, "piece", "working"):
            assert set(found) == {1}
