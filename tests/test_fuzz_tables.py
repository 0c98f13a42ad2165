"""Random and hostile files: a table is read as it stands, or refused in one short message."""

import gzip
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from wgp_gym.datasets import DATASETS, Table, read_table, source, table

pytestmark = pytest.mark.slow

FEW = {"MAX_ARMS": 6, "MAX_CELLS": 60, "MAX_NAME": 20}
Grid = list[list[str]]


def fuzz(examples: int) -> Callable[[Any], Any]:
    return settings(
        derandomize=True,
        database=None,
        deadline=None,
        max_examples=examples,
        suppress_health_check=list(HealthCheck),
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables")


def refused(read: Callable[[], Any]) -> Any:
    """Return what was read, or None where it was refused in a short message."""
    try:
        return read()
    except ValueError as error:
        refusal = error
    assert type(refusal) is ValueError
    assert len(str(refusal)) < 1000
    assert str(refusal).isprintable()
    return None


def check(read: Table) -> None:
    assert read.values.shape == (len(read.times), len(read.names))
    assert min(read.values.shape) >= 2
    assert len(set(read.names)) == len(read.names)
    assert (np.abs(read.values) <= 1e30).all()
    assert (np.ptp(read.values, axis=0) > 0).all()


numbers = st.one_of(
    st.floats(-1e3, 1e3).map(repr),
    st.integers(-9, 9).map(str),
    st.sampled_from(["1e30", "-1e-300", "1e-29", "+.5", " 7 ", "3.0E+1"]),
)
EMPTY = ["", " ", "\ufeff", "nan", "inf", "-Infinity", "1e400", "1e-400", "9" * 400]
WRITTEN = ["1_0", "1,5", "1;5", "0x1p3", "=1+1", "\u0663", "1\r2", "1\n2", "1\x00", "\ud7ff"]
QUOTED = ['"', '""', '"1"', '"1', '1"', "'"]
hostile = st.sampled_from([*EMPTY, *WRITTEN, *QUOTED])
names = st.one_of(st.sampled_from(["A", "B", "2020-01-01", "1", "A" * 21]), st.text(max_size=4))
times = st.one_of(
    st.datetimes().map(str),
    st.datetimes(timezones=st.timezones()).map(lambda moment: moment.isoformat()),
    st.sampled_from(["0001-01-01T00:00+14:00", "9999-12-31T23:59-14:00", "2020-W01-1", "1e308"]),
    numbers,
    hostile,
)


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    """Draw a table's cells, mostly well-formed: a header, times that increase, numbers."""
    arms, rows = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    header = [draw(names) if draw(st.integers(0, 19)) == 0 else f"n{i}" for i in range(arms)]
    body = [[str(t), *(draw(numbers) for _ in range(arms))] for t in range(rows)]
    grid = [["t", *header], *body]
    if draw(st.integers(0, 3)) == 0:
        grid = body
    for _ in range(draw(st.sampled_from([0, 0, 0, 1, 1, 3]))):
        row = draw(st.sampled_from(grid))
        cell = draw(st.integers(0, len(row)))
        row[cell : cell + draw(st.integers(0, 1))] = [draw(times if cell == 0 else hostile)]
    return grid


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Draw the bytes of a file that looks like a table."""
    separator = draw(st.sampled_from([*",;\t" * 3, "|", ", ", " "]))
    end = draw(st.sampled_from(["\n", "\n", "\r\n", "\r", "\n\n"]))
    text = end.join(separator.join(row) for row in draw(grids()))
    text = draw(st.sampled_from(["", "", "", "\ufeff", "\ufeff", "\n", "sep=;\n"])) + text
    text += draw(st.sampled_from(["", "\n", "\n", "\n\n\n", "\n\n1,2"]))
    return text.encode(draw(st.sampled_from([*["utf-8"] * 8, "utf-16", "utf-7"])))


@pytest.fixture(autouse=True)
def low_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, limit in FEW.items():
        monkeypatch.setattr(table, name, limit)
    monkeypatch.setattr(source, "MAX_TEXT", 5000)
    monkeypatch.setattr(source, "MAX_LINE", 1000)


@fuzz(1500)
@given(
    data=st.one_of(st.binary(max_size=300), st.text().map(str.encode), files(), files()),
    bare=st.sampled_from([False, False, True]),
)
def test_any_bytes(folder: Path, data: bytes, bare: bool) -> None:
    path = folder / "any.csv"
    path.write_bytes(data)
    read = refused(lambda: read_table(path, header=not bare))
    if read is not None:
        check(read)
        lines = [line for line in data.decode("utf-8-sig").splitlines() if line.strip()]
        assert len(read.times) == len(lines) - (not bare) or '"' in data.decode()


@fuzz(1500)
@given(grid=grids(), separator=st.sampled_from(",;\t"), bare=st.sampled_from([False, False, True]))
def test_what_is_read_is_what_stands_there(
    folder: Path, grid: Grid, separator: str, bare: bool
) -> None:
    """Every cell is read as the number that it is, and no row of numbers as names."""
    quoted = [['"' + cell.replace('"', '""') + '"' for cell in row] for row in grid]
    path = folder / "grid.csv"
    path.write_bytes("\n".join(separator.join(row) for row in quoted).encode())
    read = refused(lambda: read_table(path, header=not bare))
    if read is None:
        return
    check(read)
    body = grid if bare else grid[1:]
    assert read.times == [row[0].strip() for row in body]
    np.testing.assert_array_equal(read.values, [[float(cell) for cell in row[1:]] for row in body])
    assert bare or not all(is_number(cell) for cell in grid[0])


def is_number(cell: str) -> bool:
    try:
        return math.isfinite(float(cell))
    except ValueError:
        return False


@fuzz(700)
@given(
    data=st.one_of(st.binary(max_size=200), files()),
    zeros=st.sampled_from([0, 0, 10**6]),
    filler=st.sampled_from([b"\n", b"\0", b"0", b",", b"1,2,3\n", b'"\n']),
    cut=st.integers(0, 200),
    flipped=st.integers(0, 2000),
)
def test_compressed_files(
    folder: Path, data: bytes, zeros: int, filler: bytes, cut: int, flipped: int
) -> None:
    """They may be damaged, or unpack to much more than they are."""
    packed = bytearray(gzip.compress(data + filler * zeros))
    if flipped < len(packed):
        packed[flipped] ^= 0x55
    path = folder / "any.csv.gz"
    path.write_bytes(packed[:-cut] if 0 < cut < 40 else packed)
    read = refused(lambda: read_table(path))
    if read is not None:
        check(read)
        assert not zeros


@fuzz(300)
@given(
    name=st.one_of(
        st.text(),
        st.text("/.~", max_size=9),
        st.text("a/", min_size=1).map(lambda text: text * 3000),
    )
)
def test_any_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    assume(name not in DATASETS)
    with pytest.raises(FileNotFoundError) as error:
        read_table("no-such-folder/" + name if name.startswith("/") else name)
    assert len(str(error.value)) < 300
    assert str(error.value).isprintable()


@st.composite
def scaled(draw: st.DrawFn) -> list[list[float]]:
    """Draw values that are large, small, or large beside what they differ by."""
    shape = draw(st.integers(2, 5)), draw(st.integers(2, 8))
    exponents = st.integers(-40, 34)
    offset = draw(st.sampled_from([0.0, 1.0])) * 10.0 ** draw(exponents)
    scale = 10.0 ** draw(exponents)
    return [
        [offset + scale * draw(st.integers(-9, 9)) for _ in range(shape[0])]
        for _ in range(shape[1])
    ]


@fuzz(800)
@given(
    values=scaled(),
    reward=st.sampled_from(["value", "complement"]),
    kernel=st.sampled_from(["empirical", "se", "linear"]),
    bound=st.sampled_from([None, None, 0, 1.0, 1e10]),
    budget=st.sampled_from([None, None, 0, 1.0, 1e-10]),
)
def test_rewards_of_any_size(
    folder: Path, values: list[list[float]], reward: str, kernel: str, bound: Any, budget: Any
) -> None:
    """The rewards of a row differ as its cells do, or the table is refused."""
    path = folder / "scaled.csv"
    rows = [["t", *(f"n{i}" for i in range(len(values[0])))]]
    rows += [[str(t), *map(repr, row)] for t, row in enumerate(values)]
    path.write_text("\n".join(map(",".join, rows)))
    given: dict[str, Any] = {
        "table": str(path),
        "reward": reward,
        "kernel": kernel,
        "noise_std": 0.0,
    }
    given |= {"norm_bound": bound, "variation_budget": budget}
    env = refused(lambda: gymnasium.make("WGPBandit-Table-v0", **given).unwrapped)
    if env is None:
        return
    truth = np.array(played(env, 0)[0])
    spread = np.ptp(truth, axis=1)
    usual = np.median(spread[spread > 0]) if spread.any() else 0
    for arm in range(truth.shape[1]):
        error = np.abs(np.array(played(env, arm)[1]) - truth[:, arm])
        apart = spread > 1e-15 * np.abs(truth).max(axis=1)
        assert (error[apart] <= 1e-3 * np.maximum(spread, usual)[apart]).all()


def played(env: Any, arm: int) -> tuple[list[Any], list[float]]:
    """Return the expected rewards of all arms, and what one pays, step by step."""
    env.reset(seed=0)
    truth, rewards = [], []
    for _ in range(env.problem.horizon):
        truth.append(env.expected_rewards())
        *_, info = step = env.step(arm)
        assert all(np.isfinite(value).all() for value in info.values())
        rewards.append(step[1])
    return truth, rewards
