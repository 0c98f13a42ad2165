"""Reading tables: what is accepted, and errors that name the place."""

import gzip
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from wgp_gym.datasets import DATASETS, locate, read_table, source, table
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
    "beyond 1e30": (changed(2, 2, "2e30"), r"row 3 .* in \[1e-30, 1e\+30\]. Got '2e30'"),
    "below 1e-30": (changed(2, 2, "2e-31"), r"row 3 .* in \[1e-30, 1e\+30\]. Got '2e-31'"),
    "comma": (changed(2, 2, '"2,5"'), r"Got '2,5' instead. Numbers have a decimal point"),
    "nearly constant": (
        [GOOD[0], *([r[0], f"1000000000000{i}", *r[2:]] for i, r in enumerate(GOOD[1:]))],
        r"column 'AA' must vary by at least 1e-12 of its size, .* subtract a constant",
    ),
    "long name": (changed(0, 2, "B" * 1001), "row 1 must have names of at most 1,000 characters"),
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


def put(folder: Path, text: str | bytes, name: str = "p.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "marked"])
@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators(tmp_path: Path, separator: str, mark: str) -> None:
    path = put(tmp_path, mark + "".join(separator.join(row) + "\n" for row in GOOD))
    table = read_table(path)
    assert table.names == ["AA", "BB", "CC"]
    np.testing.assert_array_equal(table.values, VALUES)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Day;Price, USD;Rate, p.a.\n1;2;3\n2;3;4\n", ["Price, USD", "Rate, p.a."]),
        ("Day,A; old,B; new\n1,2,3\n2,3,4\n", ["A; old", "B; new"]),
        ('Day;"A;B";"C, D, E"\n1;2;3\n2;3;4\n', ["A;B", "C, D, E"]),
        (",0,1\n1,2,3\n2,3,4\n", ["0", "1"]),  # numbers name columns where no time stands above
    ],
)
def test_separators_in_names(tmp_path: Path, text: str, names: list[str]) -> None:
    table = read_table(put(tmp_path, text))
    assert table.names == names
    np.testing.assert_array_equal(table.values, [[2, 3], [3, 4]])


@pytest.mark.parametrize(
    "text",
    [
        "Day;A;B\n2020-01-01;1,5;2,5\n2020-01-02;2,5;1,5\n",
        "2020-01-01;1,5;2,5\n2020-01-02;2,5;1,5\n",
        "Day\tA\tB\n1\t1,5\t2,5\n2\t2,5\t1,5\n",
    ],
)
def test_decimal_commas_are_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(
        ValueError, match=r"p\.csv, row . .*Got '1,5' instead. Numbers have a decimal"
    ):
        read_table(put(tmp_path, text), header=text.startswith("Day"))


def test_other_separators_are_named(tmp_path: Path) -> None:
    text = "".join("|".join(row) + "\n" for row in GOOD)
    message = "Got 0 and 4. Cells are separated by commas, semicolons or tabs; .* 'Date|AA|BB|CC'"
    with pytest.raises(ValueError, match=message.replace("|", r"\|")):
        read_table(put(tmp_path, text))


@pytest.mark.parametrize("first", ["2020-01-01", "1", "-1.5e3"])
def test_a_table_without_a_header(tmp_path: Path, make_env: Make, first: str) -> None:
    """A first row of numbers would be lost as names."""
    later = "2020-01-02" if first == "2020-01-01" else "2"
    path = str(put(tmp_path, f"{first},1,8\n{later},3,5\n"))
    for read in (
        lambda: read_table(path),
        lambda: make_env("WGPBandit-Table-v0", table=path),
        lambda: make_env("WGPBandit-Stock-v0", prices=path),
    ):
        with pytest.raises(ValueError, match=r"p\.csv, row 1 must name .* header=False"):
            read()
    table = read_table(path, header=False)
    assert (table.names, table.times) == (["arm 0", "arm 1"], [first, later])
    np.testing.assert_array_equal(table.values, [[1, 8], [3, 5]])
    env = make_env("WGPBandit-Table-v0", table=path, header=False)
    assert (env.problem.horizon, env.task.arm_names) == (2, ["arm 0", "arm 1"])
    assert make_env("WGPBandit-Stock-v0", prices=path, header=False).problem.horizon == 2


def test_header_is_true_or_false(make_env: Make) -> None:
    for name in ("WGPBandit-Table-v0", "WGPBandit-Stock-v0"):
        with pytest.raises(
            ValueError, match=r"'header' .* must be True or False. Got 'no' instead"
        ):
            make_env(name, header="no")
        with pytest.raises(ValueError, match=r"row 1 .* must be a .* number"):
            make_env(name, header=False)  # the embedded tables have one


@pytest.mark.parametrize("rows", [10, 20_000], ids=["short", "long"])
def test_a_stray_quotation_mark(tmp_path: Path, rows: int) -> None:
    lines = [f"{t},{t % 7},{t % 5}\n" for t in range(rows)]
    lines[3] = '3,"3,3\n'
    with pytest.raises(ValueError, match=r"p\.csv, row 5 must be CSV: "):
        read_table(put(tmp_path, "t,A,B\n" + "".join(lines)))
    with pytest.raises(ValueError, match=r"p\.csv, row 3 must be CSV: "):
        read_table(put(tmp_path, 't,A,B\n1,2,3\n2,"3"5,4\n'))  # no 35


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("t,A,B\n1,2," + "3" * 131_073 + "\n", "row 2 must be CSV: field larger"),
        ("t,A,B\n1,2," + "x" * 100_000 + "\n", "row 2 .*column 'B' must be a finite number"),
        ("t,A\0,B\n1,2,3\n", "UTF-8 text. Row 1 has a NUL"),
        ("t,A,B\n".encode("utf-16"), "UTF-8 text"),
        ("t" + ",a" * 10**6, "row 1 must have at most 1,000,000 characters"),
        ("t" + ",a" * 2001, "at most 2,000 arms. Got 2,001"),
        (b"\0" * 10**6, "UTF-8 text. Row 1 has a NUL"),
        ("\n" * 10**4, "Got 0 and 0. .* read as empty"),
    ],
    ids=["digits", "letters", "nul", "utf-16", "columns", "arms", "zeros", "blank"],
)
@pytest.mark.parametrize("name", ["p.csv", "p.csv.gz"])
def test_hostile_files(tmp_path: Path, text: str | bytes, message: str, name: str) -> None:
    data = text.encode() if isinstance(text, str) else text
    path = put(tmp_path, gzip.compress(data) if name.endswith("gz") else data, name)
    with pytest.raises(ValueError, match=rf"p\.csv.*{message}") as caught:
        read_table(path)
    assert len(str(caught.value)) < 500


def test_limits_of_a_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "p.csv.gz", GOOD)
    size = sum(len(",".join(row)) + 1 for row in GOOD)
    monkeypatch.setattr(source, "MAX_TEXT", size)
    monkeypatch.setattr(table, "MAX_CELLS", 20)
    assert read_table(path).values.shape == (4, 3)
    monkeypatch.setattr(table, "MAX_CELLS", 19)
    with pytest.raises(ValueError, match=r"p\.csv\.gz must have at most 19 cells"):
        read_table(path)
    monkeypatch.setattr(source, "MAX_TEXT", size - 1)
    with pytest.raises(ValueError, match=rf"at most {size - 1} characters, unpacked"):
        read_table(path)


def test_a_file_is_not_unpacked_into_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file of 40 kB that unpacks to 8 MB is left as soon as it passes the limit."""
    monkeypatch.setattr(source, "MAX_TEXT", 50_000)
    path = put(tmp_path, gzip.compress(b"t,A,B\n1,2,3\n" + b"\n" * 2**23, 1), "p.csv.gz")
    tracemalloc.start()
    with pytest.raises(ValueError, match="at most 50,000 characters, unpacked"):
        read_table(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e6


def test_damaged_gzip(tmp_path: Path) -> None:
    good = Path(write(tmp_path / "good.csv.gz", GOOD)).read_bytes()
    for damaged in (good[:-9], good[:20], good + b"rest", good[:15] + b"\xff" + good[16:]):
        with pytest.raises(ValueError, match=r"p\.csv\.gz must be gzip-compressed UTF-8 text"):
            read_table(put(tmp_path, damaged, "p.csv.gz"))


def test_paths_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link.csv").symlink_to(tmp_path / "pipe")
    names = [
        "/dev/zero",
        "a" * 5000,
        "a/" * 3000,
        "~nobody-of-this-name/p.csv",
        "a\0b",
        "",
        "\ud800",
    ]
    for name in [*names, str(tmp_path), str(tmp_path / "pipe"), str(tmp_path / "link.csv")]:
        with pytest.raises(
            FileNotFoundError, match=r"There is no file .* that can be read"
        ) as error:
            read_table(name)
        assert len(str(error.value)) < 300


@pytest.mark.skipif(not Path("/proc/self/mem").is_file(), reason="no such file on this system")
def test_a_file_that_cannot_be_read() -> None:
    with pytest.raises(ValueError, match=r"mem cannot be read: Input/output error\."):
        read_table("/proc/self/mem")


def test_where_a_table_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(write(tmp_path / "p.csv", GOOD))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("p.csv", "~/p.csv", str(path), path):
        assert locate(name, "table") == path
    for name in DATASETS:
        assert locate(name, "table").is_absolute()
        assert locate(name, "table").is_file()
