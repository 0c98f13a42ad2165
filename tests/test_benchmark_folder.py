"""The folder of results: damage is noticed, other experiments are refused, old runs are kept."""

from __future__ import annotations

import csv
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from benchmark_small import (
    ABRUPT,
    CHANCE,
    SIX_RUNS,
    WINDOWS,
    Table,
    full_disk,
    members,
    play,
    stored,
    zipped,
)

from wgp_agents.benchmark.archive import unpack
from wgp_agents.benchmark.declaration import declare, read_declaration
from wgp_agents.benchmark.files import Damaged, versions
from wgp_agents.benchmark.folder import ResultsFolder
from wgp_agents.benchmark.layout import PER_RUN, PER_STEP
from wgp_agents.benchmark.manifest import describe
from wgp_agents.benchmark.play import attempt
from wgp_agents.benchmark.results import load_results


@pytest.mark.slow
def test_a_unit_is_an_ordinary_archive_of_its_arrays(whole: Path) -> None:
    folder = ResultsFolder.open(whole)
    for unit in folder.experiment.units():
        arrays = attempt(unit).arrays
        assert arrays is not None
        assert set(arrays) == {*PER_RUN, *PER_STEP}
        read = folder.read(unit)
        with np.load(folder.file(unit), allow_pickle=False) as plain:
            assert set(plain) == {*arrays, "identity"}
            assert json.loads(plain["identity"].tobytes()) == unit.identity | {"files": {}}
            for name, array in arrays.items():
                for found in (read[name], plain[name]):
                    assert found.dtype == array.dtype
                    np.testing.assert_array_equal(found, array)
    assert not list(whole.rglob("*.part"))


def test_no_two_units_share_a_file(tmp_path: Path) -> None:
    names = ["a b", "a_b", "x" * 70, "x" * 71]
    entries = [{"id": ABRUPT, "name": name} for name in names]
    made = declare(SIX_RUNS | {"environment": entries})
    folder = ResultsFolder(tmp_path, describe(made))
    files = [folder.file(unit) for unit in made.units()]
    assert len(set(files)) == len(files) == 4 * 9


@pytest.mark.slow
def test_a_flipped_bit_changes_no_number(whole: Path) -> None:
    folder = ResultsFolder.open(whole)
    unit = folder.experiment.units()[0]
    data, expected = folder.file(unit).read_bytes(), folder.read(unit)
    layout, identity = folder.size(unit.task).layout(len(unit.runs)), folder.identity(unit)

    def _same(damaged: bytes) -> bool:
        """Tell whether all numbers are read as they were: anything else must be refused."""
        try:
            found = unpack(damaged, layout, identity, expected)
        except Damaged:
            return False
        for name, array in expected.items():
            np.testing.assert_array_equal(found[name], array)
        return True

    flips = ((place, 1 << place % 8) for place in range(len(data)))
    same = sum(_same(data[:i] + bytes([data[i] ^ bit]) + data[i + 1 :]) for i, bit in flips)
    assert 0 < same < len(data) / 3  # dates, versions and attributes, which nobody reads
    assert not any(_same(data[:length]) for length in range(0, len(data), 7))


def test_a_folder_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """Its units end in a comment with their SHA-256; runs.csv is that version's own report."""
    folder = Path(__file__).parent / "golden" / "results-of-format-2"
    with (folder / "runs.csv").open(encoding="utf-8", newline="") as file:
        expected = list(csv.DictReader(file))
    found = load_results(folder)
    assert [{key: str(value) for key, value in row.items()} for row in found.rows()] == expected
    for row in expected:
        regret = found.cumulative_regret(row["task"], row["agent"])[int(row["run"]), -1]
        assert regret == pytest.approx(float(row["final_regret"]), rel=1e-6)
    copy = Path(shutil.copytree(folder, tmp_path / "copy"))
    if found.folder.manifest.versions["wgp-gym"] == versions()["wgp-gym"]:  # so that it may go on
        before = stored(copy)
        assert play(read_declaration(str(copy / "experiment.toml")), copy) == []
        assert stored(copy) == before


def file_of(folder: Path, window: int) -> Path:
    results = ResultsFolder.open(folder)
    units = results.experiment.units()
    return next(results.file(u) for u in units if u.agent.parameters.get("window") == window)


def flipped(path: Path, folder: Path) -> None:
    with np.load(path) as arrays:
        numbers = arrays["final_regret"].tobytes()
    data = bytearray(path.read_bytes())
    data[data.index(numbers)] ^= 64
    path.write_bytes(data)


def cut_short(path: Path, folder: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def swapped(path: Path, folder: Path) -> None:
    other = next(one for one in sorted(folder.rglob("*.npz")) if one.parent != path.parent)
    shutil.copy(other, path)


def of_other_runs(path: Path, folder: Path) -> None:
    shutil.copy(path.with_name("0000002.npz"), path)


def foreign(path: Path, folder: Path) -> None:
    with path.open("wb") as file:
        np.savez(file, regret=np.zeros(3))


def lacking_an_array(path: Path, folder: Path) -> None:
    parts = members(path.read_bytes())
    path.write_bytes(zipped({name: parts[name] for name in ("identity.npy", "regret.npy")}))


DAMAGES: dict[Callable[[Path, Path], None], str] = {
    flipped: "is damaged, or no archive of arrays (BadZipFile: Bad CRC-32 for file",
    cut_short: "is damaged, or no archive of arrays (BadZipFile: File is not a zip file).",
    swapped: "holds the results of another unit",
    of_other_runs: "holds the results of another unit",
    foreign: "holds other arrays: regret",
    lacking_an_array: "holds other arrays: identity, regret",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_damage_is_named_never_read_and_played_again(
    damage: Callable[[Path, Path], None], whole: Path, copy: Path
) -> None:
    path = sorted(copy.glob("units/*/sw*/0000000.npz"))[0]
    damage(path, copy)
    (label,) = (f"SW-GP-UCB window={w}" for w in (5, 10) if path == file_of(copy, w))
    for partial in (False, True):
        with pytest.raises(ValueError, match=re.escape(f"{path} {DAMAGES[damage]}")):
            load_results(copy, partial=partial).final_regret("abrupt", label)
    assert play(SIX_RUNS, copy) == []
    assert stored(copy) == stored(whole)
    log = (copy / "log.txt").read_text()
    assert log.count("WARNING") == 1
    assert f"{path} {DAMAGES[damage]}" in log
    assert "A run plays it again." in log
    assert "9 units, 1 to play" in log


CHANGES: list[tuple[Table, str]] = [
    ({"seeds": 5}, r"seeds is 6 there, and 5 here\. Choose another folder \(--extend only"),
    ({"seeds": 8}, r"seeds is 6 there, and 8 here\. Choose another folder or add --extend"),
    ({"root_seed": 1}, r"root_seed is 2022 there, and 1 here\. Choose another folder \(--ext"),
    ({"batch": 3}, r"batch is 2 there, and 3 here\. Choose another folder \(--extend only"),
    ({"horizon": 21}, r"tasks\.0\.kwargs\.horizon is 20 there, and 21 here\. Choose another f"),
    (
        {"agent": [{"name": "sw-gp-ucb", "label": "SW", "parameters": {"window": 5}}, CHANCE]},
        r'agents.0.label is .* there, and "SW" here',
    ),
    (
        {"agent": [{"name": "random", "label": "SW-GP-UCB window=5"}, CHANCE]},
        r'agents\.0\.name is "sw-gp-ucb" there, and "random" here',
    ),
    ({"agent": [WINDOWS, CHANCE, {"name": "oracle"}]}, r"agents\.3 is null there, and \{"),
]


@pytest.mark.parametrize(("change", "message"), CHANGES, ids=[message for _, message in CHANGES])
def test_another_experiment_is_refused_with_what_differs(
    change: Table, message: str, copy: Path
) -> None:
    before = stored(copy, ".npz", ".json", ".toml", ".csv")
    with pytest.raises(ValueError, match=f"holds results of another experiment: {message}"):
        play(SIX_RUNS | change, copy)
    assert stored(copy, ".npz", ".json", ".toml", ".csv") == before


def test_words_may_change(copy: Path) -> None:
    before = stored(copy)
    assert play(SIX_RUNS | {"title": "other", "description": "words"}, copy) == []
    assert stored(copy) == before
    assert load_results(copy).experiment.title == "other"


EXTENSIONS: dict[str, Table] = {
    "seeds": {"seeds": 9},
    "agents": {"agent": [CHANCE, {"name": "oracle"}, WINDOWS]},
    "a grid value": {
        "agent": [{"name": "sw-gp-ucb", "parameters": {"window": [4, 5, 10]}}, CHANCE]
    },
    "tasks": {"environment": [{"id": "WGPBandit-Slow-v0"}, *SIX_RUNS["environment"]]},
}


@pytest.mark.slow
@pytest.mark.parametrize("what", EXTENSIONS)
def test_extending_keeps_old_runs(what: str, copy: Path, tmp_path: Path) -> None:
    more = SIX_RUNS | EXTENSIONS[what]
    before, times = stored(copy), {path: path.stat().st_mtime_ns for path in copy.rglob("*.npz")}
    with pytest.raises(ValueError, match="--extend"):
        play(more, copy)
    assert play(more, copy, extend=True) == []
    after = stored(copy)
    assert len(after) > len(before)
    assert before.items() <= after.items()
    assert times == {path: path.stat().st_mtime_ns for path in times}
    play(more, tmp_path / "fresh")
    assert after == stored(tmp_path / "fresh")
    assert play(more, copy) == []
    assert "WARNING" not in (copy / "log.txt").read_text()
    with pytest.raises(ValueError, match="another experiment"):
        play(SIX_RUNS, copy, extend=True)


@pytest.mark.slow
def test_extending_keeps_a_batch_that_was_not_full(tmp_path: Path) -> None:
    few, some, many = (SIX_RUNS | {"seeds": seeds, "batch": 4} for seeds in (3, 5, 9))
    folder = tmp_path / "steps"
    play(few, folder)
    for more in (some, many):
        before = stored(folder)
        assert play(more, folder, extend=True) == []
        assert before.items() <= stored(folder).items()
    before = stored(folder)
    path = sorted(folder.glob("units/*/sw*/0000003.npz"))[0]
    path.unlink()
    assert play(many, folder) == []  # without --extend: the very same experiment
    assert stored(folder) == before
    assert "WARNING" not in (folder / "log.txt").read_text()
    play(many, tmp_path / "fresh")
    steps, fresh = load_results(folder), load_results(tmp_path / "fresh")
    assert list(steps.rows()) == list(fresh.rows())
    for label in fresh.agents:
        for name, array in fresh.read("abrupt", label).items():
            np.testing.assert_array_equal(steps.read("abrupt", label)[name], array)


@pytest.mark.parametrize(
    "change",
    [{"seeds": 4}, {"root_seed": 1}, {"batch": 3}, {"horizon": 30}, {"agent": [CHANCE]}],
    ids=lambda change: next(iter(change)),
)
def test_extending_refuses_what_is_no_part(change: Table, copy: Path) -> None:
    before = stored(copy, ".npz", ".json")
    with pytest.raises(ValueError, match=r"Choose another folder \(--extend only"):
        play(SIX_RUNS | change, copy, extend=True)
    assert stored(copy, ".npz", ".json") == before


def test_a_table_that_changed_is_refused(tmp_path: Path) -> None:
    table = tmp_path / "arms.csv"
    table.write_text("t,A,B\n" + "".join(f"{i},{i % 3},{i % 5}\n" for i in range(30)))
    entry = {"id": "WGPBandit-Table-v0", "kwargs": {"table": str(table)}}
    values = SIX_RUNS | {"environment": [entry], "agent": [CHANCE]}
    folder = tmp_path / "out"
    assert play(values, folder) == []
    sha = hashlib.sha256(table.read_bytes()).hexdigest()
    assert json.loads((folder / "manifest.json").read_text())["files"] == {str(table): sha}
    assert play(values, folder) == []
    table.write_text(table.read_text().replace("4,1,4", "4,1,5"))
    with pytest.raises(ValueError, match=r"arms\.csv is .*Choose another folder \(--extend only"):
        play(values, folder)
    with pytest.raises(ValueError, match=r"arms\.csv is .*Choose another folder \(--extend only"):
        play(values | {"seeds": 8}, folder, extend=True)


def test_other_folders_are_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"holds other files, as mine\.txt\. Choose an empty"):
        play(SIX_RUNS, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    with pytest.raises(ValueError, match=r"holds no results of `wgp-gym run`: it has no manifest"):
        load_results(tmp_path)
    with pytest.raises(NotADirectoryError):
        play(SIX_RUNS, tmp_path / "mine.txt")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is no manifest of `wgp-gym run`"),
        ("[]", "is no manifest of `wgp-gym run`"),
        ('{"format": "wgp-gym results 1"}', 'is of the format "wgp-gym results 1", not'),
        ('{"format": "wgp-gym results 2"}', "is no manifest of `wgp-gym run`"),
    ],
)
def test_other_manifests_are_refused(content: str, message: str, copy: Path) -> None:
    (copy / "manifest.json").write_text(content)
    for use in (lambda: play(SIX_RUNS, copy), lambda: load_results(copy)):
        with pytest.raises(ValueError, match=rf"manifest\.json {message}"):
            use()
    assert (copy / "manifest.json").read_text() == content


def test_results_of_another_version_are_refused(copy: Path) -> None:
    path = copy / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["versions"]["numba"] = "0.1"
    path.write_text(json.dumps(manifest))
    shutil.rmtree(next((copy / "units").glob("*/random*")))
    assert play(SIX_RUNS, copy) == []
    assert (
        "WARNING other versions than those of the runs before: numba"
        in (copy / "log.txt").read_text()
    )
    manifest["versions"]["wgp-gym"] = "0.0.1"
    path.write_text(json.dumps(manifest))
    with pytest.raises(ValueError, match=r"was played by wgp-gym 0\.0\.1, and this is"):
        play(SIX_RUNS, copy)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_disk_that_is_full_at_the_start_leaves_no_obstacle(whole: Path, tmp_path: Path) -> None:
    with (
        full_disk(tmp_path / "out" / "manifest.json"),
        pytest.raises(OSError, match="No space left"),
    ):
        play(SIX_RUNS, tmp_path / "out")
    (tmp_path / "out" / "manifest.json.part").write_text("{")  # cut short
    assert play(SIX_RUNS, tmp_path / "out") == []
    assert stored(tmp_path / "out") == stored(whole)
