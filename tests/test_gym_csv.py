"""Reading tables: what is accepted, and errors that name the place."""

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgp_gym.datasets import DATASETS, read_table
from wgp_gym.envs import BanditEnv

Make = Callable[..., BanditEnv]

GOOD = [
    ["Date", "AA", "BB", "CC"],
    ["2020-01-01", "1.5", "20", "3"],
    ["2020-01-02", "2.5", "10", "4e0"],
    ["2020-01-03", "2.0", "30", "5.25"],
    ["2020-01-06", "1.0", "25", "4.5"],
]
VALUES = [[1.5, 20, 3], [2.5, 10, 4], [2, 30, 5.25], [1, 25, 4.5]]


def changed(row: int, column: int, cell: str) -> list[list[str]]:
    rows = [list(cells) for cells in GOOD]
    rows[row][column] = cell
    return rows


def with_times(*times: str) -> list[list[str]]:
    return [GOOD[0], *([time, *row[1:]] for time, row in zip(times, GOOD[1:], strict=True))]


def write(path: Path, rows: list[list[str]], end: str = "\n") -> str:
    data = "".join(",".join(row) + end for row in rows).encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return str(path)


@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["unix", "windows"])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_reads(tmp_path: Path, suffix: str, end: str) -> None:
    table = read_table(write(tmp_path / f"prices{suffix}", GOOD, end), positive=True)
    assert table.names == ["AA", "BB", "CC"]
    assert table.times == ["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-06"]
    np.testing.assert_array_equal(table.values, VALUES)


def test_reads_quotes_spaces_and_a_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "quoted.csv"
    path.write_text('"Date","A, B", C \n2020-01-01, 1 ,"2"\n2020-01-02,3,4\n', "utf-8-sig")
    table = read_table(path)
    assert table.names == ["A, B", "C"]
    np.testing.assert_array_equal(table.values, [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    "times",
    [
        ("1", "2", "3", "10"),
        ("-1.5", "0", "1e3", "2e3"),
        ("2020-01-01T08:00", "2020-01-01T08:30", "2020-01-01T09:00", "2020-01-02T08:00"),
        ("2020-01-01 08:00:00", "2020-01-01 08:00:01", "2020-01-02 00:00:00", "2021-01-01 00:00"),
        ("1969-12-30", "1969-12-31", "1970-01-01", "1970-01-02"),
    ],
    ids=str,
)
def test_times(tmp_path: Path, times: tuple[str, ...]) -> None:
    assert read_table(write(tmp_path / "t.csv", with_times(*times))).times == list(times)


FAULTS: dict[str, tuple[list[list[str]], str]] = {
    "gap": (changed(2, 2, ""), r"row 3 \(2020-01-02\), column 'BB' must be a positive number"),
    "blank": (changed(3, 1, "  "), r"row 4 \(2020-01-03\), column 'AA' .* Got '  ' instead"),
    "text": (changed(1, 3, "n/a"), r"row 2 \(2020-01-01\), column 'CC' .* Got 'n/a' instead"),
    "nan": (changed(1, 3, "nan"), r"row 2 .*, column 'CC' .* Got 'nan' instead"),
    "infinite": (changed(1, 3, "inf"), r"row 2 .*, column 'CC' .* Got 'inf' instead"),
    "zero": (changed(4, 1, "0"), r"row 5 .*, column 'AA' must be a positive .* Got '0' instead"),
    "negative": (changed(4, 2, "-3"), r"row 5 .*, column 'BB' must be a positive .* Got '-3'"),
    "short row": ([*GOOD[:2], ["2020-01-02", "1", "2"]], r"row 3 .* 4 cells. Got 3"),
    "long row": ([*GOOD[:3], [*GOOD[3], "7"]], r"row 4 must have 4 cells. Got 5"),
    "empty row": ([*GOOD[:3], [""], GOOD[3]], r"row 4 must have 4 cells. Got"),
    "one stock": ([row[:2] for row in GOOD], r"at least two arms and two rows. Got 1 and 4"),
    "one day": (GOOD[:2], r"at least two arms and two rows. Got 3 and 1"),
    "nothing": ([], r"at least two arms and two rows. Got 0 and 0"),
    "twice the name": (changed(0, 3, "AA"), r"names the column 'AA' twice"),
    "constant": (
        [GOOD[0], *([r[0], r[1], "7", r[3]] for r in GOOD[1:])],
        r"column 'BB' must not be constant. Got 7 in every row",
    ),
    "same day": (changed(3, 0, "2020-01-02"), r"row 4 repeats the time 2020-01-02"),
    "unsorted": (changed(4, 0, "2020-01-02"), r"row 5 is earlier than the row above: 2020-01-02"),
    "no date": (
        changed(2, 0, "02/01/2020"),
        r"row 3, column 1 must be an ISO date .* '02/01/2020'",
    ),
    "no time": (changed(2, 0, ""), r"row 3, column 1 must be an ISO date"),
    "nan time": (changed(2, 0, "nan"), r"row 3, column 1 must be an ISO date"),
    "dates, then numbers": (with_times("2020-01-01", "2020-01-02", "3e9", "4e9"), "row 4 mixes"),
    "numbers, then dates": (with_times("1", "2", "2020-01-03", "2020-01-04"), "row 4 mixes"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults(tmp_path: Path, fault: str) -> None:
    rows, message = FAULTS[fault]
    path = write(tmp_path / "prices.csv", rows)
    with pytest.raises(ValueError, match=rf"prices\.csv.*{message}"):
        read_table(path, positive=True)


def test_faults_reach_the_user(tmp_path: Path, make_env: Make) -> None:
    path = write(tmp_path / "prices.csv", changed(2, 2, "-1"))
    with pytest.raises(ValueError, match=r"row 3 \(2020-01-02\), column 'BB' .* positive"):
        make_env("WGPBandit-Stock-v0", prices=path)
    assert make_env("WGPBandit-Table-v0", table=path).problem.horizon == 4  # no prices, no rule
    with pytest.raises(ValueError, match=r"column 'BB' must be a finite number. Got '' instead"):
        make_env("WGPBandit-Table-v0", table=write(tmp_path / "gap.csv", changed(2, 2, "")))


@pytest.mark.parametrize("source", ["no/such/file.csv", "dow30", "."])
def test_no_such_file(make_env: Make, source: str) -> None:
    with pytest.raises(FileNotFoundError, match=r"no file .* \(embedded: 'dow29', 'parking'\)"):
        make_env("WGPBandit-Stock-v0", prices=source)


def test_home_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "mine.csv", GOOD)
    monkeypatch.setenv("HOME", str(tmp_path))
    np.testing.assert_array_equal(read_table("~/mine.csv").values, VALUES)


@pytest.mark.parametrize(
    ("name", "shape", "first", "last"),
    [
        ("dow29", (823, 29), "2013-09-26", "2016-12-30"),
        ("parking", (1307, 16), "2016-10-04T08:00", "2016-12-19T16:30"),
    ],
)
def test_embedded_tables(name: str, shape: tuple[int, int], first: str, last: str) -> None:
    assert set(DATASETS) == {"dow29", "parking"}
    table = read_table(name, positive=name == "dow29")
    assert table.values.shape == shape
    assert (len(table.names), len(table.times)) == (shape[1], shape[0])
    assert (table.times[0], table.times[-1]) == (first, last)
    if name == "dow29":
        assert (table.values[0] == 100).all()
    else:
        assert 0 <= table.values.min() <= table.values.max() <= 1


def first_line(source: Any) -> str:
    path = Path(__file__).parents[1] / "wgp_gym" / "datasets" / DATASETS[source]
    return gzip.decompress(path.read_bytes()).decode().splitlines()[1]


@pytest.mark.parametrize("name", ["dow29", "parking"])
def test_embedded_numbers(name: str) -> None:
    time, *cells = first_line(name).split(",")
    table = read_table(name)
    assert table.times[0] == time
    assert table.values[0].tolist() == [float(cell) for cell in cells]


def test_blank_lines_at_the_end_do_not_count(tmp_path: Path) -> None:
    path = Path(write(tmp_path / "prices.csv", GOOD))
    path.write_text(path.read_text() + "\n\n")
    assert len(read_table(path).times) == len(GOOD) - 1


@pytest.mark.parametrize(("name", "data"), [("a.csv", b"\xff\xfe\x00x"), ("b.csv.gz", b"text")])
def test_a_file_that_is_no_text(tmp_path: Path, name: str, data: bytes) -> None:
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=rf"{name} must be .*UTF-8 text"):
        read_table(tmp_path / name)


def test_a_source_is_a_path_or_a_name() -> None:
    with pytest.raises(ValueError, match="The 'source' parameter of the table must be a path"):
        read_table(3)  # type: ignore[arg-type]
