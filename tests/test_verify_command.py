"""The command `wgp-gym verify`, used as a person would."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from wgp_agents import cli
from wgp_agents.verify import run as checks
from wgp_agents.verify.plots import PANELS, load_curves
from wgp_agents.verify.row import Findings, Row

NAMES = [check.__name__ for check in checks.CHECKS]


def rows_of(folder: Path) -> list[dict[str, str]]:
    with (folder / "statements.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def quick(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One quick run of everything, in two processes."""
    folder = tmp_path_factory.mktemp("verify")
    assert cli.main(["verify", "--quick", "--out", str(folder), "--jobs", "2"]) == 0
    return folder


def test_every_statement_of_the_paper_has_a_row(quick: Path) -> None:
    found = {row["statement"] for row in rows_of(quick)}
    theorems = {"Theorem 1", "Theorem 2, fixed t", "Theorem 2, all t", "Theorem 3", "Theorem 4"}
    theorems |= {"Corollary 5", "Theorem 6", "Theorem 7", "Corollary 8", "Remark 2"}
    lemmas = {f"Lemma {number}" for number in (12, 13, 14, 15, 16, 17, 18, 19, 21)}
    others = {"Remark 1, Lemma 9", "Lemmas 17, 19", "Lemma 20, proof", "Section 6, end"}
    assert theorems | lemmas | others <= found


def test_nothing_comes_out_otherwise_than_documented(quick: Path) -> None:
    verdicts = {row["verdict"] for row in rows_of(quick)}
    assert verdicts == {"pass", "measured", "the paper's statement fails, as documented"}


def test_the_time_uniform_claim_fails_and_is_repaired(quick: Path) -> None:
    shares: dict[str, list[float]] = {"paper": [], "union": [], "anytime": []}
    for row in rows_of(quick):
        if row["statement"] == "Theorem 2, all t" and "eta = 0.5" in row["instance"]:
            shares[row["claim"].rpartition(" ")[2]].append(float(row["measured"]))
    assert 0.1 < shares["paper"][0] < 0.9 < shares["paper"][-1]
    assert max(shares["union"] + shares["anytime"]) <= 0.1


def test_the_page_has_all_its_curves(quick: Path) -> None:
    curves = load_curves(quick / "curves.csv")
    assert {curve.panel for curve in curves} == {panel.name for panel in PANELS}
    assert (quick / "verify.png").read_bytes().startswith(b"\x89PNG")


def test_the_manifest_says_what_was_run(quick: Path) -> None:
    manifest = json.loads((quick / "manifest.json").read_text("utf-8"))
    assert manifest["quick"] is True
    assert manifest["checks"] == f"{len(NAMES)} of {len(NAMES)}"
    assert manifest["versions"]["numpy"]


def few(monkeypatch: pytest.MonkeyPatch, *others: Any) -> None:
    """Leave the two fastest checks, and add others."""
    kept = tuple(check for check in checks.CHECKS if check.__name__ in ("algebra", "constants"))
    assert len(kept) == 2
    monkeypatch.setattr(checks, "CHECKS", kept + others)
    monkeypatch.setattr(checks, "LONG", ())


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


def unexpected(quick: bool, seed: int) -> Findings:
    del quick, seed
    return Findings([Row("Theorem 0", "one is at most zero", "arithmetic", 1.0, 0.0)])


def interrupted(quick: bool, seed: int) -> Findings:
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
    manifest = json.loads((tmp_path / "manifest.json").read_text("utf-8"))
    assert manifest["checks"] == "2 of 3"


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
    (tmp_path / "statements.csv").mkdir()
    (tmp_path / "verify.png").write_text("an older page")
    assert cli.main(["verify", "--quick", "--out", str(tmp_path), "--jobs", "1"]) == 2
    assert "statements.csv" in capsys.readouterr().err
    assert not (tmp_path / "verify.png").exists()
