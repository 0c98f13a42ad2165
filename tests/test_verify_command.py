"""The command `wgp-gym verify`, used as a person would."""

from __future__ import annotations

import csv
import functools
import json
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from wgp_agents import cli
from wgp_agents.theory.verify import run as checks
from wgp_agents.theory.verify.plots import PANELS, load_curves
from wgp_agents.theory.verify.row import Check, Curve, Row
from wgp_agents.theory.verify.stored import ChecksFolder, Settings

ALL = checks.CHECKS


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "statements.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run with `--quick`, in two processes."""
    folder = tmp_path_factory.mktemp("verify")
    assert cli.main(["verify", "--quick", "--out", str(folder), "--jobs", "2"]) == 0
    return folder


@pytest.mark.slow
def test_every_statement_of_the_paper_has_a_row(quick: Path) -> None:
    found = {row["statement"] for row in rows_of(quick)}
    theorems = {"Theorem 1", "Theorem 2, fixed t", "Theorem 2, all t", "Theorem 3", "Theorem 4"}
    theorems |= {"Corollary 5", "Theorem 6", "Theorem 7", "Corollary 8"}
    theorems |= {"Remark 2", "Remark 3", "Remark 4", "Lemma 21, remark"}
    lemmas = {f"Lemma {number}" for number in (12, 13, 14, 15, 16, 17, 18, 19, 21)}
    others = {"Remark 1, Lemma 9", "Lemmas 17, 19", "Lemma 20, proof", "Section 6, end"}
    assert theorems | lemmas | others <= found


@pytest.mark.slow
def test_nothing_comes_out_otherwise_than_documented(quick: Path) -> None:
    rows = rows_of(quick)
    verdicts = {row["verdict"] for row in rows}
    assert verdicts - {"undecided"} == {"pass", "measured", "fails as documented", "vacuous"}
    assert all(row["documented"] == "says nothing" for row in rows if row["verdict"] == "vacuous")
    decided = {row["statement"] for row in rows if row["verdict"][:4] in ("pass", "fail")}
    claimed = {row["statement"] for row in rows if row["bound"]}
    assert claimed <= decided


@pytest.mark.slow
def test_the_time_uniform_claim_fails_and_is_repaired(quick: Path) -> None:
    shares: dict[str, list[float]] = {"paper": [], "union": [], "anytime": []}
    for row in rows_of(quick):
        if row["statement"] == "Theorem 2, all t" and "eta = 0.5" in row["instance"]:
            shares[row["claim"].rpartition(" ")[2]].append(float(row["measured"]))
    assert 0.1 < shares["paper"][0] < 0.9 < shares["paper"][-1]
    assert max(shares["union"] + shares["anytime"]) <= 0.1


@pytest.mark.slow
def test_the_page_has_all_its_curves(quick: Path) -> None:
    curves = load_curves(quick / "curves.csv")
    assert {curve.panel for curve in curves} == {panel.name for panel in PANELS}
    assert (quick / "verify.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.slow
def test_the_manifest_says_what_was_run(quick: Path) -> None:
    manifest = json.loads((quick / "manifest.json").read_text("utf-8"))
    assert manifest["settings"] == {"quick": True, "seed": 2022, "wgp-gym": version("wgp-gym")}
    assert manifest["versions"]["numpy"]


def few(monkeypatch: pytest.MonkeyPatch, *others: Any) -> None:
    """Leave the two fastest checks, and add others."""
    kept = tuple(check for check in ALL if check.__name__ in ("algebra", "constants"))
    assert len(kept) == 2
    monkeypatch.setattr(checks, "CHECKS", kept + others)
    monkeypatch.setattr(checks, "LONG", ())


@pytest.mark.slow
def test_the_seed_and_not_the_number_of_processes_decides(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    few(monkeypatch)
    for name, seed, jobs in (("one", "7", "1"), ("two", "7", "2"), ("other", "8", "1")):
        folder = str(tmp_path / name)
        assert cli.main(["verify", "--quick", "--out", folder, "--jobs", jobs, "--seed", seed]) == 0
    one, two, other = (rows_of(tmp_path / name) for name in ("one", "two", "other"))
    assert one == two
    assert one != other


def unexpected(quick: bool, seed: int) -> list[Row]:
    del quick, seed
    return [Row("Theorem 0", "one is at most zero", "arithmetic", 1.0, 0.0)]


def interrupted(quick: bool, seed: int) -> list[Row]:
    raise KeyboardInterrupt


def test_an_unexpected_outcome_is_exit_status_1(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few(monkeypatch, unexpected)
    assert cli.main(["verify", "--out", str(tmp_path), "--jobs", "1"]) == 1
    assert "Theorem 0           FAIL: 1 <= 0  slack -1" in capsys.readouterr().out


def test_an_interrupt_keeps_the_checks_that_are_done(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few(monkeypatch, interrupted)
    assert cli.main(["verify", "--out", str(tmp_path), "--jobs", "1"]) == 130
    assert "Interrupted" in capsys.readouterr().err
    assert {"Theorem 1", "Lemmas 17, 19"} <= {row["statement"] for row in rows_of(tmp_path)}


@pytest.mark.slow
def test_a_check_has_one_blas_thread(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    seen: list[int] = []

    def watched(quick: bool, seed: int) -> list[Row]:
        seen.extend(one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas")
        return []

    few(monkeypatch, watched)
    with threadpool_limits(2):
        assert cli.main(["verify", "--out", str(tmp_path), "--jobs", "1"]) == 0
    assert set(seen) == {1}


def rare(quick: bool, seed: int) -> list[Row | Curve]:
    """A check with all that numbers can be."""
    del quick, seed
    values = np.float64(0.1) + 0.2, 3, np.nan, np.inf, "says nothing"
    row = Row("Theorem 0", "a claim", "an instance", *values)
    open_row, x = Row("Theorem 0", "no claim", "an instance", np.float64(0.1)), np.arange(3.0)
    none = np.array([np.nan, 1 / 3, np.nan])
    return [row, open_row, Curve("growth", "a line", x, none, x / 7, none)]


@pytest.mark.slow
def test_after_an_interrupt_the_rest_is_checked_and_the_files_are_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    words = ["verify", "--jobs", "1", "--out"]
    few(monkeypatch, rare)
    assert cli.main([*words, str(tmp_path / "whole")]) == 0
    few(monkeypatch, interrupted, rare)
    assert cli.main([*words, str(tmp_path / "resumed")]) == 130
    first = checks.CHECKS[0]
    done: list[str] = []

    def watched(check: Check) -> Check:
        @functools.wraps(check)
        def _check(quick: bool, seed: int) -> Iterable[Row | Curve]:
            done.append(check.__name__)
            return check(quick, seed)

        return _check

    few(monkeypatch, rare)
    monkeypatch.setattr(checks, "CHECKS", tuple(map(watched, checks.CHECKS)))
    assert cli.main([*words, str(tmp_path / "resumed")]) == 0
    assert done == ["rare"] != [first.__name__]
    assert cli.main([*words, str(tmp_path / "resumed")]) == 0
    assert done == ["rare"]
    names = ["statements.csv", "curves.csv", "manifest.json", "verify.png"]
    names += [f"checks/{check.__name__}.json" for check in checks.CHECKS]
    for name in names:
        whole, resumed = (tmp_path / folder / name for folder in ("whole", "resumed"))
        assert whole.read_bytes() == resumed.read_bytes(), name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("others", "told"),
    [
        (["--seed", "7"], "seed is 2022 there, and 7 here"),
        (["--quick"], "quick is false there, and true here"),
    ],
)
def test_other_settings_are_refused_and_overwrite_nothing(
    others: list[str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    few(monkeypatch)
    words = ["verify", "--out", str(tmp_path), "--jobs", "1"]
    assert cli.main(words) == 0
    before = contents(tmp_path)
    assert cli.main([*words, *others]) == 2
    text = f"{tmp_path} holds results of another run of the checks: {told}. Choose another folder."
    assert text in capsys.readouterr().err
    assert contents(tmp_path) == before


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_folder_of_something_else_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["verify", "--out", str(tmp_path), "--jobs", "1"]
    (tmp_path / "letter.txt").write_text("dear")
    assert cli.main(words) == 2
    assert "holds other files, as letter.txt" in capsys.readouterr().err
    (tmp_path / "manifest.json").write_text('{"format": "wgp-gym results 2"}')
    assert cli.main(words) == 2
    assert "manifest.json is no manifest of `wgp-gym verify`" in capsys.readouterr().err
    kept = {path.name for path in contents(tmp_path)} - {".lock"}
    assert kept == {"letter.txt", "manifest.json"}


def test_two_at_once_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few(monkeypatch)
    with ChecksFolder.open_to_write(tmp_path, Settings(False, 2022)):
        assert cli.main(["verify", "--out", str(tmp_path), "--jobs", "1"]) == 2
    assert f"Another process is writing to {tmp_path}." in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(
    "damage",
    [
        lambda text: text[:-9],
        lambda text: text.replace('"algebra"', '"coverage"'),
        lambda text: text.replace('"seed": 2022', '"seed": 2021'),
        lambda text: text.replace('"measured": ', '"measured": "1" , "x": '),
        lambda text: text.replace('"documented": ""', '"documented": 0'),
        lambda text: text.replace('"control": "', '"control": null, "x": "'),
        lambda text: text.replace('"bound"', '"bounds"'),
        lambda text: "[" * 100_000,
    ],
)
def test_damaged_findings_are_named_and_checked_again(
    damage: Callable[[str], str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    few(monkeypatch)
    words = ["verify", "--out", str(tmp_path), "--jobs", "1"]
    assert cli.main(words) == 0
    file, before = tmp_path / "checks" / "algebra.json", contents(tmp_path)
    changed = damage(file.read_text("utf-8"))
    assert changed != file.read_text("utf-8")
    file.write_text(changed, "utf-8")
    assert cli.main(words) == 0
    said = capsys.readouterr().err
    assert f"{file} holds" in said
    assert "It is checked again." in said
    assert contents(tmp_path) == before


def test_a_folder_that_cannot_be_made_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    assert cli.main(["verify", "--quick", "--out", str(tmp_path / "file" / "x")]) == 2
    assert "wgp-gym verify: error:" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_no_failed_statement(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    few(monkeypatch)
    words = ["verify", "--quick", "--out", str(tmp_path), "--jobs", "1"]
    assert cli.main(words) == 0
    (tmp_path / "statements.csv").unlink()
    (tmp_path / "statements.csv").mkdir()
    assert cli.main(words) == 2
    assert "statements.csv" in capsys.readouterr().err
    assert not (tmp_path / "verify.png").exists()
