"""The command on odd terminals, and where a picture fails: what was computed is shown and kept."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from benchmark_small import SIX_RUNS, play, write_toml

from wgp_agents import cli
from wgp_agents.benchmark import figures
from wgp_agents.benchmark.figures import figure1
from wgp_agents.theory.verify import plots
from wgp_agents.theory.verify import run as checks
from wgp_gym.drawing import new_figure

GREEK = SIX_RUNS | {"agent": [{"name": "random", "label": "\u03b7 0.9"}]}
NOTEBOOK = "module://matplotlib_inline.backend_inline"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("greek") / "results"
    play(GREEK, folder)
    return folder


@pytest.fixture
def broken() -> Iterator[io.TextIOWrapper]:
    """A stream whose reader has gone."""
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", buffering=1, encoding="utf-8") as stream:
        yield stream


@pytest.mark.parametrize("encoding", ["ascii", "cp1252"])
def test_letters_that_the_terminal_lacks_are_spelt_out(
    results: Path, encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(said, encoding=encoding))
    assert cli.main(["report", str(results), "--format", "md"]) == 0
    assert rb"\u03b7 0.9" in said.getvalue()
    assert "\u03b7 0.9" in (results / "report.md").read_text("utf-8")


def test_a_reader_who_has_seen_enough_is_no_error(
    results: Path, broken: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    (results / "report.md").unlink(missing_ok=True)
    monkeypatch.setattr(sys, "stdout", broken)
    assert cli.main(["report", str(results), "--format", "md"]) == 0
    assert (results / "report.md").exists()


def test_a_run_that_nobody_reads_is_not_said_to_be_whole(
    tmp_path: Path, broken: io.TextIOWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = write_toml(tmp_path / "small.toml", SIX_RUNS)
    monkeypatch.setattr(sys, "stderr", broken)
    assert cli.main(["run", str(file), "--jobs", "1", "--out", str(tmp_path / "out")]) == 1


def test_closed_streams_are_borne(results: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    try:
        assert cli.main(["report", str(results), "--format", "md"]) == 0
        assert cli.main(["report", str(results / "none")]) == 2
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.close()


def fails(*_: Any) -> None:
    raise RuntimeError("no ink,\nnone at all")


def test_verify_has_its_table_though_its_picture_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(checks, "CHECKS", checks.CHECKS[:1])
    words = ["verify", "--quick", "--out", str(tmp_path), "--jobs", "1"]
    assert cli.main(words) == 0
    monkeypatch.setattr(plots, "draw_page", fails)
    assert cli.main(words) == 1
    said = capsys.readouterr()
    assert "Theorem 1" in said.out
    error = "wgp-gym verify: error: the pictures were not drawn: RuntimeError: no ink, none at all"
    assert said.err.splitlines()[-1] == error
    assert {path.name for path in tmp_path.iterdir()} == {
        ".lock",
        "checks",
        "curves.csv",
        "manifest.json",
        "statements.csv",
    }


def test_a_report_has_its_tables_though_its_pictures_fail(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(figures, "write_figures", fails)
    (results / "summary.csv").unlink(missing_ok=True)
    assert cli.main(["report", str(results), "--format", "figures"]) == 1
    said = capsys.readouterr()
    assert "| \u03b7 0.9 |" in said.out
    assert said.err.startswith("wgp-gym report: error: the pictures were not drawn")
    assert len(said.err.splitlines()) == 1
    assert (results / "summary.csv").exists()


@pytest.mark.slow
def test_reproduce_has_its_report_though_its_picture_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(figure1, "pictures", fails)
    small = ["--seeds", "1", "--horizon", "5", "--jobs", "1", "--out", str(tmp_path)]
    assert cli.main(["reproduce", *small]) == 1
    said = capsys.readouterr()
    assert "report.html and the tables" in said.out
    assert "wgp-gym reproduce: error: the pictures were not drawn" in said.err
    assert (tmp_path / "report.html").exists()


def test_letters_that_a_font_lacks_are_told_in_one_line(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def _draw(*_: Any) -> None:
        figure = new_figure()
        figure.text(0.5, 0.5, "\u5b66\u7fd2")
        figure.savefig(io.BytesIO())

    monkeypatch.setattr(figures, "write_figures", _draw)
    assert cli.main(["report", str(results), "--format", "figures"]) == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("wgp-gym report: warning: Glyph ")
    assert line.endswith("(and 1 more)")


LIBRARY = """
import os, gymnasium, wgp_gym
env = gymnasium.make("WGPBandit-Abrupt-v0", render_mode="rgb_array")
env.reset(seed=0)
assert env.render().std() > 0
from wgp_gym.drawing import new_figure
import matplotlib
print(os.environ["MPLBACKEND"], matplotlib.get_backend(auto_select=False))
"""

COMMAND = """
import sys
from wgp_agents import cli
from wgp_agents.theory.verify import run as checks
checks.CHECKS = checks.CHECKS[:1]
code = cli.main(["verify", "--quick", "--jobs", "1", "--out", sys.argv[1]])
import matplotlib
print(code, matplotlib.get_backend())
"""


def last_line(program: str, backend: str, *arguments: str) -> str:
    """Return the last line that a program prints in a process of its own."""
    command = [sys.executable, "-W", "error", "-c", program, *arguments]
    done = subprocess.run(
        command,
        env=os.environ | {"MPLBACKEND": backend},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_pictures_need_no_backend_and_leave_the_user_s_alone() -> None:
    assert last_line(LIBRARY, "nonsense") == "nonsense None"
    assert last_line(LIBRARY, "svg") == "svg svg"


@pytest.mark.slow
def test_commands_draw_with_agg_whatever_a_notebook_says(tmp_path: Path) -> None:
    assert last_line(COMMAND, NOTEBOOK, str(tmp_path)) == "0 agg"
    assert (tmp_path / "verify.png").read_bytes().startswith(b"\x89PNG")
