"""Results that somebody has edited or forged: named and played again, or refused; never trusted."""

from __future__ import annotations

import json
import math
import os
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_small import SIX_RUNS, Table, members, play, saved, stored, zipped

from wgp_agents.benchmark.declaration import declare
from wgp_agents.benchmark.files import Damaged
from wgp_agents.benchmark.folder import ResultsFolder
from wgp_agents.benchmark.play import attempt
from wgp_agents.benchmark.results import load_results

LABEL = "SW-GP-UCB window=10"


def headed(text: str, data: bytes = b"") -> bytes:
    """Return an array with a header of one's own."""
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode() + data


def shaped(shape: str, descr: str = "'<f4'") -> bytes:
    return headed(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n")


SHAPE = "of another type or shape"
VALUE = "that cannot be"
ODD = "is damaged, or no archive of arrays"
ARRAYS: dict[str, tuple[str, Callable[[], bytes], str]] = {
    "a huge shape": ("regret", lambda: shaped("(2, 99999999999999)"), SHAPE),
    "a shape of nothing": ("regret", lambda: shaped("(2, 20)"), SHAPE),
    "a negative shape": ("regret", lambda: shaped("(-2, -20)"), SHAPE),
    "nested brackets": ("regret", lambda: shaped("(" * 500), ODD),
    "nested lists": ("regret", lambda: shaped("[" * 90 + "]" * 90), ODD),
    "nested signs": ("regret", lambda: shaped("-" * 180 + "1"), ODD),
    "objects": ("regret", lambda: saved(np.array([[None] * 20] * 2)), SHAPE),
    "records": ("regret", lambda: shaped("(2, 20)", "[('a', '<f4')]"), SHAPE),
    "doubles": ("regret", lambda: saved(np.ones((2, 20))), SHAPE),
    "columns first": ("regret", lambda: saved(np.ones((2, 20), np.float32, order="F")), SHAPE),
    "fewer steps": ("regret", lambda: saved(np.ones((2, 19), np.float32)), SHAPE),
    "fewer runs": ("env_seed", lambda: saved(np.ones(1, np.int64)), SHAPE),
    "nothing": ("regret", lambda: b"", ODD),
    "negative regret": ("regret", lambda: saved(-np.ones((2, 20), np.float32)), VALUE),
    "regret that is NaN": ("regret", lambda: saved(np.full((2, 20), np.nan, np.float32)), VALUE),
    "infinite regret": ("final_regret", lambda: saved(np.full(2, np.inf)), VALUE),
    "another sum": ("final_regret", lambda: saved(np.full(2, 1e-3)), VALUE),
    "other seeds": ("agent_seed", lambda: saved(np.arange(2)), VALUE),
    "no such arm": ("action", lambda: saved(np.full((2, 20), 100, np.uint8)), VALUE),
    "no truth value": (
        "changed",
        lambda: saved(np.zeros((2, 20), bool))[:-1] + b"\x07",
        VALUE,
    ),
    "an identity of arrays": ("identity", lambda: saved(np.ones((2, 2))), ODD),
    "a huge identity": ("identity", lambda: shaped("(99999999999,)", "'|u1'"), "does not say"),
    "a list for an identity": ("identity", lambda: saved(np.frombuffer(b"[]", "u1")), "not say"),
    "a nested identity": ("identity", lambda: saved(np.frombuffer(b"[" * 9999, "u1")), ODD),
}


@pytest.mark.parametrize("what", ARRAYS)
def test_a_right_checksum_makes_no_right_arrays(what: str, whole: Path, copy: Path) -> None:
    path = sorted(copy.glob("units/*/sw*/0000000.npz"))[0]
    name, made, fault = ARRAYS[what]
    path.write_bytes(zipped(members(path.read_bytes()) | {f"{name}.npy": made()}))
    folder = ResultsFolder.open(copy)
    (unit,) = (one for one in folder.experiment.units() if folder.file(one) == path)
    with pytest.raises(Damaged, match=f"{re.escape(str(path))} .*{fault}.* A run plays it again"):
        folder.read(unit)
    assert play(SIX_RUNS, copy) == []
    assert f"{path} " in (copy / "log.txt").read_text()
    assert stored(copy) == stored(whole)


def test_a_bomb_is_not_unpacked(whole: Path, copy: Path) -> None:
    path = sorted(copy.glob("units/*/sw*/0000000.npz"))[0]
    parts = members(path.read_bytes())
    bomb = shaped("(2, 20)") + bytes(1 << 24)
    path.write_bytes(zipped(parts | {"regret.npy": bomb}, zipfile.ZIP_DEFLATED))
    with pytest.raises(Damaged, match=SHAPE):
        load_results(copy).regret("abrupt", LABEL)
    with path.open("wb") as file:
        file.truncate(1 << 40)  # a hole: it takes no room on the disk
    with pytest.raises(Damaged, match="is larger than it can be"):
        load_results(copy).regret("abrupt", LABEL)
    assert play(SIX_RUNS, copy) == []
    assert stored(copy) == stored(whole)


@pytest.mark.parametrize("method", [zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2])
def test_other_ways_of_packing_are_refused(method: int, copy: Path) -> None:
    path = sorted(copy.glob("units/*/sw*/0000000.npz"))[0]
    path.write_bytes(zipped(members(path.read_bytes()), method))
    with pytest.raises(Damaged, match="is packed in a way that may need any memory"):
        load_results(copy).regret("abrupt", LABEL)


def test_arrays_that_cannot_be_are_not_written(tmp_path: Path) -> None:
    experiment = declare(SIX_RUNS)
    (unit, *_) = experiment.units()
    arrays = attempt(unit).arrays
    assert arrays is not None
    with ResultsFolder.open_to_write(tmp_path, experiment) as folder:
        for name, array in (("regret", -arrays["regret"]), ("changed", arrays["regret"])):
            with pytest.raises(Damaged, match=f"'{name}'"):
                folder.write(unit, arrays | {name: array})
        del arrays["changed"]
        with pytest.raises(Damaged, match="other arrays"):
            folder.write(unit, arrays)
    assert stored(tmp_path) == {}


def within(*keys: Any) -> Callable[[Any, Any], None]:
    """Return what sets a place in a manifest."""

    def _set(manifest: Any, value: Any) -> None:
        for key in keys[:-1]:
            manifest = manifest[key]
        if value is KeyError:
            del manifest[keys[-1]]
        else:
            manifest[keys[-1]] = value

    return _set


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


MANIFESTS: list[tuple[tuple[Any, ...], Any]] = [
    (("experiment", "seeds"), 10**12),
    (("experiment", "seeds"), 10**4000),
    (("experiment", "seeds"), 6.0),
    (("experiment", "seeds"), True),
    (("experiment", "seeds"), math.nan),
    (("experiment", "seeds"), 0),
    (("experiment", "batch"), -1),
    (("experiment", "batch"), 1_000_001),
    (("experiment", "root_seed"), "2022"),
    (("experiment", "cuts"), ["1"]),
    (("experiment", "cuts"), [-1]),
    (("experiment", "cuts"), 3),
    (("experiment", "title"), None),
    (("experiment", "source"), []),
    (("experiment", "tasks"), []),
    (("experiment", "tasks"), {}),
    (("experiment", "tasks", 0), "abrupt"),
    (("experiment", "tasks", 0, "id"), "WGPBandit-Gone-v0"),
    (("experiment", "tasks", 0, "id"), ["WGPBandit-Abrupt-v0"]),
    (("experiment", "tasks", 0, "kwargs"), KeyError),
    (("experiment", "tasks", 0, "kwargs"), deep(2)),
    (("experiment", "tasks", 0, "kwargs", "theta"), deep(200)),
    (("experiment", "tasks", 0, "more"), 1),
    (("experiment", "tasks", 0, "seed_name"), 3),
    (("experiment", "tasks", 0, "varied"), 3),
    (("experiment", "agents", 0, "name"), "gone"),
    (("experiment", "agents", 0, "label"), LABEL),
    (("experiment", "agents", 0, "label"), "two\rlines"),
    (("experiment", "agents", 0, "varied"), None),
    (("experiment", "agents", 0, "varied"), 3),
    (("experiment",), KeyError),
    (("files",), []),
    (("files", "p.csv"), "0" * 64),
    (("sizes",), {}),
    (("sizes", "abrupt", "horizon"), "20"),
    (("sizes", "abrupt", "arms"), 10**30),
    (("sizes", "abrupt"), [20, 100, 0]),
    (("versions",), {}),
    (("versions", "wgp-gym"), 1),
    (("versions", "numpy"), "\n"),
    (("format",), ["wgp-gym results 2"]),
    (("format",), "x" * 10**5),
    (("more",), 1),
]


@pytest.mark.parametrize(
    ("keys", "value"), MANIFESTS, ids=[f"{k}-{str(v)[:20]!a}" for k, v in MANIFESTS]
)
def test_a_manifest_that_was_edited_is_refused(
    keys: tuple[Any, ...], value: Any, copy: Path
) -> None:
    path = copy / "manifest.json"
    manifest = json.loads(path.read_text())
    within(*keys)(manifest, value)
    path.write_text(json.dumps(manifest))
    before = stored(copy)
    for use in (lambda: load_results(copy), lambda: play(SIX_RUNS, copy)):
        with pytest.raises(Damaged, match=r"manifest\.json is (no manifest|of the format)") as told:
            use()
        assert len(str(told.value)) < 1000
    assert stored(copy) == before


@pytest.mark.parametrize("size", [{"horizon": 19}, {"arms": 99}, {"dim": 1}])
def test_sizes_that_were_edited_are_refused(size: Table, copy: Path) -> None:
    path = copy / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["sizes"]["abrupt"] |= size
    path.write_text(json.dumps(manifest))
    if "arms" not in size:
        with pytest.raises(Damaged, match=SHAPE):
            load_results(copy).steps("abrupt", LABEL, "action")
    with pytest.raises(ValueError, match=r"another experiment: abrupt\.\w+ is"):
        play(SIX_RUNS, copy)


@pytest.mark.parametrize("text", ["[" * 10**5, '{"format":' * 10**4, "1" * 5000, "NaN", "\x00"])
def test_what_is_no_manifest_is_refused(text: str, copy: Path) -> None:
    (copy / "manifest.json").write_text(text)
    with pytest.raises(Damaged, match=r"manifest\.json is no manifest"):
        load_results(copy)
    (copy / "manifest.json").write_bytes(b"\xff\xfe")
    with pytest.raises(Damaged, match=r"manifest\.json is no manifest"):
        load_results(copy)


def test_an_experiment_that_no_folder_takes_is_refused(tmp_path: Path) -> None:
    for change in ({"seeds": 10**8, "batch": 10**8}, {"seeds": 10**6, "batch": 1}):
        with pytest.raises(ValueError, match=r"'seeds'|larger batch"):
            play(SIX_RUNS | change, tmp_path / "out")
    assert not list(tmp_path.rglob("*.json"))


links = pytest.mark.skipif(os.name != "posix", reason="links may need a right of their own")
NAMES = ("log.txt", "timings.csv", "manifest.json", "experiment.toml", ".lock", ".report.lock")


@links
@pytest.mark.parametrize("name", [*NAMES, "figures", "units", "units/abrupt", "units/abrupt/sw"])
def test_links_within_a_folder_are_refused(name: str, copy: Path, tmp_path: Path) -> None:
    whole_name = name.replace("abrupt", "abrupt-*").replace("sw", "sw*")
    path = next(iter(sorted(copy.glob(whole_name))), copy / name)
    target = tmp_path / "outside"
    if path.exists():
        path.rename(target)
    else:
        target.mkdir()
    path.symlink_to(target)
    files = {one: one.read_bytes() for one in target.rglob("*") if one.is_file()}
    kept = target.read_bytes() if target.is_file() else b""
    for victim in tmp_path.rglob("0000004.npz"):
        victim.unlink()  # so that there is something to write
        files.pop(victim, None)
    for use in (
        lambda: play(SIX_RUNS, copy),
        lambda: load_results(copy, partial=True).final_regret("abrupt", LABEL),
    ):
        with pytest.raises(ValueError, match=rf"{path} is a link.* Remove it\."):
            use()
    assert not kept or target.read_bytes() == kept
    assert {one: one.read_bytes() for one in target.rglob("*") if one.is_file()} == files


@links
def test_a_link_to_a_unit_is_replaced(whole: Path, copy: Path, tmp_path: Path) -> None:
    path = sorted(copy.glob("units/*/sw*/0000000.npz"))[0]
    path.rename(tmp_path / "outside")
    kept = (tmp_path / "outside").read_bytes()
    path.symlink_to(tmp_path / "outside")
    with pytest.raises(Damaged, match="is a link"):
        load_results(copy).final_regret("abrupt", LABEL)
    part = path.with_name(f"{path.name}.part")
    part.symlink_to(tmp_path / "other")
    assert play(SIX_RUNS, copy) == []
    assert stored(copy) == stored(whole)
    assert not path.is_symlink()
    assert (tmp_path / "outside").read_bytes() == kept
    assert not (tmp_path / "other").exists()


@links
def test_the_folder_itself_may_be_a_link(whole: Path, copy: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(copy)
    next(copy.glob("units/*/sw*/0000000.npz")).unlink()
    assert play(SIX_RUNS, tmp_path / "link") == []
    assert stored(tmp_path / "link") == stored(whole)
    assert load_results(tmp_path / "link").horizon("abrupt") == 20


@links
def test_a_pipe_is_not_waited_for(copy: Path) -> None:
    path = sorted(copy.glob("units/*/sw*/0000000.npz"))[0]
    path.unlink()
    os.mkfifo(path)
    with pytest.raises(Damaged, match="is not an ordinary file"):
        load_results(copy).final_regret("abrupt", LABEL)
    (copy / "log.txt").unlink()
    os.mkfifo(copy / "log.txt")
    with pytest.raises(ValueError, match=r"log\.txt is not an ordinary file"):
        play(SIX_RUNS, copy)


def test_a_folder_in_the_place_of_a_unit_is_refused(copy: Path) -> None:
    path = sorted(copy.glob("units/*/sw*/0000000.npz"))[0]
    path.unlink()
    path.mkdir()
    with pytest.raises(ValueError, match=rf"{path} is not an ordinary file\. Remove it\."):
        play(SIX_RUNS, copy)
