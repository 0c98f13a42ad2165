"""Folders of results, damaged at random: a documented error, or the same numbers."""

from __future__ import annotations

import json
import math
import os
import shutil
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmark_small import ABRUPT, CHANCE, Table, members, play, saved, stored, zipped
from fuzzing import HOSTILE
from hypothesis import given, settings
from hypothesis import strategies as st

from wgp_agents.benchmark.results import load_results

pytestmark = pytest.mark.slow

LONGEST = 1_500  # characters of a message, which names a file by its whole path
DRAWN = settings(HOSTILE, max_examples=80)
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([10**12, 10**400, -(10**4000), math.nan, math.inf, 0.5, "", "\r", "x" * 10**5]),
    st.text(max_size=5),
    st.lists(st.integers(), max_size=2),
    st.dictionaries(st.text(max_size=2), st.integers(), max_size=2),
    st.integers(1, 600).map(lambda levels: json.loads("[" * levels + "]" * levels)),
)


def experiment(table: Path) -> Table:
    return {
        "seeds": 3,
        "horizon": 5,
        "batch": 2,
        "environment": [
            {"id": ABRUPT, "kwargs": {"change_points": [[2, 4]], "points_per_dim": 9}},
            {"id": "WGPBandit-Table-v0", "kwargs": {"table": str(table)}},
        ],
        "agent": [{"name": "sw-gp-ucb", "parameters": {"window": 2}}, CHANCE],
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Table, Path]:
    folder = tmp_path_factory.mktemp("whole")
    table = folder / "p.csv"
    table.write_text("t,A,B\n" + "".join(f"{i},{i % 3},{i % 5}\n" for i in range(9)))
    values = experiment(table)
    assert play(values, folder / "out") == []
    return values, folder / "out"


def attacked(
    damage: Callable[[Path], None], values: Table, whole: Path, *, forged: bool = False
) -> None:
    """Damage a copy, read all of it and play the rest: what comes out is right, or an error.

    Where it is forged, numbers that could be right are as good: nobody can tell.
    """
    with tempfile.TemporaryDirectory() as name:
        copy = Path(shutil.copytree(whole, Path(name) / "copy"))
        damage(copy)
        told = error_of(lambda: compare(copy, whole, partial=True, forged=forged))
        again = error_of(lambda: play(values, copy))
        if not again and stored(copy) != stored(whole):  # bytes that say nothing may differ
            compare(copy, whole, partial=False, forged=forged)
        for text in (told, again):
            assert len(text) < LONGEST


def error_of(use: Callable[[], Any]) -> str:
    """Return the text of the documented error that something ends in, or nothing."""
    try:
        use()
    except ValueError as error:
        return str(error) or "no text"
    return ""


def compare(copy: Path, whole: Path, *, partial: bool, forged: bool) -> None:
    """Read all that there is, and compare it with what was played."""
    found, meant = load_results(copy, partial=partial), load_results(whole)
    for task in found.tasks:
        runs = found.runs(task)
        for agent in found.agents:
            expected = meant.read(task, agent)
            for name, array in found.read(task, agent).items():
                meant_here = expected[name][runs]
                assert (array.dtype, array.shape) == (meant_here.dtype, meant_here.shape)
                assert np.isfinite(array).all()
                assert array.min() >= 0
                if not forged:
                    np.testing.assert_array_equal(array, meant_here)
    runs_of_all = sum(len(found.runs(task)) for task in found.tasks)
    assert len(list(found.rows())) == runs_of_all * len(found.agents)


def units(folder: Path) -> list[Path]:
    return sorted(folder.glob("units/*/*/*.npz"))


@DRAWN
@given(st.data())
def test_bytes_of_any_file(whole: tuple[Table, Path], data: st.DataObject) -> None:
    def _damage(copy: Path) -> None:
        files = [*units(copy), *(path for path in sorted(copy.iterdir()) if path.is_file())]
        path = data.draw(st.sampled_from(files))
        content = bytearray(path.read_bytes())
        start = data.draw(st.integers(0, len(content)))
        stop = data.draw(st.integers(start, min(start + 40, len(content))))
        content[start:stop] = data.draw(st.binary(max_size=40))
        if data.draw(st.booleans()):
            del content[start:]
        path.write_bytes(bytes(content))

    attacked(_damage, *whole)


@DRAWN
@given(st.data())
def test_arrays_under_a_right_checksum(whole: tuple[Table, Path], data: st.DataObject) -> None:
    def _damage(copy: Path) -> None:
        path = data.draw(st.sampled_from(units(copy)))
        parts = members(path.read_bytes())
        name = data.draw(st.sampled_from(sorted(parts)))
        parts[name] = data.draw(st.one_of(arrays(), headers(), edits(parts[name])))
        if data.draw(st.booleans()):
            parts[data.draw(st.sampled_from([name, "more.npy", "../../out.npy"]))] = b"x"
        method = data.draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
        path.write_bytes(zipped(parts, method))

    attacked(_damage, *whole, forged=True)


def arrays() -> st.SearchStrategy[bytes]:
    """Return arrays of any type and shape, and of values that cannot be."""
    types = st.sampled_from(["f4", "f8", "i8", "u1", "?", "c8", "U3", "M8[s]", "V2", ">f8"])
    shapes = st.lists(st.integers(0, 6), max_size=3).map(tuple)
    bad = st.sampled_from([math.nan, -1, 255, math.inf, 1e300])
    cells = st.tuples(st.sampled_from([(2, 5), (1, 5), (2,), (1,)]), bad)

    def _filled(drawn: tuple[tuple[int, ...], float]) -> bytes:
        with np.errstate(all="ignore"):
            return saved(np.full(drawn[0], drawn[1]).astype(np.float32))

    typed = st.tuples(types, shapes).map(lambda one: saved(np.zeros(one[1], one[0])))
    return st.one_of(typed, cells.map(_filled))


def headers() -> st.SearchStrategy[bytes]:
    """Return headers that nobody has written, before few bytes or none."""
    signs = st.sampled_from(["(", "[", "{", "-", "'", "descr", ":", "(2, 5)", "None", "9" * 30])
    words = st.lists(signs, max_size=30).map("".join)
    deep = st.integers(1, 5000).map(lambda levels: "(" * levels + ")" * levels)
    shapes = st.sampled_from(["(2, 5)", "(2,)", "(10**9,)", "(2, 99999999999999)", "(True, 5)"])
    kinds = st.sampled_from(["'<f4'", "'|O'", "'<i8'", "[('a', '<f4')]", "('<f4', (2, 2))", "[]"])
    proper = st.tuples(shapes, kinds).map(
        lambda one: f"{{'descr': {one[1]}, 'fortran_order': False, 'shape': {one[0]}, }}\n"
    )
    text = st.one_of(words, deep, proper).map(str.encode)
    version = st.sampled_from([b"\x01\x00", b"\x02\x00", b"\x03\x00", b"\x09\x09"])
    return st.tuples(version, text, st.binary(max_size=80)).map(
        lambda one: b"\x93NUMPY" + one[0] + len(one[1]).to_bytes(2, "little") + one[1] + one[2]
    )


def edits(part: bytes) -> st.SearchStrategy[bytes]:
    """Return an array with other bytes at one place."""
    places = st.tuples(st.integers(0, len(part)), st.binary(min_size=1, max_size=4))
    return places.map(lambda one: part[: one[0]] + one[1] + part[one[0] + len(one[1]) :])


@DRAWN
@given(st.data())
def test_any_place_of_a_manifest(whole: tuple[Table, Path], data: st.DataObject) -> None:
    def _damage(copy: Path) -> None:
        path = copy / "manifest.json"
        manifest = json.loads(path.read_text())
        for _ in range(data.draw(st.integers(1, 2))):
            holder = manifest
            while True:
                keys = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
                if not keys:
                    break
                key = data.draw(st.sampled_from(keys))
                inner = holder[key]
                if isinstance(inner, (dict, list)) and data.draw(st.integers(0, 3)):
                    holder = inner
                    continue
                change(holder, key, data)
                break
        path.write_text(json.dumps(manifest))

    attacked(_damage, *whole)


def change(holder: Any, key: Any, data: st.DataObject) -> None:
    """Take a place of a manifest away, say it twice, name it otherwise or fill it otherwise."""
    how = data.draw(st.sampled_from(["take", "twice", "name", "fill", "fill", "fill"]))
    if how == "take":
        del holder[key]
    elif how == "twice" and isinstance(holder, list):
        holder.append(holder[key])
    elif how == "name" and isinstance(holder, dict):
        holder[data.draw(st.text(max_size=3))] = holder.pop(key)
    else:
        holder[key] = data.draw(ODD)


@settings(DRAWN, max_examples=30)
@given(st.data())
def test_other_things_than_files(whole: tuple[Table, Path], data: st.DataObject) -> None:
    def _damage(copy: Path) -> None:
        path = data.draw(st.sampled_from(sorted(copy.rglob("*"))))
        aside = copy.parent / "aside"
        path.rename(aside)
        kind = data.draw(st.sampled_from(["folder", "link", "nowhere", "file", "nothing", "pipe"]))
        if kind == "folder":
            path.mkdir()
        elif kind == "file":
            path.write_bytes(data.draw(st.binary(max_size=9)))
        elif kind in ("link", "nowhere"):
            path.symlink_to(aside if kind == "link" else copy.parent / "no")
        elif kind == "pipe" and hasattr(os, "mkfifo"):
            os.mkfifo(path)

    attacked(_damage, *whole)


@settings(DRAWN, max_examples=30)
@given(st.data())
def test_units_that_change_places(whole: tuple[Table, Path], data: st.DataObject) -> None:
    def _damage(copy: Path) -> None:
        order = data.draw(st.permutations(range(len(units(copy)))))
        contents = [path.read_bytes() for path in units(copy)]
        for path, i in zip(units(copy), order, strict=True):
            path.write_bytes(contents[i])

    attacked(_damage, *whole)
