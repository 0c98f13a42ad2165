"""The cache of machine code: kept for the next process, private, and never in the way."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numba
import pytest
from numba.core.caching import FunctionCache

from wgp_agents.kernels import jit

READ = "from wgp_agents.core.argmax import fill_argmax as f; import numpy as np\n" + (
    "f(np.ones((1, 2)), np.zeros(1), 0.0, np.zeros(1, int))\n"
    "print(sum(f.stats.cache_hits.values()))"
)
PLAY = "import wgp_agents, gymnasium\n" + (
    "agent = wgp_agents.make('ucb1', gymnasium.make('WGPBandit-ArmsAbrupt-v0', horizon=5))\n"
    "agent.reset(0); agent.observe(agent.act(), 1.0); print(agent.act())"
)
NOT_KEPT = "Compiled code cannot be kept (.*)Set NUMBA_CACHE_DIR to a folder that can be written."


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give the process an empty home and no cache."""
    for name in ("XDG_CACHE_HOME", "LOCALAPPDATA", "NUMBA_CACHE_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    yield tmp_path
    jit.cache_folder.cache_clear()


def twice(x: Any) -> Any:
    return 2 * x


def hits(x: float = 3) -> int:
    """Compile and call a function as a new process would; return how often code was read."""
    jit.cache_folder.cache_clear()
    function: Any = jit.compiled(twice)
    assert function(x) == 2 * x
    return sum(function.stats.cache_hits.values())


def kept(home: Path) -> list[Path]:
    return sorted(home.rglob("*.nb[ci]"))


def process(code: str) -> tuple[str, str]:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip(), done.stderr


@pytest.mark.slow
def test_the_next_process_reads_what_one_compiled(home: Path) -> None:
    assert process(READ) == ("0", "")
    assert process(READ) == ("1", "")
    assert kept(home)


@pytest.mark.slow
def test_agents_play_without_a_home(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "file").touch()
    monkeypatch.setenv("HOME", str(home / "file" / "home"))
    _, warning = process(PLAY)
    assert warning.count("Set NUMBA_CACHE_DIR to a folder that can be written.") == 1


@pytest.mark.slow
def test_agents_play_where_numba_has_no_such_cache() -> None:
    other = "import numba.core.caching as own; del own.CompileResultCacheImpl\n"
    _, warning = process(other + PLAY)
    assert warning.count("(the cache of numba ") == 1


def test_a_cache_that_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jit.KernelCacheImpl, "_locator_classes", ())
    with pytest.warns(RuntimeWarning, match=r"the cache of numba \S+ is of an unknown kind"):
        assert hits() == 0
    with pytest.warns(RuntimeWarning, match=r"the cache of numba \S+ is of an unknown kind"):
        jit.keep(object(), twice)


@pytest.mark.parametrize(
    ("system", "variable", "place"),
    [
        ("linux", "HOME", ".cache"),
        ("linux", "XDG_CACHE_HOME", ""),
        ("darwin", "HOME", "Library/Caches"),
        ("win32", "LOCALAPPDATA", ""),
    ],
)
def test_the_place_of_the_cache(
    system: str, variable: str, place: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setenv(variable, str(home / "own"))
    assert jit.users_cache() == home / "own" / place / "wgp-gym" / "kernels"


def test_checked_code_is_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [hits(), hits()] == [0, 1]
    monkeypatch.setattr(numba.config, "BOUNDSCHECK", not jit.settings.BOUNDSCHECK)
    assert hits() == 0


def test_a_change_in_any_compiled_file_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jit, "PACKAGE", tmp_path)
    for text, found in (("@compiled\n", 0), ("@compiled\n", 1), ("@compiled \n", 0)):
        (tmp_path / "other.py").write_text(text)
        assert hits() == found


def test_only_the_user_may_write_to_the_cache(home: Path) -> None:
    hits()
    folder = kept(home)[0].parent
    assert [place.stat().st_mode & 0o777 for place in (folder, folder.parent)] == [0o700] * 2
    folder.chmod(0o777)
    with pytest.warns(RuntimeWarning, match=f"others may write to {folder}"):
        assert hits() == 0


def test_a_folder_that_the_user_names(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(home / "named" / "deep"))
    assert [hits(), hits()] == [0, 1]
    assert kept(home) == kept(home / "named")


@pytest.mark.parametrize("where", ["below a file", "named below a file", "relative"])
def test_no_place_for_a_cache(where: str, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = home / "file"
    file.touch()
    if where == "named below a file":
        monkeypatch.setattr(numba.config, "CACHE_DIR", str(file / "named"))
    else:
        monkeypatch.setenv("HOME", "nowhere" if where == "relative" else str(file / "home"))
    with pytest.warns(RuntimeWarning, match=NOT_KEPT):
        assert hits() == 0
    assert not kept(home)


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("content", [b"", b"\x80\x05cnowhere\nnothing\n.", b"junk" * 100])
def test_a_damaged_cache_is_written_anew(kind: str, content: bytes, home: Path) -> None:
    hits()
    for path in home.rglob(f"*.{kind}"):
        path.write_bytes(content)
    assert [hits(), hits()] == [0, 1]


def test_code_for_other_arguments_is_not_taken(home: Path) -> None:
    hits(3)
    (first,) = home.rglob("*.nbc")
    hits(1.5)
    (second,) = set(home.rglob("*.nbc")) - {first}
    shutil.copy(first, second)
    assert [hits(1.5), hits(1.5)] == [0, 1]


def test_a_cache_out_of_reach_stays(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    hits(3)
    hits(1.5)
    with monkeypatch.context() as away, caplog.at_level("DEBUG", jit.__name__):
        away.setattr(FunctionCache, "_load_overload", Mock(side_effect=OSError("away")))
        assert hits(3) == 0
    assert "cannot be read: OSError('away')" in caplog.text
    assert hits(1.5) == 1


def test_a_cache_that_is_lost_on_the_way(home: Path) -> None:
    jit.cache_folder.cache_clear()
    function: Any = jit.compiled(twice)
    folder = home / ".cache"
    shutil.rmtree(folder)
    folder.touch()
    with pytest.warns(RuntimeWarning, match=NOT_KEPT):
        assert function(3) == 6


def test_caches_out_of_use_go(home: Path) -> None:
    hits()
    folder = kept(home)[0].parent
    for number in range(20):
        (folder.parent / f"old{number}").mkdir()
    os.utime(folder.parent / "old7", (0, 0))
    assert hits() == 1
    assert len(list(folder.parent.iterdir())) == 8
    assert not (folder.parent / "old7").exists()
